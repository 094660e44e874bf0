
/*
 * The state: what accounts have used, in a file that outlives nginx.
 *
 * Its writer.  Generations of nginx have a zone each: a running nginx and one
 * that a binary upgrade has started, or the zones before and after a reload
 * that changed the zone's size.  The oldest generation that lives writes, by a
 * single one of its workers.  Two locks on FILE.lock determine both, on bytes
 * that stand for
 *
 *   a generation   the time at which its zone was made.  Its master and all of
 *                  its workers share one open file, and the lock on its byte
 *                  (OFD) stays until the last of them has ended
 *   the writer     byte 0, a lock of its process
 *
 * The master opens the file, so workers need no permission for it.
 *
 *   start     zone is new     birth(), start(): reads, is an older one alive?
 *             in each case    hold()
 *   tick      not the oldest, or another worker writes       nothing
 *             an older one was alive at the start            read, then give
 *             records were settled since the last state      write
 *
 * Each of these works in steps of less than a millisecond, one per iteration of
 * the event loop.
 */

#ifndef _NGX_HTTP_LLMGW_STATE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STATE_H_INCLUDED_


#include "keys/keys.h"
#include "proto/usage/past.h"


/*
 * Accounts handled each time that the zone's lock is held, which takes some
 * microseconds.
 */
#define NGX_HTTP_LLMGW_STATE_HOLD   16
#define NGX_HTTP_LLMGW_STATE_STEP   256


/*
 * A step.  NGX_AGAIN: it is to be called again, or the next step that it has
 * set; NGX_OK: done.
 */
typedef ngx_int_t (*ngx_http_llmgw_books_step_pt)(
    ngx_http_llmgw_books_file_t *books);


struct ngx_http_llmgw_books_file_s {
    ngx_http_llmgw_keys_t         *keys;
    ngx_fd_t                       lock;        /* FILE.lock */
    ngx_uint_t                     is_oldest;   /* when this generation began */
    ngx_event_t                    event;
    ngx_http_llmgw_books_step_pt   step;        /* NULL: no work is going on */

    /* reading */
    llmgw_past_t                  *past;
    size_t                         given;       /* accounts loaded, */
    ngx_uint_t                     ungiven;     /* and those for which there was
                                                   no room */
    ngx_log_t                     *log;

    /* writing */
    ngx_fd_t                       fd;          /* FILE.tmp */
    uint32_t                       account;     /* the next to be written */
    uint64_t                       lines;       /* about accounts */
    uint64_t                       next_n;      /* next_n when it was begun, */
    uint64_t                       saved_n;     /* and of the last state
                                                   written; 0: none by this
                                                   worker */
    ngx_uint_t                     failed;      /* and that was logged */
    size_t                         len;
    char                           text[(NGX_HTTP_LLMGW_STATE_STEP + 1)
                                        * LLMGW_STATE_LINE_BYTES];
};


/* state.c: appends a suffix to FILE; NULL: no memory.  To be freed. */
char *ngx_http_llmgw_books_path(const ngx_http_llmgw_keys_t *keys,
    const char *suffix, ngx_log_t *log);

/* Opens FILE.lock.  NGX_ERROR: the reason was logged. */
ngx_int_t ngx_http_llmgw_books_open(ngx_http_llmgw_keys_t *keys,
    ngx_log_t *log);

/*
 * 1: no generation older than that birth lives; birth NULL: none lives at all.
 */
ngx_uint_t ngx_http_llmgw_books_is_oldest(
    const ngx_http_llmgw_books_file_t *books, const char *birth);

/*
 * Begin to read or write the state, by setting the first step; NGX_ERROR: not
 * begun, and to be tried again.  state_read.c: all records below this
 * generation's birth.  state_write.c: only if records were settled since.
 */
ngx_int_t ngx_http_llmgw_books_read(ngx_http_llmgw_books_file_t *books,
    const char *birth);
ngx_int_t ngx_http_llmgw_books_write(ngx_http_llmgw_books_file_t *books);


#endif /* _NGX_HTTP_LLMGW_STATE_H_INCLUDED_ */

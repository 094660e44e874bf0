
/*
 * libcurl's multi interface on a libev loop: which sockets it waits for, and
 * its one timer.
 *
 * While libcurl calls a function of the user's (for bytes of an answer, for
 * example), it allows neither a new transfer nor the end of another one.  A
 * user that may need one there checks curl_loop_is_busy(), and defers the step
 * with curl_loop_defer() until libcurl has returned.
 */

#ifndef CURL_LOOP_H
#define CURL_LOOP_H

#include <curl/curl.h>
#include <ev.h>


/* A transfer has ended, and was taken off the multi handle. */
typedef void (*curl_loop_end_pt)(void *data, CURL *easy, CURLcode rc);

/*
 * A step that can be deferred.  The memory is the user's, and zero but for run.
 */
typedef struct curl_deferred_s  curl_deferred_t;

struct curl_deferred_s {
    curl_deferred_t  *next;
    void            (*run)(curl_deferred_t *step);
    int               is_deferred;
};

typedef struct {
    struct ev_loop    *loop;
    CURLM             *multi;
    ev_timer           timer;
    curl_loop_end_pt   on_end;
    void              *data;            /* for on_end */
    curl_deferred_t   *deferred;
    int                depth;           /* nested calls that make it busy */
} curl_loop_t;


/*
 * 0, or -1: no memory.  Options of the multi handle may be set afterwards.
 * on_end is called from the loop and from curl_loop_resume(), never from
 * within another call of the user's.
 */
int curl_loop_init(curl_loop_t *curl, struct ev_loop *loop,
    curl_loop_end_pt on_end, void *data);

/* Starts a transfer.  Not to be called within a callback of libcurl's.  0, or
   -1: no memory. */
int curl_loop_add(curl_loop_t *curl, CURL *easy);

/*
 * Ends a transfer, without on_end; its connection is closed unless the transfer
 * was complete.  Does nothing if the transfer was not started or has ended.
 * Not to be called within a callback of libcurl's.
 */
void curl_loop_remove(curl_loop_t *curl, CURL *easy);

/* Whether this is called within a callback of libcurl's, on_end, or a step. */
int curl_loop_is_busy(const curl_loop_t *curl);

/*
 * Runs the step as soon as the loop is not busy: if it is not busy now, before
 * this returns.  A step that is deferred already is not deferred twice.  The
 * step must stay in memory until its run() is called, which may free it.
 */
void curl_loop_defer(curl_loop_t *curl, curl_deferred_t *step);

/* Ends the pause of a transfer, which may deliver bytes at once. */
void curl_loop_resume(curl_loop_t *curl, CURL *easy);

/* No transfer and no deferred step may be left. */
void curl_loop_done(curl_loop_t *curl);

#endif /* CURL_LOOP_H */

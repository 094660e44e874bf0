
/*
 * A page: what one of this module's locations answers by itself, written in
 * slices.
 *
 * At a thousand replicas a page has half a megabyte.  Written in one go it
 * would delay the worker's streams, and be in memory as a whole.  So it is
 * written piece by piece, one slice per iteration of the event loop, and no
 * further until the client has taken the last slice.
 */

#ifndef _NGX_HTTP_LLMGW_PAGE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_PAGE_H_INCLUDED_


#include "conf/conf.h"
#include "pages/facts/fact.h"


#define NGX_HTTP_LLMGW_PAGE_BYTES    32768  /* of a slice, and of a buffer */


typedef struct ngx_http_llmgw_page_s  ngx_http_llmgw_page_t;

/* Writes the next piece, a few kilobytes at most.  1: there is more. */
typedef ngx_uint_t (*ngx_http_llmgw_page_pt)(ngx_http_llmgw_page_t *page);


/* Each page has a struct of its own, which begins with this one. */
struct ngx_http_llmgw_page_s {
    ngx_http_llmgw_writer_t       writer;
    ngx_http_llmgw_page_pt        next;
    ngx_http_request_t           *request;
    ngx_array_t                  *snapshots;    /* of pools and zones of keys */

    ngx_chain_t                  *out;          /* filled in this slice */
    ngx_chain_t                 **last;
    ngx_buf_t                    *buf;          /* the last in out */
    ngx_chain_t                  *busy;
    ngx_chain_t                  *free;
    size_t                        bytes;        /* of this slice */

    unsigned                      more:1;
    unsigned                      failed:1;     /* out of memory */
};


/*
 * A page of that size, zeroed, with snapshots, which are released at the
 * request's end.  NULL: out of memory.
 */
void *ngx_http_llmgw_page_create(ngx_http_request_t *r, size_t size);

/* Forbids caches to keep the answer.  NGX_ERROR: out of memory. */
ngx_int_t ngx_http_llmgw_page_no_store(ngx_http_request_t *r);

/*
 * Answers with what page->next() writes.  Called by a content handler, which
 * returns the result.  type must outlive the request.
 */
ngx_int_t ngx_http_llmgw_page_send(ngx_http_llmgw_page_t *page,
    ngx_str_t *type);

/* Space for len bytes, at most a buffer's; NULL: the page has failed. */
u_char *ngx_http_llmgw_page_room(ngx_http_llmgw_page_t *page, size_t len);

/* Sets the end of what was written into that space. */
void ngx_http_llmgw_page_wrote(ngx_http_llmgw_page_t *page, u_char *end);

/* Copies data of any length into the page. */
void ngx_http_llmgw_page_write(ngx_http_llmgw_page_t *page, const void *data,
    size_t len);


#endif /* _NGX_HTTP_LLMGW_PAGE_H_INCLUDED_ */


/*
 * Reads the body of an OpenAI request: into one block of memory, never into a
 * file, and then through core/openai, in a thread if it is large.
 *
 *     receive ----> READS ----> WALKS ----> received(), once
 *                     |           |
 *                     |           +-- the client goes: ends after the walk
 *                     +-- refused, too slow, no memory ----> with an error
 *                     +-- another body needs the room -----> the same, 408
 *                     +-- the client goes: the request ends without a call
 *
 * Allocated bytes count in the requests' share of the worker's memory until
 * they are released, at the request's end at the latest.  Before bytes arrive
 * nothing is allocated, whatever length the body announces; then the block
 * grows with the bytes received.
 */

#ifndef _NGX_HTTP_LLMGW_OPENAI_RECEIVE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OPENAI_RECEIVE_H_INCLUDED_


#include "core/body_memory.h"
#include "core/openai/affinity_key.h"
#include "fleet/pool.h"
#include "front/openai/path.h"


typedef struct {
    ngx_http_request_t            *request;
    ngx_http_llmgw_pool_t         *pool;        /* whose worker memory counts
                                                   it */
    ngx_http_llmgw_openai_asked_t  asked;
    ngx_uint_t                     prefix;      /* of the key, bytes */
    llmgw_openai_by_t              by;
    const ngx_http_llmgw_index_t  *index;       /* NULL: no blocks */

    llmgw_openai_body_t            body;        /* valid if there is no error */
    llmgw_openai_error_t           error;
    uint64_t                       key;         /* with prefix and by */
    uint64_t                      *blocks;      /* with index; in the
                                                   request's pool; or NULL */
    uint32_t                       nblocks;

    u_char                        *block;       /* the body's bytes */
    size_t                         len;
    size_t                         size;        /* of the block */
    size_t                         announced;   /* the size that it may reach */
    ngx_buf_t                     *buf;         /* nginx's, into the block */
    llmgw_holder_t                 holder;

    ngx_event_t                    guard;       /* while a thread walks */
    unsigned                       walks:1;
    unsigned                       gone:1;      /* the client left during the
                                                   walk */
    unsigned                       idle:1;      /* ended to make room */
} ngx_http_llmgw_openai_body_t;


/*
 * Called by a content handler, which returns the result: NGX_DONE, or one of
 * nginx's statuses for lack of memory.  received() may be called before it
 * returns.
 */
ngx_int_t ngx_http_llmgw_openai_receive(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, const ngx_http_llmgw_openai_asked_t *asked);

/*
 * openai.c: if body->error.status is 0 the body is valid.  Otherwise its bytes
 * are freed, and the request is to be answered with body->error.
 */
void ngx_http_llmgw_openai_received(ngx_http_llmgw_openai_body_t *body);

/*
 * Frees the bytes and what was read from them; they no longer count in the
 * worker's memory.
 */
void ngx_http_llmgw_openai_body_release(ngx_http_llmgw_openai_body_t *body);

/*
 * Counts so many bytes more, which the request needs beside its body until it
 * ends.  NGX_DECLINED: there is no room for them.
 */
ngx_int_t ngx_http_llmgw_openai_body_needs(ngx_http_llmgw_openai_body_t *body,
    size_t bytes);

/*
 * receive_block.c: the block that a body is read into.  Statuses are nginx's.
 */

/* Sets the size that the block may reach.  NGX_OK, or 413. */
ngx_int_t ngx_http_llmgw_openai_block_announce(
    ngx_http_llmgw_openai_body_t *body);

/*
 * Makes room for so many bytes more.  NGX_OK; 413; 503: the worker's memory is
 * used up.
 */
ngx_int_t ngx_http_llmgw_openai_block_room(ngx_http_llmgw_openai_body_t *body,
    size_t bytes);
ngx_int_t ngx_http_llmgw_openai_block_resize(
    ngx_http_llmgw_openai_body_t *body, size_t size);

/* Frees what was a body's block. */
void ngx_http_llmgw_openai_block_free(u_char *block, size_t size);

/* Makes nginx receive into the block, if it can.  Returns as block_room(). */
ngx_int_t ngx_http_llmgw_openai_block_adopt(
    ngx_http_llmgw_openai_body_t *body);

/* For core/body_memory.h: ends the holder's body to make room. */
void ngx_http_llmgw_openai_block_end(llmgw_holder_t *holder);

/* receive_walk.c */

/* Called by a directive, to make nginx start the threads */
ngx_int_t ngx_http_llmgw_openai_walk_threads(ngx_conf_t *cf);

/* Called when all bytes are there; calls finish() at once or later. */
void ngx_http_llmgw_openai_walk(ngx_http_llmgw_openai_body_t *body);

/* Calls received(), unless the client has left. */
void ngx_http_llmgw_openai_body_finish(ngx_http_llmgw_openai_body_t *body);


#endif /* _NGX_HTTP_LLMGW_OPENAI_RECEIVE_H_INCLUDED_ */

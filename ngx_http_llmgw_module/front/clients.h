
/*
 * A worker's state for its clients: the list of streams that have something to
 * do, the memory that tokens are packed into, and the client connections that
 * are corked until each of their streams has sent.
 */

#ifndef _NGX_HTTP_LLMGW_CLIENTS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CLIENTS_H_INCLUDED_


#include "front/stream.h"


#define NGX_HTTP_LLMGW_CHUNK_BYTES    256    /* a stream's first chunk */
#define NGX_HTTP_LLMGW_CHUNK_MAX      8192   /* the limit of the doubling */
#define NGX_HTTP_LLMGW_OUT_MAX        65536  /* bytes waiting for a client:
                                                beyond them text is added to the
                                                last event */
#define NGX_HTTP_LLMGW_CHUNKS_KEPT    1024   /* free ones of the first size */
#define NGX_HTTP_LLMGW_CORKED         512    /* connections at a time */
#define NGX_HTTP_LLMGW_SHARERS        256    /* cells of the survey: cork.c */
#define NGX_HTTP_LLMGW_ID_BYTES       16     /* random bytes of an id */
#define NGX_HTTP_LLMGW_IDS            16     /* ids drawn at a time */


struct ngx_http_llmgw_clients_s {
    ngx_event_t                   run;          /* posted */
    ngx_queue_t                   work;         /* of streams */
    ngx_http_llmgw_worker_t      *worker;
    ngx_log_t                    *log;
    ngx_chain_t                  *chunks;       /* the free ones: chunk.c */
    ngx_chain_t                  *heads;        /* for chunks, without bytes */
    ngx_uint_t                    nchunks;
    ngx_uint_t                    ncorked;
    ngx_uint_t                    nids;         /* ids not used yet */
    unsigned                      running:1;    /* the list is being worked
                                                   off */
    unsigned                      done:1;       /* its memory is being freed */
    u_char                        sharers[NGX_HTTP_LLMGW_SHARERS];
    u_char                        ids[NGX_HTTP_LLMGW_IDS]
                                     [NGX_HTTP_LLMGW_ID_BYTES];
    ngx_connection_t             *corked[NGX_HTTP_LLMGW_CORKED];
};


/* The worker's clients, created for its first stream.  NULL: no memory. */
ngx_http_llmgw_clients_t *ngx_http_llmgw_clients_get(
    ngx_http_llmgw_worker_t *worker);

/*
 * Puts the stream on the list: it is run once, at the end of the event loop's
 * iteration.  forget() takes it off the list again.
 */
void ngx_http_llmgw_clients_post(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_clients_forget(ngx_http_llmgw_stream_t *stream);


/* chunk.c: the memory that tokens are packed into */
ngx_chain_t *ngx_http_llmgw_chunk_get(ngx_http_llmgw_clients_t *clients,
    ngx_chain_t *last, size_t size);
void ngx_http_llmgw_chunk_sent(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_chunk_drop(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_chunk_cleanup(void *data);
void ngx_http_llmgw_chunk_done(ngx_http_llmgw_clients_t *clients);

/* cork.c: one write for all streams of a client connection */
void ngx_http_llmgw_cork_survey(ngx_http_llmgw_clients_t *clients);
void ngx_http_llmgw_cork(ngx_http_llmgw_clients_t *clients,
    ngx_http_request_t *r);
void ngx_http_llmgw_uncork(ngx_http_llmgw_clients_t *clients);


#endif /* _NGX_HTTP_LLMGW_CLIENTS_H_INCLUDED_ */

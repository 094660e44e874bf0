
/*
 * What a worker has once: its pools, one buffer for all reading and writing of
 * sessions, and the list of streams that have something to do.
 */

#ifndef _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_


#include "upstream/coalesce.h"
#include "zone/wake.h"


#define NGX_HTTP_LLMGW_IO_BYTES       65536  /* one read or write */
#define NGX_HTTP_LLMGW_CORKED         512    /* connections held in a turn */
#define NGX_HTTP_LLMGW_SHARERS        256    /* cells of the survey: cork.c */
#define NGX_HTTP_LLMGW_ID_BYTES       16     /* of a request id, random */
#define NGX_HTTP_LLMGW_IDS            16     /* drawn at a time */


typedef struct ngx_http_llmgw_stream_s  ngx_http_llmgw_stream_t;


struct ngx_http_llmgw_worker_s {
    ngx_event_t                   run;          /* posted */
    ngx_queue_t                   work;         /* streams that have some */
    ngx_http_llmgw_waker_t        waker;
    ngx_queue_t                   pools;
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_log_t                    *log;
    u_char                       *io;           /* NGX_HTTP_LLMGW_IO_BYTES */
    ngx_chain_t                  *chunks;       /* free ones: chunk.c */
    ngx_uint_t                    nchunks;
    ngx_connection_t            **corked;       /* NGX_HTTP_LLMGW_CORKED */
    ngx_uint_t                    ncorked;
    u_char                        sharers[NGX_HTTP_LLMGW_SHARERS];
    u_char                        ids[NGX_HTTP_LLMGW_IDS]
                                     [NGX_HTTP_LLMGW_ID_BYTES];
    ngx_uint_t                    nids;         /* of these not used yet */
    unsigned                      hands_out:1;  /* connections may be held */
    ngx_http_llmgw_coalesce_t     coalesce;
};


ngx_int_t ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_worker_done(void *data);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool(ngx_http_request_t *r);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
void ngx_http_llmgw_worker_post(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_worker_forget(ngx_http_llmgw_stream_t *stream);


#endif /* _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_ */

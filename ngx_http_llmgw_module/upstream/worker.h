
/*
 * What a worker has once: its pools, and one buffer for all reading and writing
 * of sessions.
 */

#ifndef _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_


#include "upstream/coalesce.h"
#include "zone/metrics.h"
#include "zone/wake.h"


#define NGX_HTTP_LLMGW_IO_BYTES       65536  /* one read or write */


struct ngx_http_llmgw_worker_s {
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_pool_t                   *memory;       /* the cycle's */
    ngx_log_t                    *log;
    ngx_queue_t                   pools;
    ngx_http_llmgw_waker_t        waker;
    ngx_http_llmgw_coalesce_t     coalesce;
    u_char                       *io;           /* NGX_HTTP_LLMGW_IO_BYTES */
    size_t                        body_bytes;   /* of llmgw_body_memory */
};


ngx_int_t ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_worker_done(void *data);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool(ngx_http_request_t *r);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);

/*
 * llmgw_body_memory: all that a worker keeps of its clients' requests and
 * answers; metrics show it as the pool's.  NGX_DECLINED: there is no room for
 * so many bytes, and none were taken.  Whoever takes bytes gives them back,
 * once.
 */
ngx_int_t ngx_http_llmgw_body_memory_take(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_body_t what, size_t bytes);
void ngx_http_llmgw_body_memory_give(ngx_http_llmgw_pool_t *pool,
    size_t bytes);


#endif /* _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_ */

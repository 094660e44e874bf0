
/* What a worker has once: its upstreams, and its memory for bodies. */

#ifndef _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_


#include "core/body_memory.h"

#include "zone/metrics.h"
#include "zone/wake.h"


typedef struct ngx_http_llmgw_asking_s  ngx_http_llmgw_asking_t;


struct ngx_http_llmgw_worker_s {
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_pool_t                   *memory;       /* the cycle's */
    ngx_log_t                    *log;
    ngx_queue_t                   upstreams;
    ngx_http_llmgw_waker_t        waker;
    const ngx_http_llmgw_fleet_events_t  *events;
    ngx_http_llmgw_asking_t      *asking;       /* attempt/'s own */
    llmgw_body_memory_t          *bodies;       /* fleet/body_memory.h */
};


ngx_int_t ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_worker_done(void *data);

/* NULL: no memory, in a single process whose configuration is new. */
ngx_http_llmgw_upstream_t *ngx_http_llmgw_worker_upstream(
    ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);

/*
 * The pool of requests without a model: in the upstream that the request's
 * location passes to, or in this one.
 */
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool(ngx_http_request_t *r);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);


#endif /* _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_ */

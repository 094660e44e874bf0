
/*
 * What a worker has once: its pools, and its account of memory.
 */

#ifndef _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_


#include "core/account.h"

#include "zone/metrics.h"
#include "zone/wake.h"


typedef struct ngx_http_llmgw_asking_s  ngx_http_llmgw_asking_t;


struct ngx_http_llmgw_worker_s {
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_pool_t                   *memory;       /* the cycle's */
    ngx_log_t                    *log;
    ngx_queue_t                   pools;
    ngx_http_llmgw_waker_t        waker;
    const ngx_http_llmgw_fleet_events_t  *events;
    ngx_http_llmgw_asking_t      *asking;       /* attempt/'s own */
    llmgw_account_t              *account;      /* of llmgw_body_memory */
};


ngx_int_t ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_worker_done(void *data);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool(ngx_http_request_t *r);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);

/*
 * The worker's account of memory for requests and answers, llmgw_body_memory;
 * metrics show what is held as the pool's.
 *
 * For answers and for what a resume needs.  NGX_DECLINED: the share has no room
 * for so many bytes, and none were taken.  What is taken is given back once.
 */
ngx_int_t ngx_http_llmgw_account_take(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes);
void ngx_http_llmgw_account_give(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes);

/* The holder of a request, whose client is known by the directive's key. */
void ngx_http_llmgw_account_holder(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, llmgw_holder_t *holder,
    void (*end)(llmgw_holder_t *holder));

/*
 * The request holds that many bytes from now on; 0 at its end.  NGX_DECLINED:
 * there is no room for more, and nothing changed.
 */
ngx_int_t ngx_http_llmgw_account_hold(ngx_http_llmgw_pool_t *pool,
    llmgw_holder_t *holder, size_t bytes);

/* A body was ended while it was read, so that another one had room. */
void ngx_http_llmgw_account_ended(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_WORKER_H_INCLUDED_ */


/*
 * A worker's own state, from before it accepts until it ends.
 */

#include "fleet/body_memory.h"
#include "fleet/events.h"


static void ngx_http_llmgw_worker_woken(void *data);


ngx_int_t
ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_pool_cleanup_t          *cln;
    ngx_http_llmgw_worker_t     *worker;
    ngx_http_llmgw_srv_conf_t  **conf;

    if (lmcf->upstreams.nelts == 0) {
        return NGX_OK;
    }

    worker = ngx_pcalloc(cycle->pool, sizeof(ngx_http_llmgw_worker_t));
    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (worker == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    worker->conf = lmcf;
    worker->events = lmcf->rooms->events;
    worker->log = cycle->log;
    worker->memory = cycle->pool;
    ngx_queue_init(&worker->upstreams);
    worker->bodies = ngx_http_llmgw_body_memory_create(lmcf, cycle->pool);

    if (worker->bodies == NULL
        || worker->events->worker_begins(worker, cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    lmcf->worker = worker;

    cln->handler = ngx_http_llmgw_worker_done;
    cln->data = lmcf;

    worker->waker.woken = ngx_http_llmgw_worker_woken;
    worker->waker.data = worker;
    worker->waker.conf = lmcf;
    worker->waker.log = cycle->log;

    if (ngx_http_llmgw_wake_listen(&worker->waker, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    conf = lmcf->upstreams.elts;

    for (i = 0; i < lmcf->upstreams.nelts; i++) {
        conf[i]->upstream = ngx_http_llmgw_upstream_create(conf[i], worker);
        if (conf[i]->upstream == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_http_llmgw_pool_t *
ngx_http_llmgw_worker_pool(ngx_http_request_t *r)
{
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    return ngx_http_llmgw_worker_pool_of(r, llcf->upstream);
}


ngx_http_llmgw_pool_t *
ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = ngx_http_llmgw_worker_upstream(r, us);

    return upstream ? upstream->main : NULL;
}


/*
 * A single process (master_process off) that reloads runs no init_process: the
 * worker's state begins with its first request.
 */

ngx_http_llmgw_upstream_t *
ngx_http_llmgw_worker_upstream(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llmgw_srv_conf_t   *conf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

    if (lmcf->worker == NULL
        && ngx_http_llmgw_worker_init(lmcf, (ngx_cycle_t *) ngx_cycle)
           != NGX_OK)
    {
        return NULL;
    }

    conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llmgw_module);

    return conf->upstream;
}


/* Called when the cycle's pool or the process ends, whichever comes first. */

void
ngx_http_llmgw_worker_done(void *data)
{
    ngx_queue_t                 *q;
    ngx_http_llmgw_worker_t     *worker;
    ngx_http_llmgw_main_conf_t  *lmcf = data;

    worker = lmcf->worker;

    if (worker == NULL) {
        return;
    }

    lmcf->worker = NULL;

    while (!ngx_queue_empty(&worker->upstreams)) {
        q = ngx_queue_head(&worker->upstreams);
        ngx_http_llmgw_upstream_destroy(
            ngx_queue_data(q, ngx_http_llmgw_upstream_t, queue));
    }

    worker->events->worker_ends(worker);
    ngx_http_llmgw_wake_done(&worker->waker);
}


/*
 * Another worker has found that a claim of ours is the head and may claim
 * again.
 */

static void
ngx_http_llmgw_worker_woken(void *data)
{
    ngx_uint_t                  i;
    ngx_queue_t                *q;
    ngx_http_llmgw_worker_t    *worker = data;
    ngx_http_llmgw_upstream_t  *upstream;

    for (q = ngx_queue_head(&worker->upstreams);
         q != ngx_queue_sentinel(&worker->upstreams);
         q = ngx_queue_next(q))
    {
        upstream = ngx_queue_data(q, ngx_http_llmgw_upstream_t, queue);

        for (i = 0; i < upstream->conf->npools; i++) {
            if (upstream->pools[i]) {
                worker->events->woken(upstream->pools[i]);
            }
        }
    }
}

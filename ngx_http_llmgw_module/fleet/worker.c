
/*
 * What a worker has once, from before it accepts until it ends.
 */

#include "core/ring/ring.h"
#include "fleet/events.h"


static llmgw_account_t *ngx_http_llmgw_worker_account(
    ngx_http_llmgw_main_conf_t *lmcf, ngx_pool_t *memory);
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
    ngx_queue_init(&worker->pools);
    worker->account = ngx_http_llmgw_worker_account(lmcf, cycle->pool);

    if (worker->account == NULL
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
        conf[i]->pool = ngx_http_llmgw_pool_create(conf[i], worker);
        if (conf[i]->pool == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static llmgw_account_t *
ngx_http_llmgw_worker_account(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_pool_t *memory)
{
    llmgw_account_t  *account;

    account = ngx_palloc(memory, sizeof(llmgw_account_t));

    if (account) {
        llmgw_account_init(account, lmcf->body_memory,
                           lmcf->body_client != NULL);
    }

    return account;
}


/*
 * The pool that the request's location passes to.  A single process
 * (master_process off) that reloads runs no init_process: its first request
 * is what begins.
 */

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

    return conf->pool;
}


/* Of the cycle's pool, and of the process's end: whichever comes first. */

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

    while (!ngx_queue_empty(&worker->pools)) {
        q = ngx_queue_head(&worker->pools);
        ngx_http_llmgw_pool_destroy(
            ngx_queue_data(q, ngx_http_llmgw_pool_t, queue));
    }

    worker->events->worker_ends(worker);
    ngx_http_llmgw_wake_done(&worker->waker);
}


/* Another worker says that a claim of ours is the head and may claim again. */

static void
ngx_http_llmgw_worker_woken(void *data)
{
    ngx_queue_t              *q;
    ngx_http_llmgw_worker_t  *worker = data;

    for (q = ngx_queue_head(&worker->pools);
         q != ngx_queue_sentinel(&worker->pools);
         q = ngx_queue_next(q))
    {
        worker->events->woken(
            ngx_queue_data(q, ngx_http_llmgw_pool_t, queue));
    }
}


ngx_int_t
ngx_http_llmgw_account_take(ngx_http_llmgw_pool_t *pool, llmgw_share_t share,
    size_t bytes)
{
    if (!llmgw_account_take(pool->worker->account, share, bytes)) {
        ngx_http_llmgw_metrics_body_refusal(pool->zone, share);
        return NGX_DECLINED;
    }

    ngx_http_llmgw_metrics_body_bytes(pool->zone, share, bytes);

    return NGX_OK;
}


void
ngx_http_llmgw_account_give(ngx_http_llmgw_pool_t *pool, llmgw_share_t share,
    size_t bytes)
{
    llmgw_account_give(pool->worker->account, share, bytes);
    ngx_http_llmgw_metrics_body_bytes(pool->zone, share, - (ssize_t) bytes);
}


/* Requests without the key's value are one client. */

void
ngx_http_llmgw_account_holder(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, llmgw_holder_t *holder,
    void (*end)(llmgw_holder_t *holder))
{
    ngx_str_t                  key;
    ngx_http_complex_value_t  *client;

    client = pool->worker->conf->body_client;

    if (client == NULL || ngx_http_complex_value(r, client, &key) != NGX_OK) {
        ngx_str_null(&key);
    }

    llmgw_holder_init(holder, pool->worker->account,
                      llmgw_ring_hash(key.data, key.len), end);
}


ngx_int_t
ngx_http_llmgw_account_hold(ngx_http_llmgw_pool_t *pool,
    llmgw_holder_t *holder, size_t bytes)
{
    ssize_t  change;

    change = bytes - holder->bytes;

    if (!llmgw_holder_hold(holder, bytes)) {
        ngx_http_llmgw_metrics_body_refusal(pool->zone, LLMGW_SHARE_REQUESTS);
        return NGX_DECLINED;
    }

    ngx_http_llmgw_metrics_body_bytes(pool->zone, LLMGW_SHARE_REQUESTS,
                                      change);

    return NGX_OK;
}


void
ngx_http_llmgw_account_ended(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_metrics_body_refusal(pool->zone, NGX_HTTP_LLMGW_BODY_IDLE);
}

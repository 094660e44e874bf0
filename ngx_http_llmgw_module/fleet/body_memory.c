
/* A worker's memory for bodies and answers, and how metrics show it. */

#include "core/ring/ring.h"
#include "fleet/body_memory.h"


llmgw_body_memory_t *
ngx_http_llmgw_body_memory_create(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_pool_t *pool)
{
    llmgw_body_memory_t  *memory;

    memory = ngx_palloc(pool, sizeof(llmgw_body_memory_t));

    if (memory) {
        llmgw_body_memory_init(memory, lmcf->body_memory,
                               lmcf->body_client != NULL);
    }

    return memory;
}


ngx_int_t
ngx_http_llmgw_body_memory_take(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes)
{
    if (!llmgw_body_memory_take(pool->worker->bodies, share, bytes)) {
        ngx_http_llmgw_metrics_body_refusal(pool->upstream->zone, share);
        return NGX_DECLINED;
    }

    ngx_http_llmgw_metrics_body_bytes(pool->upstream->zone, share, bytes);

    return NGX_OK;
}


void
ngx_http_llmgw_body_memory_give(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes)
{
    llmgw_body_memory_give(pool->worker->bodies, share, bytes);
    ngx_http_llmgw_metrics_body_bytes(pool->upstream->zone, share,
                                      - (ssize_t) bytes);
}


/* Requests without a value of the key count as one client. */

void
ngx_http_llmgw_body_memory_holder(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, llmgw_holder_t *holder,
    void (*end)(llmgw_holder_t *holder))
{
    ngx_str_t                  key;
    ngx_http_complex_value_t  *client;

    client = pool->worker->conf->body_client;

    if (client == NULL || ngx_http_complex_value(r, client, &key) != NGX_OK) {
        ngx_str_null(&key);
    }

    llmgw_holder_init(holder, pool->worker->bodies,
                      llmgw_ring_hash(key.data, key.len), end);
}


ngx_int_t
ngx_http_llmgw_body_memory_hold(ngx_http_llmgw_pool_t *pool,
    llmgw_holder_t *holder, size_t bytes)
{
    ssize_t  change;

    change = bytes - holder->bytes;

    if (!llmgw_holder_hold(holder, bytes)) {
        ngx_http_llmgw_metrics_body_refusal(pool->upstream->zone,
                                            LLMGW_SHARE_REQUESTS);
        return NGX_DECLINED;
    }

    ngx_http_llmgw_metrics_body_bytes(pool->upstream->zone,
                                      LLMGW_SHARE_REQUESTS,
                                      change);

    return NGX_OK;
}


void
ngx_http_llmgw_body_memory_ended(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_metrics_body_refusal(pool->upstream->zone,
                                        NGX_HTTP_LLMGW_BODY_IDLE);
}

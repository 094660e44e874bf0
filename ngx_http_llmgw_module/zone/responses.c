
#include "zone/responses.h"


void
ngx_http_llmgw_responses_make_locked(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, size_t size)
{
    void      *memory;
    uint32_t   nsets;

    nsets = llmgw_responses_sets(size / NGX_HTTP_LLMGW_RESPONSES_SHARE);

    memory = nsets ? ngx_slab_calloc_locked(shpool,
                                            llmgw_responses_bytes(nsets))
                   : NULL;

    if (memory) {
        shared->responses = llmgw_responses_init(memory, nsets);
    }
}


void
ngx_http_llmgw_responses_note(ngx_http_llmgw_zone_t *zone,
    const ngx_str_t *id, const llmgw_response_t *response)
{
    llmgw_responses_t  *all;

    all = zone->shared->responses;

    if (all) {
        ngx_http_llmgw_zone_lock(zone);
        llmgw_responses_note(all, id->data, id->len, response);
        ngx_http_llmgw_zone_unlock(zone);
    }
}


ngx_int_t
ngx_http_llmgw_responses_find(ngx_http_llmgw_zone_t *zone,
    const ngx_str_t *id, llmgw_response_t *response)
{
    int                 rc;
    llmgw_responses_t  *all;

    all = zone->shared->responses;

    if (all == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_zone_lock(zone);
    rc = llmgw_responses_find(all, id->data, id->len, response);
    ngx_http_llmgw_zone_unlock(zone);

    return rc ? NGX_OK : NGX_DECLINED;
}


#include "zone/takeovers.h"


ngx_uint_t
ngx_http_llmgw_takeovers_see(ngx_http_llmgw_zone_t *zone, const char *name,
    const llmgw_takeover_view_t *view, llmgw_takeover_t **found)
{
    ngx_uint_t  is_new;

    is_new = 0;

    ngx_http_llmgw_zone_lock(zone);

    *found = llmgw_takeovers_find(zone->shared->takeovers, name);

    if (*found) {
        /* 0 means "never" there */
        is_new = llmgw_takeover_see(*found, view, ngx_max(ngx_current_msec, 1));
    }

    ngx_http_llmgw_zone_unlock(zone);

    return is_new;
}


/*
 * Called for each first token of an attempt; nearly always, no takeover waits
 * for one.
 */

void
ngx_http_llmgw_takeovers_token(ngx_http_llmgw_zone_t *zone,
    llmgw_takeover_t *takeover, uint64_t process)
{
    if (takeover == NULL || !takeover->awaits_token) {
        return;
    }

    ngx_http_llmgw_zone_lock(zone);
    llmgw_takeover_token(takeover, process, ngx_current_msec);
    ngx_http_llmgw_zone_unlock(zone);
}

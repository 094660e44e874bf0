
/*
 * The recent past of each slot: rates of the last second, and the times to the
 * first token of the last minutes.
 *
 * A counter's rate is its growth since the last look, made once a second by the
 * first worker that gets to it.  First tokens are weighed: each counts for
 * NGX_HTTP_LLMGW_RECENT_WEIGHT, and every half minute all weights are halved,
 * so that the quantiles describe the present and forget an outage of last week;
 * a slot with no first token for some minutes has none.  A weight that is added
 * in the instant of a halving may be lost, which no quantile notices.
 */

#include "zone/zone.h"


#define NGX_HTTP_LLMGW_RECENT_WEIGHT   1024
#define NGX_HTTP_LLMGW_RECENT_HALF_MS  30000
#define NGX_HTTP_LLMGW_RECENT_RATE_MS  1000


static void ngx_http_llmgw_recent_rate(ngx_http_llmgw_slot_t *slot,
    float seconds);


/* The first token of an attempt, ms after its lease began. */

void
ngx_http_llmgw_recent_first_token(ngx_http_llmgw_slot_t *slot, ngx_msec_t ms)
{
    ngx_uint_t         i;
    const ngx_msec_t  *bounds;

    bounds = ngx_http_llmgw_metrics_bounds(
                 NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds);

    for (i = 0; bounds[i] && ms > bounds[i]; i++) {
        /* void */
    }

    (void) __sync_fetch_and_add(&slot->first_token[i],
                                NGX_HTTP_LLMGW_RECENT_WEIGHT);
}


void
ngx_http_llmgw_recent_update_locked(ngx_http_llmgw_zone_shared_t *shared)
{
    uint32_t                i, k;
    ngx_msec_t              elapsed;
    ngx_uint_t              halve;
    ngx_http_llmgw_slot_t  *slot;

    elapsed = ngx_current_msec - shared->rated_ms;

    if ((ngx_msec_int_t) elapsed < NGX_HTTP_LLMGW_RECENT_RATE_MS) {
        return;
    }

    shared->rated_ms = ngx_current_msec;

    halve = ngx_current_msec - shared->decayed_ms
            >= NGX_HTTP_LLMGW_RECENT_HALF_MS;

    if (halve) {
        shared->decayed_ms = ngx_current_msec;
    }

    for (i = 0; i < shared->admission->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->admission.id_len == 0) {
            continue;
        }

        ngx_http_llmgw_recent_rate(slot, elapsed / 1000.0f);

        for (k = 0; halve && k < NGX_HTTP_LLMGW_NFIRST_TOKEN; k++) {
            slot->first_token[k] /= 2;
        }
    }
}


static void
ngx_http_llmgw_recent_rate(ngx_http_llmgw_slot_t *slot, float seconds)
{
    uint64_t  tokens, attempts;

    tokens = slot->tokens;
    attempts = slot->attempts;

    slot->tokens_rate = (tokens - slot->tokens_seen) / seconds;
    slot->attempts_rate = (attempts - slot->attempts_seen) / seconds;
    slot->tokens_seen = tokens;
    slot->attempts_seen = attempts;
}


/* sum: NGX_HTTP_LLMGW_NFIRST_TOKEN weights */

void
ngx_http_llmgw_recent_add(uint64_t *sum, const ngx_http_llmgw_slot_t *slot)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_LLMGW_NFIRST_TOKEN; i++) {
        sum[i] += slot->first_token[i];
    }
}

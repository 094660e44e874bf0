
/* llmgw_status: a pool as a whole, without its gateways and replicas. */

#include "pages/status.h"
#include "proto/grpc/session.h"


typedef struct {
    json_int_t                    in_flight;
    json_int_t                    slots;
    double                        tokens_rate;
    double                        attempts_rate;
    uint64_t                      tokens;
    uint64_t                      attempts;
    uint64_t                      failures;
    uint64_t                      first_token[NGX_HTTP_LLMGW_NFIRST_TOKEN];
} ngx_http_llmgw_status_sum_t;


static void ngx_http_llmgw_status_slots(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_status_sum_t *sum);
static json_t *ngx_http_llmgw_status_view(ngx_http_llmgw_pool_t *pool);
static json_t *ngx_http_llmgw_status_totals(
    ngx_http_llmgw_counters_t *counters, ngx_http_llmgw_status_sum_t *sum);
static json_t *ngx_http_llmgw_status_requests(
    ngx_http_llmgw_counters_t *counters);
static json_t *ngx_http_llmgw_status_named(const uint64_t *counts,
    ngx_uint_t n, const char *(*name)(ngx_uint_t i));
static json_t *ngx_http_llmgw_status_histograms(
    ngx_http_llmgw_counters_t *counters);
static json_t *ngx_http_llmgw_status_times(const uint64_t *counts,
    const ngx_msec_t *bounds, uint64_t sum_ms);


json_t *
ngx_http_llmgw_status_pool(ngx_http_llmgw_snapshot_t *snapshot)
{
    ngx_http_llmgw_pool_t        *pool;
    const llmgw_model_list_t     *model;
    ngx_http_llmgw_status_sum_t   sum;

    pool = snapshot->pool;
    model = llmgw_models_base(&pool->models.known);

    ngx_http_llmgw_status_slots(pool->zone, &sum);

    return json_pack("{s:s%, s:s?, s:o, s:I, s:I, s:I, s:{s:I, s:I}, s:o, "
                     "s:o, s:o, s:o, s:{s:f, s:f}, s:o, s:o, s:o}",
                     "name", pool->conf->name.data, pool->conf->name.len,
                     "model", model ? model->names : NULL,
                     "view", ngx_http_llmgw_status_view(pool),
                     "streams", (json_int_t) snapshot->levels.streams,
                     "in_flight", sum.in_flight,
                     "sessions", (json_int_t) snapshot->levels.sessions,
                     "zone",
                     "slots", (json_int_t) pool->zone->self.shared->nslots,
                     "used", sum.slots,
                     "queue", ngx_http_llmgw_status_queue(pool),
                     "policy", ngx_http_llmgw_status_policy(pool->conf),
                     "prefix_index", ngx_http_llmgw_status_index(pool->conf),
                     "admission", ngx_http_llmgw_status_admission(pool),
                     "rates",
                     "tokens", sum.tokens_rate,
                     "attempts", sum.attempts_rate,
                     "first_token",
                     ngx_http_llmgw_status_quantiles(sum.first_token),
                     "totals",
                     ngx_http_llmgw_status_totals(&snapshot->sum, &sum),
                     "histograms",
                     ngx_http_llmgw_status_histograms(&snapshot->sum));
}


/* Sums all slots, also those whose replica is no longer listed. */

static void
ngx_http_llmgw_status_slots(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_status_sum_t *sum)
{
    uint32_t                       i;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = zone->shared;
    ngx_memzero(sum, sizeof(ngx_http_llmgw_status_sum_t));

    ngx_http_llmgw_zone_lock(zone);

    sum->tokens = shared->tokens_base;
    sum->attempts = shared->attempts_base;
    sum->failures = shared->failures_base;

    for (i = 0; i < shared->admission->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->admission.id_len == 0) {
            continue;
        }

        sum->slots++;
        sum->in_flight += slot->admission.counts.in_flight;
        sum->tokens += slot->tokens;
        sum->attempts += slot->attempts;
        sum->failures += slot->failures;
        sum->tokens_rate += slot->tokens_rate;
        sum->attempts_rate += slot->attempts_rate;
        ngx_http_llmgw_recent_add(sum->first_token, slot);
    }

    ngx_http_llmgw_zone_unlock(zone);
}


static json_t *
ngx_http_llmgw_status_view(ngx_http_llmgw_pool_t *pool)
{
    uint64_t  now;

    if (pool->reader == NULL) {
        return json_pack("{s:n, s:n, s:b, s:I, s:b, s:i}", "source", "age_ms",
                         "stale", 0, "generation", (json_int_t) 0,
                         "isolated", 0, "members", 0);
    }

    now = ngx_http_llmgw_monotonic_ms();

    return json_pack("{s:s%, s:o, s:b, s:I, s:b, s:I}",
                     "source", pool->conf->members.data,
                     pool->conf->members.len,
                     "age_ms", pool->generation
                     ? json_integer((json_int_t)
                                    (now - pool->view.heartbeat_ms))
                     : json_null(),
                     "stale", (int) ngx_http_llmgw_pool_is_stale(pool),
                     "generation", (json_int_t) pool->generation,
                     "isolated", pool->view.isolated,
                     "members", (json_int_t) pool->view.n);
}


static json_t *
ngx_http_llmgw_status_totals(ngx_http_llmgw_counters_t *counters,
    ngx_http_llmgw_status_sum_t *sum)
{
    json_t  *totals;

    totals = json_pack("{s:I, s:I, s:I, s:o}",
                       "tokens", (json_int_t) sum->tokens,
                       "attempts", (json_int_t) sum->attempts,
                       "failures", (json_int_t) sum->failures,
                       "requests", ngx_http_llmgw_status_requests(counters));

#define NGX_HTTP_LLMGW_STATUS_COUNTER(name, label, n, help)                   \
    (void) json_object_set_new(totals, #name,                                 \
               ngx_http_llmgw_status_named(counters->name, n,                 \
                                       ngx_http_llmgw_metrics_name_##name));

    NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_STATUS_COUNTER)

    return totals;
}


/* Lists only counts above 0: most pairs of code and reason never happen. */

static json_t *
ngx_http_llmgw_status_requests(ngx_http_llmgw_counters_t *counters)
{
    json_t      *list;
    uint64_t     n;
    ngx_uint_t   code, reason;

    list = json_array();

    for (code = 0; code < NGX_HTTP_LLMGW_NCODES; code++) {
        for (reason = 0; reason < LLMGW_NREASONS; reason++) {
            n = counters->requests[code][reason];

            if (n) {
                (void) json_array_append_new(list,
                    json_pack("{s:s, s:s, s:I}",
                              "code", llmgw_grpc_status_name(code),
                              "reason",
                              ngx_http_llmgw_metrics_reason_name(reason),
                              "count", (json_int_t) n));
            }
        }
    }

    return list;
}


/* {"connect": 3, ...}; a value without a name is not counted: left out. */

static json_t *
ngx_http_llmgw_status_named(const uint64_t *counts, ngx_uint_t n,
    const char *(*name)(ngx_uint_t i))
{
    json_t      *object;
    ngx_uint_t   i;

    object = json_object();

    for (i = 0; i < n; i++) {
        if (name(i)) {
            (void) json_object_set_new(object, name(i),
                                       json_integer((json_int_t) counts[i]));
        }
    }

    return object;
}


static json_t *
ngx_http_llmgw_status_histograms(ngx_http_llmgw_counters_t *counters)
{
    json_t      *object;
    ngx_uint_t   index;

    object = json_object();
    index = 0;

#define NGX_HTTP_LLMGW_STATUS_HISTOGRAM(name, buckets, help)                  \
    (void) json_object_set_new(object, #name,                                 \
               ngx_http_llmgw_status_times(counters->name.counts,             \
                                   ngx_http_llmgw_metrics_bounds(index++),    \
                                   counters->name.sum_ms));

    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_STATUS_HISTOGRAM)

    return object;
}


json_t *
ngx_http_llmgw_status_group_times(const llmgw_group_t *group)
{
    return ngx_http_llmgw_status_times(group->first_token,
               ngx_http_llmgw_metrics_bounds(
                   NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds),
               group->first_token_ms);
}


/* counts has one entry more than bounds: for what lies above the last. */

static json_t *
ngx_http_llmgw_status_times(const uint64_t *counts, const ngx_msec_t *bounds,
    uint64_t sum_ms)
{
    json_t      *upper, *shown;
    uint64_t     total;
    ngx_uint_t   i;

    upper = json_array();
    shown = json_array();
    total = 0;

    for (i = 0; i == 0 || bounds[i - 1]; i++) {
        total += counts[i];
        (void) json_array_append_new(shown,
                                     json_integer((json_int_t) counts[i]));

        if (bounds[i]) {
            (void) json_array_append_new(upper, json_real(bounds[i] / 1000.0));
        }
    }

    return json_pack("{s:o, s:o, s:f, s:I}", "bounds", upper,
                     "counts", shown, "sum", sum_ms / 1000.0,
                     "count", (json_int_t) total);
}


/*
 * Pools: what all workers counted, how a pool chooses, and what it admits.
 * Words are those of the directives.
 */

#include "conf/admit.h"
#include "pages/facts/snapshot.h"
#include "proto/grpc/session.h"


/* With each metric: which of its values are shown. */
#define NGX_HTTP_LLMGW_POOL_METRICS(X)                                        \
    X(queue_length, GAUGE, FRACTION, ALL, "Requests waiting in the queue")    \
    X(queue_size, GAUGE, FRACTION, ALL,                                       \
      "Requests that may wait in the queue")                                  \
    X(saturation, GAUGE, PERMILLE, ALL,                                       \
      "How full the fleet is, by saturation= of llmgw_queue")                 \
    X(view_age_seconds, GAUGE, MS, SHARED,                                    \
      "Age of the agent's last heartbeat")                                    \
    X(view_stale, GAUGE, FRACTION, SHARED,                                    \
      "1: the agent is silent, nginx routes by its last view")                \
    X(view_isolated, GAUGE, FRACTION, SHARED,                                 \
      "1: the agent is cut off from gossip")                                  \
    X(view_members, GAUGE, FRACTION, SHARED, "Members in the segment")        \
    X(models_unrouted, GAUGE, FRACTION, SHARED,                               \
      "Base models that got no pool of the upstream's")                       \
    X(streams, GAUGE, FRACTION, ALL, "Requests that run or wait")             \
    X(sessions, GAUGE, FRACTION, ALL, "Connections to replicas")              \
    X(held, GAUGE, FRACTION, ALL,                                             \
      "Requests that wait because no replica is routable")                    \
    X(held_total, TOTAL, ONE, ALL,                                            \
      "Requests that have begun to wait because no replica was routable")     \
    X(saturation_unknown, COUNTER, ONE, ALL,                                  \
      "Decisions that held no request back, as no replica reported its load")

#define POOL_INDEX(name_, kind_, unit_, which_, help_)  M_##name_,
#define POOL_ROW(name_, kind_, unit_, which_, help_)                          \
    [M_##name_] = { .name = #name_, .help = help_,                            \
                    .kind = NGX_HTTP_LLMGW_##kind_,                           \
                    .unit = NGX_HTTP_LLMGW_##unit_,                           \
                    .which = NGX_HTTP_LLMGW_##which_ },

#define COUNTER_INDEX(name_, label, n, help)     M_##name_,
#define COUNTER_ROW(name_, label, n, help)                                    \
    METRIC_LABELLED(name_, COUNTER, ONE, ALL, help,                           \
                    { #label, n, ngx_http_llmgw_metrics_name_##name_ })
#define HISTOGRAM_INDEX(name_, buckets, help)    M_##name_,
#define HISTOGRAM_ROW(name_, buckets, help_)                                  \
    [M_##name_] = { .name = #name_, .help = help_,                            \
                    .kind = NGX_HTTP_LLMGW_HISTOGRAM,                         \
                    .bounds = NGX_HTTP_LLMGW_HISTOGRAM_##name_ },

enum {
    M_requests,
    NGX_HTTP_LLMGW_COUNTERS(COUNTER_INDEX)
    NGX_HTTP_LLMGW_HISTOGRAMS(HISTOGRAM_INDEX)
    NGX_HTTP_LLMGW_POOL_METRICS(POOL_INDEX)
    M_body_bytes,
    M_members
};


static const char *
ngx_http_llmgw_pool_code(unsigned i)
{
    return llmgw_grpc_status_name(i);
}


#define METRICS  ngx_http_llmgw_pool_metrics

static const ngx_http_llmgw_metric_t  METRICS[] = {

    METRIC_LABELLED(requests, COUNTER, ONE, RARE, "Requests that have ended",
                    { "code", NGX_HTTP_LLMGW_NCODES, ngx_http_llmgw_pool_code },
                    { "reason", LLMGW_NREASONS,
                      ngx_http_llmgw_metrics_reason_name })

    NGX_HTTP_LLMGW_COUNTERS(COUNTER_ROW)
    NGX_HTTP_LLMGW_HISTOGRAMS(HISTOGRAM_ROW)
    NGX_HTTP_LLMGW_POOL_METRICS(POOL_ROW)

    METRIC_LABELLED(body_bytes, GAUGE, ONE, SHARED,
                    "Bytes that workers hold of llmgw_body_memory",
                    { "what", LLMGW_NSHARES,
                      ngx_http_llmgw_metrics_name_body_refusals })
    METRIC_LABELLED(members, GAUGE, ONE, SHARED,
                    "Members that the agent lists, by state",
                    { "role", LLMGW_ROLE_SHARD + 1, llmgw_role_name },
                    { "state", LLMGW_LIVENESS_LEFT + 1, llmgw_liveness_name })
};


/* What belongs to the upstream is among the metrics only once. */

static void
ngx_http_llmgw_pool_view(ngx_http_llmgw_writer_t *w,
    const ngx_http_llmgw_snapshot_t *snapshot)
{
    uint64_t                    age_ms, now_ms;
    ngx_str_t                  *source;
    ngx_http_llmgw_upstream_t  *upstream;

    if (!w->is_status && !snapshot->is_first) {
        return;
    }

    upstream = snapshot->pool->upstream;
    now_ms = snapshot->now_ms;
    source = &upstream->conf->members;
    age_ms = 0;

    if (upstream->reader) {
        age_ms = now_ms - ngx_min(now_ms, upstream->view.heartbeat_ms);
    }

    OBJECT("view");
    STATUS("source", TEXT(upstream->reader ? (char *) source->data : NULL));
    STATUS("age_ms", NUMBER(upstream->generation ? age_ms
                                                 : NGX_HTTP_LLMGW_ABSENT));
    METRIC(view_age_seconds, NUMBER(age_ms));
    FACT("stale", view_stale,
         FLAG(ngx_http_llmgw_upstream_is_stale(upstream)));
    STATUS("generation", NUMBER(upstream->generation));
    FACT("isolated", view_isolated, FLAG(upstream->view.isolated));
    FACT("members", view_members, NUMBER(upstream->view.n));
    END_OBJECT;

    STATUS("models_unrouted", NUMBER(upstream->nunrouted));
    METRIC(models_unrouted, NUMBER(snapshot->has_model
                                   ? upstream->nunrouted
                                   : NGX_HTTP_LLMGW_ABSENT));
    METRIC(members, COUNTS(snapshot->members));
    METRIC(body_bytes, COUNTS(snapshot->levels.body_bytes));
}


static void
ngx_http_llmgw_pool_queue(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_pool_t *pool, const ngx_http_llmgw_levels_t *levels)
{
    int                         is_known;
    const char                 *waits_for;
    llmgw_admission_t          *shared;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = pool->conf;
    shared = pool->zone->self.shared;
    waits_for = shared->queue.length ? llmgw_waits_name(shared->waits_for)
                                     : NULL;
    OBJECT("queue");
    FACT("length", queue_length, NUMBER(shared->queue.length));
    FACT("size", queue_size, NUMBER(conf->queue_size));
    FACT("held", held, NUMBER(levels->held));
    STATUS("timeout_ms", NUMBER(conf->queue_timeout));
    STATUS("hold_ms", NUMBER(conf->queue_hold));
    STATUS("waits_for", TEXT(waits_for));
    STATUS("order", TEXT(llmgw_flow_order_word(conf->flow.order)));
    STATUS("fairness", TEXT(llmgw_flow_fairness_word(conf->flow.fairness)));
    STATUS("saturation", TEXT(llmgw_saturation_word(conf->saturation.kind)));
    METRIC(saturation, REAL(ngx_http_llmgw_table_saturation(pool, &is_known)));
    STATUS("ttl_ms", SETTING(conf->queue_ttl));
    STATUS("shedding", FLAG(conf->flow.has_shedding));
    END_OBJECT;
}


static void
ngx_http_llmgw_pool_policy(ngx_http_llmgw_writer_t *w,
    const ngx_http_llmgw_srv_conf_t *conf)
{
    uint32_t                       i, n;
    const llmgw_weight_t          *weight;
    const ngx_http_llmgw_index_t  *index;

    index = &conf->index;
    n = conf->policy == LLMGW_RANK_WEIGHTED ? conf->weighted.n : 0;

    OBJECT("policy");
    STATUS("name", TEXT(llmgw_rank_policy_word(conf->policy)));
    LIST("scorers");

    for (i = 0; i < n; i++) {
        weight = &conf->weighted.weights[i];

        OBJECT(NULL);
        STATUS("name", TEXT(weight->scorer->name));
        STATUS("weight", REAL(weight->given));
        END_OBJECT;
    }

    END_LIST;
    END_OBJECT;

    if (index->shm_zone == NULL) {
        NOTHING("prefix_index");
        return;
    }

    OBJECT("prefix_index");
    STATUS("block", NUMBER(index->block));
    STATUS("blocks", NUMBER(index->blocks));
    STATUS("match", NUMBER(index->match));
    STATUS("size", NUMBER(index->shm_zone->shm.size));
    END_OBJECT;
}


/*
 * Fills a copy up to now: the bucket itself is filled only when a request
 * comes.
 */

static void
ngx_http_llmgw_pool_bucket(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_pool_t *pool)
{
    llmgw_bucket_t  bucket;

    ngx_http_llmgw_zone_lock(pool->upstream->zone);
    bucket = pool->upstream->zone->shared->cohorts->bucket;
    ngx_http_llmgw_zone_unlock(pool->upstream->zone);

    (void) llmgw_bucket_take(&bucket, 0, (int64_t) ngx_current_msec * 1000);

    OBJECT("bucket");
    STATUS("capacity", REAL(bucket.capacity));
    STATUS("rate", REAL(bucket.rate));
    STATUS("tokens", REAL(bucket.tokens));
    END_OBJECT;
}


static void
ngx_http_llmgw_pool_admission(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_pool_t *pool)
{
    llmgw_rule_kind_t  rule;

    rule = pool->conf->rules ? pool->conf->rules->rule : LLMGW_RULE_ALWAYS;

    OBJECT("admission");
    STATUS("rule", TEXT(llmgw_rule_word(rule)));

    if (rule == LLMGW_RULE_TOKEN_BUCKET) {
        ngx_http_llmgw_pool_bucket(w, pool);

    } else {
        NOTHING("bucket");
    }

    END_OBJECT;
}


#define PUT_COUNTER(name, label, n, help)                                     \
    FACT(#name, name, COUNTS(counters->name));
#define PUT_HISTOGRAM(name, buckets, help)                                    \
    FACT(#name, name, TIMES(&counters->name));

static void
ngx_http_llmgw_pool_counters(ngx_http_llmgw_writer_t *w,
    const ngx_http_llmgw_snapshot_t *snapshot)
{
    const ngx_http_llmgw_slots_t     *slots;
    const ngx_http_llmgw_counters_t  *counters;

    slots = &snapshot->slots;
    counters = &snapshot->counters;

    OBJECT("rates");
    STATUS("tokens", REAL(slots->tokens_rate));
    STATUS("attempts", REAL(slots->attempts_rate));
    END_OBJECT;

    ngx_http_llmgw_snapshot_quantiles(w, slots->first_token);

    OBJECT("totals");
    STATUS("tokens", NUMBER(slots->tokens));
    STATUS("attempts", NUMBER(slots->attempts));
    STATUS("failures", NUMBER(slots->failures));
    FACT("requests", requests, COUNTS(counters->requests));
    NGX_HTTP_LLMGW_COUNTERS(PUT_COUNTER)
    METRIC(held_total, NUMBER(counters->held));
    METRIC(saturation_unknown, NUMBER(counters->saturation_unknown));
    END_OBJECT;

    OBJECT("histograms");
    NGX_HTTP_LLMGW_HISTOGRAMS(PUT_HISTOGRAM)
    END_OBJECT;
}


static ngx_int_t
ngx_http_llmgw_pool_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = snapshot->pool;

    if (i == 1) {
        return NGX_DONE;
    }

    if (!w->item(w, &pool->conf->name,
                 snapshot->is_rest ? NGX_HTTP_LLMGW_ON_METRICS
                                   : NGX_HTTP_LLMGW_ON_BOTH))
    {
        return NGX_OK;
    }

    if (snapshot->is_rest) {
        ngx_http_llmgw_pool_counters(w, snapshot);
        return NGX_OK;
    }

    STATUS("name", STRING(&pool->conf->name));
    STATUS("model", TEXT(ngx_http_llmgw_pool_model(pool)));
    ngx_http_llmgw_pool_view(w, snapshot);
    FACT("streams", streams, NUMBER(snapshot->levels.streams));
    STATUS("in_flight", NUMBER(snapshot->slots.in_flight));
    FACT("sessions", sessions, NUMBER(snapshot->levels.sessions));

    OBJECT("zone");
    STATUS("slots", NUMBER(pool->zone->self.shared->nslots));
    STATUS("used", NUMBER(snapshot->slots.used));
    END_OBJECT;

    ngx_http_llmgw_pool_queue(w, pool, &snapshot->levels);
    ngx_http_llmgw_pool_policy(w, pool->conf);
    ngx_http_llmgw_pool_admission(w, pool);
    ngx_http_llmgw_pool_counters(w, snapshot);

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_pool = {
    SCOPE("pools", NULL, ngx_http_llmgw_pool_walk)
};


/*
 * Gauges: values that are read at each scrape (export.c).
 */

#include "pages/snapshot.h"


/* Gauges of a pool. */

double
ngx_http_llmgw_gauge_queue_length(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->pool->zone->self.shared->queue.length;
}


double
ngx_http_llmgw_gauge_queue_size(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->pool->conf->queue_size;
}


double
ngx_http_llmgw_gauge_saturation(ngx_http_llmgw_snapshot_t *snapshot)
{
    int  is_known;

    return ngx_http_llmgw_queue_saturation(snapshot->pool, &is_known);
}


double
ngx_http_llmgw_gauge_view_age_seconds(ngx_http_llmgw_snapshot_t *snapshot)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = snapshot->pool;

    if (pool->reader == NULL) {
        return 0;
    }

    return (ngx_http_llmgw_monotonic_ms() - pool->view.heartbeat_ms) / 1000.0;
}


double
ngx_http_llmgw_gauge_view_stale(ngx_http_llmgw_snapshot_t *snapshot)
{
    return ngx_http_llmgw_pool_is_stale(snapshot->pool);
}


double
ngx_http_llmgw_gauge_view_isolated(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->pool->view.isolated;
}


double
ngx_http_llmgw_gauge_view_members(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->pool->view.n;
}


double
ngx_http_llmgw_gauge_streams(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->levels.streams;
}


double
ngx_http_llmgw_gauge_sessions(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->levels.sessions;
}


/* Gauges of a replica. */

uint64_t
ngx_http_llmgw_gauge_replica_state(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_replica_shown(&replica->member, NULL);
}


uint64_t
ngx_http_llmgw_gauge_replica_routable(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_replica_is_routable(replica);
}


uint64_t
ngx_http_llmgw_gauge_replica_draining(ngx_http_llmgw_replica_t *replica)
{
    return replica->member.draining;
}


uint64_t
ngx_http_llmgw_gauge_replica_max_capacity(ngx_http_llmgw_replica_t *replica)
{
    return replica->member.max_capacity;
}


uint64_t
ngx_http_llmgw_gauge_in_flight(ngx_http_llmgw_replica_t *replica)
{
    return replica->slot->admission.counts.in_flight;
}


uint64_t
ngx_http_llmgw_gauge_breaker_state(ngx_http_llmgw_replica_t *replica)
{
    return llmgw_breaker_state(&replica->slot->admission.breaker,
                               &replica->pool->conf->breaker);
}


/* What a replica reports of its engine, as it stands in the report. */

static double
ngx_http_llmgw_gauge_told(ngx_http_llmgw_replica_t *replica, ngx_uint_t bit)
{
    const llmgw_engine_load_t  *engine;
    const llmgw_member_load_t  *load;

    load = ngx_http_llmgw_replica_load(replica);

    if (load == NULL || (load->engine.told & bit) == 0) {
        return -1;
    }

    engine = &load->engine;

    switch (bit) {
    case LLMGW_ENGINE_RUNNING:
        return engine->running;
    case LLMGW_ENGINE_WAITING:
        return engine->waiting;
    case LLMGW_ENGINE_KV:
        return engine->kv_permille / 1000.0;
    case LLMGW_ENGINE_FREE_BLOCKS:
        return engine->kv_free_blocks;
    default: /* LLMGW_ENGINE_HITS */
        return engine->hit_permille / 1000.0;
    }
}


double
ngx_http_llmgw_gauge_engine_running(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_gauge_told(replica, LLMGW_ENGINE_RUNNING);
}


double
ngx_http_llmgw_gauge_engine_waiting(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_gauge_told(replica, LLMGW_ENGINE_WAITING);
}


double
ngx_http_llmgw_gauge_engine_kv_usage(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_gauge_told(replica, LLMGW_ENGINE_KV);
}


double
ngx_http_llmgw_gauge_engine_kv_free_blocks(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_gauge_told(replica, LLMGW_ENGINE_FREE_BLOCKS);
}


double
ngx_http_llmgw_gauge_engine_hit_ratio(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_gauge_told(replica, LLMGW_ENGINE_HITS);
}


/*
 * The same as policies take it: carried on since the report, and not for long
 * (core/policy/facts.h).  0: that fact is not known.
 */

static ngx_uint_t
ngx_http_llmgw_gauge_taken(ngx_http_llmgw_replica_t *replica, ngx_uint_t fact,
    llmgw_candidate_t *candidate)
{
    ngx_uint_t  known;

    known = llmgw_facts_known(&replica->facts, ngx_http_llmgw_monotonic_ms());
    llmgw_facts_carry(&replica->facts, known,
                      replica->slot->admission.counts.in_flight, candidate);

    return known & fact;
}


double
ngx_http_llmgw_gauge_replica_queue_depth(ngx_http_llmgw_replica_t *replica)
{
    llmgw_candidate_t  taken;

    return ngx_http_llmgw_gauge_taken(replica, LLMGW_FACT_WAITING, &taken)
           ? taken.queue_depth : -1;
}


double
ngx_http_llmgw_gauge_replica_batch(ngx_http_llmgw_replica_t *replica)
{
    llmgw_candidate_t  taken;

    return ngx_http_llmgw_gauge_taken(replica, LLMGW_FACT_RUNNING, &taken)
           ? taken.batch_size : -1;
}


double
ngx_http_llmgw_gauge_replica_kv_utilization(ngx_http_llmgw_replica_t *replica)
{
    llmgw_candidate_t  taken;

    return ngx_http_llmgw_gauge_taken(replica, LLMGW_FACT_KV, &taken)
           ? taken.kv_utilization : -1;
}


double
ngx_http_llmgw_gauge_replica_facts_age_seconds(
    ngx_http_llmgw_replica_t *replica)
{
    uint64_t                    now;
    const llmgw_member_load_t  *load;

    load = ngx_http_llmgw_replica_load(replica);
    now = ngx_http_llmgw_monotonic_ms();

    return load ? (now - ngx_min(now, load->reported_ms)) / 1000. : -1;
}


double
ngx_http_llmgw_gauge_replica_group_state(ngx_http_llmgw_replica_t *replica)
{
    return replica->member.group_state == LLMGW_GROUP_NONE
           ? -1 : replica->member.group_state;
}

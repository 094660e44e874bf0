
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


double
ngx_http_llmgw_gauge_body_bytes(ngx_http_llmgw_snapshot_t *snapshot)
{
    return snapshot->levels.body_bytes;
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


/*
 * A lease: a replica's slot that is held, from the pick to the end of the
 * attempt.  It is counted in the replica's total and in this worker's share
 * of it, and holds a ticket of the replica's breaker.
 *
 * It ends exactly once, with a verdict for the breaker, and whoever ends it
 * wakes the line.  A circuit that opens or closes is logged here.
 */

#include "upstream/replica.h"
#include "upstream/lease.h"
#include "upstream/queue.h"


static llmgw_breaker_change_t ngx_http_llmgw_lease_judge_locked(
    ngx_http_llmgw_lease_t *lease, llmgw_verdict_t verdict,
    llmgw_breaker_counts_t *counts);
static void ngx_http_llmgw_lease_log(ngx_http_llmgw_replica_t *replica,
    llmgw_breaker_change_t change, llmgw_breaker_counts_t *counts);


/*
 * A worker without a row counts nothing: what it would add, nobody could take
 * back after its death.
 */

void
ngx_http_llmgw_lease_begin_locked(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_lease_t *lease, ngx_uint_t forced)
{
    ngx_http_llmgw_slot_t   *slot;
    llmgw_breaker_change_t   change;

    slot = lease->replica->slot;
    lease->slot = slot;

    if (pool->zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        slot->counts.in_flight++;
        slot->shares[pool->zone->row]++;
    }

    lease->is_judged = 0;
    lease->start_ms = ngx_current_msec;
    slot->attempts++;

    change = forced
             ? llmgw_breaker_force(&slot->breaker, &pool->conf->breaker,
                                   ngx_current_msec, &lease->ticket)
             : llmgw_breaker_begin(&slot->breaker, &pool->conf->breaker,
                                   ngx_current_msec, &lease->ticket);

    ngx_http_llmgw_lease_log(lease->replica, change, NULL);
}


/*
 * The replica has shown what it can, by its first byte or token: a probe need
 * not last its whole stream.
 */

void
ngx_http_llmgw_lease_proves(ngx_http_llmgw_lease_t *lease)
{
    llmgw_breaker_change_t  change;
    llmgw_breaker_counts_t  counts;

    ngx_http_llmgw_recent_first_token(lease->slot, ngx_current_msec
                                                   - lease->start_ms);

    if (!llmgw_breaker_is_probe(lease->ticket) || lease->is_judged) {
        return;
    }

    ngx_http_llmgw_zone_lock(lease->replica->pool->zone);

    change = ngx_http_llmgw_lease_judge_locked(lease, LLMGW_VERDICT_SUCCESS,
                                               &counts);

    ngx_http_llmgw_zone_unlock(lease->replica->pool->zone);

    ngx_http_llmgw_lease_log(lease->replica, change, &counts);
}


/* Whatever the breaker makes of it; before its end. */

void
ngx_http_llmgw_lease_fails(ngx_http_llmgw_lease_t *lease)
{
    (void) ngx_atomic_fetch_add(&lease->slot->failures, 1);
}


/* Gives the slot back, and wakes whoever waits for one. */

void
ngx_http_llmgw_lease_end(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict)
{
    ngx_http_llmgw_zone_t     *zone;
    ngx_http_llmgw_slot_t     *slot;
    llmgw_breaker_change_t     change;
    llmgw_breaker_counts_t     counts;
    ngx_http_llmgw_replica_t  *replica;

    replica = lease->replica;

    if (replica == NULL) {
        return;
    }

    slot = lease->slot;
    zone = replica->pool->zone;

    ngx_http_llmgw_zone_lock(zone);

    if (zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        llmgw_high_water_note(&slot->high, slot->counts.in_flight,
                              ngx_current_msec);

        slot->counts.in_flight--;
        slot->shares[zone->row]--;
    }

    change = ngx_http_llmgw_lease_judge_locked(lease, verdict, &counts);

    /* with the slot, or somebody new takes it before those who step aside */
    llmgw_queue_recall(&zone->shared->queue);

    ngx_http_llmgw_zone_unlock(zone);

    lease->replica = NULL;

    ngx_http_llmgw_lease_log(replica, change, &counts);

    if (zone->shared->queue.length) {
        ngx_http_llmgw_line_wake(replica->pool);
    }
}


static llmgw_breaker_change_t
ngx_http_llmgw_lease_judge_locked(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict, llmgw_breaker_counts_t *counts)
{
    llmgw_breaker_t         *breaker;
    llmgw_breaker_conf_t    *conf;
    llmgw_breaker_change_t   change;

    if (lease->is_judged) {
        return LLMGW_BREAKER_UNCHANGED;
    }

    lease->is_judged = 1;

    breaker = &lease->slot->breaker;
    conf = &lease->replica->pool->conf->breaker;

    change = llmgw_breaker_end(breaker, conf, lease->ticket, verdict,
                               ngx_current_msec);

    if (change != LLMGW_BREAKER_UNCHANGED) {
        *counts = llmgw_breaker_counts(breaker, conf, ngx_current_msec);
    }

    return change;
}


static void
ngx_http_llmgw_lease_log(ngx_http_llmgw_replica_t *replica,
    llmgw_breaker_change_t change, llmgw_breaker_counts_t *counts)
{
    ngx_log_t  *log;

    log = replica->pool->worker->log;

    if (change != LLMGW_BREAKER_UNCHANGED) {
        ngx_http_llmgw_metrics_breaker(replica->pool->zone, change);
    }

    switch (change) {

    case LLMGW_BREAKER_OPENED:
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "llmgw: replica \"%V\" opened its circuit, "
                      "%uL of %uL failed", &replica->node.str,
                      counts->failed, counts->total);
        break;

    case LLMGW_BREAKER_REOPENED:
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "llmgw: replica \"%V\" failed its probe, its circuit "
                      "stays open", &replica->node.str);
        break;

    case LLMGW_BREAKER_HALF_OPENED:
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "llmgw: replica \"%V\" is probed", &replica->node.str);
        break;

    case LLMGW_BREAKER_RECLOSED:
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "llmgw: replica \"%V\" closed its circuit",
                      &replica->node.str);
        break;

    default:
        break;
    }
}

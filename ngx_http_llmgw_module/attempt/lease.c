
/*
 * A lease: reserved capacity at a replica, from the pick to the end of the
 * attempt.  core/admission/lease.c counts it and judges the replica; this file
 * counts it for operators, the head of the queue is woken, and a circuit that
 * opens or closes is logged, once the zone is unlocked.
 */

#include "attempt/lease.h"
#include "attempt/queue.h"
#include "fleet/replica.h"


static ngx_http_llmgw_slot_t *ngx_http_llmgw_lease_slot(
    ngx_http_llmgw_lease_t *lease);
static void ngx_http_llmgw_lease_log(ngx_http_llmgw_replica_t *replica,
    llmgw_breaker_change_t change, llmgw_breaker_counts_t *counts);


void
ngx_http_llmgw_lease_began(ngx_http_llmgw_lease_t *lease,
    llmgw_breaker_change_t change)
{
    lease->start_ms = ngx_current_msec;

    (void) ngx_atomic_fetch_add(&lease->replica->slot->attempts, 1);

    ngx_http_llmgw_lease_log(lease->replica, change, NULL);
}


/* The slot that counts it; NULL: another replica has the slot now. */

static ngx_http_llmgw_slot_t *
ngx_http_llmgw_lease_slot(ngx_http_llmgw_lease_t *lease)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = ngx_http_llmgw_zone_slot(lease->replica->pool->zone->shared,
                                    lease->held.place.slot);

    return slot->admission.generation == lease->held.place.generation ? slot
                                                                      : NULL;
}


void
ngx_http_llmgw_lease_proves(ngx_http_llmgw_lease_t *lease)
{
    ngx_http_llmgw_pool_t  *pool;
    ngx_http_llmgw_slot_t  *slot;
    llmgw_admission_end_t   end;

    slot = ngx_http_llmgw_lease_slot(lease);

    if (slot) {
        ngx_http_llmgw_recent_first_token(slot, ngx_current_msec
                                                - lease->start_ms);
    }

    if (lease->replica->standing.takeover) {
        ngx_http_llmgw_takeovers_token(lease->replica->pool->upstream->zone,
            lease->replica->standing.takeover,
            ngx_http_llmgw_standbys_process(&lease->replica->member));
    }

    /* without the lock, where there is nothing to prove */

    if ((!llmgw_breaker_is_probe(lease->held.ticket) || lease->held.is_judged)
        && (slot == NULL || !llmgw_full_is_known(&slot->admission.full)))
    {
        return;
    }

    pool = lease->replica->pool;

    ngx_http_llmgw_zone_lock(pool->zone);

    llmgw_admission_prove(&pool->zone->self, &pool->conf->breaker,
                          &lease->held, ngx_current_msec, &end);

    ngx_http_llmgw_zone_unlock(pool->zone);

    ngx_http_llmgw_lease_log(lease->replica, end.change, &end.counts);
    ngx_http_llmgw_queue_tell(pool, &end.wake);
}


void
ngx_http_llmgw_lease_tokens(ngx_http_llmgw_lease_t *lease, ngx_uint_t n)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = ngx_http_llmgw_lease_slot(lease);

    (void) ngx_atomic_fetch_add(slot ? &slot->tokens
                             : &lease->replica->pool->zone->shared->tokens_base,
                                n);
}


/*
 * Counts for operators, whatever the breaker's verdict; to be called before the
 * lease's end.
 */

void
ngx_http_llmgw_lease_fails(ngx_http_llmgw_lease_t *lease)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = ngx_http_llmgw_lease_slot(lease);

    if (slot) {
        (void) ngx_atomic_fetch_add(&slot->failures, 1);
    }
}


void
ngx_http_llmgw_lease_denies(ngx_http_llmgw_lease_t *lease)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = ngx_http_llmgw_lease_slot(lease);

    if (slot) {
        (void) ngx_atomic_fetch_add(&slot->denials, 1);
    }

    ngx_log_error(NGX_LOG_WARN, lease->replica->pool->worker->log, 0,
                  "llmgw: the engine of replica \"%V\" does not know a model "
                  "that it reports", &lease->replica->node.str);
}


void
ngx_http_llmgw_lease_end(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict)
{
    ngx_http_llmgw_pool_t     *pool;
    llmgw_admission_end_t      end;
    ngx_http_llmgw_replica_t  *replica;

    replica = lease->replica;

    if (replica == NULL) {
        return;
    }

    lease->replica = NULL;
    pool = replica->pool;

    ngx_http_llmgw_zone_lock(pool->zone);

    llmgw_admission_end(&pool->zone->self, &pool->conf->breaker, &lease->held,
                        verdict, ngx_current_msec, &end);

    ngx_http_llmgw_zone_unlock(pool->zone);

    ngx_http_llmgw_lease_log(replica, end.change, &end.counts);
    ngx_http_llmgw_queue_tell(pool, &end.wake);
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

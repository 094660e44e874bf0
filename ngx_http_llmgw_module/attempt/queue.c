
/*
 * The queue in a worker: whose turn it is, over all workers.
 *
 * The order is kept in the zone (core/admission/queue.h).  Each worker keeps
 * the claims that wait in it, by the entry that they have there, so no worker
 * ever follows a pointer that another one wrote.  A worker that gives a place
 * back wakes the worker of the head, by its eventfd, and that worker has the
 * head claim again; when the head has got its replica, the next head is woken,
 * until one finds no capacity.
 *
 * A wake-up may be lost, when the worker that should send it is killed just
 * then.  So each worker in which a claim waits also looks by itself, every
 * 50 ms: a free place goes unnoticed for no longer.  Skipped claims look again
 * as well, for capacity that no lease's end has freed: a replica that joins,
 * or is no longer full.
 */

#include "fleet/pool.h"
#include "fleet/table.h"
#include "attempt/queue.h"


#define NGX_HTTP_LLMGW_QUEUE_MS  50


static ngx_http_llmgw_claim_t *ngx_http_llmgw_queue_turn(
    ngx_http_llmgw_pool_t *pool, uint32_t *entry, uint64_t *ticket);
static void ngx_http_llmgw_queue_look(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_queue_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_queue_event_handler(ngx_event_t *ev);


ngx_int_t
ngx_http_llmgw_queue_init(ngx_http_llmgw_pool_t *pool)
{
    pool->turn.handler = ngx_http_llmgw_queue_event_handler;
    pool->turn.data = pool;
    pool->turn.log = pool->worker->log;

    pool->turn_timer.handler = ngx_http_llmgw_queue_timer_handler;
    pool->turn_timer.data = pool;
    pool->turn_timer.log = pool->worker->log;
    pool->turn_timer.cancelable = 1;

    pool->waiting = ngx_calloc((pool->zone->self.shared->queue.capacity + 1)
                               * sizeof(ngx_http_llmgw_claim_t *),
                               pool->worker->log);

    return pool->waiting ? NGX_OK : NGX_ERROR;
}


void
ngx_http_llmgw_queue_done(ngx_http_llmgw_pool_t *pool)
{
    if (pool->turn.posted) {
        ngx_delete_posted_event(&pool->turn);
    }

    if (pool->turn_timer.timer_set) {
        ngx_del_timer(&pool->turn_timer);
    }

    ngx_free(pool->waiting);
}


void
ngx_http_llmgw_queue_joined(ngx_http_llmgw_claim_t *claim)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;

    pool->waiting[claim->ask.entry] = claim;
    pool->nwaiting++;

    if (!pool->turn_timer.timer_set) {
        ngx_add_timer(&pool->turn_timer, NGX_HTTP_LLMGW_QUEUE_MS);
    }
}


void
ngx_http_llmgw_queue_left(ngx_http_llmgw_claim_t *claim, uint32_t entry)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;

    if (pool->waiting[entry] == claim) {
        pool->waiting[entry] = NULL;
    }

    pool->nwaiting--;
}


void
ngx_http_llmgw_queue_tell(ngx_http_llmgw_pool_t *pool,
    const llmgw_wake_t *wake)
{
    if (wake->row == LLMGW_NO_ROW) {
        return;
    }

    if (wake->row == pool->zone->self.row) {
        ngx_post_event(&pool->turn, &ngx_posted_events);

    } else if (wake->is_new) {
        ngx_http_llmgw_wake_process(&pool->worker->waker, wake->process);
    }
}


double
ngx_http_llmgw_queue_saturation(ngx_http_llmgw_pool_t *pool, int *is_known)
{
    llmgw_fleet_t       fleet;
    llmgw_pick_pool_t   peers;

    *is_known = 1;

    if (pool->conf->saturation.kind == LLMGW_SATURATION_NEVER) {
        return 0;
    }

    ngx_http_llmgw_pool_look_at_loads(pool);
    ngx_http_llmgw_table_peers(pool, &peers);

    fleet.pool = &peers;
    fleet.facts = pool->table->facts;
    fleet.clock_ms = ngx_http_llmgw_pool_clock_ms(pool);

    return llmgw_saturation_live(&pool->conf->saturation, &fleet,
                                 ngx_current_msec, pool->table->candidates,
                                 pool->table->counted, is_known);
}


void
ngx_http_llmgw_queue_facts(ngx_http_llmgw_pool_t *pool)
{
    if (pool->nwaiting
        && pool->conf->saturation.kind == LLMGW_SATURATION_UTILIZATION)
    {
        ngx_post_event(&pool->turn, &ngx_posted_events);
    }
}


/* The head's worker may be another one, which has not seen the view yet. */

void
ngx_http_llmgw_queue_news(ngx_http_llmgw_pool_t *pool)
{
    if (pool->nwaiting) {
        ngx_http_llmgw_queue_look(pool);
        ngx_post_event(&pool->turn, &ngx_posted_events);
    }
}


static void
ngx_http_llmgw_queue_look(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_zone_lock(pool->zone);
    llmgw_admission_look(&pool->zone->self, ngx_current_msec);
    ngx_http_llmgw_zone_unlock(pool->zone);
}


/* A head that keeps its place claims only once. */

void
ngx_http_llmgw_queue_run(ngx_http_llmgw_pool_t *pool)
{
    uint32_t                 entry, last_entry;
    uint64_t                 ticket, last_ticket;
    ngx_http_llmgw_claim_t  *claim;

    last_entry = LLMGW_QUEUE_NONE;
    last_ticket = 0;

    for ( ;; ) {
        claim = ngx_http_llmgw_queue_turn(pool, &entry, &ticket);

        if (entry == LLMGW_QUEUE_NONE
            || (entry == last_entry && ticket == last_ticket))
        {
            return;
        }

        last_entry = entry;
        last_ticket = ticket;

        if (claim) {
            claim->turn(claim);         /* it may be gone after this */
        }
    }
}


/* NULL with an entry: no claim had it, and it was dropped. */

static ngx_http_llmgw_claim_t *
ngx_http_llmgw_queue_turn(ngx_http_llmgw_pool_t *pool, uint32_t *entry,
    uint64_t *ticket)
{
    llmgw_wake_t             wake;
    ngx_http_llmgw_zone_t   *zone;
    ngx_http_llmgw_claim_t  *claim;

    zone = pool->zone;
    claim = NULL;

    ngx_http_llmgw_zone_lock(zone);

    *entry = llmgw_admission_turn(&zone->self, ngx_current_msec, ticket,
                                  &wake);

    if (*entry != LLMGW_QUEUE_NONE) {
        claim = pool->waiting[*entry];

        if (claim == NULL || claim->ask.ticket != *ticket) {
            claim = NULL;
            llmgw_admission_drop(&zone->self, *entry, *ticket);
        }
    }

    ngx_http_llmgw_zone_unlock(zone);

    ngx_http_llmgw_queue_tell(pool, &wake);

    return claim;
}


static void
ngx_http_llmgw_queue_event_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_queue_run(ev->data);
}


static void
ngx_http_llmgw_queue_timer_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_pool_t  *pool = ev->data;

    if (pool->nwaiting == 0) {
        return;
    }

    ngx_http_llmgw_queue_look(pool);
    ngx_http_llmgw_queue_run(pool);

    if (pool->nwaiting && !pool->turn_timer.timer_set) {
        ngx_add_timer(&pool->turn_timer, NGX_HTTP_LLMGW_QUEUE_MS);
    }
}


/*
 * A worker's part of the queue of all workers.
 *
 * The order is kept in the zone (core/admission/queue.h).  Each worker keeps
 * its own waiting claims, by their entries in the zone, so no worker ever
 * follows a pointer that another one wrote.  A worker that gives a place back
 * wakes the worker of the head, by its eventfd, and that worker has the head
 * claim again; when the head has got its replica, the next head is woken, until
 * one finds no capacity.
 *
 * A wake-up may be lost if the worker that should send it is killed just then.
 * So each worker in which a claim waits also looks by itself, every 50 ms: no
 * free place goes unnoticed for longer.  Skipped claims look again as well, for
 * capacity that no lease's end has freed: a replica that joins, or is no longer
 * full.
 *
 * When the last replica has disappeared all waiting claims are held, until
 * there is one again (core/admission/admission.h).  For that, each worker makes
 * all of its claims again, not just the head.  Held claims are made again at
 * each view as well: a replica that can serve them may have come to another
 * pool.
 */

#include "attempt/queue.h"
#include "fleet/pool.h"
#include "fleet/table.h"


#define NGX_HTTP_LLMGW_QUEUE_MS  50


static ngx_http_llmgw_claim_t *ngx_http_llmgw_queue_turn(
    ngx_http_llmgw_pool_t *pool, uint32_t *entry, uint64_t *ticket);
static void ngx_http_llmgw_queue_look(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_queue_hold(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_queue_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_queue_event_handler(ngx_event_t *ev);


ngx_int_t
ngx_http_llmgw_queue_init(ngx_http_llmgw_pool_t *pool)
{
    size_t                     entries;
    ngx_http_llmgw_waiting_t  *waiting;

    entries = pool->zone->self.shared->queue.capacity + 1;

    waiting = ngx_calloc(sizeof(ngx_http_llmgw_waiting_t)
                         + entries * sizeof(ngx_http_llmgw_claim_t *),
                         pool->worker->log);
    if (waiting == NULL) {
        return NGX_ERROR;
    }

    waiting->turn.handler = ngx_http_llmgw_queue_event_handler;
    waiting->turn.data = pool;
    waiting->turn.log = pool->worker->log;

    waiting->timer.handler = ngx_http_llmgw_queue_timer_handler;
    waiting->timer.data = pool;
    waiting->timer.log = pool->worker->log;
    waiting->timer.cancelable = 1;

    pool->waiting = waiting;

    return NGX_OK;
}


void
ngx_http_llmgw_queue_done(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_waiting_t  *waiting;

    waiting = pool->waiting;

    if (waiting == NULL) {
        return;
    }

    if (waiting->turn.posted) {
        ngx_delete_posted_event(&waiting->turn);
    }

    if (waiting->timer.timer_set) {
        ngx_del_timer(&waiting->timer);
    }

    ngx_free(waiting);
    pool->waiting = NULL;
}


void
ngx_http_llmgw_queue_joined(ngx_http_llmgw_claim_t *claim)
{
    ngx_http_llmgw_waiting_t  *waiting;

    waiting = claim->pool->waiting;

    waiting->claims[claim->ask.entry] = claim;
    waiting->n++;

    if (!waiting->timer.timer_set) {
        ngx_add_timer(&waiting->timer, NGX_HTTP_LLMGW_QUEUE_MS);
    }
}


void
ngx_http_llmgw_queue_left(ngx_http_llmgw_claim_t *claim, uint32_t entry)
{
    ngx_http_llmgw_waiting_t  *waiting;

    waiting = claim->pool->waiting;

    if (waiting->claims[entry] == claim) {
        waiting->claims[entry] = NULL;
    }

    waiting->n--;
}


void
ngx_http_llmgw_queue_tell(ngx_http_llmgw_pool_t *pool,
    const llmgw_wake_t *wake)
{
    if (wake->row == LLMGW_NO_ROW) {
        return;
    }

    if (wake->row == pool->zone->self.row) {
        ngx_post_event(&pool->waiting->turn, &ngx_posted_events);

    } else if (wake->is_new) {
        ngx_http_llmgw_wake_process(&pool->worker->waker, wake->process);
    }
}


void
ngx_http_llmgw_queue_loads_read(ngx_http_llmgw_pool_t *pool)
{
    if (pool->waiting->n
        && pool->conf->saturation.kind == LLMGW_SATURATION_UTILIZATION)
    {
        ngx_post_event(&pool->waiting->turn, &ngx_posted_events);
    }
}


/* The head may wait in another worker, which has not read the view yet. */

void
ngx_http_llmgw_queue_view_applied(ngx_http_llmgw_pool_t *pool)
{
    if (pool->waiting->n) {
        pool->waiting->is_new = 1;
        ngx_http_llmgw_queue_look(pool);
        ngx_post_event(&pool->waiting->turn, &ngx_posted_events);
    }
}


/* A claim may end its stream, and others that wait with it. */

static void
ngx_http_llmgw_queue_hold(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t                 i, held, all;
    ngx_http_llmgw_claim_t    *claim;
    ngx_http_llmgw_waiting_t  *waiting;

    waiting = pool->waiting;
    held = ngx_http_llmgw_table_is_empty(pool)
           && ngx_http_llmgw_table_hold_ms(pool) != 0;
    all = held && waiting->is_new && pool->upstream->conf->npools > 1;
    waiting->is_new = 0;

    if (!all && waiting->nheld == (held ? waiting->n : 0)) {
        return;
    }

    for (i = 0; i < pool->zone->self.shared->queue.capacity; i++) {
        claim = waiting->claims[i];

        if (claim && (all || claim->ask.is_held != held)) {
            claim->turn(claim);         /* the claim may be gone after this */
        }
    }
}


static void
ngx_http_llmgw_queue_look(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_zone_lock(pool->zone);
    llmgw_admission_look(&pool->zone->self, ngx_current_msec);
    ngx_http_llmgw_zone_unlock(pool->zone);
}


/* A head that cannot be served keeps its place, and claims only once. */

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
            claim->turn(claim);         /* the claim may be gone after this */
        }
    }
}


/* NULL with an entry: no claim had the entry, and it was dropped. */

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
        claim = pool->waiting->claims[*entry];

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
    ngx_http_llmgw_queue_hold(ev->data);
    ngx_http_llmgw_queue_run(ev->data);
}


static void
ngx_http_llmgw_queue_timer_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_pool_t     *pool = ev->data;
    ngx_http_llmgw_waiting_t  *waiting;

    waiting = pool->waiting;

    if (waiting->n == 0) {
        return;
    }

    ngx_http_llmgw_queue_look(pool);
    ngx_http_llmgw_queue_hold(pool);
    ngx_http_llmgw_queue_run(pool);

    if (waiting->n && !waiting->timer.timer_set) {
        ngx_add_timer(&waiting->timer, NGX_HTTP_LLMGW_QUEUE_MS);
    }
}


/*
 * The line: whose turn it is, over all workers.
 *
 * The order stands in the zone (admission/queue.h); the streams that wait stand
 * each in its own worker.  Whoever gives a slot back wakes the worker of the
 * head, by its eventfd, and that worker lets the head claim again; when it
 * got its replica, the next head is woken, until one finds no room.
 *
 * A wake-up may be lost, when the worker that should send it is killed just
 * then.  So each worker in which somebody waits also looks by itself, every
 * 50 ms: that is the longest that a free slot stands beside a waiter.  Those
 * who stepped aside look again as well, for room that no lease's end has made:
 * a replica that joins, or is full no more.
 */

#include "upstream/pool.h"
#include "upstream/queue.h"


#define NGX_HTTP_LLMGW_LINE_MS  50


static void ngx_http_llmgw_line_thaw(ngx_http_llmgw_pool_t *pool);
static ngx_uint_t ngx_http_llmgw_line_next(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_line_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_line_event_handler(ngx_event_t *ev);


void
ngx_http_llmgw_line_init(ngx_http_llmgw_pool_t *pool)
{
    ngx_queue_init(&pool->waiting);

    pool->line.handler = ngx_http_llmgw_line_event_handler;
    pool->line.data = pool;
    pool->line.log = pool->worker->log;

    pool->line_timer.handler = ngx_http_llmgw_line_timer_handler;
    pool->line_timer.data = pool;
    pool->line_timer.log = pool->worker->log;
    pool->line_timer.cancelable = 1;
}


void
ngx_http_llmgw_line_done(ngx_http_llmgw_pool_t *pool)
{
    if (pool->line.posted) {
        ngx_delete_posted_event(&pool->line);
    }

    if (pool->line_timer.timer_set) {
        ngx_del_timer(&pool->line_timer);
    }
}


/* Somebody of this worker waits from now on. */

void
ngx_http_llmgw_line_joined(ngx_http_llmgw_claim_t *claim)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;

    claim->joined_ms = ngx_current_msec;
    ngx_queue_insert_tail(&pool->waiting, &claim->queue);

    if (!pool->line_timer.timer_set) {
        ngx_add_timer(&pool->line_timer, NGX_HTTP_LLMGW_LINE_MS);
    }
}


void
ngx_http_llmgw_line_left(ngx_http_llmgw_claim_t *claim)
{
    claim->entry = LLMGW_QUEUE_NONE;
    ngx_queue_remove(&claim->queue);
}


/* There may be room: the head shall look. */

void
ngx_http_llmgw_line_wake(ngx_http_llmgw_pool_t *pool)
{
    uint32_t                head, row, process;
    ngx_uint_t              is_new;
    llmgw_queue_t          *queue;
    llmgw_queue_entry_t    *entry;
    ngx_http_llmgw_zone_t  *zone;

    zone = pool->zone;
    queue = &zone->shared->queue;

    ngx_http_llmgw_zone_lock(zone);

    head = llmgw_queue_head(queue, ngx_current_msec);

    if (head == LLMGW_QUEUE_NONE) {
        ngx_http_llmgw_zone_unlock(zone);
        return;
    }

    entry = &queue->entries[head];
    row = entry->row;
    process = entry->process;
    is_new = (entry->granted_ms == 0);

    if (is_new) {
        llmgw_queue_grant(queue, head, ngx_current_msec);
    }

    ngx_http_llmgw_zone_unlock(zone);

    if (row == zone->row) {
        ngx_post_event(&pool->line, &ngx_posted_events);

    } else if (is_new) {
        ngx_http_llmgw_wake_process(&pool->worker->waker, process);
    }
}


/*
 * A grant that grew old while this worker stood still: it is here again, and
 * its waiters have their turns as before.
 */

static void
ngx_http_llmgw_line_thaw(ngx_http_llmgw_pool_t *pool)
{
    ngx_queue_t             *q;
    llmgw_queue_t           *queue;
    llmgw_queue_entry_t     *entry;
    ngx_http_llmgw_claim_t  *claim;

    queue = &pool->zone->shared->queue;

    ngx_http_llmgw_zone_lock(pool->zone);

    for (q = ngx_queue_head(&pool->waiting);
         q != ngx_queue_sentinel(&pool->waiting);
         q = ngx_queue_next(q))
    {
        claim = ngx_queue_data(q, ngx_http_llmgw_claim_t, queue);
        entry = &queue->entries[claim->entry];

        if (entry->granted_ms
            && ngx_current_msec >= entry->granted_ms + LLMGW_QUEUE_GRANT_MS)
        {
            llmgw_queue_ungrant(queue, claim->entry);
        }
    }

    llmgw_queue_recall(queue);

    ngx_http_llmgw_zone_unlock(pool->zone);
}


/* The head claims, and the next, as long as they are ours and get one. */

void
ngx_http_llmgw_line_run(ngx_http_llmgw_pool_t *pool)
{
    while (ngx_http_llmgw_line_next(pool)) {
        /* void */
    }
}


static ngx_uint_t
ngx_http_llmgw_line_next(ngx_http_llmgw_pool_t *pool)
{
    uint32_t                 head;
    uint64_t                 ticket;
    ngx_uint_t               moved;
    llmgw_queue_t           *queue;
    ngx_http_llmgw_zone_t   *zone;
    ngx_http_llmgw_claim_t  *claim;

    zone = pool->zone;
    queue = &zone->shared->queue;

    ngx_http_llmgw_zone_lock(zone);

    head = llmgw_queue_head(queue, ngx_current_msec);

    if (head == LLMGW_QUEUE_NONE || queue->entries[head].row != zone->row) {
        ngx_http_llmgw_zone_unlock(zone);

        if (head != LLMGW_QUEUE_NONE) {
            ngx_http_llmgw_line_wake(pool);
        }

        return 0;
    }

    claim = (ngx_http_llmgw_claim_t *) (uintptr_t) queue->entries[head].owner;
    ticket = queue->entries[head].ticket;

    ngx_http_llmgw_zone_unlock(zone);

    claim->turn(claim);             /* it may be gone after this */

    ngx_http_llmgw_zone_lock(zone);

    moved = llmgw_queue_head(queue, ngx_current_msec) != head
            || queue->entries[head].ticket != ticket;

    ngx_http_llmgw_zone_unlock(zone);

    return moved;
}


static void
ngx_http_llmgw_line_event_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_line_run(ev->data);
}


static void
ngx_http_llmgw_line_timer_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_pool_t  *pool = ev->data;

    if (ngx_queue_empty(&pool->waiting)) {
        return;
    }

    ngx_http_llmgw_line_thaw(pool);
    ngx_http_llmgw_line_run(pool);

    if (!ngx_queue_empty(&pool->waiting) && !pool->line_timer.timer_set) {
        ngx_add_timer(&pool->line_timer, NGX_HTTP_LLMGW_LINE_MS);
    }
}

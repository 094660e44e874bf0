
/*
 * A claim: somebody wants a replica for a key, and gets a lease (lease.c).
 *
 * ngx_http_llmgw_claim() answers in one step for all workers, under the
 * zone's lock: it picks and reserves, or takes a place in the line, or says
 * why neither can be.  So capacity cannot be oversold between two workers, and
 * nobody can slip in between a full pool and the line before it.
 *
 *     claim --+--> LEASED   a slot is counted, a breaker's ticket held
 *             +--> WAITS    in the line; its `turn` is called, claim again
 *             +--> FULL, ASIDE, OPEN, EXCLUDED, NONE
 *
 * A stream with tokens out is carried on in its resume group alone; where
 * others have room, it steps aside as well.
 *
 * Who waits forgets whom he has excluded: by his turn they may do.  Only with
 * his last try he goes on without those who failed him, as long as another
 * one is merely full; where one of them has room he steps aside for those who
 * can use it.  A replica that is another process by then has failed nobody.
 */

#include "upstream/replica.h"
#include "upstream/table.h"
#include "upstream/claim.h"
#include "upstream/queue.h"


#define NGX_HTTP_LLMGW_MAX_EXCLUDED  64     /* later ones are tried again */


typedef struct {
    ngx_http_llmgw_replica_t     *replica;
    uint64_t                      start_ms;     /* of its process */
    unsigned                      failed:1;     /* the claim's stream */
} ngx_http_llmgw_excluded_t;


static llmgw_pick_rc_t ngx_http_llmgw_claim_pick_locked(
    ngx_http_llmgw_claim_t *claim, ngx_http_llmgw_lease_t *lease,
    llmgw_route_t *route);
static ngx_uint_t ngx_http_llmgw_claim_force(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t *replica);
static ngx_http_llmgw_claim_rc_t ngx_http_llmgw_claim_wait_locked(
    ngx_http_llmgw_claim_t *claim, llmgw_queue_place_t *place,
    llmgw_pick_rc_t rc);
static void ngx_http_llmgw_claim_waits_locked(ngx_http_llmgw_claim_t *claim,
    llmgw_pick_rc_t rc);
static void ngx_http_llmgw_claim_log_full(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_claim_rc_t answer);
static void ngx_http_llmgw_claim_place(ngx_http_llmgw_claim_t *claim,
    llmgw_queue_place_t *place);
static ngx_uint_t ngx_http_llmgw_claim_excluded(
    ngx_http_llmgw_claim_t *claim, uint32_t *indexes);
static void ngx_http_llmgw_claim_forget(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t but_failed);


void
ngx_http_llmgw_claim_init(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, uint64_t hash)
{
    claim->pool = pool;
    claim->hash = hash;
    claim->entry = LLMGW_QUEUE_NONE;
}


ngx_http_llmgw_claim_rc_t
ngx_http_llmgw_claim(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route)
{
    llmgw_queue_t              *queue;
    llmgw_pick_rc_t             rc;
    ngx_http_llmgw_pool_t      *pool;
    llmgw_queue_place_t         place;
    ngx_http_llmgw_zone_t      *zone;
    ngx_http_llmgw_claim_rc_t   answer;

    pool = claim->pool;
    zone = pool->zone;
    queue = &zone->shared->queue;

    ngx_http_llmgw_pool_look(pool);

again:

    ngx_http_llmgw_zone_lock(zone);

    if (claim->ticket == 0) {
        claim->ticket = llmgw_queue_ticket(queue);
        llmgw_hedge_note_request(&zone->shared->hedge,
                                 pool->conf->hedge_budget);
    }

    ngx_http_llmgw_claim_place(claim, &place);

    if (claim->entry != LLMGW_QUEUE_NONE) {

        if (llmgw_queue_head(queue, ngx_current_msec) != claim->entry) {
            ngx_http_llmgw_zone_unlock(zone);
            return NGX_HTTP_LLMGW_WAITS;
        }

    } else if (claim->to_line || llmgw_queue_must_wait(queue, &place)) {
        claim->to_line = 0;
        answer = ngx_http_llmgw_claim_wait_locked(claim, &place,
                                                  LLMGW_PICK_FULL);
        ngx_http_llmgw_zone_unlock(zone);
        ngx_http_llmgw_claim_log_full(claim, answer);
        return answer;
    }

    rc = ngx_http_llmgw_claim_pick_locked(claim, lease, route);

    if ((rc == LLMGW_PICK_NONE
         || (rc == LLMGW_PICK_EXCLUDED && claim->resumes))
        && ngx_http_llmgw_table_is_behind(pool))
    {
        /* those who could serve stand in the next table: no time to wait */
        ngx_http_llmgw_zone_unlock(zone);
        ngx_http_llmgw_table_finish(pool);
        goto again;
    }

    switch (rc) {

    case LLMGW_PICK_OK:
        answer = NGX_HTTP_LLMGW_LEASED;

        if (claim->entry != LLMGW_QUEUE_NONE) {
            claim->granted = 1;
            ngx_http_llmgw_metrics_time(zone,
                        NGX_HTTP_LLMGW_HISTOGRAM_queue_wait_seconds,
                        ngx_current_msec - claim->joined_ms);
            llmgw_queue_remove(queue, claim->entry);
            ngx_http_llmgw_line_left(claim);
        }

        break;

    case LLMGW_PICK_ASIDE:
    case LLMGW_PICK_FULL:
    case LLMGW_PICK_OPEN:
    case LLMGW_PICK_FULL_OPEN:
        zone->shared->waits_open = (rc == LLMGW_PICK_OPEN);
        answer = ngx_http_llmgw_claim_wait_locked(claim, &place, rc);
        break;

    case LLMGW_PICK_EXCLUDED:
        answer = NGX_HTTP_LLMGW_EXCLUDED;
        break;

    default:
        answer = NGX_HTTP_LLMGW_NONE;
        break;
    }

    ngx_http_llmgw_zone_unlock(zone);

    if (rc == LLMGW_PICK_OK && queue->length) {
        /* there may be room for one more */
        ngx_http_llmgw_line_wake(pool);
    }

    ngx_http_llmgw_claim_log_full(claim, answer);

    return answer;
}


static llmgw_pick_rc_t
ngx_http_llmgw_claim_pick_locked(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route)
{
    uint32_t                 excluded[NGX_HTTP_LLMGW_MAX_EXCLUDED];
    ngx_uint_t               forced;
    llmgw_picked_t           picked;
    llmgw_pick_rc_t          rc;
    llmgw_pick_key_t         key;
    llmgw_pick_pool_t        peers;
    ngx_http_llmgw_pool_t   *pool;
    ngx_http_llmgw_table_t  *table;

    pool = claim->pool;

    key.hash = claim->hash;
    key.excluded = excluded;
    key.nexcluded = ngx_http_llmgw_claim_excluded(claim, excluded);
    key.now_ms = ngx_current_msec;
    key.resumes = claim->resumes;
    key.resume_group = claim->resume_group;
    key.random = ((uint64_t) ngx_random() << 32) ^ (uint64_t) ngx_random();

    ngx_http_llmgw_table_peers(pool, &peers);
    rc = llmgw_pick(&peers, &key, &picked);

    if (rc != LLMGW_PICK_OK && rc != LLMGW_PICK_OPEN) {
        return rc;
    }

    table = pool->table;
    forced = (rc == LLMGW_PICK_OPEN);

    if (forced
        && !ngx_http_llmgw_claim_force(pool, table->replicas[picked.peer]))
    {
        return LLMGW_PICK_OPEN;
    }

    *route = picked.route;
    lease->replica = table->replicas[picked.peer];

    ngx_http_llmgw_lease_begin_locked(pool, lease, forced);

    return LLMGW_PICK_OK;
}


/*
 * A second replica beside the first, for a hedge, and none that has failed or
 * refused the stream.  It never waits, and is not to be had while others wait
 * or the pool has no places to spare.  1: leased.
 */

ngx_uint_t
ngx_http_llmgw_claim_second(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *first, ngx_uint_t budget,
    ngx_http_llmgw_lease_t *lease)
{
    uint32_t                       excluded[NGX_HTTP_LLMGW_MAX_EXCLUDED + 1];
    llmgw_picked_t                 picked;
    llmgw_pick_rc_t                rc;
    llmgw_pick_key_t               key;
    llmgw_pick_pool_t              peers;
    ngx_http_llmgw_pool_t         *pool;
    ngx_http_llmgw_zone_shared_t  *shared;

    if (first->index == -1) {
        return 0;
    }

    pool = claim->pool;
    shared = pool->zone->shared;

    ngx_memzero(&key, sizeof(llmgw_pick_key_t));

    key.hash = claim->hash;
    key.excluded = excluded;
    key.nexcluded = ngx_http_llmgw_claim_excluded(claim, excluded);
    excluded[key.nexcluded++] = first->index;
    key.now_ms = ngx_current_msec;
    key.random = ngx_random();

    ngx_http_llmgw_table_peers(pool, &peers);

    ngx_http_llmgw_zone_lock(pool->zone);

    rc = LLMGW_PICK_FULL;

    if (shared->queue.length == 0
        && (budget == 0 || llmgw_hedge_may_hedge(&shared->hedge, budget))
        && !llmgw_hedge_is_saturated(&peers, ngx_current_msec))
    {
        rc = llmgw_pick(&peers, &key, &picked);
    }

    if (rc == LLMGW_PICK_OK) {
        if (budget) {
            llmgw_hedge_note_hedge(&shared->hedge);
        }

        lease->replica = pool->table->replicas[picked.peer];
        ngx_http_llmgw_lease_begin_locked(pool, lease, 0);
    }

    ngx_http_llmgw_zone_unlock(pool->zone);

    return rc == LLMGW_PICK_OK;
}


/* Every circuit is open: one at a time may look whether that still holds. */

static ngx_uint_t
ngx_http_llmgw_claim_force(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t *replica)
{
    llmgw_member_t  *m;

    m = &replica->member;

    return (m->max_capacity == 0
            || replica->slot->counts.in_flight < m->max_capacity)
           && llmgw_breaker_may_force(&replica->slot->breaker,
                                      &pool->conf->breaker, ngx_current_msec);
}


/* In the line, at once or still; or the reason why not. */

static ngx_http_llmgw_claim_rc_t
ngx_http_llmgw_claim_wait_locked(ngx_http_llmgw_claim_t *claim,
    llmgw_queue_place_t *place, llmgw_pick_rc_t rc)
{
    uint32_t                size;
    llmgw_queue_t          *queue;
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;
    queue = &pool->zone->shared->queue;
    size = pool->conf->queue_size;

    if (claim->entry != LLMGW_QUEUE_NONE) {
        llmgw_queue_ungrant(queue, claim->entry);
        ngx_http_llmgw_claim_waits_locked(claim, rc);
        return NGX_HTTP_LLMGW_WAITS;
    }

    if (size && !claim->no_wait && pool->zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        claim->entry = llmgw_queue_push(queue, place, size);
    }

    if (claim->entry != LLMGW_QUEUE_NONE) {
        ngx_http_llmgw_line_joined(claim);
        ngx_http_llmgw_claim_waits_locked(claim, rc);
        return NGX_HTTP_LLMGW_WAITS;
    }

    if (rc == LLMGW_PICK_ASIDE) {
        return NGX_HTTP_LLMGW_ASIDE;
    }

    return pool->zone->shared->waits_open && size == 0 ? NGX_HTTP_LLMGW_OPEN
                                                       : NGX_HTTP_LLMGW_FULL;
}


/* Whom it has excluded, it does not at its next turn; but see above. */

static void
ngx_http_llmgw_claim_waits_locked(ngx_http_llmgw_claim_t *claim,
    llmgw_pick_rc_t rc)
{
    ngx_uint_t  is_aside;

    is_aside = rc == LLMGW_PICK_ASIDE
               && (claim->is_last || claim->resumes)
               && llmgw_queue_step_aside(&claim->pool->zone->shared->queue,
                                         claim->entry);

    ngx_http_llmgw_claim_forget(claim, claim->is_last
                                       && (rc == LLMGW_PICK_FULL || is_aside));
}


/* Once a second is enough to know that it happens. */

static void
ngx_http_llmgw_claim_log_full(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_claim_rc_t answer)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;

    if (answer != NGX_HTTP_LLMGW_FULL || pool->full_logged == ngx_time()) {
        return;
    }

    pool->full_logged = ngx_time();

    ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                  "llmgw: upstream \"%V\": replicas and queue are full, "
                  "%uD wait, refusing requests", &pool->conf->name,
                  pool->zone->shared->queue.length);
}


/* What the line waits for: room, or the end of a cooldown. */

ngx_uint_t
ngx_http_llmgw_claim_waits_open(ngx_http_llmgw_claim_t *claim)
{
    return claim->pool->zone->shared->waits_open;
}


/* Those who were granted once, or have tokens out, are not held to the size. */

static void
ngx_http_llmgw_claim_place(ngx_http_llmgw_claim_t *claim,
    llmgw_queue_place_t *place)
{
    place->ticket = claim->ticket;
    place->owner = (uintptr_t) claim;
    place->row = claim->pool->zone->row;
    place->process = ngx_process_slot;
    place->is_urgent = claim->is_urgent;
    place->is_counted = !claim->is_urgent && !claim->granted;
}


/* Not wanted any more; also for one that waits nowhere. */

void
ngx_http_llmgw_claim_leave(ngx_http_llmgw_claim_t *claim)
{
    uint32_t                head;
    llmgw_queue_t          *queue;
    ngx_http_llmgw_zone_t  *zone;

    if (claim->entry == LLMGW_QUEUE_NONE) {
        return;
    }

    zone = claim->pool->zone;
    queue = &zone->shared->queue;

    ngx_http_llmgw_zone_lock(zone);

    head = llmgw_queue_head(queue, ngx_current_msec);
    llmgw_queue_remove(queue, claim->entry);

    ngx_http_llmgw_zone_unlock(zone);

    if (head == claim->entry) {
        ngx_http_llmgw_line_wake(claim->pool);
    }

    ngx_http_llmgw_line_left(claim);
}


static ngx_uint_t
ngx_http_llmgw_claim_excluded(ngx_http_llmgw_claim_t *claim,
    uint32_t *indexes)
{
    ngx_uint_t                  i, n;
    ngx_http_llmgw_replica_t   *replica;
    ngx_http_llmgw_excluded_t  *excluded;

    n = 0;
    excluded = claim->excluded.elts;

    for (i = 0; i < claim->excluded.nelts; i++) {
        replica = excluded[i].replica;

        if (replica->index != -1
            && replica->member.replica_start_ms == excluded[i].start_ms)
        {
            indexes[n++] = replica->index;
        }
    }

    return n;
}


void
ngx_http_llmgw_claim_exclude(ngx_http_llmgw_claim_t *claim, ngx_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    ngx_http_llmgw_excluded_t  *excluded;

    if (claim->excluded.nelts >= NGX_HTTP_LLMGW_MAX_EXCLUDED) {
        return;
    }

    if (claim->excluded.elts == NULL
        && ngx_array_init(&claim->excluded, pool, 4,
                          sizeof(ngx_http_llmgw_excluded_t)) != NGX_OK)
    {
        return;
    }

    excluded = ngx_array_push(&claim->excluded);
    if (excluded) {
        excluded->replica = replica;
        excluded->start_ms = replica->member.replica_start_ms;
        excluded->failed = failed;
        replica->holders++;
    }
}


/*
 * The replica has delivered tokens: from now on the stream goes on in its
 * group, by the name that the group has now.
 */

void
ngx_http_llmgw_claim_resume_as(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica)
{
    claim->resumes = 1;
    claim->resume_group = replica->resume_group;
}


void
ngx_http_llmgw_claim_clear_excluded(ngx_http_llmgw_claim_t *claim)
{
    ngx_http_llmgw_claim_forget(claim, 0);
}


static void
ngx_http_llmgw_claim_forget(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t but_failed)
{
    ngx_uint_t                  i, n;
    ngx_http_llmgw_excluded_t  *excluded;

    n = 0;
    excluded = claim->excluded.elts;

    for (i = 0; i < claim->excluded.nelts; i++) {

        if (but_failed && excluded[i].failed) {
            excluded[n++] = excluded[i];
            continue;
        }

        excluded[i].replica->holders--;
    }

    claim->excluded.nelts = n;
}


/*
 * The table: replicas by index, the pick's data of each, and the ring over
 * them.
 *
 * A change of state (dead, draining, full) is written into the table that
 * serves, at once.  A change of *which replicas are listed* makes another
 * table, whose ring is built in slices between the requests; until it is whole
 * the old one serves, with those gone marked unusable.  Then, in one step, the
 * new table replaces it and every replica gets its new index.
 *
 *     listed changes           slices, until whole          rest is over
 *   ----------------> building --------------------> resting ------------> idle
 *                        ^                              |
 *                        +------------------------------+ listed has changed
 *
 * One table is built at a time, and always to its end.  What changes meanwhile
 * is gathered into the next one, which begins after a rest that grows with the
 * ring: so steady change costs a worker a bounded part of its time, and a
 * newcomer waits for two builds at most.  A build that fails for want of memory
 * is tried again.
 *
 * The dead stay listed, and in the ring, until their tombstone expires: a
 * replica that comes back finds its keys where they were, and no ring is
 * built for a crash.
 */

#include "fleet/events.h"
#include "fleet/replica.h"
#include "fleet/table.h"


#define NGX_HTTP_LLMGW_RING_SLICE      8192     /* units, which take some 30
                                                   us */
#define NGX_HTTP_LLMGW_POINTS_A_MS     4096     /* per ms of rest; built in some
                                                   15 us */
#define NGX_HTTP_LLMGW_BUILD_AGAIN_MS  1000     /* after a build that failed */


static void ngx_http_llmgw_table_schedule(ngx_http_llmgw_pool_t *pool);
static ngx_int_t ngx_http_llmgw_table_begin(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_table_rest(ngx_http_llmgw_pool_t *pool,
    ngx_msec_t ms);
static void ngx_http_llmgw_table_slice(ngx_http_llmgw_pool_t *pool,
    size_t budget);
static ngx_uint_t ngx_http_llmgw_table_is_same(ngx_http_llmgw_table_t *table,
    ngx_http_llmgw_replica_t **replicas, ngx_uint_t n);
static ngx_http_llmgw_table_t *ngx_http_llmgw_table_create(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_replica_t **replicas,
    ngx_uint_t n);
static ngx_int_t ngx_http_llmgw_table_ring(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_table_t *table);
static void ngx_http_llmgw_table_swap(ngx_http_llmgw_pool_t *pool);


/*
 * Takes over the upstream's view.  NGX_ERROR: no memory; nothing was taken.
 */

ngx_int_t
ngx_http_llmgw_table_update(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t                  i, n;
    ngx_http_llmgw_table_t     *table;
    ngx_http_llmgw_replica_t  **replicas;

    n = pool->conf->statics.nelts;

    for (i = 0; i < pool->upstream->view.n; i++) {
        n += (pool->upstream->takes[i] == pool->conf->number);
    }

    replicas = ngx_alloc((n + 1) * sizeof(void *), pool->worker->log);
    if (replicas == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_table_apply(pool, replicas);

    pool->worker->events->view_applied(pool);

    table = pool->next ? pool->next : pool->table;

    pool->behind = (table == NULL
                    || !ngx_http_llmgw_table_is_same(table, replicas,
                                                     pool->nlisted));
    ngx_http_llmgw_table_schedule(pool);

    return NGX_OK;
}


/* Continues the build, or begins one, or waits until it may begin. */

static void
ngx_http_llmgw_table_schedule(ngx_http_llmgw_pool_t *pool)
{
    ngx_msec_int_t  rest;

    if (pool->next == NULL && !pool->behind) {
        return;
    }

    rest = (ngx_msec_int_t) (pool->rest_ms - ngx_current_msec);

    if (pool->next == NULL && pool->rest_ms && rest > 0) {
        if (!pool->build.timer_set) {
            ngx_add_timer(&pool->build, rest);
        }

        return;
    }

    ngx_post_event(&pool->build, &ngx_posted_next_events);
}


/* Builds one slice per iteration of the event loop. */

void
ngx_http_llmgw_table_build(ngx_http_llmgw_pool_t *pool)
{
    if (pool->next || ngx_http_llmgw_table_begin(pool) == NGX_OK) {
        ngx_http_llmgw_table_slice(pool, NGX_HTTP_LLMGW_RING_SLICE);
    }

    ngx_http_llmgw_table_schedule(pool);
}


/* Begins the next table, if one is needed. */

static ngx_int_t
ngx_http_llmgw_table_begin(ngx_http_llmgw_pool_t *pool)
{
    if (!pool->behind) {
        return NGX_DECLINED;
    }

    pool->next = ngx_http_llmgw_table_create(pool, pool->listed,
                                             pool->nlisted);

    if (pool->next) {
        pool->behind = 0;
        pool->build_failed = 0;
        return NGX_OK;
    }

    if (!pool->build_failed) {
        pool->build_failed = 1;
        ngx_log_error(NGX_LOG_ERR, pool->worker->log, 0,
                      "llmgw: upstream \"%V\": no ring of %ui replicas can "
                      "be built, the last one stays and it is tried again",
                      &pool->conf->name, pool->nlisted);
    }

    ngx_http_llmgw_table_rest(pool, NGX_HTTP_LLMGW_BUILD_AGAIN_MS);

    return NGX_ERROR;
}


static void
ngx_http_llmgw_table_rest(ngx_http_llmgw_pool_t *pool, ngx_msec_t ms)
{
    pool->rest_ms = ngx_current_msec + ms;
}


static void
ngx_http_llmgw_table_slice(ngx_http_llmgw_pool_t *pool, size_t budget)
{
    size_t  npoints;

    if (!llmgw_ring_build(pool->next->ring, budget)) {
        return;
    }

    npoints = llmgw_ring_npoints(pool->next->ring);

    ngx_http_llmgw_table_swap(pool);
    ngx_http_llmgw_table_rest(pool, npoints / NGX_HTTP_LLMGW_POINTS_A_MS);
}


/*
 * Builds the next table at once, not in slices, and without a rest: for when no
 * other replica could serve meanwhile.
 */

void
ngx_http_llmgw_table_finish(ngx_http_llmgw_pool_t *pool)
{
    while (pool->next || ngx_http_llmgw_table_begin(pool) == NGX_OK) {
        ngx_http_llmgw_table_slice(pool, NGX_MAX_SIZE_T_VALUE);
    }
}


/* 1: some listed replicas are not in the table that serves yet. */

ngx_uint_t
ngx_http_llmgw_table_is_behind(ngx_http_llmgw_pool_t *pool)
{
    return pool->next || (pool->behind && !pool->build_failed);
}


static ngx_uint_t
ngx_http_llmgw_table_is_same(ngx_http_llmgw_table_t *table,
    ngx_http_llmgw_replica_t **replicas, ngx_uint_t n)
{
    ngx_uint_t  i;

    if (table->n != n) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (table->replicas[i] != replicas[i]
            || table->nodes[i].weight != ngx_max(replicas[i]->member.weight, 1))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_http_llmgw_table_t *
ngx_http_llmgw_table_create(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas, ngx_uint_t n)
{
    size_t                   per;
    u_char                  *p;
    ngx_uint_t               i;
    ngx_http_llmgw_table_t  *table;

    per = sizeof(llmgw_pick_peer_t) + sizeof(void *)
          + sizeof(llmgw_ring_node_t) + sizeof(llmgw_place_t)
          + sizeof(llmgw_facts_t) + sizeof(uint64_t);

    if (pool->conf->saturation.kind != LLMGW_SATURATION_NEVER) {
        per += sizeof(llmgw_candidate_t) + sizeof(uint32_t);
    }

    p = ngx_calloc(sizeof(ngx_http_llmgw_table_t) + n * per,
                   pool->worker->log);
    if (p == NULL) {
        return NULL;
    }

    table = (ngx_http_llmgw_table_t *) p;
    p += sizeof(ngx_http_llmgw_table_t);
    table->peers = (llmgw_pick_peer_t *) p;
    p += n * sizeof(llmgw_pick_peer_t);
    table->facts = (llmgw_facts_t *) p;
    p += n * sizeof(llmgw_facts_t);
    table->owners = (uint64_t *) p;
    p += n * sizeof(uint64_t);
    table->nodes = (llmgw_ring_node_t *) p;
    p += n * sizeof(llmgw_ring_node_t);
    table->replicas = (ngx_http_llmgw_replica_t **) p;
    p += n * sizeof(void *);
    table->places = (llmgw_place_t *) p;
    p += n * sizeof(llmgw_place_t);
    table->candidates = (llmgw_candidate_t *) p;
    table->counted = (uint32_t *) &table->candidates[n];
    table->n = n;

    for (i = 0; i < n; i++) {
        table->replicas[i] = replicas[i];
        table->nodes[i].id = (char *) replicas[i]->node.str.data;
        table->nodes[i].id_len = replicas[i]->node.str.len;
        table->nodes[i].weight = ngx_max(replicas[i]->member.weight, 1);
    }

    if (ngx_http_llmgw_table_ring(pool, table) != NGX_OK) {
        ngx_http_llmgw_table_destroy(table);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        replicas[i]->next_index = i;
    }

    return table;
}


/* Begins the new table's ring, from that of the table that serves. */

static ngx_int_t
ngx_http_llmgw_table_ring(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_table_t *table)
{
    void                *ring;
    uint32_t            *before;
    ngx_uint_t           i;
    llmgw_ring_t        *old;
    llmgw_ring_bytes_t   bytes;

    old = pool->table ? pool->table->ring : NULL;
    bytes = llmgw_ring_bytes(old, table->nodes, table->n, pool->conf->vnodes);

    if (bytes.ring == 0) {
        return NGX_ERROR;
    }

    ring = ngx_alloc(bytes.ring, pool->worker->log);
    before = ngx_alloc((table->n + 1) * sizeof(uint32_t), pool->worker->log);
    table->builder = ngx_alloc(bytes.builder, pool->worker->log);

    if (ring == NULL || before == NULL || table->builder == NULL) {
        ngx_free(ring);
        ngx_free(before);
        return NGX_ERROR;
    }

    for (i = 0; i < table->n; i++) {
        /* an index of -1 in the table that serves is LLMGW_RING_NEW */
        before[i] = (uint32_t) table->replicas[i]->index;
    }

    table->ring = llmgw_ring_init(ring, table->builder, old, before,
                                  table->nodes, table->n, pool->conf->vnodes);
    ngx_free(before);

    return NGX_OK;
}


void
ngx_http_llmgw_table_destroy(ngx_http_llmgw_table_t *table)
{
    if (table) {
        ngx_free(table->builder);
        ngx_free(table->ring);
        ngx_free(table);
    }
}


static void
ngx_http_llmgw_table_swap(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t               i;
    ngx_http_llmgw_table_t  *old;

    old = pool->table;

    for (i = 0; old && i < old->n; i++) {
        old->replicas[i]->index = -1;
    }

    pool->table = pool->next;
    pool->next = NULL;

    ngx_free(pool->table->builder);
    pool->table->builder = NULL;

    for (i = 0; i < pool->table->n; i++) {
        pool->table->replicas[i]->index = i;
        pool->table->replicas[i]->next_index = -1;
        ngx_http_llmgw_replica_set_peer(pool->table->replicas[i]);
    }

    ngx_http_llmgw_table_destroy(old);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, pool->worker->log, 0,
                   "llmgw: ring of %ui replicas, %uz points",
                   pool->table->n, llmgw_ring_npoints(pool->table->ring));
}


/*
 * Peers for llmgw_pick(), which reads counts: to be used under the zone's lock.
 */

void
ngx_http_llmgw_table_peers(ngx_http_llmgw_pool_t *pool,
    llmgw_pick_pool_t *peers)
{
    ngx_memzero(peers, sizeof(llmgw_pick_pool_t));

    peers->ring = pool->table->ring;
    peers->peers = pool->table->peers;
    peers->npeers = pool->table->n;
    peers->nstandbys = pool->table->nstandbys;
    peers->breaker_conf = &pool->conf->breaker;
    peers->load_factor_permille = pool->conf->load_factor;
    peers->min_load = pool->conf->min_load;
    peers->sums = &pool->table->sums;
}


double
ngx_http_llmgw_table_saturation(ngx_http_llmgw_pool_t *pool, int *is_known)
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
ngx_http_llmgw_table_standbys(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t  i;

    for (i = 0; pool->table->nstandbys && i < pool->table->n; i++) {
        ngx_http_llmgw_replica_set_peer(pool->table->replicas[i]);
    }
}


/* 1: replicas that are only in the next table might serve. */

ngx_uint_t
ngx_http_llmgw_table_is_empty(ngx_http_llmgw_pool_t *pool)
{
    return pool->table->nusable == 0 && !ngx_http_llmgw_table_is_behind(pool);
}


/* A pool that no line has named and that never had a replica is unknown. */

ngx_msec_t
ngx_http_llmgw_table_hold_ms(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = pool->upstream->conf;

    return conf->is_named || conf->model.len || conf->statics.nelts
           || pool->zone->shared->was_listed ? conf->queue_hold : 0;
}


ngx_uint_t
ngx_http_llmgw_table_has_routable(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t  i;

    ngx_http_llmgw_pool_look(pool);

    for (i = 0; i < pool->table->n; i++) {
        if (ngx_http_llmgw_replica_is_routable(pool->table->replicas[i])) {
            return 1;
        }
    }

    return 0;
}

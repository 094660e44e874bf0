
/*
 * The table: replicas by index, what the pick knows of each, and the ring
 * over them.
 *
 * A change of state (dead, draining, full) is written into the table that
 * serves, at once.  A change of *who is listed* makes another table, whose
 * ring is built in slices between the requests; until it is whole the old one
 * serves, with those gone marked unusable.  Then the new one takes its place
 * and every replica its new index, in one step.
 *
 * The dead stay listed, and in the ring, until their tombstone expires: a
 * replica that comes back finds its keys where they were, and no ring is
 * built for a crash.
 */

#include "upstream/replica.h"
#include "upstream/session.h"
#include "upstream/table.h"


static void ngx_http_llmgw_table_apply(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas);
static ngx_http_llmgw_replica_t **ngx_http_llmgw_table_unlist(
    ngx_http_llmgw_replica_t **last, ngx_http_llmgw_replica_t **end,
    const char *id);
static ngx_http_llmgw_replica_t *ngx_http_llmgw_table_apply_member(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_replica_t *replica, size_t i);
static ngx_uint_t ngx_http_llmgw_table_statics(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas);
static void ngx_http_llmgw_table_relist(ngx_http_llmgw_replica_t *replica);
static ngx_uint_t ngx_http_llmgw_table_is_same(ngx_http_llmgw_table_t *table,
    ngx_http_llmgw_replica_t **replicas, ngx_uint_t n);
static ngx_http_llmgw_table_t *ngx_http_llmgw_table_create(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_replica_t **replicas,
    ngx_uint_t n);
static ngx_int_t ngx_http_llmgw_table_ring(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_table_t *table);
static void ngx_http_llmgw_table_abandon(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_table_swap(ngx_http_llmgw_pool_t *pool);


/*
 * Takes the pool's view over.  NGX_ERROR: no memory; nothing was taken, and
 * the generation stays, so that the next look tries again.
 */

ngx_int_t
ngx_http_llmgw_table_update(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t                  n;
    ngx_http_llmgw_table_t     *table;
    ngx_http_llmgw_replica_t  **replicas;

    n = pool->view.n + pool->conf->statics.nelts;

    replicas = ngx_alloc((n + 1) * sizeof(void *), pool->worker->log);
    if (replicas == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_table_apply(pool, replicas);
    n = ngx_http_llmgw_table_statics(pool, replicas);

    table = pool->next ? pool->next : pool->table;

    if (table == NULL || !ngx_http_llmgw_table_is_same(table, replicas, n)) {
        ngx_http_llmgw_table_abandon(pool);

        pool->next = ngx_http_llmgw_table_create(pool, replicas, n);

        if (pool->next) {
            ngx_post_event(&pool->build, &ngx_posted_next_events);
        }
    }

    return NGX_OK;
}


/*
 * Members into replicas.  Both the view and the replicas of the last one
 * ascend by id, so they are gone through side by side; most are as they were.
 */

static void
ngx_http_llmgw_table_apply(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas)
{
    size_t                     i;
    ngx_uint_t                 n;
    ngx_http_llmgw_replica_t  *replica, **last, **end;

    n = 0;
    last = pool->members;
    end = last + pool->nmembers;

    for (i = 0; i < pool->view.n; i++) {
        if (pool->view.members[i].role != LLMGW_ROLE_REPLICA) {
            continue;
        }

        last = ngx_http_llmgw_table_unlist(last, end,
                                           pool->view.members[i].id);
        replica = NULL;

        if (last != end && ngx_strcmp((*last)->member.id,
                                      pool->view.members[i].id) == 0)
        {
            replica = *last++;
        }

        replica = ngx_http_llmgw_table_apply_member(pool, replica, i);

        if (replica) {
            replicas[n++] = replica;
        }
    }

    (void) ngx_http_llmgw_table_unlist(last, end, NULL);

    ngx_free(pool->members);

    pool->members = replicas;
    pool->nmembers = n;
    pool->was_isolated = pool->view.isolated;
}


/* Those before an id are in the view no more; without one, all are. */

static ngx_http_llmgw_replica_t **
ngx_http_llmgw_table_unlist(ngx_http_llmgw_replica_t **last,
    ngx_http_llmgw_replica_t **end, const char *id)
{
    while (last != end
           && (id == NULL || ngx_strcmp((*last)->member.id, id) < 0))
    {
        ngx_http_llmgw_replica_unlist(*last++);
    }

    return last;
}


/* replica: as the last view had it, or NULL. */

static ngx_http_llmgw_replica_t *
ngx_http_llmgw_table_apply_member(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, size_t i)
{
    const llmgw_member_t  *member;

    member = &pool->view.members[i];

    if (replica && pool->view.isolated == pool->was_isolated
        && ngx_memcmp(&replica->member, member, sizeof(llmgw_member_t)) == 0)
    {
        replica->view_index = i;
        return replica;
    }

    if (replica == NULL) {
        replica = ngx_http_llmgw_replica_find(pool, member->id);
    }

    if (replica == NULL) {
        replica = ngx_http_llmgw_replica_create(pool, member);
        if (replica == NULL) {
            return NULL;
        }
    }

    replica->view_index = i;
    ngx_http_llmgw_replica_update(replica, member);

    return replica;
}


/*
 * Static lines behind the members.  One whose address a member has is inert
 * while that member is listed.  Returns how many are listed in all.
 */

static ngx_uint_t
ngx_http_llmgw_table_statics(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas)
{
    ngx_uint_t                 i, n;
    ngx_rbtree_node_t         *node;
    ngx_http_llmgw_replica_t  *replica;

    n = pool->nmembers;

    if (pool->conf->statics.nelts == 0) {
        return n;
    }

    pool->round++;

    for (i = 0; i < pool->nmembers; i++) {
        replica = ngx_http_llmgw_replica_find(pool, replicas[i]->member.grpc);

        if (replica && replica->is_static) {
            replica->round = pool->round;
        }
    }

    for (node = ngx_rbtree_min(pool->tree.root, &pool->sentinel);
         node;
         node = ngx_rbtree_next(&pool->tree, node))
    {
        replica = (ngx_http_llmgw_replica_t *) node;

        if (replica->is_static) {
            ngx_http_llmgw_table_relist(replica);
        }

        if (replica->is_static && replica->listed) {
            replicas[n++] = replica;
        }
    }

    return n;
}


static void
ngx_http_llmgw_table_relist(ngx_http_llmgw_replica_t *replica)
{
    ngx_uint_t  inert;

    inert = (replica->round == replica->pool->round);

    if (inert && replica->listed) {
        ngx_http_llmgw_replica_unlist(replica);

    } else if (!inert && !replica->listed) {
        ngx_http_llmgw_replica_update(replica, &replica->member);
    }
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
          + sizeof(llmgw_ring_node_t);

    p = ngx_calloc(sizeof(ngx_http_llmgw_table_t) + n * per,
                   pool->worker->log);
    if (p == NULL) {
        return NULL;
    }

    table = (ngx_http_llmgw_table_t *) p;
    p += sizeof(ngx_http_llmgw_table_t);
    table->peers = (llmgw_pick_peer_t *) p;
    p += n * sizeof(llmgw_pick_peer_t);
    table->nodes = (llmgw_ring_node_t *) p;
    p += n * sizeof(llmgw_ring_node_t);
    table->replicas = (ngx_http_llmgw_replica_t **) p;
    table->n = n;

    for (i = 0; i < n; i++) {
        table->replicas[i] = replicas[i];
        table->nodes[i].id = (char *) replicas[i]->node.str.data;
        table->nodes[i].id_len = replicas[i]->node.str.len;
        table->nodes[i].weight = ngx_max(replicas[i]->member.weight, 1);
    }

    if (ngx_http_llmgw_table_ring(pool, table) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, pool->worker->log, 0,
                      "llmgw: upstream \"%V\": no ring of %ui replicas can "
                      "be built, the last one stays", &pool->conf->name, n);
        ngx_http_llmgw_table_destroy(table);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        replicas[i]->next_index = i;
    }

    return table;
}


/* Begins the ring, out of the one that serves. */

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
        /* -1 in the table that serves is LLMGW_RING_NEW here */
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
ngx_http_llmgw_table_abandon(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t  i;

    if (pool->next == NULL) {
        return;
    }

    for (i = 0; i < pool->next->n; i++) {
        pool->next->replicas[i]->next_index = -1;
    }

    ngx_http_llmgw_table_destroy(pool->next);
    pool->next = NULL;
}


/* NGX_AGAIN: there is more to build. */

ngx_int_t
ngx_http_llmgw_table_build(ngx_http_llmgw_pool_t *pool, size_t budget)
{
    if (pool->next == NULL) {
        return NGX_OK;
    }

    if (!llmgw_ring_build(pool->next->ring, budget)) {
        return NGX_AGAIN;
    }

    ngx_http_llmgw_table_swap(pool);

    return NGX_OK;
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


/* At once, not in slices: where nobody else could serve meanwhile. */

void
ngx_http_llmgw_table_finish(ngx_http_llmgw_pool_t *pool)
{
    while (ngx_http_llmgw_table_build(pool, LLMGW_RING_MAX_POINTS)
           == NGX_AGAIN)
    {
        /* void */
    }
}


/* For llmgw_pick(), which reads counts: under the zone's lock. */

void
ngx_http_llmgw_table_peers(ngx_http_llmgw_pool_t *pool,
    llmgw_pick_pool_t *peers)
{
    ngx_memzero(peers, sizeof(llmgw_pick_pool_t));

    peers->ring = pool->table->ring;
    peers->peers = pool->table->peers;
    peers->npeers = pool->table->n;
    peers->breaker_conf = &pool->conf->breaker;
    peers->load_factor_permille = pool->conf->load_factor;
    peers->min_load = pool->conf->min_load;
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

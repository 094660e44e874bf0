
/*
 * Applies a view: assigns members to pools, lists replicas, and updates their
 * state.
 *
 * First the members are counted by their models, which decides the base models
 * with pools. Then each pool takes its own. Members without a model, such as
 * replicas that report none and static lines, belong to the pool with the most
 * replicas.
 */

#include "fleet/replica.h"
#include "fleet/table.h"


static ngx_int_t ngx_http_llmgw_upstream_reserve(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_count(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_share(
    ngx_http_llmgw_upstream_t *upstream);
static ngx_http_llmgw_replica_t **ngx_http_llmgw_table_unlist(
    ngx_http_llmgw_replica_t **last, ngx_http_llmgw_replica_t **end,
    const char *id);
static ngx_http_llmgw_replica_t *ngx_http_llmgw_table_apply_member(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_replica_t *replica, size_t i);
static ngx_uint_t ngx_http_llmgw_table_statics(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas);
static void ngx_http_llmgw_table_relist(ngx_http_llmgw_replica_t *replica);


ngx_int_t
ngx_http_llmgw_upstream_apply(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_int_t                 rc;
    ngx_uint_t                i, has_changed;
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_models_t  *models;

    if (ngx_http_llmgw_upstream_reserve(upstream) != NGX_OK) {
        return NGX_ERROR;
    }

    models = &upstream->models;
    has_changed = 0;

    ngx_http_llmgw_upstream_count(upstream);

    if (upstream->conf->npools > 1) {
        (void) ngx_http_llmgw_upstream_bind(upstream);

    } else {
        pool = upstream->main;
        has_changed = ngx_http_llmgw_models_settle(models, &pool->base);
    }

    ngx_http_llmgw_upstream_share(upstream);

    rc = NGX_OK;

    for (i = 0; i < upstream->conf->npools; i++) {
        pool = upstream->pools[i];

        if (pool && ngx_http_llmgw_table_update(pool) != NGX_OK) {
            rc = NGX_ERROR;
        }
    }

    pool = upstream->main;

    for (i = 0; has_changed && i < pool->nmembers; i++) {
        ngx_http_llmgw_replica_set_peer(pool->listed[i]);
    }

    ngx_http_llmgw_models_end(models);

    return rc;
}


static ngx_int_t
ngx_http_llmgw_upstream_reserve(ngx_http_llmgw_upstream_t *upstream)
{
    size_t   n;
    u_char  *takes;

    n = upstream->view.capacity;

    if (n > upstream->ntakes) {
        takes = ngx_alloc(n, upstream->worker->log);
        if (takes == NULL) {
            return NGX_ERROR;
        }

        ngx_free(upstream->takes);
        upstream->takes = takes;
        upstream->ntakes = n;
    }

    /* a pool that is made now takes no members before it has its share */

    if (upstream->view.n) {
        ngx_memset(upstream->takes, NGX_HTTP_LLMGW_NO_POOL, upstream->view.n);
    }

    return ngx_http_llmgw_standbys_reserve(&upstream->standbys,
                                           &upstream->view);
}


/* Counts the members that are taken, by their models. */

static void
ngx_http_llmgw_upstream_count(ngx_http_llmgw_upstream_t *upstream)
{
    size_t                     i;
    ngx_uint_t                 number;
    const llmgw_member_t      *like;
    llmgw_members_view_t      *view;
    ngx_http_llmgw_models_t   *models;
    ngx_http_llmgw_standing_t  standing;

    view = &upstream->view;
    models = &upstream->models;

    ngx_http_llmgw_models_begin(models, upstream->reader, view);
    ngx_http_llmgw_standbys_update(&upstream->standbys, models, view);
    upstream->nsilent = 0;

    for (i = 0; i < view->n; i++) {
        like = ngx_http_llmgw_standbys_place(&upstream->standbys, view, i,
                                             &standing);

        if (ngx_http_llmgw_models_takes(models, like)) {
            number = ngx_http_llmgw_models_of(models, like);
            upstream->nsilent += (number == 0);

            ngx_http_llmgw_models_count(models, number, &view->members[i],
                                        view->isolated,
                                        standing.is == LLMGW_STANDING_WARM);
        }
    }
}


/* Determines which pool takes each member, if any. */

static void
ngx_http_llmgw_upstream_share(ngx_http_llmgw_upstream_t *upstream)
{
    size_t                     i;
    ngx_uint_t                 number;
    const llmgw_member_t      *like;
    ngx_http_llmgw_pool_t     *pool;
    ngx_http_llmgw_models_t   *models;
    ngx_http_llmgw_standing_t  standing;

    models = &upstream->models;

    for (i = 0; i < upstream->view.n; i++) {
        like = ngx_http_llmgw_standbys_place(&upstream->standbys,
                                             &upstream->view, i, &standing);
        pool = NULL;

        if (ngx_http_llmgw_models_takes(models, like)) {
            number = ngx_http_llmgw_models_of(models, like);

            pool = number == 0 || upstream->conf->npools == 1
                   ? upstream->main
                   : ngx_http_llmgw_upstream_pool_of(upstream,
                                         models->known.lists[number]->base);
        }

        upstream->takes[i] = pool ? pool->conf->number
                                  : NGX_HTTP_LLMGW_NO_POOL;
    }
}


/*
 * Makes replicas of members.  Both the view and the replicas of the last one
 * ascend by id, so they are walked side by side; most are unchanged.
 */

void
ngx_http_llmgw_table_apply(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas)
{
    size_t                      i;
    ngx_uint_t                  n;
    llmgw_members_view_t       *view;
    ngx_http_llmgw_replica_t   *replica, **last, **end;

    n = 0;
    last = pool->listed;
    end = last + pool->nmembers;
    view = &pool->upstream->view;

    for (i = 0; i < view->n; i++) {

        if (pool->upstream->takes[i] != pool->conf->number) {
            continue;
        }

        last = ngx_http_llmgw_table_unlist(last, end, view->members[i].id);
        replica = NULL;

        if (last != end
            && ngx_strcmp((*last)->member.id, view->members[i].id) == 0)
        {
            replica = *last++;
        }

        replica = ngx_http_llmgw_table_apply_member(pool, replica, i);

        if (replica) {
            replicas[n++] = replica;
        }
    }

    (void) ngx_http_llmgw_table_unlist(last, end, NULL);

    ngx_free(pool->listed);

    pool->listed = replicas;
    pool->nmembers = n;
    pool->was_isolated = view->isolated;

    if (n) {
        pool->zone->shared->was_listed = 1;
    }

    pool->nlisted = ngx_http_llmgw_table_statics(pool, replicas);
}


/*
 * Replicas with an id below `id` are gone from the view; NULL: so are all that
 * are left.
 */

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


/* replica: the member's, from the last view, or NULL. */

static ngx_http_llmgw_replica_t *
ngx_http_llmgw_table_apply_member(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, size_t i)
{
    ngx_uint_t                  models;
    const llmgw_member_t       *like, *member;
    ngx_http_llmgw_standing_t   standing;
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = pool->upstream;
    member = &upstream->view.members[i];
    like = ngx_http_llmgw_standbys_place(&upstream->standbys, &upstream->view,
                                         i, &standing);
    models = ngx_http_llmgw_models_of(&upstream->models, like);

    if (replica && upstream->view.isolated == pool->was_isolated
        && replica->models == models
        && ngx_memcmp(&replica->standing, &standing,
                      sizeof(ngx_http_llmgw_standing_t)) == 0
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
    replica->models = models;
    replica->standing = standing;
    ngx_http_llmgw_replica_update(replica, member, like);

    return replica;
}


/*
 * Appends static lines to the members of the pool that has them.  A static line
 * with a member's address is inert while some pool takes that member.  Returns
 * how many replicas are listed in all.
 */

static ngx_uint_t
ngx_http_llmgw_table_statics(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas)
{
    ngx_uint_t                  i, n;
    ngx_rbtree_node_t          *node;
    ngx_http_llmgw_replica_t   *replica;
    ngx_http_llmgw_upstream_t  *upstream;

    n = pool->nmembers;
    upstream = pool->upstream;

    if (pool->conf->statics.nelts == 0) {
        return n;
    }

    pool->round++;

    for (i = 0; i < upstream->view.n; i++) {

        if (upstream->takes[i] == NGX_HTTP_LLMGW_NO_POOL) {
            continue;
        }

        replica = ngx_http_llmgw_replica_find(pool,
                                              upstream->view.members[i].grpc);

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
    ngx_uint_t              inert;
    ngx_http_llmgw_pool_t  *pool, *most;

    pool = replica->pool;
    most = pool->upstream->main;        /* NULL: the first pool is being made */
    inert = replica->round == pool->round || (most && most != pool);

    if (inert && replica->listed) {
        ngx_http_llmgw_replica_unlist(replica);

    } else if (!inert && !replica->listed) {
        ngx_http_llmgw_replica_update(replica, &replica->member,
                                      &replica->member);
    }
}


/* A view becomes replicas: those that are listed, and what is told of each. */

#include "fleet/replica.h"
#include "fleet/table.h"


static ngx_http_llmgw_replica_t **ngx_http_llmgw_table_unlist(
    ngx_http_llmgw_replica_t **last, ngx_http_llmgw_replica_t **end,
    const char *id);
static ngx_http_llmgw_replica_t *ngx_http_llmgw_table_apply_member(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_replica_t *replica, size_t i,
    const llmgw_member_t *like, const ngx_http_llmgw_standing_t *standing);
static ngx_uint_t ngx_http_llmgw_table_statics(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas);
static void ngx_http_llmgw_table_relist(ngx_http_llmgw_replica_t *replica);


/*
 * Makes replicas of members.  Both the view and the replicas of the last one
 * ascend by id, so they are gone through side by side; most are as they were.
 */

void
ngx_http_llmgw_table_apply(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas)
{
    size_t                     i;
    ngx_uint_t                 n;
    const llmgw_member_t      *like;
    ngx_http_llmgw_replica_t  *replica, **last, **end;
    ngx_http_llmgw_standing_t  standing;

    n = 0;
    last = pool->listed;
    end = last + pool->nmembers;

    ngx_http_llmgw_models_begin(&pool->models, pool->reader, &pool->view);
    ngx_http_llmgw_standbys_update(&pool->standbys, &pool->models,
                                   &pool->view);

    for (i = 0; i < pool->view.n; i++) {
        like = ngx_http_llmgw_standbys_place(&pool->standbys, &pool->view, i,
                                             &standing);

        if (!ngx_http_llmgw_models_takes(&pool->models, like)) {
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

        replica = ngx_http_llmgw_table_apply_member(pool, replica, i, like,
                                                    &standing);

        if (replica) {
            replicas[n++] = replica;
        }
    }

    (void) ngx_http_llmgw_table_unlist(last, end, NULL);

    ngx_free(pool->listed);

    pool->listed = replicas;
    pool->nmembers = n;
    pool->was_isolated = pool->view.isolated;

    if (ngx_http_llmgw_models_end(&pool->models)) {
        for (i = 0; i < n; i++) {
            ngx_http_llmgw_replica_set_peer(replicas[i]);
        }
    }

    pool->nlisted = ngx_http_llmgw_table_statics(pool, replicas);
}


/* Replicas with an id below `id` are gone from the view; NULL: all the rest. */

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
    ngx_http_llmgw_replica_t *replica, size_t i, const llmgw_member_t *like,
    const ngx_http_llmgw_standing_t *standing)
{
    ngx_uint_t             models;
    const llmgw_member_t  *member;

    member = &pool->view.members[i];
    models = ngx_http_llmgw_models_of(&pool->models, like);

    ngx_http_llmgw_models_count(&pool->models, models, member,
                                pool->view.isolated,
                                standing->is == LLMGW_STANDING_WARM);

    if (replica && pool->view.isolated == pool->was_isolated
        && replica->models == models
        && ngx_memcmp(&replica->standing, standing,
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
    replica->standing = *standing;
    ngx_http_llmgw_replica_update(replica, member, like);

    return replica;
}


/*
 * Appends static lines to the members.  One whose address a member has is
 * inert while that member is listed.  Returns how many are listed in all.
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
        ngx_http_llmgw_replica_update(replica, &replica->member,
                                      &replica->member);
    }
}

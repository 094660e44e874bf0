
/* Snapshots of the pools: snapshot.h. */

#include "pages/snapshot.h"


static ngx_int_t ngx_http_llmgw_snapshot_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory);
static ngx_int_t ngx_http_llmgw_snapshot_gateways(
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory);
static ngx_int_t ngx_http_llmgw_snapshot_standbys(
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory);
static void ngx_http_llmgw_snapshot_standby(
    ngx_http_llmgw_snapshot_t *snapshot, const llmgw_standby_group_t *group,
    const llmgw_takeover_t *takeover);
static void ngx_http_llmgw_snapshot_sum(ngx_http_llmgw_snapshot_t *snapshot);


ngx_array_t *
ngx_http_llmgw_snapshot_take(ngx_http_request_t *r)
{
    ngx_array_t                 *snapshots;
    ngx_queue_t                 *q;
    ngx_http_llmgw_snapshot_t   *snapshot;
    ngx_http_llmgw_worker_t     *worker;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);
    worker = lmcf->worker;

    snapshots = ngx_array_create(r->pool, 1, sizeof(ngx_http_llmgw_snapshot_t));
    if (snapshots == NULL || worker == NULL) {
        return snapshots;
    }

    for (q = ngx_queue_head(&worker->pools);
         q != ngx_queue_sentinel(&worker->pools);
         q = ngx_queue_next(q))
    {
        snapshot = ngx_array_push(snapshots);

        if (snapshot == NULL
            || ngx_http_llmgw_snapshot_pool(
                   ngx_queue_data(q, ngx_http_llmgw_pool_t, queue),
                   snapshot, r->pool)
               != NGX_OK)
        {
            ngx_http_llmgw_snapshot_release(snapshots);
            return NULL;
        }
    }

    return snapshots;
}


static ngx_int_t
ngx_http_llmgw_snapshot_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory)
{
    ngx_uint_t                 i;
    ngx_http_llmgw_table_t    *table;
    ngx_http_llmgw_replica_t  *replica;

    ngx_http_llmgw_pool_look(pool);
    ngx_http_llmgw_pool_loads(pool);

    table = pool->table;

    ngx_memzero(snapshot, sizeof(ngx_http_llmgw_snapshot_t));
    snapshot->pool = pool;
    snapshot->replicas = ngx_palloc(memory, (table->n + 1) * sizeof(void *));

    if (snapshot->replicas == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < table->n; i++) {
        replica = table->replicas[i];

        if (replica->listed) {
            replica->holders++;
            snapshot->replicas[snapshot->n++] = replica;
        }
    }

    ngx_http_llmgw_snapshot_sum(snapshot);

    if (ngx_http_llmgw_snapshot_gateways(snapshot, memory) != NGX_OK
        || ngx_http_llmgw_snapshot_shards(snapshot, memory) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_snapshot_standbys(snapshot, memory);
}


/* Copies the gateways: the view may have changed by the next slice. */

static ngx_int_t
ngx_http_llmgw_snapshot_gateways(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_pool_t *memory)
{
    size_t                 i, n;
    llmgw_members_view_t  *view;

    view = &snapshot->pool->view;
    n = 0;

    for (i = 0; i < view->n; i++) {
        n += (llmgw_member_role(&view->members[i]) == LLMGW_ROLE_GATEWAY);
    }

    snapshot->gateways = ngx_palloc(memory, (n + 1) * sizeof(llmgw_member_t));
    if (snapshot->gateways == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < view->n; i++) {
        if (llmgw_member_role(&view->members[i]) == LLMGW_ROLE_GATEWAY) {
            snapshot->gateways[snapshot->ngateways++] = view->members[i];
        }
    }

    return NGX_OK;
}


/* In the order of their first members. */

static ngx_int_t
ngx_http_llmgw_snapshot_standbys(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_pool_t *memory)
{
    size_t                        i;
    ngx_http_llmgw_pool_t        *pool;
    const llmgw_standby_group_t  *group;
    llmgw_takeover_t             *takeover;

    pool = snapshot->pool;

    if (pool->standbys.known.n == 0) {
        return NGX_OK;
    }

    snapshot->standbys = ngx_pcalloc(memory, pool->standbys.known.n
                                     * sizeof(ngx_http_llmgw_standby_t));
    if (snapshot->standbys == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < pool->view.n; i++) {
        group = ngx_http_llmgw_standbys_group(&pool->standbys, &pool->view, i,
                                              &takeover);
        if (group) {
            ngx_http_llmgw_snapshot_standby(snapshot, group, takeover);
        }
    }

    return NGX_OK;
}


static void
ngx_http_llmgw_snapshot_standby(ngx_http_llmgw_snapshot_t *snapshot,
    const llmgw_standby_group_t *group, const llmgw_takeover_t *takeover)
{
    ngx_http_llmgw_zone_t     *zone;
    ngx_http_llmgw_standby_t  *standby;
    llmgw_members_view_t      *view;

    zone = snapshot->pool->zone;
    view = &snapshot->pool->view;
    standby = &snapshot->standbys[snapshot->nstandbys++];

    standby->group = *group;
    ngx_memcpy(standby->name, view->members[group->index].group,
               LLMGW_GROUP_BYTES);

    if (group->is_led && group->leader < view->n) {
        ngx_memcpy(standby->active, view->members[group->leader].id,
                   LLMGW_MEMBERS_NAME_BYTES);
    }

    if (takeover) {
        ngx_http_llmgw_zone_lock(zone);
        standby->takeover = *takeover;
        ngx_http_llmgw_zone_unlock(zone);
    }
}


/*
 * Adds the workers' rows to the base, under the zone's lock, under which a
 * sweep moves a dead worker's row to the base.
 */

static void
ngx_http_llmgw_snapshot_sum(ngx_http_llmgw_snapshot_t *snapshot)
{
    uint32_t                       i, k;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = snapshot->pool->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    snapshot->sum = shared->base;

    for (i = 0; i < shared->admission->nrows; i++) {
        if (shared->rows[i].pid) {
            ngx_http_llmgw_metrics_add(&snapshot->sum, &shared->counters[i], 0);
            snapshot->levels.streams += shared->levels[i].streams;
            snapshot->levels.sessions += shared->levels[i].sessions;

            for (k = 0; k < LLMGW_NSHARES; k++) {
                snapshot->levels.body_bytes[k] +=
                                              shared->levels[i].body_bytes[k];
            }
        }
    }

    ngx_http_llmgw_zone_unlock(zone);
}


void
ngx_http_llmgw_snapshot_release(ngx_array_t *snapshots)
{
    ngx_uint_t                  i, k;
    ngx_http_llmgw_snapshot_t  *snapshot;

    if (snapshots == NULL) {
        return;
    }

    snapshot = snapshots->elts;

    for (i = 0; i < snapshots->nelts; i++) {
        for (k = 0; k < snapshot[i].n; k++) {
            snapshot[i].replicas[k]->holders--;
        }

        snapshot[i].n = 0;
    }
}


ngx_int_t
ngx_http_llmgw_snapshot_group(ngx_http_llmgw_snapshot_t *snapshot,
    llmgw_group_kind_t kind, ngx_uint_t i, ngx_http_llmgw_group_t *group)
{
    ngx_uint_t            k;
    llmgw_groups_t       *groups;
    const llmgw_group_t  *from;

    groups = snapshot->pool->zone->shared->groups;
    from = llmgw_groups_at(groups, kind, i);

    if (from == NULL) {
        return NGX_DECLINED;
    }

    group->counts = *from;
    group->name.data = (u_char *) group->counts.name;
    group->name.len = group->counts.name_len;
    group->in_flight = kind == LLMGW_GROUP_TENANT
                       ? llmgw_groups_in_flight(groups, from) : 0;
    group->has_any = (group->in_flight != 0);

    for (k = 0; k < LLMGW_GROUP_NREASONS; k++) {
        group->has_any |= (group->counts.requests[k] != 0);
    }

    return NGX_OK;
}


/* Snapshots, and the list of all scopes: snapshot.h. */

#include "core/quantile.h"
#include "pages/facts/snapshot_inner.h"


#define NGX_HTTP_LLMGW_SCOPE(name)  &ngx_http_llmgw_scope_##name,

const ngx_http_llmgw_scope_t  *const ngx_http_llmgw_scopes[] = {
    NGX_HTTP_LLMGW_SCOPES(NGX_HTTP_LLMGW_SCOPE)
};

#define NGX_HTTP_LLMGW_POOLS_END                                              \
    (0 NGX_HTTP_LLMGW_POOL_SCOPES(NGX_HTTP_LLMGW_SCOPE_COUNT))

const ngx_http_llmgw_source_t  ngx_http_llmgw_sources[] = {
    [NGX_HTTP_LLMGW_POOLS] =
        { "pools", "upstream", 0, NGX_HTTP_LLMGW_POOLS_END },
    [NGX_HTTP_LLMGW_KEYS] =
        { "keys", "zone", NGX_HTTP_LLMGW_POOLS_END, NGX_HTTP_LLMGW_NSCOPES }
};


static ngx_int_t ngx_http_llmgw_snapshot_zones(ngx_array_t *snapshots,
    const ngx_array_t *zones);


/*
 * Adds the workers' rows to the base; needs the zone's lock, under which a
 * sweep moves a dead worker's row to the base.
 */

static void
ngx_http_llmgw_snapshot_rows(ngx_http_llmgw_snapshot_t *snapshot)
{
    uint32_t                       i;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_levels_t       *levels;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = snapshot->pool->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    snapshot->counters = shared->base;

    for (i = 0; i < shared->admission->nrows; i++) {
        if (shared->rows[i].pid == 0) {
            continue;
        }

        levels = &shared->levels[i];

        ngx_http_llmgw_metrics_add(&snapshot->counters, &shared->counters[i],
                                   0);
        snapshot->levels.streams += levels->streams;
        snapshot->levels.sessions += levels->sessions;
        snapshot->levels.held += levels->held;
    }

    ngx_http_llmgw_zone_unlock(zone);
}


/* Counts of bodies, whose model is not known when they are read. */

static void
ngx_http_llmgw_snapshot_bodies(ngx_http_llmgw_snapshot_t *snapshot)
{
    uint32_t                       i, k;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = snapshot->pool->upstream->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    for (i = 0; i < shared->admission->nrows; i++) {
        for (k = 0; shared->rows[i].pid && k < LLMGW_NSHARES; k++) {
            snapshot->levels.body_bytes[k] += shared->levels[i].body_bytes[k];
        }
    }

    ngx_http_llmgw_zone_unlock(zone);
}


static void
ngx_http_llmgw_snapshot_slot(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_http_llmgw_slot_t *slot, ngx_uint_t is_gone)
{
    ngx_http_llmgw_gone_t   *gone;
    ngx_http_llmgw_slots_t  *sum;

    sum = &snapshot->slots;

    sum->used++;
    sum->in_flight += slot->admission.counts.in_flight;
    sum->tokens += slot->tokens;
    sum->attempts += slot->attempts;
    sum->failures += slot->failures;
    sum->denials += slot->denials;
    sum->tokens_rate += slot->tokens_rate;
    sum->attempts_rate += slot->attempts_rate;
    ngx_http_llmgw_recent_add(sum->first_token, slot);

    if (!is_gone) {
        return;
    }

    gone = &snapshot->gone[snapshot->ngone++];
    gone->tokens = slot->tokens;
    gone->attempts = slot->attempts;
    gone->failures = slot->failures;
    gone->denials = slot->denials;
    gone->id.len = slot->admission.id_len;
    gone->id.data = gone->text;
    ngx_memcpy(gone->text, slot->admission.id, gone->id.len);
}


/* Needs the zone's lock, since slots are given up under it. */

static void
ngx_http_llmgw_snapshot_slots(ngx_http_llmgw_snapshot_t *snapshot,
    const u_char *seen)
{
    uint32_t                       i;
    ngx_http_llmgw_gone_t         *rest;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = snapshot->pool->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    for (i = 0; i < shared->admission->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->admission.id_len) {
            ngx_http_llmgw_snapshot_slot(snapshot, slot, !seen[i]);
        }
    }

    rest = &snapshot->gone[snapshot->ngone++];
    ngx_str_set(&rest->id, "");
    rest->tokens = shared->tokens_base;
    rest->attempts = shared->attempts_base;
    rest->failures = shared->failures_base;
    rest->denials = shared->denials_base;

    ngx_http_llmgw_zone_unlock(zone);

    snapshot->slots.tokens += rest->tokens;
    snapshot->slots.attempts += rest->attempts;
    snapshot->slots.failures += rest->failures;
    snapshot->slots.denials += rest->denials;
}


static ngx_int_t
ngx_http_llmgw_snapshot_replicas(ngx_http_llmgw_snapshot_t *snapshot)
{
    u_char                    *seen;
    uint32_t                   nslots;
    ngx_uint_t                 i;
    ngx_http_llmgw_table_t    *table;
    ngx_http_llmgw_replica_t  *replica;

    table = snapshot->pool->table;
    nslots = snapshot->pool->zone->shared->admission->nslots;

    /* nothing is allocated under the lock, so there is room for all slots */

    seen = ngx_pcalloc(snapshot->memory, nslots + table->n);
    snapshot->replicas = ngx_palloc(snapshot->memory,
                                    (table->n + 1) * sizeof(void *));
    snapshot->gone = ngx_palloc(snapshot->memory, (nslots + 1)
                                * sizeof(ngx_http_llmgw_gone_t));

    if (seen == NULL || snapshot->replicas == NULL || snapshot->gone == NULL) {
        return NGX_ERROR;
    }

    snapshot->counted = seen + nslots;

    for (i = 0; i < table->n; i++) {
        replica = table->replicas[i];

        if (!replica->listed) {
            continue;
        }

        if (replica->slot && !seen[replica->place.slot]) {
            seen[replica->place.slot] = 1;
            snapshot->counted[snapshot->n] = 1;
        }

        replica->holders++;
        snapshot->replicas[snapshot->n++] = replica;
    }

    ngx_http_llmgw_snapshot_slots(snapshot, seen);

    return NGX_OK;
}


/*
 * Many shards have one model: its list is read once, even if that fails.  NULL:
 * there is no list.
 */

static const llmgw_shard_model_t *
ngx_http_llmgw_snapshot_model(ngx_http_llmgw_snapshot_t *snapshot,
    uint64_t list)
{
    char                  names[LLMGW_MEMBERS_LIST_BYTES];
    size_t                bytes;
    ngx_uint_t            i;
    llmgw_shard_model_t  *model;

    if (list == 0) {
        return NULL;
    }

    for (i = 0; i < snapshot->nothers; i++) {
        if (snapshot->others[i].member.models == list
            && llmgw_member_role(&snapshot->others[i].member)
               == LLMGW_ROLE_SHARD)
        {
            return snapshot->others[i].model;
        }
    }

    model = ngx_palloc(snapshot->memory, sizeof(llmgw_shard_model_t));

    if (model == NULL
        || llmgw_members_read_list(snapshot->pool->upstream->reader, list,
                                   names, &bytes)
           != LLMGW_MEMBERS_DONE
        || llmgw_shard_model_read(model, names, bytes) != 0)
    {
        return NULL;
    }

    return model;
}


/* Counts the replicas of all pools, by state. */

static void
ngx_http_llmgw_snapshot_states(ngx_http_llmgw_snapshot_t *snapshot)
{
    ngx_uint_t                  i, k;
    llmgw_liveness_t            state;
    ngx_http_llmgw_table_t     *table;
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = snapshot->pool->upstream;

    for (i = 0; i < upstream->conf->npools; i++) {
        table = upstream->pools[i] ? upstream->pools[i]->table : NULL;

        for (k = 0; table && k < table->n; k++) {
            if (table->replicas[k]->listed) {
                state = ngx_http_llmgw_replica_shown(
                            &table->replicas[k]->member, NULL);
                snapshot->members[LLMGW_ROLE_REPLICA][state]++;
            }
        }
    }
}


/* Shards have a row of members only if there are any. */

static ngx_int_t
ngx_http_llmgw_snapshot_others(ngx_http_llmgw_snapshot_t *snapshot)
{
    size_t                   i, n, nshards;
    llmgw_role_t             role;
    llmgw_liveness_t         state;
    llmgw_members_view_t    *view;
    ngx_http_llmgw_other_t  *other;

    view = &snapshot->pool->upstream->view;
    n = 0;
    nshards = 0;

    for (i = 0; i < view->n; i++) {
        role = llmgw_member_role(&view->members[i]);
        n += (role != LLMGW_ROLE_REPLICA);
        nshards += (role == LLMGW_ROLE_SHARD);
    }

    for (i = 0; nshards == 0 && i <= LLMGW_LIVENESS_LEFT; i++) {
        snapshot->members[LLMGW_ROLE_SHARD][i] = NGX_HTTP_LLMGW_ABSENT;
    }

    snapshot->others = ngx_palloc(snapshot->memory,
                                  (n + 1) * sizeof(ngx_http_llmgw_other_t));
    if (snapshot->others == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < view->n; i++) {
        role = llmgw_member_role(&view->members[i]);

        if (role == LLMGW_ROLE_REPLICA) {
            continue;
        }

        other = &snapshot->others[snapshot->nothers];
        other->member = view->members[i];
        other->load = view->loads[i];
        other->model = role == LLMGW_ROLE_SHARD
                       ? ngx_http_llmgw_snapshot_model(snapshot,
                                                       other->member.models)
                       : NULL;
        snapshot->nothers++;

        state = ngx_http_llmgw_replica_shown(&other->member, NULL);
        snapshot->members[role][state]++;
    }

    return NGX_OK;
}


static void
ngx_http_llmgw_snapshot_standby(ngx_http_llmgw_snapshot_t *snapshot,
    const llmgw_standby_group_t *group, const llmgw_takeover_t *takeover)
{
    ngx_http_llmgw_zone_t     *zone;
    llmgw_members_view_t      *view;
    ngx_http_llmgw_standby_t  *standby;

    zone = snapshot->pool->upstream->zone;
    view = &snapshot->pool->upstream->view;
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

    standby->phases_ms[0] = standby->takeover.count
                            ? standby->takeover.active_ms
                            : NGX_HTTP_LLMGW_ABSENT;
    standby->phases_ms[1] = standby->takeover.has_first_token
                            ? standby->takeover.first_token_ms
                            : NGX_HTTP_LLMGW_ABSENT;
}


/* Takes the groups in the order of their first members. */

static ngx_int_t
ngx_http_llmgw_snapshot_standbys(ngx_http_llmgw_snapshot_t *snapshot)
{
    size_t                        i;
    llmgw_takeover_t             *takeover;
    ngx_http_llmgw_upstream_t    *upstream;
    const llmgw_standby_group_t  *group;

    upstream = snapshot->pool->upstream;

    if (upstream->standbys.known.n == 0) {
        return NGX_OK;
    }

    snapshot->standbys = ngx_pcalloc(snapshot->memory,
                                     upstream->standbys.known.n
                                     * sizeof(ngx_http_llmgw_standby_t));
    if (snapshot->standbys == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < upstream->view.n; i++) {
        group = ngx_http_llmgw_standbys_group(&upstream->standbys,
                                              &upstream->view, i, &takeover);
        if (group) {
            ngx_http_llmgw_snapshot_standby(snapshot, group, takeover);
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_snapshot_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory)
{
    snapshot->pool = pool;
    snapshot->memory = memory;
    snapshot->now_ms = ngx_http_llmgw_monotonic_ms();

    ngx_http_llmgw_snapshot_rows(snapshot);

    if (ngx_http_llmgw_snapshot_replicas(snapshot) != NGX_OK) {
        return NGX_ERROR;
    }

    if (pool->binding) {
        ngx_http_llmgw_snapshot_part(snapshot);
    }

    if (!snapshot->is_first) {
        return NGX_OK;
    }

    ngx_http_llmgw_snapshot_bodies(snapshot);
    ngx_http_llmgw_snapshot_states(snapshot);

    if (ngx_http_llmgw_snapshot_others(snapshot) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_snapshot_standbys(snapshot);
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


ngx_array_t *
ngx_http_llmgw_snapshot_take(ngx_http_request_t *r)
{
    ngx_array_t                 *snapshots;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

    snapshots = ngx_array_create(r->pool, 1, sizeof(ngx_http_llmgw_snapshot_t));
    if (snapshots == NULL) {
        return NULL;
    }

    if (ngx_http_llmgw_snapshot_pools(snapshots, lmcf->worker) != NGX_OK
        || ngx_http_llmgw_snapshot_zones(snapshots, &lmcf->keys) != NGX_OK)
    {
        ngx_http_llmgw_snapshot_release(snapshots);
        return NULL;
    }

    return snapshots;
}


static ngx_int_t
ngx_http_llmgw_snapshot_zones(ngx_array_t *snapshots, const ngx_array_t *zones)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_keys_t     **keys;
    ngx_http_llmgw_snapshot_t  *snapshot;

    keys = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        snapshot = ngx_array_push(snapshots);
        if (snapshot == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(snapshot, sizeof(ngx_http_llmgw_snapshot_t));
        snapshot->source = NGX_HTTP_LLMGW_KEYS;
        snapshot->memory = snapshots->pool;
        snapshot->keys = ngx_http_llmgw_snapshot_keys(keys[i],
                                                      snapshots->pool);
        if (snapshot->keys == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llmgw_snapshot_lock(ngx_http_llmgw_writer_t *w, uint64_t lock)
{
    char  text[2 * sizeof(uint64_t) + 1];

    (void) ngx_sprintf((u_char *) text, "%016xL%Z", lock);

    STATUS("lock", TEXT(lock ? text : NULL));
}


void
ngx_http_llmgw_snapshot_quantiles(ngx_http_llmgw_writer_t *w,
    const uint64_t *weights)
{
    double             p50;
    const ngx_msec_t  *bounds;

    if (!w->is_status) {
        return;
    }

    bounds = ngx_http_llmgw_metrics_bounds(
                 NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds);
    p50 = llmgw_quantile(bounds, weights, 500);

    if (p50 < 0) {
        NOTHING("first_token");
        return;
    }

    OBJECT("first_token");
    STATUS("p50_ms", REAL(p50));
    STATUS("p99_ms", REAL(llmgw_quantile(bounds, weights, 990)));
    END_OBJECT;
}

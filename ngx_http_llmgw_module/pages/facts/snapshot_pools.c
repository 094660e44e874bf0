
/*
 * Snapshots of the pools of upstreams, and to which model each count belongs.
 *
 * An upstream with one model has one snapshot, of all that was ever counted in
 * its zones, so that its series are those of an upstream with one pool.  With
 * several models each has its own counts, and one more snapshot has what was
 * counted for models that are no longer bound: so the sum of all never falls.
 */

#include "pages/facts/snapshot_inner.h"


static void ngx_http_llmgw_snapshot_take_totals(
    ngx_http_llmgw_snapshot_t *snapshot,
    const ngx_http_llmgw_totals_t *totals);
static ngx_int_t ngx_http_llmgw_snapshot_upstream(ngx_array_t *snapshots,
    ngx_http_llmgw_upstream_t *upstream);
static ngx_int_t ngx_http_llmgw_snapshot_rest(ngx_array_t *snapshots,
    ngx_http_llmgw_upstream_t *upstream, ngx_uint_t first);
static void ngx_http_llmgw_snapshot_name(ngx_http_llmgw_snapshot_t *snapshot);


ngx_int_t
ngx_http_llmgw_snapshot_pools(ngx_array_t *snapshots,
    ngx_http_llmgw_worker_t *worker)
{
    ngx_queue_t  *q;

    if (worker == NULL) {
        return NGX_OK;
    }

    for (q = ngx_queue_head(&worker->upstreams);
         q != ngx_queue_sentinel(&worker->upstreams);
         q = ngx_queue_next(q))
    {
        if (ngx_http_llmgw_snapshot_upstream(snapshots,
                ngx_queue_data(q, ngx_http_llmgw_upstream_t, queue))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* The pools that have a model; if none has, the first pool. */

static ngx_int_t
ngx_http_llmgw_snapshot_upstream(ngx_array_t *snapshots,
    ngx_http_llmgw_upstream_t *upstream)
{
    ngx_uint_t                  i, first, nbound;
    ngx_http_llmgw_pool_t      *pool;
    ngx_http_llmgw_snapshot_t  *snapshot;

    ngx_http_llmgw_upstream_look(upstream);
    ngx_http_llmgw_upstream_loads(upstream);

    first = snapshots->nelts;
    snapshot = NULL;

    for (i = 0, nbound = 0; i < upstream->conf->npools; i++) {
        nbound += (upstream->pools[i] && upstream->pools[i]->binding);
    }

    for (i = 0; i < upstream->conf->npools; i++) {
        pool = upstream->pools[i];

        if (pool == NULL || (nbound && pool->binding == 0)
            || (nbound == 0 && i != 0))
        {
            continue;
        }

        snapshot = ngx_array_push(snapshots);
        if (snapshot == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(snapshot, sizeof(ngx_http_llmgw_snapshot_t));
        snapshot->is_first = (snapshots->nelts == first + 1);

        if (ngx_http_llmgw_snapshot_pool(pool, snapshot, snapshots->pool)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (upstream->conf->npools > 1) {
        return ngx_http_llmgw_snapshot_rest(snapshots, upstream, first);
    }

    ngx_http_llmgw_metrics_take_nameless(&snapshot->counters,
                                         &snapshot->counters);

    return NGX_OK;
}


/*
 * What was counted for models that are no longer bound: added to the only pool,
 * so that its series are those of an upstream with one model, or else a
 * snapshot beside the others.
 */

static ngx_int_t
ngx_http_llmgw_snapshot_rest(ngx_array_t *snapshots,
    ngx_http_llmgw_upstream_t *upstream, ngx_uint_t first)
{
    ngx_uint_t                  i, n;
    ngx_http_llmgw_pool_t      *pool;
    ngx_http_llmgw_totals_t     rest;
    ngx_http_llmgw_snapshot_t  *snapshot;

    ngx_memzero(&rest, sizeof(ngx_http_llmgw_totals_t));

    n = snapshots->nelts - first;
    snapshot = snapshots->elts;
    snapshot += first;

    for (i = 0; i < upstream->conf->npools; i++) {
        pool = upstream->pools[i];

        if (pool != snapshot->pool || pool->binding) {
            ngx_http_llmgw_totals_add(upstream->conf->pools[i]->shm_zone,
                                      pool && pool->binding, &rest);
        }
    }

    if (n == 1) {
        rest.tokens += snapshot->slots.tokens;
        rest.attempts += snapshot->slots.attempts;
        rest.failures += snapshot->slots.failures;
        rest.denials += snapshot->slots.denials;
        ngx_http_llmgw_metrics_add(&rest.counters, &snapshot->counters, 0);
        ngx_http_llmgw_metrics_take_nameless(&rest.counters, &rest.counters);
        ngx_http_llmgw_snapshot_take_totals(snapshot, &rest);

        return NGX_OK;
    }

    ngx_http_llmgw_metrics_take_nameless(&rest.counters, &rest.counters);

    for (i = 0; i < n; i++) {
        ngx_http_llmgw_snapshot_name(&snapshot[i]);
        ngx_http_llmgw_metrics_take_nameless(&rest.counters,
                                             &snapshot[i].counters);
    }

    snapshot = ngx_array_push(snapshots);
    if (snapshot == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(snapshot, sizeof(ngx_http_llmgw_snapshot_t));
    snapshot->memory = snapshots->pool;
    snapshot->pool = upstream->main;
    snapshot->has_model = 1;
    snapshot->is_rest = 1;
    snapshot->ngone = 1;
    snapshot->gone = ngx_pcalloc(snapshots->pool,
                                 sizeof(ngx_http_llmgw_gone_t));

    if (snapshot->gone == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_snapshot_take_totals(snapshot, &rest);

    return NGX_OK;
}


static void
ngx_http_llmgw_snapshot_name(ngx_http_llmgw_snapshot_t *snapshot)
{
    const char  *model;

    model = ngx_http_llmgw_pool_model(snapshot->pool);

    snapshot->has_model = 1;

    if (model) {
        snapshot->model.data = (u_char *) model;
        snapshot->model.len = ngx_strlen(model);
    }
}


/*
 * slots: the sum of all; the last element of those that are gone gets what no
 * replica has.
 */

static void
ngx_http_llmgw_snapshot_take_totals(ngx_http_llmgw_snapshot_t *snapshot,
    const ngx_http_llmgw_totals_t *totals)
{
    ngx_http_llmgw_gone_t  *gone;

    gone = &snapshot->gone[snapshot->ngone - 1];

    gone->tokens += totals->tokens - snapshot->slots.tokens;
    gone->attempts += totals->attempts - snapshot->slots.attempts;
    gone->failures += totals->failures - snapshot->slots.failures;
    gone->denials += totals->denials - snapshot->slots.denials;

    snapshot->counters = totals->counters;
    snapshot->slots.tokens = totals->tokens;
    snapshot->slots.attempts = totals->attempts;
    snapshot->slots.failures = totals->failures;
    snapshot->slots.denials = totals->denials;
}


/* Leaves out what was counted before the pool's model was bound. */

void
ngx_http_llmgw_snapshot_part(ngx_http_llmgw_snapshot_t *snapshot)
{
    ngx_http_llmgw_totals_t  others, share;

    ngx_memzero(&others, sizeof(ngx_http_llmgw_totals_t));
    ngx_http_llmgw_totals_add(snapshot->pool->conf->shm_zone, 1, &others);

    share.counters = snapshot->counters;
    share.tokens = snapshot->slots.tokens;
    share.attempts = snapshot->slots.attempts;
    share.failures = snapshot->slots.failures;
    share.denials = snapshot->slots.denials;

    ngx_http_llmgw_totals_merge(&share, &others, -1);
    ngx_http_llmgw_snapshot_take_totals(snapshot, &share);
}

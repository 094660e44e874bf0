
/* Gathers what llmgw_metrics reports of replicas: export.h. */

#include "pages/export.h"


static ngx_int_t ngx_http_llmgw_facts_label(ngx_str_t *to, ngx_str_t *name,
    ngx_pool_t *pool);
static ngx_int_t ngx_http_llmgw_facts_pool(ngx_http_llmgw_facts_t *facts,
    ngx_pool_t *pool);
static ngx_int_t ngx_http_llmgw_facts_listed(ngx_http_llmgw_facts_t *facts,
    u_char *seen, ngx_pool_t *pool);
static ngx_int_t ngx_http_llmgw_facts_model(ngx_http_llmgw_fact_t *row,
    ngx_http_llmgw_replica_t *replica, ngx_pool_t *pool);
static ngx_int_t ngx_http_llmgw_facts_unlisted(ngx_http_llmgw_facts_t *facts,
    u_char *seen, ngx_pool_t *pool);
static void ngx_http_llmgw_facts_counters(ngx_http_llmgw_fact_t *row,
    ngx_http_llmgw_slot_t *slot);
static void ngx_http_llmgw_facts_others(ngx_http_llmgw_facts_t *facts);


ngx_http_llmgw_facts_t *
ngx_http_llmgw_facts_gather(ngx_array_t *snapshots, ngx_pool_t *pool)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_facts_t     *facts;
    ngx_http_llmgw_snapshot_t  *snapshot;

    snapshot = snapshots->elts;

    facts = ngx_pcalloc(pool, (snapshots->nelts + 1)
                              * sizeof(ngx_http_llmgw_facts_t));
    if (facts == NULL) {
        return NULL;
    }

    for (i = 0; i < snapshots->nelts; i++) {
        facts[i].snapshot = &snapshot[i];

        if (ngx_http_llmgw_facts_label(&facts[i].name,
                                       &snapshot[i].pool->conf->name, pool)
            != NGX_OK
            || ngx_http_llmgw_facts_pool(&facts[i], pool) != NGX_OK)
        {
            return NULL;
        }

        ngx_http_llmgw_facts_others(&facts[i]);
    }

    return facts;
}


/* A name that may have any bytes, for a label. */

static ngx_int_t
ngx_http_llmgw_facts_label(ngx_str_t *to, ngx_str_t *name, ngx_pool_t *pool)
{
    to->data = ngx_pnalloc(pool, 2 * name->len + 1);

    if (to->data == NULL) {
        return NGX_ERROR;
    }

    to->len = ngx_http_llmgw_facts_escape(to->data, name) - to->data;

    return NGX_OK;
}


u_char *
ngx_http_llmgw_facts_escape(u_char *p, const ngx_str_t *name)
{
    size_t  i;

    for (i = 0; i < name->len; i++) {
        if (name->data[i] == '"' || name->data[i] == '\\'
            || name->data[i] == '\n')
        {
            *p++ = '\\';
        }

        *p++ = name->data[i] == '\n' ? 'n' : name->data[i];
    }

    return p;
}


static ngx_int_t
ngx_http_llmgw_facts_pool(ngx_http_llmgw_facts_t *facts, ngx_pool_t *pool)
{
    u_char                        *seen;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = facts->snapshot->pool->zone->shared;

    /* a row for each slot in use, listed or not: nslots at most */

    facts->rows = ngx_palloc(pool, (shared->admission->nslots + 1)
                                   * sizeof(ngx_http_llmgw_fact_t));
    seen = ngx_pcalloc(pool, shared->admission->nslots + 1);

    if (facts->rows == NULL || seen == NULL) {
        return NGX_ERROR;
    }

    facts->base[NGX_HTTP_LLMGW_FACT_tokens] = shared->tokens_base;
    facts->base[NGX_HTTP_LLMGW_FACT_attempts] = shared->attempts_base;
    facts->base[NGX_HTTP_LLMGW_FACT_attempt_failures] = shared->failures_base;

    if (ngx_http_llmgw_facts_listed(facts, seen, pool) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_facts_unlisted(facts, seen, pool);
}


static ngx_int_t
ngx_http_llmgw_facts_listed(ngx_http_llmgw_facts_t *facts, u_char *seen,
    ngx_pool_t *pool)
{
    ngx_uint_t                     i, slot;
    ngx_http_llmgw_fact_t         *row;
    ngx_http_llmgw_snapshot_t     *snapshot;
    ngx_http_llmgw_replica_t      *replica;

    snapshot = facts->snapshot;

    for (i = 0; i < snapshot->n; i++) {
        replica = snapshot->replicas[i];
        facts->members[LLMGW_ROLE_REPLICA]
                      [ngx_http_llmgw_replica_shown(&replica->member, NULL)]++;

        if (replica->slot == NULL) {
            continue;
        }

        slot = replica->place.slot;

        if (seen[slot]) {
            continue;
        }

        seen[slot] = 1;
        row = &facts->rows[facts->nlisted++];
        row->id = replica->node.str;

        ngx_http_llmgw_facts_counters(row, replica->slot);

#define NGX_HTTP_LLMGW_FACT_GAUGE(name, help)                                 \
        row->values[NGX_HTTP_LLMGW_FACT_##name] =                             \
            ngx_http_llmgw_gauge_##name(replica);

        NGX_HTTP_LLMGW_REPLICA_GAUGES(NGX_HTTP_LLMGW_FACT_GAUGE)

#define NGX_HTTP_LLMGW_REPORTED_GAUGE(name, help)                             \
        row->reported[NGX_HTTP_LLMGW_REPORTED_##name] =                       \
            ngx_http_llmgw_gauge_##name(replica);

        NGX_HTTP_LLMGW_REPORTED_GAUGES(NGX_HTTP_LLMGW_REPORTED_GAUGE)

        if (ngx_http_llmgw_facts_model(row, replica, pool) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    facts->nrows = facts->nlisted;

    return NGX_OK;
}


/* Copied: its list may be freed by the next slice. */

static ngx_int_t
ngx_http_llmgw_facts_model(ngx_http_llmgw_fact_t *row,
    ngx_http_llmgw_replica_t *replica, ngx_pool_t *pool)
{
    ngx_str_t            name;
    llmgw_model_list_t  *list;

    list = replica->pool->models.known.lists[replica->models];

    ngx_str_null(&row->model);

    if (list == NULL) {
        return NGX_OK;
    }

    name.data = (u_char *) list->names;
    name.len = ngx_strlen(list->names);

    return ngx_http_llmgw_facts_label(&row->model, &name, pool);
}


/* Copies the ids under the zone's lock, since slots are given up under it. */

static ngx_int_t
ngx_http_llmgw_facts_unlisted(ngx_http_llmgw_facts_t *facts, u_char *seen,
    ngx_pool_t *pool)
{
    uint32_t                       i;
    ngx_int_t                      rc;
    ngx_http_llmgw_fact_t         *row;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    rc = NGX_OK;
    zone = facts->snapshot->pool->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    for (i = 0; i < shared->admission->nslots && rc == NGX_OK; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (seen[i] || slot->admission.id_len == 0) {
            continue;
        }

        row = &facts->rows[facts->nrows++];
        row->id.len = slot->admission.id_len;
        row->id.data = ngx_pnalloc(pool, row->id.len);

        if (row->id.data == NULL) {
            rc = NGX_ERROR;
            break;
        }

        ngx_memcpy(row->id.data, slot->admission.id, row->id.len);
        ngx_http_llmgw_facts_counters(row, slot);
    }

    ngx_http_llmgw_zone_unlock(zone);

    return rc;
}


static void
ngx_http_llmgw_facts_counters(ngx_http_llmgw_fact_t *row,
    ngx_http_llmgw_slot_t *slot)
{
    row->values[NGX_HTTP_LLMGW_FACT_tokens] = slot->tokens;
    row->values[NGX_HTTP_LLMGW_FACT_attempts] = slot->attempts;
    row->values[NGX_HTTP_LLMGW_FACT_attempt_failures] = slot->failures;
}


static void
ngx_http_llmgw_facts_others(ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t                  i;
    const llmgw_member_t       *member;
    ngx_http_llmgw_snapshot_t  *snapshot;

    snapshot = facts->snapshot;

    for (i = 0; i < snapshot->ngateways; i++) {
        facts->members[LLMGW_ROLE_GATEWAY]
            [ngx_http_llmgw_replica_shown(&snapshot->gateways[i], NULL)]++;
    }

    for (i = 0; i < snapshot->nshards; i++) {
        member = &snapshot->shards[i].member;
        facts->members[LLMGW_ROLE_SHARD]
            [ngx_http_llmgw_replica_shown(member, NULL)]++;
    }
}

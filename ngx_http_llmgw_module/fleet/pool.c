
/*
 * A pool: one base model of an upstream in one worker, from its zone to its
 * table.
 */

#include "choice/log.h"
#include "conf/admit.h"
#include "fleet/events.h"
#include "fleet/replica.h"
#include "fleet/table.h"


static ngx_int_t ngx_http_llmgw_pool_choice(ngx_http_llmgw_pool_t *pool);
static ngx_int_t ngx_http_llmgw_pool_begin(ngx_http_llmgw_pool_t *pool);
static ngx_int_t ngx_http_llmgw_pool_statics(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_pool_build_handler(ngx_event_t *ev);
static void ngx_http_llmgw_pool_tidy(ngx_http_llmgw_pool_t *pool);


ngx_http_llmgw_pool_t *
ngx_http_llmgw_pool_create(ngx_http_llmgw_upstream_t *upstream,
    ngx_http_llmgw_srv_conf_t *conf)
{
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_worker_t  *worker;

    worker = upstream->worker;

    pool = ngx_calloc(sizeof(ngx_http_llmgw_pool_t), worker->log);
    if (pool == NULL) {
        return NULL;
    }

    pool->conf = conf;
    pool->upstream = upstream;
    pool->worker = worker;

    ngx_rbtree_init(&pool->tree, &pool->sentinel, ngx_str_rbtree_insert_value);

    pool->build.handler = ngx_http_llmgw_pool_build_handler;
    pool->build.data = pool;
    pool->build.log = worker->log;
    pool->build.cancelable = 1;

    pool->zone = ngx_http_llmgw_zone_claim(conf->shm_zone, worker->log);

    if (pool->zone && conf->number == 0
        && conf->rules->rule == LLMGW_RULE_TOKEN_BUCKET)
    {
        ngx_http_llmgw_cohorts_bucket(pool->zone, conf);
    }

    if (pool->zone && conf->number == 0) {
        ngx_http_llmgw_log_start(conf->log, pool->zone);
    }

    if (pool->zone == NULL || worker->events->pool_begins(pool) != NGX_OK
        || ngx_http_llmgw_pool_choice(pool) != NGX_OK
        || ngx_http_llmgw_pool_begin(pool) != NGX_OK)
    {
        ngx_http_llmgw_pool_destroy(pool);
        return NULL;
    }

    return pool;
}


void
ngx_http_llmgw_pool_destroy(ngx_http_llmgw_pool_t *pool)
{
    ngx_rbtree_node_t         *node;
    ngx_http_llmgw_replica_t  *replica;

    if (pool->build.posted) {
        ngx_delete_posted_event(&pool->build);
    }

    if (pool->build.timer_set) {
        ngx_del_timer(&pool->build);
    }

    ngx_http_llmgw_choice_destroy(pool->choice);

    while (pool->tree.root != &pool->sentinel) {
        node = ngx_rbtree_min(pool->tree.root, &pool->sentinel);
        replica = (ngx_http_llmgw_replica_t *) node;
        ngx_http_llmgw_replica_destroy(replica);
    }

    pool->worker->events->pool_ends(pool);
    ngx_http_llmgw_table_destroy(pool->table);
    ngx_http_llmgw_table_destroy(pool->next);
    ngx_free(pool->listed);

    if (pool->conf->number == 0) {
        ngx_http_llmgw_log_stop(pool->conf->log);
    }

    if (pool->zone) {
        ngx_http_llmgw_zone_yield(pool->zone);
    }

    ngx_free(pool);
}


static ngx_int_t
ngx_http_llmgw_pool_choice(ngx_http_llmgw_pool_t *pool)
{
    if (pool->conf->policy == LLMGW_RANK_AFFINITY) {
        return NGX_OK;
    }

    pool->choice = ngx_http_llmgw_choice_create(pool->conf, pool->zone,
                                                pool->worker->log);

    return pool->choice ? NGX_OK : NGX_ERROR;
}


/* Makes a table of the static lines, for as long as there is no view. */

static ngx_int_t
ngx_http_llmgw_pool_begin(ngx_http_llmgw_pool_t *pool)
{
    if (ngx_http_llmgw_pool_statics(pool) != NGX_OK
        || ngx_http_llmgw_table_update(pool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_llmgw_pool_whole(pool);

    return pool->table ? NGX_OK : NGX_ERROR;
}


void
ngx_http_llmgw_pool_whole(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_table_finish(pool);

    if (pool->build.posted) {
        ngx_delete_posted_event(&pool->build);
    }
}


static ngx_int_t
ngx_http_llmgw_pool_statics(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t                 i;
    llmgw_member_t             member;
    ngx_http_llmgw_static_t   *peer;
    ngx_http_llmgw_replica_t  *replica;

    peer = pool->conf->statics.elts;

    for (i = 0; i < pool->conf->statics.nelts; i++) {
        ngx_memzero(&member, sizeof(llmgw_member_t));

        ngx_memcpy(member.grpc, peer[i].id.data, peer[i].id.len);
        ngx_memcpy(member.address, peer[i].id.data, peer[i].id.len);
        member.weight = peer[i].weight;
        member.max_capacity = peer[i].max_conns;
        member.liveness = LLMGW_LIVENESS_ALIVE;
        member.service = peer[i].down ? LLMGW_SERVICE_STOPPED
                                      : LLMGW_SERVICE_READY;

        /* an id is limited to a name's length, an address is not */
        replica = ngx_http_llmgw_replica_create(pool, &member);
        if (replica == NULL) {
            return NGX_ERROR;
        }

        replica->is_static = 1;
        replica->listed = (pool->conf->number == 0);
    }

    return NGX_OK;
}


void
ngx_http_llmgw_pool_check(ngx_http_llmgw_pool_t *pool)
{
    /* stamp ours before any slots are given up */
    ngx_http_llmgw_pool_tidy(pool);
    ngx_http_llmgw_zone_sweep(pool->zone);
}


/* Stamps the slots of replicas in use, frees replicas that are not. */

static void
ngx_http_llmgw_pool_tidy(ngx_http_llmgw_pool_t *pool)
{
    ngx_rbtree_node_t         *node, *next;
    ngx_http_llmgw_replica_t  *replica;

    if (pool->tree.root == &pool->sentinel) {
        return;
    }

    for (node = ngx_rbtree_min(pool->tree.root, &pool->sentinel);
         node;
         node = next)
    {
        next = ngx_rbtree_next(&pool->tree, node);
        replica = (ngx_http_llmgw_replica_t *) node;

        if (ngx_http_llmgw_replica_is_unused(replica)) {
            ngx_http_llmgw_replica_destroy(replica);

        } else {
            ngx_http_llmgw_replica_stamp(replica);
        }
    }
}


void
ngx_http_llmgw_pool_look(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_upstream_look(pool->upstream);
}


void
ngx_http_llmgw_pool_look_at_loads(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_upstream_look_at_loads(pool->upstream);
}


uint64_t
ngx_http_llmgw_pool_clock_ms(ngx_http_llmgw_pool_t *pool)
{
    return ngx_http_llmgw_upstream_clock_ms(pool->upstream);
}


llmgw_serves_t
ngx_http_llmgw_pool_serves(ngx_http_llmgw_pool_t *pool, const ngx_str_t *name)
{
    ngx_http_llmgw_pool_look(pool);

    return llmgw_models_serves(&pool->upstream->models.known, pool->base,
                               llmgw_models_hash((char *) name->data,
                                                 name->len));
}


const char *
ngx_http_llmgw_pool_model(ngx_http_llmgw_pool_t *pool)
{
    const llmgw_model_list_t  *list;

    if (pool->binding) {
        return pool->model;
    }

    list = llmgw_models_named(&pool->upstream->models.known, pool->base);

    return list ? list->names : NULL;
}


void
ngx_http_llmgw_pool_stream_begins(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = pool->upstream;
    ngx_http_llmgw_metrics_streams(pool->zone, 1);

    if (upstream->streams++ == 0 && upstream->reader) {
        ngx_add_timer(&upstream->tick, NGX_HTTP_LLMGW_TICK_MS);
    }
}


void
ngx_http_llmgw_pool_stream_ends(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = pool->upstream;
    ngx_http_llmgw_metrics_streams(pool->zone, -1);

    if (--upstream->streams == 0 && upstream->tick.timer_set) {
        ngx_del_timer(&upstream->tick);
    }
}


static void
ngx_http_llmgw_pool_build_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_table_build(ev->data);
}

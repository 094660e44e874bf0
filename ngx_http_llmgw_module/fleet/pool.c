
/*
 * A pool: what one worker knows of one upstream{} block, and when it looks for
 * updates.
 *
 * The truth about members is in the agent's segment.  A worker looks at its
 * generation (one small read)
 *
 *   - before a pick, at most once per millisecond,
 *   - every 10 ms while it has running streams (the tick), and
 *   - every second in any case (the check), when it also looks whether the
 *     file itself was replaced, and cares for the shared zone.
 *
 * All of these timers are cancelable, so an idle worker can exit.
 *
 * Whatever goes wrong with the segment, the last good view stays: no agent, a
 * removed file, garbage in it.  Each such change is logged once.
 */

#include "choice/log.h"
#include "conf/admit.h"
#include "fleet/events.h"
#include "fleet/replica.h"
#include "fleet/ssl.h"
#include "fleet/table.h"


#define NGX_HTTP_LLMGW_LOADS_MS      100     /* agents report as often */
#define NGX_HTTP_LLMGW_MEMBERS_A_MS  100     /* read in some 30 us */


static ngx_int_t ngx_http_llmgw_pool_choice(ngx_http_llmgw_pool_t *pool);
static ngx_int_t ngx_http_llmgw_pool_first_view(ngx_http_llmgw_pool_t *pool);
static ngx_int_t ngx_http_llmgw_pool_statics(ngx_http_llmgw_pool_t *pool);
static ngx_uint_t ngx_http_llmgw_pool_may_read(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_pool_reopen(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_pool_read(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_pool_refused(ngx_http_llmgw_pool_t *pool,
    const char *error);
static void ngx_http_llmgw_pool_check_stale(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_pool_check_handler(ngx_event_t *ev);
static void ngx_http_llmgw_pool_tick_handler(ngx_event_t *ev);
static void ngx_http_llmgw_pool_build_handler(ngx_event_t *ev);
static void ngx_http_llmgw_pool_tidy(ngx_http_llmgw_pool_t *pool);
static ngx_msec_t ngx_http_llmgw_pool_check_ms(ngx_http_llmgw_pool_t *pool);


ngx_http_llmgw_pool_t *
ngx_http_llmgw_pool_create(ngx_http_llmgw_srv_conf_t *conf,
    ngx_http_llmgw_worker_t *worker)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = ngx_calloc(sizeof(ngx_http_llmgw_pool_t), worker->log);
    if (pool == NULL) {
        return NULL;
    }

    pool->conf = conf;
    pool->worker = worker;

    ngx_queue_insert_tail(&worker->pools, &pool->queue);
    ngx_rbtree_init(&pool->tree, &pool->sentinel, ngx_str_rbtree_insert_value);

    pool->check.handler = ngx_http_llmgw_pool_check_handler;
    pool->tick.handler = ngx_http_llmgw_pool_tick_handler;
    pool->build.handler = ngx_http_llmgw_pool_build_handler;
    pool->check.data = pool->tick.data = pool->build.data = pool;
    pool->check.log = pool->tick.log = pool->build.log = worker->log;
    pool->check.cancelable = 1;
    pool->tick.cancelable = 1;
    pool->build.cancelable = 1;

    ngx_http_llmgw_models_init(&pool->models, &conf->name, &conf->model,
                               worker->log);
    pool->zone = ngx_http_llmgw_zone_claim(conf->shm_zone, worker->log);
    ngx_http_llmgw_standbys_init(&pool->standbys, &conf->name, pool->zone,
                                 worker->log);

    if (pool->zone && conf->rules->rule == LLMGW_RULE_TOKEN_BUCKET) {
        ngx_http_llmgw_cohorts_bucket(pool->zone, conf);
    }

    if (pool->zone) {
        ngx_http_llmgw_log_start(conf->log, pool->zone);
    }

    if (pool->zone == NULL || worker->events->pool_begins(pool) != NGX_OK
        || ngx_http_llmgw_pool_choice(pool) != NGX_OK
        || ngx_http_llmgw_pool_first_view(pool) != NGX_OK)
    {
        ngx_http_llmgw_pool_destroy(pool);
        return NULL;
    }

    ngx_add_timer(&pool->check, ngx_http_llmgw_pool_check_ms(pool));

    return pool;
}


void
ngx_http_llmgw_pool_destroy(ngx_http_llmgw_pool_t *pool)
{
    ngx_rbtree_node_t         *node;
    ngx_http_llmgw_replica_t  *replica;

    if (pool->check.timer_set) {
        ngx_del_timer(&pool->check);
    }

    if (pool->tick.timer_set) {
        ngx_del_timer(&pool->tick);
    }

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
    ngx_http_llmgw_models_done(&pool->models);
    ngx_http_llmgw_standbys_done(&pool->standbys);

    if (pool->reader) {
        llmgw_members_reader_destroy(pool->reader);
        llmgw_members_view_done(&pool->view);
    }

    ngx_http_llmgw_log_stop(pool->conf->log);

    if (pool->zone) {
        ngx_http_llmgw_zone_yield(pool->zone);
    }

    ngx_queue_remove(&pool->queue);
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


/* Whole before the worker accepts: the ring is built in one go. */

static ngx_int_t
ngx_http_llmgw_pool_first_view(ngx_http_llmgw_pool_t *pool)
{
    char  path[NGX_MAX_PATH];

    if (ngx_http_llmgw_pool_statics(pool) != NGX_OK) {
        return NGX_ERROR;
    }

    if (pool->conf->members.len) {
        (void) ngx_snprintf((u_char *) path, sizeof(path), "%V%Z",
                            &pool->conf->members);

        pool->reader = llmgw_members_reader_create(path);
        if (pool->reader == NULL) {
            return NGX_ERROR;
        }

        ngx_http_llmgw_pool_reopen(pool);
    }

    if (ngx_http_llmgw_table_update(pool) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_table_finish(pool);

    if (pool->build.posted) {
        ngx_delete_posted_event(&pool->build);
    }

    return pool->table ? NGX_OK : NGX_ERROR;
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
        replica->listed = 1;
    }

    return NGX_OK;
}


/* Before a pick. */

void
ngx_http_llmgw_pool_look(ngx_http_llmgw_pool_t *pool)
{
    if (pool->looked_ms == ngx_current_msec) {
        return;
    }

    pool->looked_ms = ngx_current_msec;

    if (pool->reader == NULL) {
        return;
    }

    if (pool->generation == 0) {
        ngx_http_llmgw_pool_reopen(pool);
        return;
    }

    if (ngx_http_llmgw_pool_may_read(pool)
        && llmgw_members_reader_generation(pool->reader) != pool->generation)
    {
        ngx_http_llmgw_pool_read(pool);
    }
}


/*
 * A large view is read at intervals: with steady change a worker would do
 * nothing else.
 */

static ngx_uint_t
ngx_http_llmgw_pool_may_read(ngx_http_llmgw_pool_t *pool)
{
    return ngx_current_msec - pool->read_ms
           >= pool->view.n / NGX_HTTP_LLMGW_MEMBERS_A_MS;
}


static void
ngx_http_llmgw_pool_reopen(ngx_http_llmgw_pool_t *pool)
{
    char                error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t  rc;

    rc = llmgw_members_reader_check(pool->reader, error);

    switch (rc) {

    case LLMGW_MEMBERS_DONE:
        ngx_http_llmgw_pool_read(pool);
        break;

    case LLMGW_MEMBERS_ABSENT:
        if (!pool->absent) {
            pool->absent = 1;
            ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                          "llmgw: upstream \"%V\": members segment \"%V\" is "
                          "not there, waiting for the agent",
                          &pool->conf->name, &pool->conf->members);
        }
        break;

    case LLMGW_MEMBERS_UNCHANGED:
        if (pool->generation == 0) {
            /* it was opened, but its first view not yet taken over */
            ngx_http_llmgw_pool_read(pool);
        }
        break;

    default:
        ngx_http_llmgw_pool_refused(pool, error);
        break;
    }
}


static void
ngx_http_llmgw_pool_read(ngx_http_llmgw_pool_t *pool)
{
    char                error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t  rc;

    rc = llmgw_members_read(pool->reader, &pool->view, error);

    switch (rc) {

    case LLMGW_MEMBERS_DONE:
        pool->absent = 0;
        pool->refused = 0;

        /* streams that the update moves will pick, and must not look again */
        pool->looked_ms = ngx_current_msec;
        pool->read_ms = ngx_current_msec;

        if (ngx_http_llmgw_table_update(pool) == NGX_OK) {
            pool->generation = pool->view.generation;
        }
        break;

    case LLMGW_MEMBERS_ABSENT:
    case LLMGW_MEMBERS_BUSY:
        break;

    default:
        ngx_http_llmgw_pool_refused(pool, error);
        break;
    }
}


static void
ngx_http_llmgw_pool_refused(ngx_http_llmgw_pool_t *pool, const char *error)
{
    if (pool->refused) {
        return;
    }

    pool->refused = 1;

    ngx_log_error(NGX_LOG_ERR, pool->worker->log, 0,
                  "llmgw: upstream \"%V\": members segment \"%V\" is refused, "
                  "the last view stays: %s",
                  &pool->conf->name, &pool->conf->members, error);
}


static void
ngx_http_llmgw_pool_check_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_pool_t  *pool = ev->data;

    if (pool->reader) {
        ngx_http_llmgw_pool_reopen(pool);
        ngx_http_llmgw_pool_look(pool);

        if (pool->models.incomplete) {
            ngx_http_llmgw_pool_read(pool);
        }

        ngx_http_llmgw_pool_loads(pool);
        ngx_http_llmgw_pool_check_stale(pool);
    }

    /* ours are stamped before any are given up */
    ngx_http_llmgw_pool_tidy(pool);
    ngx_http_llmgw_zone_sweep(pool->zone);
    ngx_http_llmgw_ssl_look(pool);

    ngx_add_timer(&pool->check, ngx_http_llmgw_pool_check_ms(pool));
}


static ngx_msec_t
ngx_http_llmgw_pool_check_ms(ngx_http_llmgw_pool_t *pool)
{
    return (pool->reader && pool->generation == 0) ? NGX_HTTP_LLMGW_ABSENT_MS
                                                   : NGX_HTTP_LLMGW_CHECK_MS;
}


/* What the replicas say of their load, other gateways' included. */

void
ngx_http_llmgw_pool_loads(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t  i;

    pool->loads_ms = ngx_current_msec;

    if (pool->reader == NULL
        || llmgw_members_read_loads(pool->reader, &pool->view)
           != LLMGW_MEMBERS_DONE)
    {
        return;
    }

    for (i = 0; i < pool->table->n; i++) {
        ngx_http_llmgw_replica_set_load(pool->table->replicas[i]);
    }

    pool->worker->events->loads_read(pool);
}


/* As often as agents report: while streams run, and before a ranking. */

void
ngx_http_llmgw_pool_look_at_loads(ngx_http_llmgw_pool_t *pool)
{
    if (ngx_current_msec - pool->loads_ms >= NGX_HTTP_LLMGW_LOADS_MS) {
        ngx_http_llmgw_pool_loads(pool);
    }
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


llmgw_serves_t
ngx_http_llmgw_pool_serves(ngx_http_llmgw_pool_t *pool, ngx_str_t *name)
{
    ngx_http_llmgw_pool_look(pool);

    return llmgw_models_serves(&pool->models.known,
                               llmgw_models_hash((char *) name->data,
                                                 name->len));
}


ngx_int_t
ngx_http_llmgw_pool_name(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_pool_look(pool);

    return ngx_http_llmgw_models_name(&pool->models);
}


uint64_t
ngx_http_llmgw_monotonic_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/* The same, asked once an iteration of the event loop. */

uint64_t
ngx_http_llmgw_pool_clock_ms(ngx_http_llmgw_pool_t *pool)
{
    if (pool->clock_ms == 0 || pool->clock_at_ms != ngx_current_msec) {
        pool->clock_ms = ngx_http_llmgw_monotonic_ms();
        pool->clock_at_ms = ngx_current_msec;
    }

    return pool->clock_ms;
}


ngx_uint_t
ngx_http_llmgw_pool_is_stale(ngx_http_llmgw_pool_t *pool)
{
    if (pool->reader == NULL) {
        return 0;
    }

    return pool->view.heartbeat_ms + NGX_HTTP_LLMGW_STALE_MS
           < ngx_http_llmgw_monotonic_ms();
}


static void
ngx_http_llmgw_pool_check_stale(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t  stale;

    stale = ngx_http_llmgw_pool_is_stale(pool);

    if (pool->generation == 0 || stale == pool->stale) {
        return;
    }

    pool->stale = stale;
    ngx_http_llmgw_table_standbys(pool);

    if (stale) {
        ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                      "llmgw: upstream \"%V\": the agent is silent, serving "
                      "on with its last view", &pool->conf->name);

    } else {
        ngx_log_error(NGX_LOG_NOTICE, pool->worker->log, 0,
                      "llmgw: upstream \"%V\": the agent is back",
                      &pool->conf->name);
    }
}


void
ngx_http_llmgw_pool_stream_begins(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_metrics_streams(pool->zone, 1);

    if (pool->streams++ == 0 && pool->reader) {
        ngx_add_timer(&pool->tick, NGX_HTTP_LLMGW_TICK_MS);
    }
}


void
ngx_http_llmgw_pool_stream_ends(ngx_http_llmgw_pool_t *pool)
{
    ngx_http_llmgw_metrics_streams(pool->zone, -1);

    if (--pool->streams == 0 && pool->tick.timer_set) {
        ngx_del_timer(&pool->tick);
    }
}


static void
ngx_http_llmgw_pool_tick_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_pool_t  *pool = ev->data;

    ngx_http_llmgw_pool_look(pool);

    ngx_http_llmgw_pool_look_at_loads(pool);

    if (pool->streams) {
        ngx_add_timer(&pool->tick, NGX_HTTP_LLMGW_TICK_MS);
    }
}


static void
ngx_http_llmgw_pool_build_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_table_build(ev->data);
}

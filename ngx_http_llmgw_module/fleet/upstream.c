
/*
 * An upstream: what one worker reads of one upstream{} block's members, and
 * when it looks for updates.
 *
 * The truth about members is in the agent's segment.  A worker looks at its
 * generation (one small read)
 *
 *   - before a pick, at most once per millisecond,
 *   - every 10 ms while it has running streams (the tick), and
 *   - every second in any case (the check), when it also looks whether the
 *     file itself was replaced, and cares for the pools and their zones.
 *
 * All of these timers are cancelable, so an idle worker can exit.
 *
 * Whatever goes wrong with the segment, the last good view stays: no agent, a
 * removed file, garbage in it.  Each such change is logged once.
 */

#include "fleet/events.h"
#include "fleet/replica.h"
#include "fleet/ssl.h"
#include "fleet/table.h"


#define NGX_HTTP_LLMGW_LOADS_MS      100     /* agents report that often */
#define NGX_HTTP_LLMGW_MEMBERS_A_MS  100     /* per ms between reads; read in
                                                some 30 us */


static ngx_int_t ngx_http_llmgw_upstream_first_view(
    ngx_http_llmgw_upstream_t *upstream);
static ngx_uint_t ngx_http_llmgw_upstream_may_read(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_reopen(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_read(ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_refused(
    ngx_http_llmgw_upstream_t *upstream, const char *error);
static void ngx_http_llmgw_upstream_check_stale(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_check_handler(ngx_event_t *ev);
static void ngx_http_llmgw_upstream_check_models(
    ngx_http_llmgw_upstream_t *upstream);
static void ngx_http_llmgw_upstream_tick_handler(ngx_event_t *ev);
static ngx_msec_t ngx_http_llmgw_upstream_check_ms(
    ngx_http_llmgw_upstream_t *upstream);


ngx_http_llmgw_upstream_t *
ngx_http_llmgw_upstream_create(ngx_http_llmgw_srv_conf_t *conf,
    ngx_http_llmgw_worker_t *worker)
{
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = ngx_calloc(sizeof(ngx_http_llmgw_upstream_t)
                          + conf->npools * sizeof(void *), worker->log);
    if (upstream == NULL) {
        return NULL;
    }

    upstream->conf = conf;
    upstream->worker = worker;
    upstream->pools = (ngx_http_llmgw_pool_t **) (upstream + 1);

    ngx_queue_insert_tail(&worker->upstreams, &upstream->queue);

    upstream->check.handler = ngx_http_llmgw_upstream_check_handler;
    upstream->tick.handler = ngx_http_llmgw_upstream_tick_handler;
    upstream->check.data = upstream->tick.data = upstream;
    upstream->check.log = upstream->tick.log = worker->log;
    upstream->check.cancelable = 1;
    upstream->tick.cancelable = 1;

    ngx_http_llmgw_models_init(&upstream->models, &conf->name, &conf->model,
                               worker->log);

    upstream->main = ngx_http_llmgw_pool_create(upstream, conf);

    if (upstream->main == NULL) {
        ngx_http_llmgw_upstream_destroy(upstream);
        return NULL;
    }

    upstream->pools[0] = upstream->main;
    upstream->zone = upstream->main->zone;
    ngx_http_llmgw_standbys_init(&upstream->standbys, &conf->name,
                                 upstream->zone, worker->log);

    if (ngx_http_llmgw_upstream_first_view(upstream) != NGX_OK) {
        ngx_http_llmgw_upstream_destroy(upstream);
        return NULL;
    }

    ngx_add_timer(&upstream->check,
                  ngx_http_llmgw_upstream_check_ms(upstream));

    return upstream;
}


void
ngx_http_llmgw_upstream_destroy(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_uint_t  i;

    if (upstream->check.timer_set) {
        ngx_del_timer(&upstream->check);
    }

    if (upstream->tick.timer_set) {
        ngx_del_timer(&upstream->tick);
    }

    for (i = 0; i < upstream->conf->npools; i++) {
        if (upstream->pools[i]) {
            ngx_http_llmgw_pool_destroy(upstream->pools[i]);
        }
    }

    ngx_http_llmgw_models_done(&upstream->models);
    ngx_http_llmgw_standbys_done(&upstream->standbys);
    ngx_free(upstream->takes);

    if (upstream->reader) {
        llmgw_members_reader_destroy(upstream->reader);
        llmgw_members_view_done(&upstream->view);
    }

    ngx_queue_remove(&upstream->queue);
    ngx_free(upstream);
}


/* To be complete before the worker accepts, the rings are built in one go. */

static ngx_int_t
ngx_http_llmgw_upstream_first_view(ngx_http_llmgw_upstream_t *upstream)
{
    char        path[NGX_MAX_PATH];
    ngx_uint_t  i;

    if (upstream->conf->members.len == 0) {
        return NGX_OK;
    }

    (void) ngx_snprintf((u_char *) path, sizeof(path), "%V%Z",
                        &upstream->conf->members);

    upstream->reader = llmgw_members_reader_create(path);
    if (upstream->reader == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_upstream_reopen(upstream);

    for (i = 0; i < upstream->conf->npools; i++) {
        if (upstream->pools[i]) {
            ngx_http_llmgw_pool_whole(upstream->pools[i]);
        }
    }

    return NGX_OK;
}


/* Called before a pick. */

void
ngx_http_llmgw_upstream_look(ngx_http_llmgw_upstream_t *upstream)
{
    if (upstream->looked_ms == ngx_current_msec) {
        return;
    }

    upstream->looked_ms = ngx_current_msec;

    if (upstream->reader == NULL) {
        return;
    }

    if (upstream->generation == 0) {
        ngx_http_llmgw_upstream_reopen(upstream);
        return;
    }

    if (ngx_http_llmgw_upstream_may_read(upstream)
        && llmgw_members_reader_generation(upstream->reader)
           != upstream->generation)
    {
        ngx_http_llmgw_upstream_read(upstream);
    }
}


/*
 * A large view is read at intervals: with steady change a worker would do
 * nothing else.
 */

static ngx_uint_t
ngx_http_llmgw_upstream_may_read(ngx_http_llmgw_upstream_t *upstream)
{
    return ngx_current_msec - upstream->read_ms
           >= upstream->view.n / NGX_HTTP_LLMGW_MEMBERS_A_MS;
}


static void
ngx_http_llmgw_upstream_reopen(ngx_http_llmgw_upstream_t *upstream)
{
    char                error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t  rc;

    rc = llmgw_members_reader_check(upstream->reader, error);

    switch (rc) {

    case LLMGW_MEMBERS_DONE:
        ngx_http_llmgw_upstream_read(upstream);
        break;

    case LLMGW_MEMBERS_ABSENT:
        if (!upstream->absent) {
            upstream->absent = 1;
            ngx_log_error(NGX_LOG_WARN, upstream->worker->log, 0,
                          "llmgw: upstream \"%V\": members segment \"%V\" is "
                          "not there, waiting for the agent",
                          &upstream->conf->name, &upstream->conf->members);
        }
        break;

    case LLMGW_MEMBERS_UNCHANGED:
        if (upstream->generation == 0) {
            /* the segment was opened, but its first view not taken over yet */
            ngx_http_llmgw_upstream_read(upstream);
        }
        break;

    default:
        ngx_http_llmgw_upstream_refused(upstream, error);
        break;
    }
}


static void
ngx_http_llmgw_upstream_read(ngx_http_llmgw_upstream_t *upstream)
{
    char                error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t  rc;

    rc = llmgw_members_read(upstream->reader, &upstream->view, error);

    switch (rc) {

    case LLMGW_MEMBERS_DONE:
        upstream->absent = 0;
        upstream->refused = 0;

        /* streams that the update moves will pick, and must not look again */
        upstream->looked_ms = ngx_current_msec;
        upstream->read_ms = ngx_current_msec;

        if (ngx_http_llmgw_upstream_apply(upstream) == NGX_OK) {
            upstream->generation = upstream->view.generation;
        }
        break;

    case LLMGW_MEMBERS_ABSENT:
    case LLMGW_MEMBERS_BUSY:
        break;

    default:
        ngx_http_llmgw_upstream_refused(upstream, error);
        break;
    }
}


static void
ngx_http_llmgw_upstream_refused(ngx_http_llmgw_upstream_t *upstream,
    const char *error)
{
    if (upstream->refused) {
        return;
    }

    upstream->refused = 1;

    ngx_log_error(NGX_LOG_ERR, upstream->worker->log, 0,
                  "llmgw: upstream \"%V\": members segment \"%V\" is refused, "
                  "the last view stays: %s",
                  &upstream->conf->name, &upstream->conf->members, error);
}


static void
ngx_http_llmgw_upstream_check_handler(ngx_event_t *ev)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_upstream_t  *upstream = ev->data;

    if (upstream->reader) {
        ngx_http_llmgw_upstream_reopen(upstream);
        ngx_http_llmgw_upstream_look(upstream);

        if (upstream->models.incomplete) {
            ngx_http_llmgw_upstream_read(upstream);
        }

        ngx_http_llmgw_upstream_check_models(upstream);
        ngx_http_llmgw_upstream_loads(upstream);
        ngx_http_llmgw_upstream_check_stale(upstream);
    }

    for (i = 0; i < upstream->conf->npools; i++) {
        if (upstream->pools[i]) {
            ngx_http_llmgw_pool_check(upstream->pools[i]);
        }
    }

    ngx_http_llmgw_ssl_look(upstream->pools[0]);

    ngx_add_timer(&upstream->check,
                  ngx_http_llmgw_upstream_check_ms(upstream));
}


/* Time alone may unbind a model, and give its pool to another one. */

static void
ngx_http_llmgw_upstream_check_models(ngx_http_llmgw_upstream_t *upstream)
{
    if (upstream->conf->npools == 1 || upstream->generation == 0
        || !ngx_http_llmgw_upstream_bind(upstream))
    {
        return;
    }

    if (ngx_http_llmgw_upstream_apply(upstream) != NGX_OK) {
        upstream->generation = 0;       /* the next look tries again */
    }
}


static ngx_msec_t
ngx_http_llmgw_upstream_check_ms(ngx_http_llmgw_upstream_t *upstream)
{
    return upstream->reader && upstream->generation == 0
           ? NGX_HTTP_LLMGW_ABSENT_MS : NGX_HTTP_LLMGW_CHECK_MS;
}


/*
 * Reads the load that replicas report, which includes that of other gateways.
 */

void
ngx_http_llmgw_upstream_loads(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_uint_t              i, k;
    ngx_http_llmgw_pool_t  *pool;

    upstream->loads_ms = ngx_current_msec;

    if (upstream->reader == NULL
        || llmgw_members_read_loads(upstream->reader, &upstream->view)
           != LLMGW_MEMBERS_DONE)
    {
        return;
    }

    for (i = 0; i < upstream->conf->npools; i++) {
        pool = upstream->pools[i];

        if (pool == NULL) {
            continue;
        }

        for (k = 0; k < pool->table->n; k++) {
            ngx_http_llmgw_replica_set_load(pool->table->replicas[k]);
        }

        upstream->worker->events->loads_read(pool);
    }
}


/*
 * Called while streams run, and before a ranking; reads as often as agents
 * report.
 */

void
ngx_http_llmgw_upstream_look_at_loads(ngx_http_llmgw_upstream_t *upstream)
{
    if (ngx_current_msec - upstream->loads_ms >= NGX_HTTP_LLMGW_LOADS_MS) {
        ngx_http_llmgw_upstream_loads(upstream);
    }
}


uint64_t
ngx_http_llmgw_monotonic_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/* The same clock, read once per iteration of the event loop. */

uint64_t
ngx_http_llmgw_upstream_clock_ms(ngx_http_llmgw_upstream_t *upstream)
{
    if (upstream->clock_ms == 0 || upstream->clock_at_ms != ngx_current_msec) {
        upstream->clock_ms = ngx_http_llmgw_monotonic_ms();
        upstream->clock_at_ms = ngx_current_msec;
    }

    return upstream->clock_ms;
}


ngx_uint_t
ngx_http_llmgw_upstream_is_stale(ngx_http_llmgw_upstream_t *upstream)
{
    if (upstream->reader == NULL) {
        return 0;
    }

    return upstream->view.heartbeat_ms + NGX_HTTP_LLMGW_STALE_MS
           < ngx_http_llmgw_monotonic_ms();
}


static void
ngx_http_llmgw_upstream_check_stale(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_uint_t  i, stale;

    stale = ngx_http_llmgw_upstream_is_stale(upstream);

    if (upstream->generation == 0 || stale == upstream->stale) {
        return;
    }

    upstream->stale = stale;

    for (i = 0; i < upstream->conf->npools; i++) {
        if (upstream->pools[i]) {
            ngx_http_llmgw_table_standbys(upstream->pools[i]);
        }
    }

    if (stale) {
        ngx_log_error(NGX_LOG_WARN, upstream->worker->log, 0,
                      "llmgw: upstream \"%V\": the agent is silent, serving "
                      "on with its last view", &upstream->conf->name);

    } else {
        ngx_log_error(NGX_LOG_NOTICE, upstream->worker->log, 0,
                      "llmgw: upstream \"%V\": the agent is back",
                      &upstream->conf->name);
    }
}


static void
ngx_http_llmgw_upstream_tick_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_upstream_t  *upstream = ev->data;

    ngx_http_llmgw_upstream_look(upstream);

    ngx_http_llmgw_upstream_look_at_loads(upstream);

    if (upstream->streams) {
        ngx_add_timer(&upstream->tick, NGX_HTTP_LLMGW_TICK_MS);
    }
}


ngx_uint_t
ngx_http_llmgw_upstream_has_routable(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_uint_t  i;

    ngx_http_llmgw_upstream_look(upstream);

    for (i = 0; i < upstream->conf->npools; i++) {
        if (upstream->pools[i]
            && ngx_http_llmgw_table_has_routable(upstream->pools[i]))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * llmgw_metrics: all pools in Prometheus' text format, or OpenMetrics where
 * the scraper accepts it.  One pass for each metric, as the format wants all
 * series of a name together.
 */

#include "ngx_http_llmgw_zone.h"


#define NGX_HTTP_LLMGW_EXPORT_PAGE   16384  /* output grows by these */
#define NGX_HTTP_LLMGW_EXPORT_LINE   512    /* names are bounded by far less */


typedef struct {
    ngx_http_request_t           *request;
    ngx_http_llmgw_worker_t      *worker;
    ngx_chain_t                  *first;
    ngx_chain_t                  *last;
    size_t                        size;
    unsigned                      failed:1;
    unsigned                      open_metrics:1;
} ngx_http_llmgw_export_t;


static ngx_int_t ngx_http_llmgw_export_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_export_accepts(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_export_send(ngx_http_llmgw_export_t *e);
static void ngx_http_llmgw_export_all(ngx_http_llmgw_export_t *e);
static void ngx_http_llmgw_export_pools(ngx_http_llmgw_export_t *e,
    const char *name, const char *help, ngx_http_llmgw_gauge_pool_pt get);
static void ngx_http_llmgw_export_replicas(ngx_http_llmgw_export_t *e,
    const char *name, const char *help, ngx_http_llmgw_gauge_replica_pt get);
static void ngx_http_llmgw_export_tokens(ngx_http_llmgw_export_t *e);
static void ngx_http_llmgw_export_pool_tokens(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_export_requests(ngx_http_llmgw_export_t *e);
static void ngx_http_llmgw_export_pool_requests(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_export_counter(ngx_http_llmgw_export_t *e,
    const char *name, const char *label, const char *help, size_t offset,
    ngx_uint_t n, const char *(*value)(ngx_uint_t i));
static void ngx_http_llmgw_export_histogram(ngx_http_llmgw_export_t *e,
    const char *name, const char *help, size_t offset, ngx_uint_t index);
static void ngx_http_llmgw_export_buckets(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool, const char *name,
    ngx_http_llmgw_histogram_t *h, const ngx_msec_t *bounds);
static void ngx_http_llmgw_export_head(ngx_http_llmgw_export_t *e,
    const char *name, const char *type, const char *help);
static void ngx_http_llmgw_export_line(ngx_http_llmgw_export_t *e,
    const char *format, ...);
static void ngx_http_llmgw_export_sum(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_counters_t *sum);
static const char *ngx_http_llmgw_export_cause(ngx_uint_t i);
static const char *ngx_http_llmgw_export_hedge(ngx_uint_t i);
static const char *ngx_http_llmgw_export_transition(ngx_uint_t i);


#define ngx_http_llmgw_export_each(e, q)                                      \
    for (q = ngx_queue_head(&(e)->worker->pools);                             \
         q != ngx_queue_sentinel(&(e)->worker->pools);                        \
         q = ngx_queue_next(q))


char *
ngx_http_llmgw_export_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_llmgw_conf_handler(cf, ngx_http_llmgw_export_handler);
}


static ngx_int_t
ngx_http_llmgw_export_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_llmgw_export_t      e;
    ngx_http_llmgw_main_conf_t  *lmcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

    ngx_memzero(&e, sizeof(ngx_http_llmgw_export_t));
    e.request = r;
    e.worker = lmcf->worker;
    e.open_metrics = ngx_http_llmgw_export_accepts(r);

    if (e.worker) {
        ngx_http_llmgw_export_all(&e);
    }

    if (e.open_metrics) {
        ngx_http_llmgw_export_line(&e, "# EOF\n");
    }

    return e.failed ? NGX_HTTP_INTERNAL_SERVER_ERROR
                    : ngx_http_llmgw_export_send(&e);
}


static ngx_uint_t
ngx_http_llmgw_export_accepts(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_front_find_header(r, "accept", sizeof("accept") - 1);

    return h && ngx_strstr(h->value.data, "application/openmetrics-text");
}


static ngx_int_t
ngx_http_llmgw_export_send(ngx_http_llmgw_export_t *e)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;
    static ngx_str_t     text = ngx_string("text/plain; version=0.0.4");
    static ngx_str_t     open = ngx_string("application/openmetrics-text; "
                                           "version=1.0.0; charset=utf-8");

    r = e->request;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = e->size;
    r->headers_out.content_type = e->open_metrics ? open : text;
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    if (e->last == NULL) {
        return ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    e->last->buf->last_buf = 1;
    e->last->buf->last_in_chain = 1;

    return ngx_http_output_filter(r, e->first);
}


static void
ngx_http_llmgw_export_all(ngx_http_llmgw_export_t *e)
{
    ngx_uint_t              index;
    ngx_queue_t            *q;
    ngx_http_llmgw_pool_t  *pool;

    ngx_http_llmgw_export_each(e, q) {
        pool = ngx_queue_data(q, ngx_http_llmgw_pool_t, queue);
        ngx_http_llmgw_pool_look(pool);
        ngx_http_llmgw_pool_loads(pool);

        pool->sum = ngx_palloc(e->request->pool,
                               sizeof(ngx_http_llmgw_counters_t));
        if (pool->sum == NULL) {
            e->failed = 1;
            return;
        }

        ngx_http_llmgw_export_sum(pool, pool->sum);
    }

    ngx_http_llmgw_export_requests(e);
    ngx_http_llmgw_export_tokens(e);

#define NGX_HTTP_LLMGW_EXPORT_COUNTER(name, label, n, help)                   \
    ngx_http_llmgw_export_counter(e, #name, #label, help,                     \
        offsetof(ngx_http_llmgw_counters_t, name), n,                         \
        ngx_http_llmgw_export_##label##_of(#name));

#define ngx_http_llmgw_export_cause_of(name)    ngx_http_llmgw_export_cause
#define ngx_http_llmgw_export_outcome_of(name)  ngx_http_llmgw_export_hedge
#define ngx_http_llmgw_export_to_of(name)                                     \
    ngx_http_llmgw_export_transition

    NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_EXPORT_COUNTER)

    index = 0;

#define NGX_HTTP_LLMGW_EXPORT_HISTOGRAM(name, buckets, help)                  \
    ngx_http_llmgw_export_histogram(e, #name, help,                           \
        offsetof(ngx_http_llmgw_counters_t, name), index++);

    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_EXPORT_HISTOGRAM)

#define NGX_HTTP_LLMGW_EXPORT_POOL(name, help)                                \
    ngx_http_llmgw_export_pools(e, #name, help, ngx_http_llmgw_gauge_##name);
#define NGX_HTTP_LLMGW_EXPORT_REPLICA(name, help)                             \
    ngx_http_llmgw_export_replicas(e, #name, help,                            \
                                   ngx_http_llmgw_gauge_##name);

    NGX_HTTP_LLMGW_POOL_GAUGES(NGX_HTTP_LLMGW_EXPORT_POOL)
    NGX_HTTP_LLMGW_REPLICA_GAUGES(NGX_HTTP_LLMGW_EXPORT_REPLICA)
}


/* All rows and the base, under the lock that moves the one to the other. */

static void
ngx_http_llmgw_export_sum(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_counters_t *sum)
{
    uint32_t                       i;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = pool->zone->shared;

    ngx_http_llmgw_zone_lock(pool->zone);

    *sum = shared->base;

    for (i = 0; i < shared->nrows; i++) {
        if (shared->rows[i].pid) {
            ngx_http_llmgw_metrics_add(sum, &shared->counters[i], 0);
        }
    }

    ngx_http_llmgw_zone_unlock(pool->zone);
}


static void
ngx_http_llmgw_export_pools(ngx_http_llmgw_export_t *e, const char *name,
    const char *help, ngx_http_llmgw_gauge_pool_pt get)
{
    ngx_queue_t            *q;
    ngx_http_llmgw_pool_t  *pool;

    ngx_http_llmgw_export_head(e, name, "gauge", help);

    ngx_http_llmgw_export_each(e, q) {
        pool = ngx_queue_data(q, ngx_http_llmgw_pool_t, queue);

        ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\"} %.3f\n",
                                   name, &pool->conf->name, get(pool));
    }
}


static void
ngx_http_llmgw_export_replicas(ngx_http_llmgw_export_t *e, const char *name,
    const char *help, ngx_http_llmgw_gauge_replica_pt get)
{
    ngx_uint_t                 i;
    ngx_queue_t               *q;
    ngx_http_llmgw_pool_t     *pool;
    ngx_http_llmgw_replica_t  *replica;

    ngx_http_llmgw_export_head(e, name, "gauge", help);

    ngx_http_llmgw_export_each(e, q) {
        pool = ngx_queue_data(q, ngx_http_llmgw_pool_t, queue);

        for (i = 0; i < pool->table->n; i++) {
            replica = pool->table->replicas[i];

            if (!replica->listed || replica->slot == NULL) {
                continue;
            }

            ngx_http_llmgw_export_line(e,
                               "llmgw_%s{upstream=\"%V\",replica=\"%V\"} "
                               "%.0f\n", name, &pool->conf->name,
                               &replica->node.str, get(replica));
        }
    }
}


static void
ngx_http_llmgw_export_tokens(ngx_http_llmgw_export_t *e)
{
    ngx_queue_t  *q;

    ngx_http_llmgw_export_head(e, "tokens", "counter",
                               "Tokens sent to clients, each once");

    ngx_http_llmgw_export_each(e, q) {
        ngx_http_llmgw_export_pool_tokens(e,
            ngx_queue_data(q, ngx_http_llmgw_pool_t, queue));
    }
}


/* Slots that nobody lists any more are told until they are given up. */

static void
ngx_http_llmgw_export_pool_tokens(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool)
{
    uint32_t                       i;
    ngx_str_t                      id;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = pool->zone->shared;

    ngx_http_llmgw_zone_lock(pool->zone);

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->id_len == 0) {
            continue;
        }

        id.data = slot->id;
        id.len = slot->id_len;

        ngx_http_llmgw_export_line(e, "llmgw_tokens_total{upstream=\"%V\","
                                   "replica=\"%V\"} %uL\n",
                                   &pool->conf->name, &id,
                                   (uint64_t) slot->tokens);
    }

    ngx_http_llmgw_export_line(e, "llmgw_tokens_total{upstream=\"%V\","
                               "replica=\"\"} %uL\n",
                               &pool->conf->name, shared->tokens_base);

    ngx_http_llmgw_zone_unlock(pool->zone);
}


static void
ngx_http_llmgw_export_requests(ngx_http_llmgw_export_t *e)
{
    ngx_queue_t  *q;

    ngx_http_llmgw_export_head(e, "requests", "counter",
                               "Requests that have ended");

    ngx_http_llmgw_export_each(e, q) {
        ngx_http_llmgw_export_pool_requests(e,
            ngx_queue_data(q, ngx_http_llmgw_pool_t, queue));
    }
}


/* Only what has happened: most pairs of code and reason never do. */

static void
ngx_http_llmgw_export_pool_requests(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool)
{
    uint64_t    n;
    ngx_uint_t  code, reason;

    for (code = 0; code < NGX_HTTP_LLMGW_NCODES; code++) {
        for (reason = 0; reason < NGX_HTTP_LLMGW_NREASONS; reason++) {

            n = pool->sum->requests[code][reason];

            if (n == 0 && (code || reason)) {
                continue;
            }

            ngx_http_llmgw_export_line(e,
                               "llmgw_requests_total{upstream=\"%V\","
                               "code=\"%s\",reason=\"%s\"} %uL\n",
                               &pool->conf->name,
                               llmgw_grpc_status_name(code),
                               ngx_http_llmgw_metrics_reason_name(reason), n);
        }
    }
}


static void
ngx_http_llmgw_export_counter(ngx_http_llmgw_export_t *e, const char *name,
    const char *label, const char *help, size_t offset, ngx_uint_t n,
    const char *(*value)(ngx_uint_t i))
{
    uint64_t               *counts;
    ngx_uint_t              i;
    ngx_queue_t            *q;
    ngx_http_llmgw_pool_t  *pool;

    ngx_http_llmgw_export_head(e, name, "counter", help);

    ngx_http_llmgw_export_each(e, q) {
        pool = ngx_queue_data(q, ngx_http_llmgw_pool_t, queue);
        counts = (uint64_t *) ((char *) pool->sum + offset);

        for (i = 0; i < n; i++) {
            if (value(i) == NULL) {
                continue;
            }

            ngx_http_llmgw_export_line(e,
                               "llmgw_%s_total{upstream=\"%V\",%s=\"%s\"} "
                               "%uL\n", name, &pool->conf->name, label,
                               value(i), counts[i]);
        }
    }
}


static void
ngx_http_llmgw_export_histogram(ngx_http_llmgw_export_t *e, const char *name,
    const char *help, size_t offset, ngx_uint_t index)
{
    ngx_queue_t            *q;
    ngx_http_llmgw_pool_t  *pool;

    ngx_http_llmgw_export_head(e, name, "histogram", help);

    ngx_http_llmgw_export_each(e, q) {
        pool = ngx_queue_data(q, ngx_http_llmgw_pool_t, queue);

        ngx_http_llmgw_export_buckets(e, pool, name,
            (ngx_http_llmgw_histogram_t *) ((char *) pool->sum + offset),
            ngx_http_llmgw_metrics_bounds(index));
    }
}


static void
ngx_http_llmgw_export_buckets(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_pool_t *pool, const char *name,
    ngx_http_llmgw_histogram_t *h, const ngx_msec_t *bounds)
{
    uint64_t    n;
    ngx_uint_t  i;

    n = 0;

    for (i = 0; bounds[i]; i++) {
        n += h->counts[i];

        ngx_http_llmgw_export_line(e, "llmgw_%s_bucket{upstream=\"%V\","
                                   "le=\"%M.%03M\"} %uL\n", name,
                                   &pool->conf->name, bounds[i] / 1000,
                                   bounds[i] % 1000, n);
    }

    n += h->counts[i];

    ngx_http_llmgw_export_line(e, "llmgw_%s_bucket{upstream=\"%V\","
                               "le=\"+Inf\"} %uL\n", name, &pool->conf->name,
                               n);
    ngx_http_llmgw_export_line(e, "llmgw_%s_sum{upstream=\"%V\"} "
                               "%uL.%03uL\n", name, &pool->conf->name,
                               h->sum_ms / 1000, h->sum_ms % 1000);
    ngx_http_llmgw_export_line(e, "llmgw_%s_count{upstream=\"%V\"} %uL\n",
                               name, &pool->conf->name, n);
}


/* OpenMetrics names a counter's family without its suffix. */

static void
ngx_http_llmgw_export_head(ngx_http_llmgw_export_t *e, const char *name,
    const char *type, const char *help)
{
    const char  *suffix;

    suffix = (!e->open_metrics && type[0] == 'c') ? "_total" : "";

    ngx_http_llmgw_export_line(e, "# HELP llmgw_%s%s %s\n"
                               "# TYPE llmgw_%s%s %s\n", name, suffix, help,
                               name, suffix, type);
}


static void
ngx_http_llmgw_export_line(ngx_http_llmgw_export_t *e, const char *format,
    ...)
{
    u_char       *end;
    va_list       args;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = e->last ? e->last->buf : NULL;

    if (b == NULL || b->end - b->last < NGX_HTTP_LLMGW_EXPORT_LINE) {
        cl = ngx_alloc_chain_link(e->request->pool);
        b = ngx_create_temp_buf(e->request->pool, NGX_HTTP_LLMGW_EXPORT_PAGE);

        if (cl == NULL || b == NULL) {
            e->failed = 1;
            return;
        }

        cl->buf = b;
        cl->next = NULL;

        if (e->last) {
            e->last->next = cl;
        } else {
            e->first = cl;
        }

        e->last = cl;
    }

    va_start(args, format);
    end = ngx_vslprintf(b->last, b->end, format, args);
    va_end(args);

    e->size += end - b->last;
    b->last = end;
}


static const char *
ngx_http_llmgw_export_cause(ngx_uint_t i)
{
    return i == LLMGW_CAUSE_NONE ? NULL : llmgw_cause_name(i);
}


static const char *
ngx_http_llmgw_export_hedge(ngx_uint_t i)
{
    return i == NGX_HTTP_LLMGW_HEDGE_WON ? "won" : "lost";
}


static const char *
ngx_http_llmgw_export_transition(ngx_uint_t i)
{
    static const char  *names[] = {
        NULL, "opened", "reopened", "half_opened", "closed"
    };

    return names[i];
}

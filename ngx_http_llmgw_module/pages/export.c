
/*
 * llmgw_metrics: all pools in Prometheus' text format, or OpenMetrics where
 * the scraper accepts it.
 *
 * The format requires all series of a name to be together.  So the page goes
 * through the families, within a family through the pools, and within a pool
 * through the replicas.  The replicas' numbers are gathered before, in one pass
 * (export_facts.c): a family is then a walk over an array, and a line costs two
 * copies and a number.  At a thousand replicas nine lines in ten are of this
 * kind.
 */

#include "http/header.h"
#include "pages/export_inner.h"
#include "pages/pages.h"
#include "proto/grpc/session.h"


#define NGX_HTTP_LLMGW_EXPORT_LINE    1024  /* bytes without upstream names */
#define NGX_HTTP_LLMGW_EXPORT_NAMES   3     /* upstream names, at most */


static ngx_int_t ngx_http_llmgw_export_handler(ngx_http_request_t *r);
static u_char *ngx_http_llmgw_export_measure(ngx_http_llmgw_export_t *e,
    ngx_pool_t *pool);
static ngx_uint_t ngx_http_llmgw_export_accepts(ngx_http_request_t *r);
static void ngx_http_llmgw_export_done(void *data);
static ngx_uint_t ngx_http_llmgw_export_next(ngx_http_llmgw_page_t *page);
static void ngx_http_llmgw_export_head(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family);
static ngx_uint_t ngx_http_llmgw_export_requests(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
static ngx_uint_t ngx_http_llmgw_export_counter(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
static ngx_uint_t ngx_http_llmgw_export_plain(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
static ngx_uint_t ngx_http_llmgw_export_histogram(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
static u_char *ngx_http_llmgw_export_bound(u_char *p, ngx_msec_t ms);
static ngx_uint_t ngx_http_llmgw_export_pool(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
static ngx_uint_t ngx_http_llmgw_export_body_bytes(
    ngx_http_llmgw_export_t *e, const ngx_http_llmgw_family_t *family,
    ngx_http_llmgw_facts_t *facts);
static ngx_uint_t ngx_http_llmgw_export_members(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);


#define NGX_HTTP_LLMGW_FAMILY_COUNTER(name, label, n, help)                   \
    { #name, "counter", help, ngx_http_llmgw_export_counter,                  \
      offsetof(ngx_http_llmgw_counters_t, name), n, #label,                   \
      ngx_http_llmgw_metrics_name_##name, NULL },

#define NGX_HTTP_LLMGW_FAMILY_HISTOGRAM(name, buckets, help)                  \
    { #name, "histogram", help, ngx_http_llmgw_export_histogram,              \
      offsetof(ngx_http_llmgw_counters_t, name),                              \
      NGX_HTTP_LLMGW_HISTOGRAM_##name, NULL, NULL, NULL },

#define NGX_HTTP_LLMGW_FAMILY_GROUP(name, type, kind, what, help)             \
    { #name, type, help, ngx_http_llmgw_export_group_##what, 0,               \
      LLMGW_GROUP_##kind, NULL, NULL, NULL },

#define NGX_HTTP_LLMGW_FAMILY_GROUP_COUNTER(name, kind, what, help)           \
    NGX_HTTP_LLMGW_FAMILY_GROUP(name, "counter", kind, what, help)

#define NGX_HTTP_LLMGW_FAMILY_GROUP_HISTOGRAM(name, kind, what, help)         \
    NGX_HTTP_LLMGW_FAMILY_GROUP(name, "histogram", kind, what, help)

#define NGX_HTTP_LLMGW_FAMILY_GROUP_GAUGE(name, kind, what, help)             \
    NGX_HTTP_LLMGW_FAMILY_GROUP(name, "gauge", kind, what, help)

#define NGX_HTTP_LLMGW_FAMILY_STANDBY(name, type, what, help)                 \
    { #name, type, help, ngx_http_llmgw_export_standby_##what, 0, 0, NULL,    \
      NULL, NULL },

#define NGX_HTTP_LLMGW_FAMILY_STANDBY_COUNTER(name, what, help)               \
    NGX_HTTP_LLMGW_FAMILY_STANDBY(name, "counter", what, help)

#define NGX_HTTP_LLMGW_FAMILY_STANDBY_GAUGE(name, what, help)                 \
    NGX_HTTP_LLMGW_FAMILY_STANDBY(name, "gauge", what, help)

#define NGX_HTTP_LLMGW_FAMILY_POOL(name, help)                                \
    { #name, "gauge", help, ngx_http_llmgw_export_pool, 0, 0, NULL, NULL,     \
      ngx_http_llmgw_gauge_##name },

#define NGX_HTTP_LLMGW_FAMILY_REPLICA_COUNTER(name, help)                     \
    { #name, "counter", help, ngx_http_llmgw_export_replicas, 0,              \
      NGX_HTTP_LLMGW_FACT_##name, NULL, NULL, NULL },

#define NGX_HTTP_LLMGW_FAMILY_REPLICA_GAUGE(name, help)                       \
    { #name, "gauge", help, ngx_http_llmgw_export_replicas, 0,                \
      NGX_HTTP_LLMGW_FACT_##name, NULL, NULL, NULL },

#define NGX_HTTP_LLMGW_FAMILY_REPORTED_GAUGE(name, help)                      \
    { #name, "gauge", help, ngx_http_llmgw_export_reported, 0,                \
      NGX_HTTP_LLMGW_REPORTED_##name, NULL, NULL, NULL },


static const ngx_http_llmgw_family_t  ngx_http_llmgw_families[] = {

    { "requests", "counter", "Requests that have ended",
      ngx_http_llmgw_export_requests, 0, 0, NULL, NULL, NULL },

    NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_FAMILY_COUNTER)
    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_FAMILY_HISTOGRAM)
    NGX_HTTP_LLMGW_POOL_GAUGES(NGX_HTTP_LLMGW_FAMILY_POOL)

    { "saturation_unknown", "counter",
      "Decisions that held nobody, as no replica told how full it is",
      ngx_http_llmgw_export_plain,
      offsetof(ngx_http_llmgw_counters_t, saturation_unknown), 0, NULL, NULL,
      NULL },

    { "body_bytes", "gauge", "Bytes that workers hold of llmgw_body_memory",
      ngx_http_llmgw_export_body_bytes, 0, 0, NULL, NULL, NULL },

    { "members", "gauge", "Members that the agent lists, by state",
      ngx_http_llmgw_export_members, 0, 0, NULL, NULL, NULL },

    NGX_HTTP_LLMGW_GROUP_COUNTERS(NGX_HTTP_LLMGW_FAMILY_GROUP_COUNTER)
    NGX_HTTP_LLMGW_GROUP_HISTOGRAMS(NGX_HTTP_LLMGW_FAMILY_GROUP_HISTOGRAM)
    NGX_HTTP_LLMGW_GROUP_GAUGES(NGX_HTTP_LLMGW_FAMILY_GROUP_GAUGE)

    NGX_HTTP_LLMGW_STANDBY_COUNTERS(NGX_HTTP_LLMGW_FAMILY_STANDBY_COUNTER)
    NGX_HTTP_LLMGW_STANDBY_GAUGES(NGX_HTTP_LLMGW_FAMILY_STANDBY_GAUGE)

    NGX_HTTP_LLMGW_REPLICA_COUNTERS(NGX_HTTP_LLMGW_FAMILY_REPLICA_COUNTER)
    NGX_HTTP_LLMGW_REPLICA_GAUGES(NGX_HTTP_LLMGW_FAMILY_REPLICA_GAUGE)
    NGX_HTTP_LLMGW_REPORTED_GAUGES(NGX_HTTP_LLMGW_FAMILY_REPORTED_GAUGE)

    { "replica_info", "gauge", "Always 1: the replica's base model",
      ngx_http_llmgw_export_info, 0, 0, NULL, NULL, NULL }
};

#define NGX_HTTP_LLMGW_NFAMILIES                                              \
    (sizeof(ngx_http_llmgw_families) / sizeof(ngx_http_llmgw_family_t))


char *
ngx_http_llmgw_export_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_llmgw_conf_handler(cf, ngx_http_llmgw_export_handler);
}


static ngx_int_t
ngx_http_llmgw_export_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_llmgw_export_t  *e;
    static ngx_str_t          text = ngx_string("text/plain; version=0.0.4");
    static ngx_str_t          open = ngx_string("application/openmetrics-text;"
                                                " version=1.0.0;"
                                                " charset=utf-8");

    rc = ngx_http_llmgw_page_accept(r);
    if (rc != NGX_OK) {
        return rc;
    }

    e = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_export_t));
    if (e == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    e->snapshots = ngx_http_llmgw_snapshot_take(r);
    e->facts = e->snapshots
               ? ngx_http_llmgw_facts_gather(e->snapshots, r->pool) : NULL;

    if (e->facts == NULL || ngx_http_llmgw_export_measure(e, r->pool) == NULL) {
        ngx_http_llmgw_snapshot_release(e->snapshots);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    e->open_metrics = ngx_http_llmgw_export_accepts(r);
    e->page.request = r;
    e->page.next = ngx_http_llmgw_export_next;
    e->page.done = ngx_http_llmgw_export_done;
    e->page.data = e;

    return ngx_http_llmgw_page_send(&e->page, e->open_metrics ? &open : &text);
}


/*
 * Allocates space for the longest line.  nginx's configuration parser accepts
 * no word of more than 4 kB, so even three names with each byte escaped fit
 * into a page's buffer.
 */

static u_char *
ngx_http_llmgw_export_measure(ngx_http_llmgw_export_t *e, ngx_pool_t *pool)
{
    size_t      longest;
    ngx_uint_t  i;

    longest = 0;

    for (i = 0; i < e->snapshots->nelts; i++) {
        longest = ngx_max(longest, e->facts[i].name.len);
    }

    e->line = NGX_HTTP_LLMGW_EXPORT_LINE
              + NGX_HTTP_LLMGW_EXPORT_NAMES * longest;
    e->head.data = ngx_pnalloc(pool, e->line);

    return e->head.data;
}


static ngx_uint_t
ngx_http_llmgw_export_accepts(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&r->headers_in.headers, "accept");

    return h && ngx_strstr(h->value.data, "application/openmetrics-text");
}


static void
ngx_http_llmgw_export_done(void *data)
{
    ngx_http_llmgw_export_t  *e = data;

    ngx_http_llmgw_snapshot_release(e->snapshots);
}


static ngx_uint_t
ngx_http_llmgw_export_next(ngx_http_llmgw_page_t *page)
{
    ngx_http_llmgw_export_t        *e;
    const ngx_http_llmgw_family_t  *family;

    e = page->data;

    if (e->family == NGX_HTTP_LLMGW_NFAMILIES) {
        if (e->open_metrics) {
            ngx_http_llmgw_export_line(e, "# EOF\n");
        }

        return 0;
    }

    family = &ngx_http_llmgw_families[e->family];

    if (!e->headed) {
        ngx_http_llmgw_export_head(e, family);
        e->headed = 1;
    }

    if (e->pool < e->snapshots->nelts
        && family->write(e, family, &e->facts[e->pool]))
    {
        return 1;
    }

    e->item = 0;

    if (++e->pool >= e->snapshots->nelts) {
        e->pool = 0;
        e->headed = 0;
        e->family++;
    }

    return 1;
}


/* OpenMetrics names a counter's family without its suffix. */

static void
ngx_http_llmgw_export_head(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family)
{
    const char  *suffix;

    suffix = (!e->open_metrics && family->type[0] == 'c') ? "_total" : "";

    ngx_http_llmgw_export_line(e, "# HELP llmgw_%s%s %s\n"
                               "# TYPE llmgw_%s%s %s\n",
                               family->name, suffix, family->help,
                               family->name, suffix, family->type);
}


/* Writes counts above 0, and that of OK: most pairs never happen. */

static ngx_uint_t
ngx_http_llmgw_export_requests(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    uint64_t    n;
    ngx_uint_t  code, reason;

    for (code = 0; code < NGX_HTTP_LLMGW_NCODES; code++) {
        for (reason = 0; reason < LLMGW_NREASONS; reason++) {

            n = facts->snapshot->sum.requests[code][reason];

            if (n == 0 && (code || reason)) {
                continue;
            }

            ngx_http_llmgw_export_line(e,
                               "llmgw_requests_total{upstream=\"%V\","
                               "code=\"%s\",reason=\"%s\"} %uL\n",
                               &facts->name, llmgw_grpc_status_name(code),
                               ngx_http_llmgw_metrics_reason_name(reason), n);
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_llmgw_export_counter(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    uint64_t    *counts;
    ngx_uint_t   i;

    counts = (uint64_t *) ((char *) &facts->snapshot->sum + family->offset);

    for (i = 0; i < family->n; i++) {
        if (family->value(i)) {
            ngx_http_llmgw_export_line(e,
                               "llmgw_%s_total{upstream=\"%V\",%s=\"%s\"} "
                               "%uL\n", family->name, &facts->name,
                               family->label, family->value(i), counts[i]);
        }
    }

    return 0;
}


/* A counter without labels. */

static ngx_uint_t
ngx_http_llmgw_export_plain(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    uint64_t  *count;

    count = (uint64_t *) ((char *) &facts->snapshot->sum + family->offset);

    ngx_http_llmgw_export_line(e, "llmgw_%s_total{upstream=\"%V\"} %uL\n",
                               family->name, &facts->name, *count);

    return 0;
}


static ngx_uint_t
ngx_http_llmgw_export_histogram(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_histogram_t  *h;

    h = (ngx_http_llmgw_histogram_t *)
            ((char *) &facts->snapshot->sum + family->offset);

    e->head.len = ngx_snprintf(e->head.data, e->line, "upstream=\"%V\"",
                               &facts->name)
                  - e->head.data;

    ngx_http_llmgw_export_times(e, family->name, h->counts,
                                ngx_http_llmgw_metrics_bounds(family->n),
                                h->sum_ms);

    return 0;
}


void
ngx_http_llmgw_export_times(ngx_http_llmgw_export_t *e, const char *name,
    const uint64_t *counts, const ngx_msec_t *bounds, uint64_t sum_ms)
{
    u_char       le[NGX_INT64_LEN + sizeof(".000")];
    uint64_t     n;
    ngx_uint_t   i;

    n = 0;

    for (i = 0; bounds[i]; i++) {
        n += counts[i];
        *ngx_http_llmgw_export_bound(le, bounds[i]) = '\0';

        ngx_http_llmgw_export_line(e, "llmgw_%s_bucket{%V,le=\"%s\"} %uL\n",
                                   name, &e->head, le, n);
    }

    n += counts[i];

    ngx_http_llmgw_export_line(e, "llmgw_%s_bucket{%V,le=\"+Inf\"} %uL\n"
                               "llmgw_%s_sum{%V} %uL.%03uL\n"
                               "llmgw_%s_count{%V} %uL\n",
                               name, &e->head, n,
                               name, &e->head, sum_ms / 1000, sum_ms % 1000,
                               name, &e->head, n);
}


/* A bound in seconds, as Prometheus's clients write it: 0.001, 2.5, 10.0. */

static u_char *
ngx_http_llmgw_export_bound(u_char *p, ngx_msec_t ms)
{
    p = ngx_sprintf(p, "%M.%03M", ms / 1000, ms % 1000);

    while (p[-1] == '0' && p[-2] != '.') {
        p--;
    }

    return p;
}


static ngx_uint_t
ngx_http_llmgw_export_pool(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\"} %.3f\n",
                               family->name, &facts->name,
                               family->get(facts->snapshot));

    return 0;
}


static ngx_uint_t
ngx_http_llmgw_export_body_bytes(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t  share;

    for (share = 0; share < LLMGW_NSHARES; share++) {
        ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\","
                              "what=\"%s\"} %uL\n",
                              family->name, &facts->name,
                              ngx_http_llmgw_metrics_name_body_refusals(share),
                              facts->snapshot->levels.body_bytes[share]);
    }

    return 0;
}


static ngx_uint_t
ngx_http_llmgw_export_members(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t  role, state, n;

    n = facts->snapshot->nshards ? NGX_HTTP_LLMGW_NROLES : LLMGW_ROLE_SHARD;

    for (role = 0; role < n; role++) {
        for (state = 0; state < NGX_HTTP_LLMGW_NSTATES; state++) {
            ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\","
                                       "role=\"%s\",state=\"%s\"} %ui\n",
                                       family->name, &facts->name,
                                       llmgw_role_name(role),
                                       llmgw_liveness_name(state),
                                       facts->members[role][state]);
        }
    }

    return 0;
}


void
ngx_http_llmgw_export_line(ngx_http_llmgw_export_t *e, const char *format,
    ...)
{
    u_char   *p;
    va_list   args;

    p = ngx_http_llmgw_page_room(&e->page, e->line);
    if (p == NULL) {
        return;
    }

    va_start(args, format);
    p = ngx_vslprintf(p, p + e->line, format, args);
    va_end(args);

    ngx_http_llmgw_page_wrote(&e->page, p);
}

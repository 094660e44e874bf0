
/*
 * llmgw_metrics: all pools and keys in Prometheus' text format, or OpenMetrics
 * where the scraper accepts it.
 *
 * The format requires all series of a metric to be together, and facts come
 * item by item.  So all values are kept first, which reads a replica's memory
 * once; then the page goes through the metrics, for each through the pools or
 * the zones of keys, and in each through the items.  A line is four copies and
 * a number; at a thousand replicas there are 9,000.
 */

#include "http/header.h"
#include "pages/export_inner.h"
#include "pages/pages.h"


#define NGX_HTTP_LLMGW_EXPORT_LINES   64    /* about this many in a piece */
#define NGX_HTTP_LLMGW_EXPORT_FAMILY  1024  /* HELP and TYPE, at most */
#define NGX_HTTP_LLMGW_EXPORT_NUMBER  32    /* including the text around it */


static u_char *
ngx_http_llmgw_export_digits(u_char *p, uint64_t n)
{
    u_char    *end;
    uint64_t   rest;

    end = p + 1;

    for (rest = n; rest >= 10; rest /= 10) {
        end++;
    }

    p = end;

    do {
        *--p = '0' + n % 10;
        n /= 10;
    } while (n);

    return end;
}


/* more: labels after the item's. */

static void
ngx_http_llmgw_export_line(ngx_http_llmgw_export_t *e, const void *more,
    size_t more_len, ngx_http_llmgw_unit_t unit, uint64_t n)
{
    u_char     *p;
    uint64_t    rest;
    ngx_str_t  *label;

    label = ngx_http_llmgw_scopes[e->scope]->label ? &e->item->label : e->name;
    rest = 0;

    p = ngx_http_llmgw_page_room(&e->page, e->head_len + label->len + more_len
                                           + NGX_HTTP_LLMGW_EXPORT_NUMBER);
    if (p == NULL) {
        return;
    }

    if (unit == NGX_HTTP_LLMGW_MS || unit == NGX_HTTP_LLMGW_PERMILLE) {
        rest = n % 1000;
        n /= 1000;
    }

    p = ngx_cpymem(p, e->head, e->head_len);

    if (label->len) {               /* "": the model is unknown */
        p = ngx_cpymem(p, label->data, label->len);
    }

    *p++ = '"';

    if (more_len) {
        p = ngx_cpymem(p, more, more_len);
    }

    *p++ = '}';
    *p++ = ' ';
    p = ngx_http_llmgw_export_digits(p, n);

    if (unit != NGX_HTTP_LLMGW_ONE) {
        *p++ = '.';
        *p++ = '0' + rest / 100;
        *p++ = '0' + rest / 10 % 10;
        *p++ = '0' + rest % 10;
    }

    *p++ = '\n';

    ngx_http_llmgw_page_wrote(&e->page, p);
    e->lines++;
}


static void
ngx_http_llmgw_export_counts(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_metric_t *metric, const uint64_t *counts)
{
    u_char                         more[NGX_HTTP_LLMGW_EXPORT_WORDS], *p;
    ngx_uint_t                     i, k, is_shown;
    const char                    *word;
    const uint64_t                *count;
    const ngx_http_llmgw_label_t  *first, *second;

    first = &metric->labels[0];
    second = &metric->labels[1];
    count = counts;

    for (i = 0; i < first->n; i++) {
        for (k = 0; k < ngx_max(second->n, 1); k++, count++) {

            word = first->word(i);
            is_shown = (*count || count == counts
                        || metric->which != NGX_HTTP_LLMGW_RARE);

            if (word == NULL || *count == NGX_HTTP_LLMGW_ABSENT || !is_shown) {
                continue;
            }

            p = ngx_sprintf(more, ",%s=\"%s\"", first->name, word);

            if (second->name) {
                p = ngx_sprintf(p, ",%s=\"%s\"", second->name,
                                second->word(k));
            }

            ngx_http_llmgw_export_line(e, more, p - more, metric->unit,
                                       *count);
        }
    }
}


/*
 * Makes the beginning of all lines of a family, up to the value of the item's
 * label.
 */

static void
ngx_http_llmgw_export_head(ngx_http_llmgw_export_t *e, const char *suffix)
{
    u_char                        *p;
    const ngx_http_llmgw_scope_t  *scope;

    scope = ngx_http_llmgw_scopes[e->scope];

    p = ngx_sprintf(e->head, "llmgw_%s%s{%s=\"",
                    scope->metrics[e->metric].name, suffix,
                    e->source->label);

    if (scope->label) {
        p = ngx_sprintf(p, "%V\",%s=\"", e->name, scope->label);
    }

    e->head_len = p - e->head;
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


static void
ngx_http_llmgw_export_times(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_metric_t *metric, const ngx_http_llmgw_histogram_t *h)
{
    u_char             more[NGX_HTTP_LLMGW_EXPORT_WORDS], *p;
    uint64_t           n;
    ngx_uint_t         i;
    const ngx_msec_t  *bounds;

    bounds = ngx_http_llmgw_metrics_bounds(metric->bounds);
    n = 0;

    ngx_http_llmgw_export_head(e, "_bucket");

    for (i = 0; i == 0 || bounds[i - 1]; i++) {
        n += h->counts[i];

        p = ngx_cpymem(more, ",le=\"", 5);
        p = bounds[i] ? ngx_http_llmgw_export_bound(p, bounds[i])
                      : ngx_cpymem(p, "+Inf", 4);
        *p++ = '"';

        ngx_http_llmgw_export_line(e, more, p - more, NGX_HTTP_LLMGW_ONE, n);
    }

    ngx_http_llmgw_export_head(e, "_sum");
    ngx_http_llmgw_export_line(e, NULL, 0, NGX_HTTP_LLMGW_MS, h->sum_ms);

    ngx_http_llmgw_export_head(e, "_count");
    ngx_http_llmgw_export_line(e, NULL, 0, NGX_HTTP_LLMGW_ONE, n);
}


static void
ngx_http_llmgw_export_value(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_metric_t *metric, uint64_t value)
{
    const void  *p;

    if (value == NGX_HTTP_LLMGW_ABSENT) {
        return;
    }

    p = (const void *) (uintptr_t) value;

    if (metric->kind == NGX_HTTP_LLMGW_HISTOGRAM) {
        ngx_http_llmgw_export_times(e, metric, p);

    } else if (metric->labels[0].word) {
        ngx_http_llmgw_export_counts(e, metric, p);

    } else if (metric->labels[0].name) {
        ngx_http_llmgw_export_line(e, p, ngx_strlen(p), metric->unit, 1);

    } else {
        ngx_http_llmgw_export_line(e, NULL, 0, metric->unit, value);
    }
}


/* OpenMetrics names a counter's family without its suffix. */

static void
ngx_http_llmgw_export_family(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_metric_t *metric)
{
    u_char             *p;
    const char         *suffix;
    static const char  *kinds[][2] = { { "gauge", "gauge" },
        { "counter", "counter" }, { "histogram", "histogram" },
        { "counter", "unknown" } };

    p = ngx_http_llmgw_page_room(&e->page, NGX_HTTP_LLMGW_EXPORT_FAMILY);
    if (p == NULL) {
        return;
    }

    suffix = (metric->kind == NGX_HTTP_LLMGW_COUNTER && !e->open_metrics)
             ? "_total" : "";

    p = ngx_snprintf(p, NGX_HTTP_LLMGW_EXPORT_FAMILY,
                     "# HELP llmgw_%s%s %s\n# TYPE llmgw_%s%s %s\n",
                     metric->name, suffix, metric->help,
                     metric->name, suffix,
                     kinds[metric->kind][e->open_metrics]);

    ngx_http_llmgw_page_wrote(&e->page, p);
}


/* 1: there are more lines of this metric. */

static ngx_uint_t
ngx_http_llmgw_export_metric(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_metric_t *metric)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_snapshot_t  *snapshot;

    if (!e->begun) {
        e->begun = 1;
        ngx_http_llmgw_export_family(e, metric);
    }

    snapshot = e->page.snapshots->elts;

    for (e->lines = 0; e->lines < NGX_HTTP_LLMGW_EXPORT_LINES; /* void */ ) {

        if (e->item) {
            ngx_http_llmgw_export_value(e, metric, e->item->values[e->metric]);
            e->item = e->item->next;
            continue;
        }

        if (e->snapshot == e->page.snapshots->nelts) {
            return 0;
        }

        i = e->snapshot++;
        e->source = &ngx_http_llmgw_sources[snapshot[i].source];
        e->name = &e->names[i];

        if (metric->which == NGX_HTTP_LLMGW_SHARED
            || ngx_http_llmgw_scopes[e->scope]->is_shared)
        {
            e->name = &e->kept[i][e->source->first]->label;
        }

        e->item = e->kept[i][e->scope];
        ngx_http_llmgw_export_head(e, metric->kind == NGX_HTTP_LLMGW_COUNTER
                                      ? "_total" : "");
    }

    return 1;
}


static ngx_uint_t
ngx_http_llmgw_export_next(ngx_http_llmgw_page_t *page)
{
    ngx_http_llmgw_export_t       *e;
    const ngx_http_llmgw_scope_t  *scope;

    e = (ngx_http_llmgw_export_t *) page;

    if (e->scope == NGX_HTTP_LLMGW_NSCOPES) {
        if (e->open_metrics) {
            ngx_http_llmgw_page_write(page, "# EOF\n", 6);
        }

        return 0;
    }

    scope = ngx_http_llmgw_scopes[e->scope];

    if (e->metric == scope->nmetrics) {
        e->metric = 0;
        e->scope++;

    } else if (!ngx_http_llmgw_export_metric(e, &scope->metrics[e->metric])) {
        e->begun = 0;
        e->snapshot = 0;
        e->metric++;
    }

    return 1;
}


static ngx_uint_t
ngx_http_llmgw_export_accepts(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&r->headers_in.headers, "accept");

    return h && ngx_strstr(h->value.data, "application/openmetrics-text");
}


static ngx_int_t
ngx_http_llmgw_export_handler(ngx_http_request_t *r)
{
    ngx_http_llmgw_export_t  *e;
    static ngx_str_t          text = ngx_string("text/plain; version=0.0.4");
    static ngx_str_t          open = ngx_string(
        "application/openmetrics-text; version=1.0.0; charset=utf-8");

    e = ngx_http_llmgw_page_create(r, sizeof(ngx_http_llmgw_export_t));
    if (e == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    e->page.next = ngx_http_llmgw_export_next;
    e->open_metrics = ngx_http_llmgw_export_accepts(r);

    if (ngx_http_llmgw_export_keep(e) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llmgw_page_send(&e->page, e->open_metrics ? &open : &text);
}


const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_export_kind = {
    .handler = ngx_http_llmgw_export_handler,
    .params = ngx_http_llmgw_page_params,
};

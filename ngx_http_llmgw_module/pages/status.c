
/*
 * llmgw_status: what all workers know of the pools and of keys, as JSON.
 *
 * The page is made of pieces: each pool with all that is its own, then one by
 * one the items of its lists, and the same of each zone of keys.
 * docs/status.md has the schema.
 */

#include "pages/facts/snapshot.h"
#include "pages/page.h"
#include "pages/pages.h"
#include "proto/json/write.h"


#define NGX_HTTP_LLMGW_STATUS_SCHEMA  1


typedef struct {
    ngx_http_llmgw_page_t         page;
    ngx_uint_t                    source;       /* pools, then keys */
    ngx_uint_t                    snapshot;     /* its index */
    ngx_uint_t                    scope;        /* the pool itself, or one of
                                                   its lists */
    ngx_uint_t                    i;            /* the next item */
    unsigned                      begun:1;
    unsigned                      in_item:1;    /* an item's object is open */
    unsigned                      comma:1;      /* wanted before the next
                                                   value */
} ngx_http_llmgw_status_t;


static ngx_uint_t ngx_http_llmgw_status_source(ngx_http_llmgw_status_t *s);


/* Space for a value of len bytes, after its key if it has one. */

static char *
ngx_http_llmgw_status_room(ngx_http_llmgw_status_t *s, const char *key,
    size_t len)
{
    char    *p;
    size_t   key_len;

    key_len = key ? ngx_strlen(key) : 0;

    p = (char *) ngx_http_llmgw_page_room(&s->page,
                                          key_len + len + sizeof(",\"\":"));
    if (p == NULL) {
        return NULL;
    }

    if (s->comma) {
        *p++ = ',';
    }

    s->comma = 1;

    if (key) {
        *p++ = '"';
        p = llmgw_json_raw(p, key, key_len);
        *p++ = '"';
        *p++ = ':';
    }

    return p;
}


static void
ngx_http_llmgw_status_wrote(ngx_http_llmgw_status_t *s, char *end)
{
    ngx_http_llmgw_page_wrote(&s->page, (u_char *) end);
}


static void
ngx_http_llmgw_status_raw(ngx_http_llmgw_status_t *s, const char *key,
    const char *json)
{
    char    *p;
    size_t   len;

    len = ngx_strlen(json);

    p = ngx_http_llmgw_status_room(s, key, len);
    if (p) {
        ngx_http_llmgw_status_wrote(s, llmgw_json_raw(p, json, len));
    }
}


static void
ngx_http_llmgw_status_number(ngx_http_llmgw_status_t *s, const char *key,
    uint64_t n)
{
    char  *p;

    p = ngx_http_llmgw_status_room(s, key, LLMGW_JSON_NUMBER_BYTES);
    if (p) {
        ngx_http_llmgw_status_wrote(s, llmgw_json_number(p, (int64_t) n));
    }
}


static void
ngx_http_llmgw_status_real(ngx_http_llmgw_status_t *s, const char *key,
    double real)
{
    char  *p;

    p = ngx_http_llmgw_status_room(s, key, LLMGW_JSON_REAL_BYTES);
    if (p) {
        ngx_http_llmgw_status_wrote(s, llmgw_json_real(p, real));
    }
}


static void
ngx_http_llmgw_status_text(ngx_http_llmgw_status_t *s, const char *key,
    const char *text, size_t len)
{
    char  *p;

    p = ngx_http_llmgw_status_room(s, key, llmgw_json_string_bytes(text, len));
    if (p) {
        ngx_http_llmgw_status_wrote(s, llmgw_json_string(p, text, len));
    }
}


static void
ngx_http_llmgw_status_open(ngx_http_llmgw_writer_t *w, const char *key,
    const char *bracket)
{
    ngx_http_llmgw_status_t  *s = (ngx_http_llmgw_status_t *) w;

    ngx_http_llmgw_status_raw(s, key, bracket);
    s->comma = 0;
}


static void
ngx_http_llmgw_status_close(ngx_http_llmgw_writer_t *w, const char *bracket)
{
    ngx_http_llmgw_status_t  *s = (ngx_http_llmgw_status_t *) w;

    ngx_http_llmgw_page_write(&s->page, bracket, ngx_strlen(bracket));
    s->comma = 1;
}


/* {"connect": 3, ...} */

static void
ngx_http_llmgw_status_counts(ngx_http_llmgw_status_t *s, const char *key,
    const ngx_http_llmgw_metric_t *metric, const uint64_t *counts)
{
    ngx_uint_t                     i, is_shown;
    const char                    *word;
    ngx_http_llmgw_writer_t       *w;
    const ngx_http_llmgw_label_t  *label;

    w = &s->page.writer;
    label = &metric->labels[0];

    OBJECT(key);

    for (i = 0; i < label->n; i++) {
        word = label->word(i);
        is_shown = (counts[i] || i == 0
                    || metric->which != NGX_HTTP_LLMGW_RARE);

        if (word && is_shown) {
            ngx_http_llmgw_status_number(s, word, counts[i]);
        }
    }

    END_OBJECT;
}


/* [{"code": "OK", "reason": "", "count": 3}, ...]: counts above 0 */

static void
ngx_http_llmgw_status_pairs(ngx_http_llmgw_status_t *s, const char *key,
    const ngx_http_llmgw_metric_t *metric, const uint64_t *counts)
{
    ngx_uint_t                     i, k;
    ngx_http_llmgw_writer_t       *w;
    const ngx_http_llmgw_label_t  *first, *second;

    w = &s->page.writer;
    first = &metric->labels[0];
    second = &metric->labels[1];

    LIST(key);

    for (i = 0; i < first->n; i++) {
        for (k = 0; k < second->n; k++, counts++) {

            if (*counts == 0) {
                continue;
            }

            OBJECT(NULL);
            STATUS(first->name, TEXT(first->word(i)));
            STATUS(second->name, TEXT(second->word(k)));
            STATUS("count", NUMBER(*counts));
            END_OBJECT;
        }
    }

    END_LIST;
}


/* There is one count more than bounds: for values above the last. */

static void
ngx_http_llmgw_status_times(ngx_http_llmgw_status_t *s, const char *key,
    const ngx_http_llmgw_metric_t *metric, const ngx_http_llmgw_histogram_t *h)
{
    uint64_t                  total;
    ngx_uint_t                i;
    const ngx_msec_t         *bounds;
    ngx_http_llmgw_writer_t  *w;

    w = &s->page.writer;
    bounds = ngx_http_llmgw_metrics_bounds(metric->bounds);
    total = 0;

    OBJECT(key);
    LIST("bounds");

    for (i = 0; bounds[i]; i++) {
        ngx_http_llmgw_status_real(s, NULL, bounds[i] / 1000.0);
    }

    END_LIST;
    LIST("counts");

    for (i = 0; i == 0 || bounds[i - 1]; i++) {
        ngx_http_llmgw_status_number(s, NULL, h->counts[i]);
        total += h->counts[i];
    }

    END_LIST;
    STATUS("sum", REAL(h->sum_ms / 1000.0));
    STATUS("count", NUMBER(total));
    END_OBJECT;
}


static ngx_uint_t
ngx_http_llmgw_status_is_absent(const ngx_http_llmgw_value_t *value)
{
    switch (value->type) {

    case NGX_HTTP_LLMGW_IS_NUMBER:
        return value->of.n == NGX_HTTP_LLMGW_ABSENT;

    case NGX_HTTP_LLMGW_IS_REAL:
        return isnan(value->of.real);

    case NGX_HTTP_LLMGW_IS_TEXT:
        return value->text == NULL;

    default:
        return 0;
    }
}


static void
ngx_http_llmgw_status_put(ngx_http_llmgw_writer_t *w, const char *key,
    const ngx_http_llmgw_metric_t *metric, ngx_http_llmgw_value_t value)
{
    ngx_http_llmgw_status_t  *s = (ngx_http_llmgw_status_t *) w;

    if (ngx_http_llmgw_status_is_absent(&value)) {
        ngx_http_llmgw_status_raw(s, key, "null");
        return;
    }

    switch (value.type) {

    case NGX_HTTP_LLMGW_IS_NUMBER:
        ngx_http_llmgw_status_number(s, key, value.of.n);
        return;

    case NGX_HTTP_LLMGW_IS_FLAG:
        ngx_http_llmgw_status_raw(s, key, value.of.n ? "true" : "false");
        return;

    case NGX_HTTP_LLMGW_IS_REAL:
        ngx_http_llmgw_status_real(s, key, value.of.real);
        return;

    case NGX_HTTP_LLMGW_IS_TEXT:
    case NGX_HTTP_LLMGW_IS_WORD:
        ngx_http_llmgw_status_text(s, key, value.text, ngx_strlen(value.text));
        return;

    case NGX_HTTP_LLMGW_IS_STRING:
        ngx_http_llmgw_status_text(s, key, value.text, value.of.n);
        return;

    case NGX_HTTP_LLMGW_IS_TIMES:
        ngx_http_llmgw_status_times(s, key, metric, value.of.p);
        return;

    case NGX_HTTP_LLMGW_IS_COUNTS:
        if (metric->labels[1].name) {
            ngx_http_llmgw_status_pairs(s, key, metric, value.of.p);

        } else {
            ngx_http_llmgw_status_counts(s, key, metric, value.of.p);
        }

        return;
    }
}


static ngx_uint_t
ngx_http_llmgw_status_item(ngx_http_llmgw_writer_t *w, const ngx_str_t *label,
    unsigned pages)
{
    ngx_http_llmgw_status_t  *s = (ngx_http_llmgw_status_t *) w;

    if (pages & NGX_HTTP_LLMGW_ON_STATUS) {
        OBJECT(NULL);
        s->in_item = 1;
    }

    return s->in_item;
}


static void
ngx_http_llmgw_status_begin(ngx_http_llmgw_writer_t *w)
{
    ngx_time_t  *now;

    now = ngx_timeofday();

    OBJECT(NULL);
    STATUS("schema", NUMBER(NGX_HTTP_LLMGW_STATUS_SCHEMA));
    STATUS("version", TEXT(LLMGW_VERSION));
    STATUS("worker_pid", NUMBER(ngx_pid));
    STATUS("time_ms", NUMBER((uint64_t) now->sec * 1000 + now->msec));
    LIST(ngx_http_llmgw_sources[0].key);
}


/*
 * { ... "pools": [ { ... "classes": [ ... ], ... "replicas": [ ... ] }, ... ],
 *       "keys": [ { ... "accounts": [ ... ] }, ... ] }
 */

static ngx_uint_t
ngx_http_llmgw_status_next(ngx_http_llmgw_page_t *page)
{
    ngx_uint_t                      is_list;
    ngx_http_llmgw_writer_t        *w;
    ngx_http_llmgw_status_t        *s;
    ngx_http_llmgw_snapshot_t      *snapshot;
    const ngx_http_llmgw_scope_t   *scope;
    const ngx_http_llmgw_source_t  *source;

    s = (ngx_http_llmgw_status_t *) page;
    w = &page->writer;

    if (!s->begun) {
        s->begun = 1;
        ngx_http_llmgw_status_begin(w);
        return 1;
    }

    source = &ngx_http_llmgw_sources[s->source];
    snapshot = page->snapshots->elts;
    snapshot += s->snapshot;

    if (s->snapshot == page->snapshots->nelts
        || snapshot->source != s->source)
    {
        return ngx_http_llmgw_status_source(s);
    }

    if (snapshot->is_rest) {
        s->snapshot++;
        return 1;
    }

    scope = ngx_http_llmgw_scopes[s->scope];
    is_list = (s->scope != source->first);
    s->in_item = 0;

    if (scope->walk(w, snapshot, s->i++) != NGX_DONE) {
        if (s->in_item && is_list) {
            END_OBJECT;
        }

        return 1;
    }

    if (is_list) {
        END_LIST;
    }

    s->i = 0;

    if (++s->scope < source->end) {
        LIST(ngx_http_llmgw_scopes[s->scope]->key);
        return 1;
    }

    END_OBJECT;
    s->scope = source->first;
    s->snapshot++;

    return 1;
}


/* There are no more snapshots of this source.  0: nor of another source. */

static ngx_uint_t
ngx_http_llmgw_status_source(ngx_http_llmgw_status_t *s)
{
    ngx_http_llmgw_writer_t  *w;

    w = &s->page.writer;

    END_LIST;

    if (++s->source < NGX_HTTP_LLMGW_NSOURCES) {
        s->scope = ngx_http_llmgw_sources[s->source].first;
        LIST(ngx_http_llmgw_sources[s->source].key);
        return 1;
    }

    END_OBJECT;
    ngx_http_llmgw_page_write(&s->page, "\n", 1);

    return 0;
}


static ngx_int_t
ngx_http_llmgw_status_handler(ngx_http_request_t *r)
{
    ngx_http_llmgw_page_t  *page;
    static ngx_str_t        type = ngx_string("application/json");

    page = ngx_http_llmgw_page_create(r, sizeof(ngx_http_llmgw_status_t));
    if (page == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    page->writer.item = ngx_http_llmgw_status_item;
    page->writer.put = ngx_http_llmgw_status_put;
    page->writer.open = ngx_http_llmgw_status_open;
    page->writer.close = ngx_http_llmgw_status_close;
    page->writer.is_status = 1;
    page->next = ngx_http_llmgw_status_next;

    return ngx_http_llmgw_page_send(page, &type);
}


const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_status_kind = {
    .handler = ngx_http_llmgw_status_handler,
    .params = ngx_http_llmgw_page_params,
};

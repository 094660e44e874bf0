
/* The values of llmgw_metrics, item by item, before any is written. */

#include "pages/export_inner.h"


/* Escapes the value of a label; most need none.  Empty: no memory. */

static ngx_str_t
ngx_http_llmgw_export_escape(ngx_http_llmgw_export_t *e, ngx_str_t text)
{
    u_char  c, *p;
    size_t  i, n;

    n = 0;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];
        n += (c == '"' || c == '\\' || c == '\n');
    }

    if (n == 0) {
        return text;
    }

    p = ngx_pnalloc(e->page.request->pool, text.len + n);
    n = text.len;
    text.len = 0;

    if (p == NULL) {
        e->page.failed = 1;
        return text;
    }

    for (i = 0; i < n; i++) {
        c = text.data[i];

        if (c == '"' || c == '\\' || c == '\n') {
            p[text.len++] = '\\';
        }

        p[text.len++] = (c == '\n') ? 'n' : c;
    }

    text.data = p;

    return text;
}


/* Makes a further label of the item, ended by a NUL; NULL: no memory. */

static u_char *
ngx_http_llmgw_export_label(ngx_http_llmgw_export_t *e, const char *name,
    const char *text)
{
    u_char     *p;
    ngx_str_t   value;

    value.data = (u_char *) text;
    value.len = ngx_strlen(text);
    value = ngx_http_llmgw_export_escape(e, value);

    p = ngx_pnalloc(e->page.request->pool,
                    value.len + NGX_HTTP_LLMGW_EXPORT_WORDS);
    if (p == NULL) {
        e->page.failed = 1;
        return NULL;
    }

    (void) ngx_sprintf(p, ",%s=\"%V\"%Z", name, &value);

    return p;
}


static ngx_uint_t
ngx_http_llmgw_export_item(ngx_http_llmgw_writer_t *w, const ngx_str_t *label,
    unsigned pages)
{
    size_t                     bytes;
    ngx_http_llmgw_item_t     *item;
    ngx_http_llmgw_export_t   *e = (ngx_http_llmgw_export_t *) w;

    if (!(pages & NGX_HTTP_LLMGW_ON_METRICS)) {
        return 0;
    }

    bytes = ngx_http_llmgw_scopes[e->scope]->nmetrics * sizeof(uint64_t);

    item = ngx_palloc(e->page.request->pool,
                      sizeof(ngx_http_llmgw_item_t) + bytes);
    if (item == NULL) {
        e->page.failed = 1;
        return 0;
    }

    item->next = NULL;
    item->label = ngx_http_llmgw_export_escape(e, *label);
    ngx_memset(item->values, 0xff, bytes);      /* all values are absent */

    *e->last = item;
    e->last = &item->next;
    e->item = item;

    return 1;
}


/*
 * The name of the i-th pool, as labels; a zone's name, or one without a model,
 * is unchanged.
 */

static ngx_int_t
ngx_http_llmgw_export_name(ngx_http_llmgw_export_t *e, ngx_uint_t i,
    const ngx_http_llmgw_snapshot_t *snapshot)
{
    u_char     *p;
    ngx_str_t  *name, model;

    name = &e->kept[i][ngx_http_llmgw_sources[snapshot->source].first]->label;
    e->names[i] = *name;

    if (!snapshot->has_model) {
        return NGX_OK;
    }

    model = ngx_http_llmgw_export_escape(e, snapshot->model);

    p = ngx_pnalloc(e->page.request->pool,
                    name->len + model.len + sizeof("\",model=\""));
    if (p == NULL) {
        return NGX_ERROR;
    }

    e->names[i].data = p;
    e->names[i].len = ngx_sprintf(p, "%V\",model=\"%V", name, &model) - p;

    return NGX_OK;
}


/* A number with a fraction is kept in thousandths. */

static void
ngx_http_llmgw_export_put(ngx_http_llmgw_writer_t *w, const char *key,
    const ngx_http_llmgw_metric_t *metric, ngx_http_llmgw_value_t value)
{
    uint64_t                 *kept;
    ngx_http_llmgw_export_t  *e = (ngx_http_llmgw_export_t *) w;

    kept = &e->item->values[metric - ngx_http_llmgw_scopes[e->scope]->metrics];

    switch (value.type) {

    case NGX_HTTP_LLMGW_IS_REAL:
        *kept = isnan(value.of.real) ? NGX_HTTP_LLMGW_ABSENT
                                 : (uint64_t) (value.of.real * 1000 + 0.5);
        return;

    case NGX_HTTP_LLMGW_IS_TEXT:
        *kept = (uintptr_t) ngx_http_llmgw_export_label(e,
                                metric->labels[0].name, value.text);
        return;

    case NGX_HTTP_LLMGW_IS_COUNTS:
    case NGX_HTTP_LLMGW_IS_TIMES:
        *kept = (uintptr_t) value.of.p;
        return;

    default:
        *kept = value.of.n;
        return;
    }
}


ngx_int_t
ngx_http_llmgw_export_keep(ngx_http_llmgw_export_t *e)
{
    size_t                          longest;
    ngx_uint_t                      i, k;
    ngx_http_llmgw_snapshot_t      *snapshot;
    const ngx_http_llmgw_source_t  *source;

    longest = 0;
    snapshot = e->page.snapshots->elts;

    e->page.writer.item = ngx_http_llmgw_export_item;
    e->page.writer.put = ngx_http_llmgw_export_put;

    e->kept = ngx_pcalloc(e->page.request->pool, (e->page.snapshots->nelts + 1)
                                             * sizeof(ngx_http_llmgw_items_t));
    e->names = ngx_palloc(e->page.request->pool,
                          (e->page.snapshots->nelts + 1) * sizeof(ngx_str_t));

    if (e->kept == NULL || e->names == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < e->page.snapshots->nelts; i++) {
        source = &ngx_http_llmgw_sources[snapshot[i].source];

        for (e->scope = source->first; e->scope < source->end; e->scope++) {

            e->last = &e->kept[i][e->scope];
            k = 0;

            while (ngx_http_llmgw_scopes[e->scope]->walk(&e->page.writer,
                                                         &snapshot[i], k)
                   != NGX_DONE)
            {
                k++;
            }
        }

        if (e->page.failed
            || ngx_http_llmgw_export_name(e, i, &snapshot[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }

        longest = ngx_max(longest, e->names[i].len);
    }

    e->scope = 0;
    e->item = NULL;
    e->head = ngx_pnalloc(e->page.request->pool,
                          NGX_HTTP_LLMGW_EXPORT_HEAD + longest);

    return e->head ? NGX_OK : NGX_ERROR;
}

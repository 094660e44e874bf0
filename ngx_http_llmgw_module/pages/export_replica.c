
/* What llmgw_metrics writes of replicas: a line for each, a piece at a time. */

#include "pages/export_inner.h"


static void ngx_http_llmgw_export_replica_lines(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_facts_t *facts, ngx_uint_t column, ngx_uint_t last);
static u_char *ngx_http_llmgw_export_number(u_char *p, uint64_t n);


/*
 * A slot whose replica is no longer listed has counters, but no gauges.  The
 * counters of slots that were given up are summed under replica "".
 */

ngx_uint_t
ngx_http_llmgw_export_replicas(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t  is_counter, last, n;

    is_counter = (family->type[0] == 'c');
    n = is_counter ? facts->nrows : facts->nlisted;
    last = ngx_min(n, e->item + NGX_HTTP_LLMGW_EXPORT_LINES);

    e->head.len = ngx_snprintf(e->head.data, e->line,
                               "llmgw_%s%s{upstream=\"%V\",replica=\"",
                               family->name, is_counter ? "_total" : "",
                               &facts->name)
                  - e->head.data;

    ngx_http_llmgw_export_replica_lines(e, facts, family->n, last);

    e->item = last;

    if (last < n) {
        return 1;
    }

    if (is_counter) {
        ngx_http_llmgw_export_line(e, "%V\"} %uL\n", &e->head,
                                   facts->base[family->n]);
    }

    return 0;
}


/* What a replica does not report has no line. */

ngx_uint_t
ngx_http_llmgw_export_reported(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t              i, last;
    ngx_http_llmgw_fact_t  *row;

    last = ngx_min(facts->nlisted, e->item + NGX_HTTP_LLMGW_EXPORT_LINES);

    for (i = e->item; i < last; i++) {
        row = &facts->rows[i];

        if (row->reported[family->n] >= 0) {
            ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\","
                                       "replica=\"%V\"} %.3f\n", family->name,
                                       &facts->name, &row->id,
                                       row->reported[family->n]);
        }
    }

    e->item = last;

    return last < facts->nlisted;
}


ngx_uint_t
ngx_http_llmgw_export_info(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_uint_t              i, last;
    ngx_http_llmgw_fact_t  *row;

    last = ngx_min(facts->nlisted, e->item + NGX_HTTP_LLMGW_EXPORT_LINES);

    for (i = e->item; i < last; i++) {
        row = &facts->rows[i];

        if (row->model.len) {
            ngx_http_llmgw_export_line(e, "llmgw_%s{upstream=\"%V\","
                                       "replica=\"%V\",model=\"%V\"} 1\n",
                                       family->name, &facts->name, &row->id,
                                       &row->model);
        }
    }

    e->item = last;

    return last < facts->nlisted;
}


static void
ngx_http_llmgw_export_replica_lines(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_facts_t *facts, ngx_uint_t column, ngx_uint_t last)
{
    u_char                 *p;
    ngx_uint_t              i;
    ngx_http_llmgw_fact_t  *row;

    for (i = e->item; i < last; i++) {
        row = &facts->rows[i];

        p = ngx_http_llmgw_page_room(&e->page, e->head.len + row->id.len
                                     + sizeof("\"} \n") + NGX_INT64_LEN);
        if (p == NULL) {
            return;
        }

        p = ngx_cpymem(p, e->head.data, e->head.len);
        p = ngx_cpymem(p, row->id.data, row->id.len);
        p = ngx_cpymem(p, "\"} ", 3);
        p = ngx_http_llmgw_export_number(p, row->values[column]);
        *p++ = '\n';

        ngx_http_llmgw_page_wrote(&e->page, p);
    }
}


static u_char *
ngx_http_llmgw_export_number(u_char *p, uint64_t n)
{
    u_char  digits[NGX_INT64_LEN], *d;

    d = digits + sizeof(digits);

    do {
        *--d = '0' + n % 10;
        n /= 10;
    } while (n);

    return ngx_cpymem(p, d, digits + sizeof(digits) - d);
}


/*
 * What llmgw_metrics writes of classes and tenants: one of them a piece.
 */

#include "pages/export_inner.h"


static ngx_uint_t ngx_http_llmgw_export_group(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts,
    ngx_http_llmgw_group_t *group);


/* Writes counts above 0, and that of those served. */

ngx_uint_t
ngx_http_llmgw_export_group_requests(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    uint32_t                i;
    ngx_http_llmgw_group_t  group;

    if (!ngx_http_llmgw_export_group(e, family, facts, &group)) {
        return 0;
    }

    for (i = 0; group.has_any && i < LLMGW_GROUP_NREASONS; i++) {
        if (group.counts.requests[i] || i == LLMGW_OUTCOME_SERVED) {
            ngx_http_llmgw_export_line(e,
                                       "llmgw_%s_total{%V,reason=\"%s\"} %uL\n",
                                       family->name, &e->head,
                                       llmgw_groups_reason(i),
                                       group.counts.requests[i]);
        }
    }

    return 1;
}


ngx_uint_t
ngx_http_llmgw_export_group_goodput(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_group_t  group;

    if (!ngx_http_llmgw_export_group(e, family, facts, &group)) {
        return 0;
    }

    if (group.has_any) {
        ngx_http_llmgw_export_line(e, "llmgw_%s_total{%V} %uL\n", family->name,
                                   &e->head, group.counts.goodput);
    }

    return 1;
}


ngx_uint_t
ngx_http_llmgw_export_group_first_token(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_group_t  group;

    if (!ngx_http_llmgw_export_group(e, family, facts, &group)) {
        return 0;
    }

    if (group.has_any) {
        ngx_http_llmgw_export_times(e, family->name, group.counts.first_token,
            ngx_http_llmgw_metrics_bounds(
                NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds),
            group.counts.first_token_ms);
    }

    return 1;
}


ngx_uint_t
ngx_http_llmgw_export_group_in_flight(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_group_t  group;

    if (!ngx_http_llmgw_export_group(e, family, facts, &group)) {
        return 0;
    }

    if (group.has_any) {
        ngx_http_llmgw_export_line(e, "llmgw_%s{%V} %uD\n", family->name,
                                   &e->head, group.in_flight);
    }

    return 1;
}


/* The next one, and its labels in e->head.  0: there are no more. */

static ngx_uint_t
ngx_http_llmgw_export_group(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts,
    ngx_http_llmgw_group_t *group)
{
    u_char             *p;
    static const char  *labels[] = { "class", "tenant" };

    if (ngx_http_llmgw_snapshot_group(facts->snapshot, family->n, e->item,
                                      group)
        != NGX_OK)
    {
        return 0;
    }

    e->item++;

    p = ngx_snprintf(e->head.data, e->line, "upstream=\"%V\",%s=\"",
                     &facts->name, labels[family->n]);
    p = ngx_http_llmgw_facts_escape(p, &group->name);
    *p++ = '"';
    e->head.len = p - e->head.data;

    return 1;
}

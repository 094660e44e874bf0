
/*
 * What llmgw_metrics writes of groups with standbys: one of them a piece.  The
 * name of a group needs no escape.
 */

#include "pages/export_inner.h"


static ngx_http_llmgw_standby_t *ngx_http_llmgw_export_standby(
    ngx_http_llmgw_export_t *e, ngx_http_llmgw_facts_t *facts);


ngx_uint_t
ngx_http_llmgw_export_standby_takeovers(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_standby_t  *standby;

    standby = ngx_http_llmgw_export_standby(e, facts);

    if (standby) {
        ngx_http_llmgw_export_line(e, "llmgw_%s_total{%V} %uL\n",
                                   family->name, &e->head,
                                   standby->takeover.count);
    }

    return standby != NULL;
}


/* A group that was never taken over has no line. */

ngx_uint_t
ngx_http_llmgw_export_standby_seconds(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    const llmgw_takeover_t    *takeover;
    ngx_http_llmgw_standby_t  *standby;

    standby = ngx_http_llmgw_export_standby(e, facts);

    if (standby == NULL) {
        return 0;
    }

    takeover = &standby->takeover;

    if (takeover->count) {
        ngx_http_llmgw_export_line(e, "llmgw_%s{%V,phase=\"active\"} %.3f\n",
                                   family->name, &e->head,
                                   takeover->active_ms / 1000.0);
    }

    if (takeover->has_first_token) {
        ngx_http_llmgw_export_line(e,
                                   "llmgw_%s{%V,phase=\"first_token\"} %.3f\n",
                                   family->name, &e->head,
                                   takeover->first_token_ms / 1000.0);
    }

    return 1;
}


ngx_uint_t
ngx_http_llmgw_export_standby_standbys(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_standby_t  *standby;

    standby = ngx_http_llmgw_export_standby(e, facts);

    if (standby) {
        ngx_http_llmgw_export_line(e, "llmgw_%s{%V} %uD\n", family->name,
                                   &e->head, standby->group.nstandbys
                                             + standby->group.nwaking);
    }

    return standby != NULL;
}


ngx_uint_t
ngx_http_llmgw_export_standby_conflict(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_standby_t  *standby;

    standby = ngx_http_llmgw_export_standby(e, facts);

    if (standby) {
        ngx_http_llmgw_export_line(e, "llmgw_%s{%V} %ud\n", family->name,
                                   &e->head, standby->group.is_conflict);
    }

    return standby != NULL;
}


/* The next one, and its labels in e->head; NULL: there are no more. */

static ngx_http_llmgw_standby_t *
ngx_http_llmgw_export_standby(ngx_http_llmgw_export_t *e,
    ngx_http_llmgw_facts_t *facts)
{
    ngx_http_llmgw_standby_t  *standby;

    if (e->item == facts->snapshot->nstandbys) {
        return NULL;
    }

    standby = &facts->snapshot->standbys[e->item++];

    e->head.len = ngx_snprintf(e->head.data, e->line,
                               "upstream=\"%V\",group=\"%s\"", &facts->name,
                               standby->name)
                  - e->head.data;

    return standby;
}


/*
 * What the files that write llmgw_metrics share: its families and the page as
 * far as it is written.
 */

#ifndef _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_


#include "pages/export.h"
#include "pages/page.h"


#define NGX_HTTP_LLMGW_EXPORT_LINES  64     /* lines in a piece, about */


typedef struct ngx_http_llmgw_export_s  ngx_http_llmgw_export_t;
typedef struct ngx_http_llmgw_family_s  ngx_http_llmgw_family_t;

/* Writes one pool's series.  1: there are more, from e->item on. */
typedef ngx_uint_t (*ngx_http_llmgw_family_pt)(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);


struct ngx_http_llmgw_family_s {
    const char                   *name;
    const char                   *type;
    const char                   *help;
    ngx_http_llmgw_family_pt      write;

    /* what the writer needs, each its own part */
    size_t                        offset;       /* in the counters */
    ngx_uint_t                    n;            /* values; an index; a column */
    const char                   *label;
    const char                 *(*value)(ngx_uint_t i);
    ngx_http_llmgw_gauge_pool_pt  get;
};


struct ngx_http_llmgw_export_s {
    ngx_http_llmgw_page_t         page;
    ngx_array_t                  *snapshots;
    ngx_http_llmgw_facts_t       *facts;        /* of each snapshot */
    ngx_uint_t                    family;
    ngx_uint_t                    pool;
    ngx_uint_t                    item;
    ngx_str_t                     head;         /* labels of the item */
    size_t                        line;         /* bytes of the longest one */
    unsigned                      headed:1;     /* HELP and TYPE are written */
    unsigned                      open_metrics:1;
};


void ngx_http_llmgw_export_line(ngx_http_llmgw_export_t *e,
    const char *format, ...);

/* A histogram, its counts by bounds; e->head has the labels. */
void ngx_http_llmgw_export_times(ngx_http_llmgw_export_t *e, const char *name,
    const uint64_t *counts, const ngx_msec_t *bounds, uint64_t sum_ms);

/* export_group.c */

ngx_uint_t ngx_http_llmgw_export_group_requests(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_group_goodput(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_group_first_token(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_group_in_flight(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);

/* export_standby.c */

ngx_uint_t ngx_http_llmgw_export_standby_takeovers(
    ngx_http_llmgw_export_t *e, const ngx_http_llmgw_family_t *family,
    ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_standby_seconds(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_standby_standbys(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_standby_conflict(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);

/* export_replica.c */

ngx_uint_t ngx_http_llmgw_export_replicas(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_reported(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);
ngx_uint_t ngx_http_llmgw_export_info(ngx_http_llmgw_export_t *e,
    const ngx_http_llmgw_family_t *family, ngx_http_llmgw_facts_t *facts);


#endif /* _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_ */

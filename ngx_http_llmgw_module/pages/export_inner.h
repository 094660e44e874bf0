
/*
 * llmgw_metrics: values are first kept (export_keep.c) and then written
 * (export.c).
 */

#ifndef _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_


#include "pages/facts/snapshot.h"
#include "pages/page.h"


#define NGX_HTTP_LLMGW_EXPORT_HEAD    128   /* without the pool's name */
#define NGX_HTTP_LLMGW_EXPORT_WORDS   128   /* labels whose values are words */


typedef struct ngx_http_llmgw_item_s  ngx_http_llmgw_item_t;

struct ngx_http_llmgw_item_s {
    ngx_http_llmgw_item_t        *next;
    ngx_str_t                     label;        /* escaped */
    uint64_t                      values[];     /* of the scope's metrics:
                                                   numbers, or pointers */
};


/* The items of a pool or of a zone, by scope. */
typedef ngx_http_llmgw_item_t  *ngx_http_llmgw_items_t[NGX_HTTP_LLMGW_NSCOPES];


typedef struct {
    ngx_http_llmgw_page_t         page;
    ngx_http_llmgw_items_t       *kept;         /* by snapshot */
    ngx_str_t                    *names;        /* by snapshot; with the model,
                                                   if that is a label */
    ngx_http_llmgw_item_t       **last;         /* the link to the item that is
                                                   kept next */

    /* the place at which values are kept or written */
    ngx_uint_t                    scope;
    ngx_uint_t                    metric;
    ngx_uint_t                    snapshot;
    ngx_http_llmgw_item_t        *item;
    const ngx_http_llmgw_source_t *source;      /* the item's */

    ngx_str_t                    *name;         /* of the pool or the zone, and
                                                   of its model */
    u_char                       *head;         /* a line's beginning, up to the
                                                   value of the item's label */
    size_t                        head_len;
    ngx_uint_t                    lines;        /* in this piece */
    unsigned                      begun:1;      /* the family has lines */
    unsigned                      open_metrics:1;
} ngx_http_llmgw_export_t;


/* Keeps all values of all snapshots.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_export_keep(ngx_http_llmgw_export_t *e);


#endif /* _NGX_HTTP_LLMGW_EXPORT_INNER_H_INCLUDED_ */

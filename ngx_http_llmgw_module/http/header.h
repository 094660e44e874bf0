
/*
 * Header fields of nginx's requests and upstreams, as fronts, native passes
 * and pages look them up and add to them.
 */

#ifndef _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/outcome.h"


/* 1: the field has that name; case does not matter. */
ngx_uint_t ngx_http_llmgw_header_is(ngx_table_elt_t *h, const char *name);

/* The first field of that name; case does not matter.  NULL: none. */
ngx_table_elt_t *ngx_http_llmgw_header_find(ngx_list_t *list,
    const char *name);

/*
 * Adds a field; NULL: no memory.  The name and the value's bytes are not
 * copied: they must live as long as the request.
 */
ngx_table_elt_t *ngx_http_llmgw_header_add(ngx_list_t *list, const char *name,
    const ngx_str_t *value);

/* Adds a number; NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_header_number(ngx_http_request_t *r,
    ngx_list_t *list, const char *name, ngx_int_t number);

/* Adds llmgw-reason, if the outcome has one; NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_header_reason(ngx_list_t *list,
    const llmgw_end_t *end);

/* 1: it is application/grpc, or begins so.  content_type may be NULL. */
ngx_uint_t ngx_http_llmgw_header_is_grpc(ngx_table_elt_t *content_type);


#endif /* _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_ */

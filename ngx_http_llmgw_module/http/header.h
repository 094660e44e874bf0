
/*
 * Header fields of nginx's requests and upstreams: what fronts, native passes
 * and pages ask of them.
 */

#ifndef _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


ngx_uint_t ngx_http_llmgw_header_is(ngx_table_elt_t *h, const char *name);

/* The first field of that name, whatever its case; NULL: none. */
ngx_table_elt_t *ngx_http_llmgw_header_find(ngx_list_t *list,
    const char *name);

/*
 * One field more; NULL: no memory.  Name and value live as long as the request.
 */
ngx_table_elt_t *ngx_http_llmgw_header_add(ngx_list_t *list, const char *name,
    const ngx_str_t *value);

/* What a content-type says; NULL: there is none. */
ngx_uint_t ngx_http_llmgw_header_is_grpc(ngx_table_elt_t *content_type);


#endif /* _NGX_HTTP_LLMGW_HEADER_H_INCLUDED_ */


/*
 * Who may see a page.
 *
 * Pages show names, addresses and load of replicas, and what keys use.  They
 * are for clients of this host and, where llmgw_keys is in force, for keys with
 * "admin", unless the location says access=any.  The content handler checks it,
 * after nginx's access phase: "allow", "deny", "auth_basic" and "satisfy" have
 * let the request pass by then, so they restrict further and never open.
 */

#ifndef _NGX_HTTP_LLMGW_ACCESS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ACCESS_H_INCLUDED_


#include "pages/pages.h"


typedef enum {
    NGX_HTTP_LLMGW_ACCESS_LOCAL = 0,
    NGX_HTTP_LLMGW_ACCESS_ANY
} ngx_http_llmgw_access_t;


extern const ngx_conf_enum_t  ngx_http_llmgw_access_words[];

/* The row for access= in a page's table of parameters. */
#define ngx_http_llmgw_access_param                                           \
    ngx_http_llmgw_param(ngx_http_llmgw_page_conf_t, "access", WORD, access,  \
        .words = ngx_http_llmgw_access_words, .right = "local or any")


/*
 * NGX_OK, or the status of the refusal: 401, whose header is set, asks for a
 * key.  The first 403 of a location in this worker is logged, with what opens
 * the page.
 */
ngx_int_t ngx_http_llmgw_access(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf);


#endif /* _NGX_HTTP_LLMGW_ACCESS_H_INCLUDED_ */

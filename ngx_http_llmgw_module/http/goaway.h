
/*
 * Sends GOAWAY on HTTP/2 connections that nginx forgot when its worker ended.
 */

#ifndef _NGX_HTTP_LLMGW_HTTP_GOAWAY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HTTP_GOAWAY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Adds a handler that looks at each request; NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_goaway_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_LLMGW_HTTP_GOAWAY_H_INCLUDED_ */

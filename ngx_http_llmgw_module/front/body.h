
/*
 * A request's body as one gRPC message.
 */

#ifndef _NGX_HTTP_LLMGW_BODY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_BODY_H_INCLUDED_


#include "conf/conf.h"


ngx_int_t ngx_http_llmgw_body_message(ngx_http_request_t *r,
    ngx_str_t *message);
void ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *message);


#endif /* _NGX_HTTP_LLMGW_BODY_H_INCLUDED_ */

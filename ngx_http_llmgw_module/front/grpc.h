
/*
 * The front that gRPC clients speak to.
 */

#ifndef _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_


#include "conf/conf.h"


/* llmgw_pass: the location's content handler. */
ngx_int_t ngx_http_llmgw_grpc_front_handler(ngx_http_request_t *r);

/* Turns what nginx itself answers in a location of ours into gRPC. */
ngx_int_t ngx_http_llmgw_refusal_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_ */


/*
 * The front that gRPC clients speak to.
 */

#ifndef _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_


#include "conf/conf.h"


ngx_int_t ngx_http_llmgw_front_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_ */

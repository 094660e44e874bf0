
/* The front for gRPC clients. */

#ifndef _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_


#include "conf/conf.h"


/* llmgw_pass */
extern const ngx_http_llmgw_protocol_t  ngx_http_llmgw_grpc_protocol;


#endif /* _NGX_HTTP_LLMGW_GRPC_FRONT_H_INCLUDED_ */


/* The usage log, as the files of this room see it that read or write it. */

#ifndef _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_


#include "keys/keys.h"


/* The gateway's name in its records. */
void ngx_http_llmgw_usage_gateway(const ngx_http_llmgw_keys_t *keys,
    char gateway[LLMGW_USAGE_GATEWAY_BYTES]);

/* Whether a file could be written or made.  NGX_ERROR: errno has the reason. */
ngx_int_t ngx_http_llmgw_usage_may_make(const ngx_str_t *path);


#endif /* _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_ */

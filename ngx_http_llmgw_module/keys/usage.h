
/* The usage log, for those files of this room that read or write it. */

#ifndef _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_


#include "keys/keys.h"


/* Contents of this gateway's records. */
void ngx_http_llmgw_usage_gateway(const ngx_http_llmgw_keys_t *keys,
    char gateway[LLMGW_USAGE_GATEWAY_BYTES]);

/* Whether a file could be written or made.  NGX_ERROR: errno says why not. */
ngx_int_t ngx_http_llmgw_usage_may_make(const ngx_str_t *path);


#endif /* _NGX_HTTP_LLMGW_USAGE_H_INCLUDED_ */

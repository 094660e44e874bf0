
/*
 * The default of request_pool_size for servers with an llmgw_pass.
 */

#ifndef _NGX_HTTP_LLMGW_POOL_SIZE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_POOL_SIZE_H_INCLUDED_


#include "conf/conf.h"


/* Raises request_pool_size where the configuration does not set it. */
void ngx_http_llmgw_pool_size_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);


#endif /* _NGX_HTTP_LLMGW_POOL_SIZE_H_INCLUDED_ */

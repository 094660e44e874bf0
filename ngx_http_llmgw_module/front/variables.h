
/*
 * $llmgw_*, and the place of $request_id.
 */

#ifndef _NGX_HTTP_LLMGW_VARIABLES_H_INCLUDED_
#define _NGX_HTTP_LLMGW_VARIABLES_H_INCLUDED_


#include "conf/conf.h"


ngx_int_t ngx_http_llmgw_variables_add(ngx_conf_t *cf);
ngx_int_t ngx_http_llmgw_variables_index(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);


#endif /* _NGX_HTTP_LLMGW_VARIABLES_H_INCLUDED_ */

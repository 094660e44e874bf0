
/*
 * Answers requests that nginx itself refuses in a location of ours, in the
 * protocol of its clients.
 */

#ifndef _NGX_HTTP_LLMGW_REFUSAL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_REFUSAL_H_INCLUDED_


#include "conf/conf.h"


ngx_int_t ngx_http_llmgw_refusal_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_LLMGW_REFUSAL_H_INCLUDED_ */

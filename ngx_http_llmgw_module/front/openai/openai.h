
/* The front for clients of OpenAI's API, over HTTP/1.1 and HTTP/2. */

#ifndef _NGX_HTTP_LLMGW_OPENAI_FRONT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OPENAI_FRONT_H_INCLUDED_


#include "conf/conf.h"


/* llmgw_openai */
char *ngx_http_llmgw_openai_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* llmgw_openai_path */
char *ngx_http_llmgw_openai_path_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

extern const ngx_http_llmgw_protocol_t  ngx_http_llmgw_openai_protocol;


#endif /* _NGX_HTTP_LLMGW_OPENAI_FRONT_H_INCLUDED_ */

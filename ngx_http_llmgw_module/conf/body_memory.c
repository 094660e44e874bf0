
/*
 * llmgw_body_memory: a worker's memory for requests and answers, and the
 * variable that identifies clients, since no client may take all of it.
 */

#include "conf/param.h"


#define NGX_HTTP_LLMGW_BODY_MEMORY  (512 * 1024 * 1024)


/* llmgw_body_memory SIZE [client=VALUE|off]; */

const ngx_http_llmgw_param_t  ngx_http_llmgw_body_memory_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_main_conf_t, NULL, SIZE, body_memory,
        .right = "a size"),
    ngx_http_llmgw_param(ngx_http_llmgw_main_conf_t, "client", VALUE,
        body_client, .words = ngx_http_llmgw_off,
        .right = "off or a string that is not empty"),
    { .kind = 0 }
};


ngx_int_t
ngx_http_llmgw_conf_memory_init(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_str_t  client = ngx_string("$binary_remote_addr");

    ngx_conf_init_size_value(lmcf->body_memory, NGX_HTTP_LLMGW_BODY_MEMORY);

    if (lmcf->body_client == NGX_CONF_UNSET_PTR
        && ngx_http_llmgw_param_read(cf, &ngx_http_llmgw_body_memory_params[1],
                                     &client, &client, lmcf)
           != NGX_CONF_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}

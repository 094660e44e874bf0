
/*
 * llmgw_body_memory: how much a worker holds of requests and answers, and what
 * a client is known by, of which none may have all.
 */

#include "conf/conf.h"


#define NGX_HTTP_LLMGW_BODY_MEMORY  (512 * 1024 * 1024)


static char *ngx_http_llmgw_conf_memory_client(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf, ngx_str_t *value);


/* llmgw_body_memory SIZE [client=VALUE|off]; */

char *
ngx_http_llmgw_conf_memory(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                   *value, client;
    ngx_http_llmgw_main_conf_t  *lmcf = conf;

    if (lmcf->body_memory != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;
    lmcf->body_memory = ngx_parse_size(&value[1]);

    if (lmcf->body_memory == (size_t) NGX_ERROR) {
        return "invalid value";
    }

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (value[2].len <= 7 || ngx_strncmp(value[2].data, "client=", 7) != 0) {
        return ngx_http_llmgw_conf_invalid(cf, &value[2]);
    }

    client.data = value[2].data + 7;
    client.len = value[2].len - 7;

    return ngx_http_llmgw_conf_memory_client(cf, lmcf, &client);
}


static char *
ngx_http_llmgw_conf_memory_client(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf, ngx_str_t *value)
{
    ngx_http_compile_complex_value_t  ccv;

    if (ngx_strcmp(value->data, "off") == 0) {
        lmcf->body_client = NULL;
        return NGX_CONF_OK;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));

    if (ccv.complex_value == NULL
        || ngx_http_compile_complex_value(&ccv) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    lmcf->body_client = ccv.complex_value;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llmgw_conf_memory_init(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_str_t  client = ngx_string("$binary_remote_addr");

    ngx_conf_init_size_value(lmcf->body_memory, NGX_HTTP_LLMGW_BODY_MEMORY);

    if (lmcf->body_client == NGX_CONF_UNSET_PTR) {
        return ngx_http_llmgw_conf_memory_client(cf, lmcf, &client)
               == NGX_CONF_OK ? NGX_OK : NGX_ERROR;
    }

    return NGX_OK;
}


/* llmgw_members PATH [model=NAME]: the segment that an upstream{} reads. */

#include "conf/conf.h"


static ngx_int_t ngx_http_llmgw_members_model(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *param);


char *
ngx_http_llmgw_conf_members(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                     *value;
    ngx_http_upstream_server_t    *us;
    ngx_http_llmgw_srv_conf_t     *lscf;
    ngx_http_upstream_srv_conf_t  *uscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->members.len) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (value[1].len == 0) {
        return "needs a path";
    }

    lscf->members = value[1];

    if (ngx_conf_full_name(cf->cycle, &lscf->members, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (lscf->members.len >= NGX_MAX_PATH) {
        return "has a path that is too long";
    }

    if (cf->args->nelts == 3
        && ngx_http_llmgw_members_model(cf, lscf, &value[2]) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* nginx refuses an upstream{} without servers: add one with no address */

    uscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    us = ngx_array_push(uscf->servers);
    if (us == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(us, sizeof(ngx_http_upstream_server_t));

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llmgw_members_model(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf,
    ngx_str_t *param)
{
    size_t  skip;

    skip = sizeof("model=") - 1;

    if (param->len <= skip || ngx_strncmp(param->data, "model=", skip) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                           param);
        return NGX_ERROR;
    }

    lscf->model.data = param->data + skip;
    lscf->model.len = param->len - skip;

    return NGX_OK;
}

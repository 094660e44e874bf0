
/* llmgw_members PATH [model=NAME]: the segment that an upstream{} reads. */

#include "conf/param.h"


const ngx_http_llmgw_param_t  ngx_http_llmgw_members_params[] = {
    ngx_http_llmgw_srv_param(NULL, STRING, members, .right = "a path"),
    ngx_http_llmgw_srv_param("model", STRING, model, .right = "a name"),
    { .kind = 0 }
};


char *
ngx_http_llmgw_conf_members(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                          *rv;
    ngx_http_upstream_server_t    *us;
    ngx_http_llmgw_srv_conf_t     *lscf = conf;
    ngx_http_upstream_srv_conf_t  *uscf;

    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (ngx_conf_full_name(cf->cycle, &lscf->members, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (lscf->members.len >= NGX_MAX_PATH) {
        return "has a path that is too long";
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

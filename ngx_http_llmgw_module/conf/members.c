
/*
 * llmgw_members PATH [model=NAME | models=N]: the segment that an upstream{}
 * reads, and how many base models it serves.  Each has a pool and a zone, which
 * are made with the configuration: clones of the block's settings, of which the
 * first is the block itself.
 */

#include "conf/param.h"
#include "core/directory.h"


#define NGX_HTTP_LLMGW_MODELS_DEFAULT  16


static ngx_int_t ngx_http_llmgw_conf_clone(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_uint_t i);


const ngx_http_llmgw_param_t  ngx_http_llmgw_members_params[] = {
    ngx_http_llmgw_srv_param(NULL, STRING, members, .right = "a path"),
    ngx_http_llmgw_srv_param("model", STRING, model, .right = "a name"),
    ngx_http_llmgw_srv_param("models", NUMBER, npools, .min = 1,
        .max = LLMGW_DIRECTORY_PLACES),
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

    if (lscf->model.len && lscf->npools) {
        return "has both \"model\", which selects one model, and \"models\": "
               "use one of them";
    }

    if (lscf->npools == 0) {
        lscf->npools = lscf->model.len ? 1 : NGX_HTTP_LLMGW_MODELS_DEFAULT;
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


ngx_int_t
ngx_http_llmgw_conf_pools(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_uint_t                   i;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    lscf->npools = ngx_max(lscf->npools, 1);
    lscf->pools = ngx_pcalloc(cf->pool, lscf->npools * sizeof(void *));

    if (lscf->pools == NULL) {
        return NGX_ERROR;
    }

    lscf->pools[0] = lscf;

    for (i = 1; i < lscf->npools; i++) {
        if (ngx_http_llmgw_conf_clone(cf, lscf, i) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < lscf->npools; i++) {
        if (lmcf->rooms->add_zone(cf, lscf->pools[i]) != NGX_OK
            || lmcf->rooms->add_prefix(cf, lscf->pools[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return lscf->npools > 1 ? lmcf->rooms->add_directory(cf, lscf) : NGX_OK;
}


/*
 * The clone's zone has a colon in its name, which a name in llmgw_zone cannot
 * have.
 */

static ngx_int_t
ngx_http_llmgw_conf_clone(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf,
    ngx_uint_t i)
{
    ngx_str_t                  *name;
    ngx_http_llmgw_srv_conf_t  *clone;

    clone = ngx_palloc(cf->pool, sizeof(ngx_http_llmgw_srv_conf_t));
    if (clone == NULL) {
        return NGX_ERROR;
    }

    *clone = *lscf;
    clone->number = i;

    name = &clone->zone_name;
    name->data = ngx_pnalloc(cf->pool, lscf->zone_name.len + 1
                                       + NGX_INT_T_LEN);
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    name->len = ngx_sprintf(name->data, "%V:%ui", &lscf->zone_name, i)
                - name->data;
    lscf->pools[i] = clone;

    return NGX_OK;
}

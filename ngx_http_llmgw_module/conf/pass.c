
/*
 * The lines that name an upstream{} block: llmgw_pass, and what else refers to
 * one.  The block may be defined further down, so whether it is one of ours is
 * checked when all lines are known.
 */

#include "conf/conf.h"


static ngx_int_t ngx_http_llmgw_conf_is_ours(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, const char *directive, u_char *file,
    ngx_uint_t line);


char *
ngx_http_llmgw_conf_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                   *value;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_llmgw_loc_conf_t   *llcf = conf, **slot;
    ngx_http_llmgw_srv_conf_t   *lscf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    if (llcf->upstream) {
        return "is duplicate";
    }

    value = cf->args->elts;

    llcf->upstream = ngx_http_llmgw_conf_refer(cf, &value[1]);
    if (llcf->upstream == NULL) {
        return NGX_CONF_ERROR;
    }

    llcf->server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    llcf->file = cf->conf_file->file.name.data;
    llcf->line = cf->conf_file->line;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    slot = ngx_array_push(&lmcf->passes);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = llcf;

    lscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_llmgw_module);
    lscf->has_pass = 1;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = lmcf->rooms->pass;

    if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 0;
    }

    /* an inherited error_page would answer gRPC with HTML: inherit none */

    if (clcf->error_pages == NULL) {
        clcf->error_pages = ngx_array_create(cf->pool, 1,
                                             sizeof(ngx_http_err_page_t));
        if (clcf->error_pages == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* The upstream of that name, which may be defined further down. */

ngx_http_upstream_srv_conf_t *
ngx_http_llmgw_conf_refer(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_url_t                      u;
    ngx_http_upstream_srv_conf_t  *us;

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url = *name;
    u.no_resolve = 1;

    us = ngx_http_upstream_add(cf, &u, 0);

    if (us && us->peer.init_upstream == NULL) {
        us->peer.init_upstream = ngx_http_llmgw_conf_not_ours;
    }

    return us;
}


/*
 * Stands in for the balancer of an upstream that has none of ours, so that
 * nginx goes on: ngx_http_llmgw_conf_check() then names what is missing, and
 * the line that refers to it.
 */

ngx_int_t
ngx_http_llmgw_conf_not_ours(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_conf_check(ngx_conf_t *cf, ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_uint_t                   i;
    ngx_http_llmgw_srv_conf_t   *lscf;
    ngx_http_llmgw_loc_conf_t  **llcf;

    llcf = lmcf->passes.elts;

    for (i = 0; i < lmcf->passes.nelts; i++) {
        if (ngx_http_llmgw_conf_is_ours(cf, llcf[i]->upstream, "llmgw_pass",
                                        llcf[i]->file, llcf[i]->line)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    llcf = lmcf->keys.elts;

    for (i = 0; i < lmcf->keys.nelts; i++) {
        if (ngx_http_llmgw_conf_is_ours(cf, llcf[i]->key_queue, "llmgw_key",
                                        llcf[i]->key_file, llcf[i]->key_line)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        lscf = ngx_http_conf_upstream_srv_conf(llcf[i]->key_queue,
                                               ngx_http_llmgw_module);

        if (lscf->queue_size == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llmgw_key\": upstream \"%V\" has "
                          "\"llmgw_queue off\" in %s:%ui", &lscf->name,
                          llcf[i]->key_file, llcf[i]->key_line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/*
 * A block has a zone only if its balancer is still ours at the end of the
 * block: "keepalive" wraps it and so keeps it, another balancer replaces it.
 */

static ngx_int_t
ngx_http_llmgw_conf_is_ours(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    const char *directive, u_char *file, ngx_uint_t line)
{
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = us->srv_conf ? ngx_http_conf_upstream_srv_conf(us,
                                                    ngx_http_llmgw_module)
                        : NULL;

    if (lscf == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\": upstream \"%V\" is not defined in %s:%ui",
                      directive, &us->host, file, line);
        return NGX_ERROR;
    }

    if (!lscf->enabled || lscf->shm_zone == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\": upstream \"%V\" has neither "
                      "\"llmgw_members\" nor \"llmgw_hash\", or another "
                      "balancer, in %s:%ui", directive, &us->host, file,
                      line);
        return NGX_ERROR;
    }

    return NGX_OK;
}

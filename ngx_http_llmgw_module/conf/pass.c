
/*
 * Lines that name an upstream{} block: llmgw_pass and others.  The block may be
 * defined further down, so it is checked when all lines are known whether it is
 * one of ours.
 */

#include "conf/conf.h"


static ngx_int_t ngx_http_llmgw_conf_speaks(ngx_conf_t *cf,
    const ngx_http_llmgw_protocol_t *protocol);
static ngx_int_t ngx_http_llmgw_conf_is_ours(ngx_conf_t *cf,
    const ngx_http_llmgw_reference_t *reference);


char *
ngx_http_llmgw_conf_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                   *value;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_llmgw_loc_conf_t   *llcf = conf, **slot;
    ngx_http_llmgw_main_conf_t  *lmcf;

    if (llcf->protocol) {
        return llcf->protocol == cmd->post
               ? "is duplicate" : "is refused: the location has another front";
    }

    llcf->protocol = cmd->post;

    value = cf->args->elts;

    llcf->upstream = ngx_http_llmgw_conf_refer(cf, &value[1], 0);
    if (llcf->upstream == NULL) {
        return NGX_CONF_ERROR;
    }

    llcf->server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    slot = ngx_array_push(&lmcf->passes);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = llcf;

    if (ngx_http_llmgw_conf_speaks(cf, llcf->protocol) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = llcf->protocol->handler;

    if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 0;
    }

    /* an inherited error_page would answer with HTML, so none is inherited */

    if (clcf->error_pages == NULL) {
        clcf->error_pages = ngx_array_create(cf->pool, 1,
                                             sizeof(ngx_http_err_page_t));
        if (clcf->error_pages == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* Notes that the server{} has a location with that protocol. */

static ngx_int_t
ngx_http_llmgw_conf_speaks(ngx_conf_t *cf,
    const ngx_http_llmgw_protocol_t *protocol)
{
    ngx_http_llmgw_srv_conf_t         *lscf;
    const ngx_http_llmgw_protocol_t  **slot;

    lscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_llmgw_module);

    if (lscf->protocols == NULL) {
        lscf->protocols = ngx_array_create(cf->pool, 2, sizeof(void *));
        if (lscf->protocols == NULL) {
            return NGX_ERROR;
        }
    }

    slot = ngx_array_push(lscf->protocols);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = protocol;

    return NGX_OK;
}


/* The upstream of that name, which may be defined further down. */

ngx_http_upstream_srv_conf_t *
ngx_http_llmgw_conf_refer(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t needs_queue)
{
    ngx_url_t                      u;
    ngx_str_t                     *words;
    ngx_http_llmgw_reference_t    *reference;
    ngx_http_llmgw_main_conf_t    *lmcf;
    ngx_http_upstream_srv_conf_t  *us;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url = *name;
    u.no_resolve = 1;

    us = ngx_http_upstream_add(cf, &u, 0);
    reference = ngx_array_push(&lmcf->references);

    if (us == NULL || reference == NULL) {
        return NULL;
    }

    if (us->peer.init_upstream == NULL) {
        us->peer.init_upstream = ngx_http_llmgw_conf_not_ours;
    }

    words = cf->args->elts;

    reference->upstream = us;
    reference->directive = words[0];
    reference->file = cf->conf_file->file.name.data;
    reference->line = cf->conf_file->line;
    reference->needs_queue = needs_queue;

    return us;
}


/*
 * Replaces the balancer of an upstream that is not of this module, so that
 * nginx continues to read: ngx_http_llmgw_conf_check() then reports the missing
 * directive, and the line that refers to it.
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
    ngx_http_llmgw_reference_t  *reference;

    reference = lmcf->references.elts;

    for (i = 0; i < lmcf->references.nelts; i++) {

        if (ngx_http_llmgw_conf_is_ours(cf, &reference[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        lscf = ngx_http_conf_upstream_srv_conf(reference[i].upstream,
                                               ngx_http_llmgw_module);

        if (reference[i].needs_queue && lscf->queue_size == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"%V\": upstream \"%V\" has \"llmgw_queue off\" "
                          "in %s:%ui", &reference[i].directive, &lscf->name,
                          reference[i].file, reference[i].line);
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
ngx_http_llmgw_conf_is_ours(ngx_conf_t *cf,
    const ngx_http_llmgw_reference_t *reference)
{
    ngx_http_llmgw_srv_conf_t     *lscf;
    ngx_http_upstream_srv_conf_t  *us;

    us = reference->upstream;
    lscf = us->srv_conf ? ngx_http_conf_upstream_srv_conf(us,
                                                    ngx_http_llmgw_module)
                        : NULL;

    if (lscf == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\": upstream \"%V\" is not defined in %s:%ui",
                      &reference->directive, &us->host, reference->file,
                      reference->line);
        return NGX_ERROR;
    }

    if (!lscf->enabled || lscf->shm_zone == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\": upstream \"%V\" has neither "
                      "\"llmgw_members\" nor \"llmgw_hash\", or another "
                      "balancer, in %s:%ui", &reference->directive, &us->host,
                      reference->file, reference->line);
        return NGX_ERROR;
    }

    return NGX_OK;
}

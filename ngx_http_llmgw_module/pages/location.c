
/*
 * Locations that are pages: how each is configured, and what all of them check
 * in a request.
 */

#include "pages/access.h"


/* llmgw_status [access=local|any]; and llmgw_metrics */

const ngx_http_llmgw_param_t  ngx_http_llmgw_page_params[] = {
    ngx_http_llmgw_access_param,
    { .kind = 0 }
};


char *
ngx_http_llmgw_page_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                        *rv;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_llmgw_loc_conf_t   *llcf = conf;
    ngx_http_llmgw_page_conf_t  *page;

    page = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_page_conf_t));
    if (page == NULL) {
        return NGX_CONF_ERROR;
    }

    page->kind = cmd->post;
    page->directive = cmd->name;

    rv = ngx_http_llmgw_params(cf, page->kind->params, 1, page);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (page->kind->init && page->kind->init(cf, page) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler) {
        return "is duplicate, or the location has another handler";
    }

    clcf->handler = ngx_http_llmgw_page_location;
    llcf->page = page;

    return NGX_CONF_OK;
}


ngx_http_llmgw_page_conf_t *
ngx_http_llmgw_page_conf_of(ngx_http_request_t *r)
{
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    return llcf->page;
}


ngx_int_t
ngx_http_llmgw_page_location(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_llmgw_page_conf_t  *conf;

    conf = ngx_http_llmgw_page_conf_of(r);

    rc = ngx_http_llmgw_access(r, conf);
    if (rc != NGX_OK) {
        return rc;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    return conf->kind->handler(r);
}

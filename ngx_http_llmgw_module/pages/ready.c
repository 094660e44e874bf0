
/*
 * llmgw_ready: may a load balancer send requests to this nginx?
 *
 * An upstream is ready when one of its replicas is routable; grpc.health.v1
 * answers the same.  Without a name one ready upstream is enough: gateways
 * share their replicas, so what one lacks all lack, and a balancer that took
 * all gateways out for one model would take out the other models, too.
 */

#include "pages/access.h"
#include "pages/facts/snapshot.h"
#include "pages/page.h"


static ngx_int_t ngx_http_llmgw_ready_init(ngx_conf_t *cf,
    ngx_http_llmgw_page_conf_t *conf);
static ngx_int_t ngx_http_llmgw_ready_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_ready_any(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_ready_is(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);


/* llmgw_ready [UPSTREAM]; */

static const ngx_http_llmgw_param_t  ngx_http_llmgw_ready_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_page_conf_t, NULL, UPSTREAM, upstream,
        .right = "the name of an upstream"),
    { .kind = 0 }
};


const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_ready_kind = {
    .handler = ngx_http_llmgw_ready_handler,
    .params = ngx_http_llmgw_ready_params,
    .init = ngx_http_llmgw_ready_init,
};


/* It answers only yes or no, and balancers are on other hosts. */

static ngx_int_t
ngx_http_llmgw_ready_init(ngx_conf_t *cf, ngx_http_llmgw_page_conf_t *conf)
{
    conf->access = NGX_HTTP_LLMGW_ACCESS_ANY;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_ready_handler(ngx_http_request_t *r)
{
    ngx_uint_t                     is_ready;
    ngx_http_upstream_srv_conf_t  *us;

    us = ngx_http_llmgw_page_conf_of(r)->upstream;
    is_ready = us ? ngx_http_llmgw_ready_is(r, us)
                  : ngx_http_llmgw_ready_any(r);

    if (ngx_http_llmgw_page_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = is_ready ? NGX_HTTP_OK
                                     : NGX_HTTP_SERVICE_UNAVAILABLE;
    r->headers_out.content_length_n = 0;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


static ngx_uint_t
ngx_http_llmgw_ready_any(ngx_http_request_t *r)
{
    ngx_uint_t                       i;
    ngx_http_llmgw_srv_conf_t       *lscf;
    ngx_http_upstream_srv_conf_t   **us;
    ngx_http_upstream_main_conf_t   *umcf;

    umcf = ngx_http_get_module_main_conf(r, ngx_http_upstream_module);
    us = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (us[i]->srv_conf == NULL) {
            continue;       /* the host of a proxy_pass */
        }

        lscf = ngx_http_conf_upstream_srv_conf(us[i], ngx_http_llmgw_module);

        if (lscf->enabled && ngx_http_llmgw_ready_is(r, us[i])) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_llmgw_ready_is(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = ngx_http_llmgw_worker_upstream(r, us);

    return upstream && ngx_http_llmgw_upstream_has_routable(upstream);
}

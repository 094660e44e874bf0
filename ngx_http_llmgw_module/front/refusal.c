
/*
 * Errors that nginx itself answers in our locations (413 body too large, 503
 * of limit_req, 404, ...) would reach the client as HTML.  A header filter
 * replaces each of them by an answer in the protocol of the location.
 */

#include "front/refusal.h"


static ngx_int_t ngx_http_llmgw_refusal_filter(ngx_http_request_t *r);
static const ngx_http_llmgw_protocol_t *ngx_http_llmgw_refusal_protocol(
    ngx_http_request_t *r);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


ngx_int_t
ngx_http_llmgw_refusal_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_llmgw_refusal_filter;

    return NGX_OK;
}


/*
 * nginx's code that sends its page stops at header_only, so the body is sent
 * here.
 */

static ngx_int_t
ngx_http_llmgw_refusal_filter(ngx_http_request_t *r)
{
    ngx_int_t                         rc;
    ngx_chain_t                       body;
    const ngx_http_llmgw_protocol_t  *protocol;

    protocol = ngx_http_llmgw_refusal_protocol(r);

    if (protocol == NULL) {
        return ngx_http_next_header_filter(r);
    }

    body.buf = NULL;
    body.next = NULL;

    if (protocol->refuse(r, &body) == NGX_ERROR) {
        return NGX_ERROR;
    }

    rc = ngx_http_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only || body.buf == NULL) {
        return rc;
    }

    rc = ngx_http_output_filter(r, &body);
    r->header_only = 1;

    return rc;
}


/*
 * The protocol in which to answer; NULL: it is no refusal, or not in one of our
 * locations.
 *
 * The location has it.  For a header that is too large and the like no location
 * was found yet: then the server's protocols are asked whether the request is
 * theirs.
 */

static const ngx_http_llmgw_protocol_t *
ngx_http_llmgw_refusal_protocol(ngx_http_request_t *r)
{
    ngx_uint_t                         i;
    ngx_http_core_srv_conf_t          *cscf;
    ngx_http_llmgw_srv_conf_t         *lscf;
    ngx_http_llmgw_loc_conf_t         *llcf;
    const ngx_http_llmgw_protocol_t  **protocol;

    if (r->headers_out.status < NGX_HTTP_SPECIAL_RESPONSE || r != r->main) {
        return NULL;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (llcf->protocol) {
        return llcf->protocol;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    lscf = ngx_http_get_module_srv_conf(r, ngx_http_llmgw_module);

    if (lscf->protocols == NULL || r->loc_conf != cscf->ctx->loc_conf) {
        return NULL;
    }

    protocol = lscf->protocols->elts;

    for (i = 0; i < lscf->protocols->nelts; i++) {
        if (protocol[i]->owns(r)) {
            return protocol[i];
        }
    }

    return NULL;
}


/*
 * Errors that nginx itself answers in our locations (413 body too large, 503
 * of limit_req, 404, ...) would reach the client as HTML.  A header filter
 * replaces each of them by a gRPC answer.
 */

#include "conf/conf.h"
#include "front/grpc.h"
#include "http/grpc.h"
#include "http/header.h"


static ngx_int_t ngx_http_llmgw_refusal_filter(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_refusal_is_ours(ngx_http_request_t *r);
static void ngx_http_llmgw_refusal_end(ngx_uint_t http, llmgw_end_t *end);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


ngx_int_t
ngx_http_llmgw_refusal_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_llmgw_refusal_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_refusal_filter(ngx_http_request_t *r)
{
    llmgw_end_t                 end;

    if (r->headers_out.status < NGX_HTTP_SPECIAL_RESPONSE || r != r->main
        || !ngx_http_llmgw_refusal_is_ours(r))
    {
        return ngx_http_next_header_filter(r);
    }

    ngx_http_llmgw_refusal_end(r->headers_out.status, &end);

    r->headers_out.status_line.len = 0;
    ngx_http_clear_location(r);
    r->keepalive = r->keepalive && r->http_version >= NGX_HTTP_VERSION_20;

    if (ngx_http_llmgw_grpc_only(r, &end) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


/*
 * 1: the request is in a location with llmgw_pass; or no location was found
 * yet, as with a header that is too large, but it is a gRPC request to a server
 * that has such a location.
 */

static ngx_uint_t
ngx_http_llmgw_refusal_is_ours(ngx_http_request_t *r)
{
    ngx_http_core_srv_conf_t   *cscf;
    ngx_http_llmgw_srv_conf_t  *lscf;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (llcf->upstream) {
        return 1;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    lscf = ngx_http_get_module_srv_conf(r, ngx_http_llmgw_module);

    return lscf->has_pass && r->loc_conf == cscf->ctx->loc_conf
           && ngx_http_llmgw_header_is_grpc(r->headers_in.content_type);
}


/*
 * Sets the outcome for an HTTP status.  Where nginx means something more exact
 * by it than gRPC's general mapping says, there is a case of its own.
 */

static void
ngx_http_llmgw_refusal_end(ngx_uint_t http, llmgw_end_t *end)
{
    static const char  text[] = "refused by the gateway";

    ngx_memzero(end, sizeof(llmgw_end_t));

    end->text = text;
    end->text_len = sizeof(text) - 1;

    switch (http) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        end->outcome = LLMGW_OUTCOME_TOO_LARGE;
        break;

    case NGX_HTTP_BAD_REQUEST:
        end->outcome = LLMGW_OUTCOME_BAD_REQUEST;
        break;

    case NGX_HTTP_REQUEST_TIME_OUT:
        end->outcome = LLMGW_OUTCOME_DEADLINE;
        break;

    case NGX_HTTP_INTERNAL_SERVER_ERROR:
        end->outcome = LLMGW_OUTCOME_INTERNAL;
        break;

    default:
        end->outcome = LLMGW_OUTCOME_REFUSED;
        end->status = http == NGX_HTTP_TOO_MANY_REQUESTS
                      ? LLMGW_GRPC_RESOURCE_EXHAUSTED
                      : llmgw_grpc_status_of_http(http);
        break;
    }
}

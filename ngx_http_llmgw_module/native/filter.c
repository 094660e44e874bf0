
/*
 * What an answer through a native pass tells about its replica.
 *
 * The body filter changes nothing: it notes the time of the first byte, and
 * tells the breaker that a probe has proved its replica.  `free` asks for the
 * verdict, when the answer has ended.  The verdict is read from what nginx has
 * kept of the upstream's headers and trailers:
 *
 *   HTTP   500, 502, 504, no or a broken answer   failure
 *          429, 503: backpressure                 neutral, marked full
 *   gRPC   as for llmgw_pass, except that messages are not decoded, so that
 *          the final one is not known: status OK is a success
 *   the client went, or was too slow              neutral
 */

#include "fleet/replica.h"
#include "http/header.h"
#include "native/native.h"
#include "proto/grpc/session.h"


static ngx_int_t ngx_http_llmgw_native_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_llmgw_native_first_byte(ngx_http_llmgw_native_t *pass);
static llmgw_verdict_t ngx_http_llmgw_native_http(
    ngx_http_llmgw_native_t *pass, ngx_uint_t status);
static ngx_uint_t ngx_http_llmgw_native_is_broken(ngx_http_upstream_t *u);
static llmgw_verdict_t ngx_http_llmgw_native_grpc(
    ngx_http_llmgw_native_t *pass);
static ngx_table_elt_t *ngx_http_llmgw_native_last(ngx_http_upstream_t *u,
    const char *name);
static ngx_uint_t ngx_http_llmgw_native_drains(ngx_http_upstream_t *u);


static ngx_http_output_body_filter_pt  ngx_http_next_body_filter;


ngx_int_t
ngx_http_llmgw_native_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llmgw_native_handler;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_llmgw_native_body_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_native_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_chain_t              *cl;
    ngx_http_llmgw_native_t  *pass;
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (record == NULL || !record->is_native) {
        return ngx_http_next_body_filter(r, in);
    }

    pass = ngx_queue_data(record, ngx_http_llmgw_native_t, record);

    if (pass->state == NGX_HTTP_LLMGW_NATIVE_USES && !pass->has_data) {

        for (cl = in; cl; cl = cl->next) {
            if (ngx_buf_size(cl->buf) > 0) {
                ngx_http_llmgw_native_first_byte(pass);
                break;
            }
        }
    }

    return ngx_http_next_body_filter(r, in);
}


static void
ngx_http_llmgw_native_first_byte(ngx_http_llmgw_native_t *pass)
{
    pass->has_data = 1;

    if (ngx_http_llmgw_record_first_token(&pass->record)) {

        /* it may be the whole answer, so it is in no quantile of tokens */
        ngx_http_llmgw_metrics_time(pass->pool->zone,
                        NGX_HTTP_LLMGW_HISTOGRAM_stock_first_byte_seconds,
                        pass->record.first_token_ms);
    }

    if (pass->upstream->headers_in.status_n < NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_http_llmgw_lease_proves(&pass->lease);
    }
}


llmgw_verdict_t
ngx_http_llmgw_native_verdict(ngx_http_llmgw_native_t *pass, ngx_uint_t state)
{
    ngx_uint_t            status;
    ngx_connection_t     *client;
    ngx_http_upstream_t  *u;

    u = pass->upstream;
    client = pass->request->connection;

    if (client->error || client->timedout) {
        return LLMGW_VERDICT_NEUTRAL;
    }

    /* without bytes of this try the headers may be those of an earlier one */

    status = u->state && u->state->bytes_received ? u->headers_in.status_n
                                                  : 0;
    if (status == 0) {
        /* unless nginx reports FAILED, the gateway's own error came first */
        return (state & NGX_PEER_FAILED) ? LLMGW_VERDICT_FAILURE
                                         : LLMGW_VERDICT_NEUTRAL;
    }

    if (status != NGX_HTTP_OK) {
        return ngx_http_llmgw_native_http(pass, status);
    }

    if ((state & NGX_PEER_FAILED) || ngx_http_llmgw_native_is_broken(u)) {
        return LLMGW_VERDICT_FAILURE;
    }

    return ngx_http_llmgw_header_is_grpc(u->headers_in.content_type)
           ? ngx_http_llmgw_native_grpc(pass) : LLMGW_VERDICT_SUCCESS;
}


ngx_uint_t
ngx_http_llmgw_native_is_ok(ngx_http_llmgw_native_t *pass,
    llmgw_verdict_t verdict)
{
    ngx_table_elt_t      *status;
    ngx_http_upstream_t  *u;

    u = pass->upstream;

    if (verdict != LLMGW_VERDICT_SUCCESS
        || u->headers_in.status_n >= NGX_HTTP_BAD_REQUEST)
    {
        return 0;
    }

    status = ngx_http_llmgw_native_last(u, "grpc-status");

    return status == NULL
           || (status->value.len == 1 && status->value.data[0] == '0');
}


/* A field in the trailers, or else in the headers; NULL: in neither. */

static ngx_table_elt_t *
ngx_http_llmgw_native_last(ngx_http_upstream_t *u, const char *name)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&u->headers_in.trailers, name);

    return h ? h : ngx_http_llmgw_header_find(&u->headers_in.headers, name);
}


static llmgw_verdict_t
ngx_http_llmgw_native_http(ngx_http_llmgw_native_t *pass, ngx_uint_t status)
{
    switch (status) {

    case NGX_HTTP_INTERNAL_SERVER_ERROR:
    case NGX_HTTP_BAD_GATEWAY:
    case NGX_HTTP_GATEWAY_TIME_OUT:
        return LLMGW_VERDICT_FAILURE;

    case NGX_HTTP_TOO_MANY_REQUESTS:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        ngx_http_llmgw_replica_is_full(pass->replica);
        return LLMGW_VERDICT_NEUTRAL;

    default:
        return ngx_http_llmgw_native_is_broken(pass->upstream)
               ? LLMGW_VERDICT_FAILURE : LLMGW_VERDICT_SUCCESS;
    }
}


/*
 * 1: the body stopped before its end.  nginx has taken the connection away only
 * if it was in order and is kept alive.
 */

static ngx_uint_t
ngx_http_llmgw_native_is_broken(ngx_http_upstream_t *u)
{
    ngx_connection_t  *c;
    ngx_event_pipe_t  *p;

    c = u->peer.connection;

    if (c == NULL) {
        return 0;
    }

    if (c->read->timedout || c->read->error || c->write->timedout
        || u->error)
    {
        return 1;
    }

    p = u->pipe;

    if (u->buffering && p) {
        return p->upstream_error
               || (p->upstream_eof && !p->upstream_done && p->length > 0);
    }

    return c->read->eof && u->length > 0;
}


static llmgw_verdict_t
ngx_http_llmgw_native_grpc(ngx_http_llmgw_native_t *pass)
{
    ngx_list_t           *sent;
    ngx_table_elt_t      *h;
    ngx_http_upstream_t  *u;

    u = pass->upstream;
    sent = &pass->request->headers_in.headers;
    h = ngx_http_llmgw_native_last(u, "grpc-status");

    switch (h ? ngx_atoi(h->value.data, h->value.len) : NGX_ERROR) {

    case LLMGW_GRPC_UNAVAILABLE:
        return ngx_http_llmgw_native_drains(u) ? LLMGW_VERDICT_NEUTRAL
                                              : LLMGW_VERDICT_FAILURE;

    case LLMGW_GRPC_RESOURCE_EXHAUSTED:
        if (pass->has_data) {
            return LLMGW_VERDICT_FAILURE;
        }

        ngx_http_llmgw_replica_is_full(pass->replica);
        return LLMGW_VERDICT_NEUTRAL;

    case LLMGW_GRPC_DEADLINE_EXCEEDED:
        /* the client's own deadline was passed on to the replica */
        return ngx_http_llmgw_header_find(sent, "grpc-timeout")
               ? LLMGW_VERDICT_NEUTRAL : LLMGW_VERDICT_FAILURE;

    case NGX_ERROR:
    case LLMGW_GRPC_CANCELLED:
    case LLMGW_GRPC_UNKNOWN:
    case LLMGW_GRPC_ABORTED:
    case LLMGW_GRPC_INTERNAL:
    case LLMGW_GRPC_DATA_LOSS:
        return LLMGW_VERDICT_FAILURE;

    default:
        return LLMGW_VERDICT_SUCCESS;
    }
}


static ngx_uint_t
ngx_http_llmgw_native_drains(ngx_http_upstream_t *u)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_native_last(u, "llmgw-draining");

    return h && h->value.len == 1 && h->value.data[0] == '1';
}

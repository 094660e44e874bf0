
#include "http/grpc.h"
#include "http/header.h"
#include "proto/grpc/prefix.h"


/* a deadline of a year or more is none, so nginx's timers stay in range */
#define NGX_HTTP_LLMGW_MAX_TIMEOUT_MS  (365ull * 24 * 3600 * 1000)


static void ngx_http_llmgw_grpc_prepare(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_grpc_fields(ngx_http_request_t *r,
    ngx_list_t *list, const llmgw_end_t *end);
static ngx_int_t ngx_http_llmgw_grpc_message(ngx_http_request_t *r,
    ngx_list_t *list, const llmgw_end_t *end);


ngx_msec_t
ngx_http_llmgw_grpc_timeout(ngx_http_request_t *r)
{
    uint64_t          ms;
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&r->headers_in.headers, "grpc-timeout");

    ms = h ? llmgw_grpc_timeout_decode((char *) h->value.data, h->value.len)
           : 0;

    return ms < NGX_HTTP_LLMGW_MAX_TIMEOUT_MS ? (ngx_msec_t) ms : 0;
}


ngx_int_t
ngx_http_llmgw_grpc_headers(ngx_http_request_t *r)
{
    ngx_http_llmgw_grpc_prepare(r);

    return ngx_http_send_header(r);
}


ngx_int_t
ngx_http_llmgw_grpc_trailers(ngx_http_request_t *r, const llmgw_end_t *end)
{
    return ngx_http_llmgw_grpc_fields(r, &r->headers_out.trailers, end);
}


ngx_int_t
ngx_http_llmgw_grpc_only(ngx_http_request_t *r, const llmgw_end_t *end)
{
    ngx_http_llmgw_grpc_prepare(r);

    r->header_only = 1;

    if (r->http_version < NGX_HTTP_VERSION_20) {
        r->headers_out.content_length_n = 0;
    }

    return ngx_http_llmgw_grpc_fields(r, &r->headers_out.headers, end);
}


void
ngx_http_llmgw_grpc_answer(ngx_http_request_t *r, const llmgw_end_t *end)
{
    ngx_http_finalize_request(r, ngx_http_llmgw_grpc_send(r, end));
}


ngx_int_t
ngx_http_llmgw_grpc_send(ngx_http_request_t *r, const llmgw_end_t *end)
{
    if (ngx_http_llmgw_grpc_only(r, end) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_send_header(r) == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


void
ngx_http_llmgw_grpc_answer_message(ngx_http_request_t *r, const u_char *data,
    size_t len)
{
    ngx_int_t          rc;
    ngx_buf_t         *b;
    ngx_chain_t        out;
    const llmgw_end_t  served = { .outcome = LLMGW_OUTCOME_SERVED };

    b = ngx_create_temp_buf(r->pool, LLMGW_GRPC_PREFIX_BYTES + len);

    if (b == NULL
        || ngx_http_llmgw_grpc_headers(r) == NGX_ERROR
        || ngx_http_llmgw_grpc_trailers(r, &served) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    b->last = llmgw_grpc_prefix_write(b->last, len);
    b->last = ngx_cpymem(b->last, data, len);
    b->last_buf = 1;

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_output_filter(r, &out);

    ngx_http_finalize_request(r, rc);
}


static void
ngx_http_llmgw_grpc_prepare(ngx_http_request_t *r)
{
    r->headers_out.status = NGX_HTTP_OK;

    ngx_str_set(&r->headers_out.content_type, "application/grpc");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);
}


static ngx_int_t
ngx_http_llmgw_grpc_fields(ngx_http_request_t *r, ngx_list_t *list,
    const llmgw_end_t *end)
{
    int  pushback_ms;

    if (ngx_http_llmgw_header_number(r, list, "grpc-status",
                                     ngx_http_llmgw_outcome_grpc(end))
        != NGX_OK
        || ngx_http_llmgw_header_reason(list, end) != NGX_OK)
    {
        return NGX_ERROR;
    }

    pushback_ms = ngx_http_llmgw_outcome_pushback_ms(end);

    if (pushback_ms
        && ngx_http_llmgw_header_number(r, list, "grpc-retry-pushback-ms",
                                        pushback_ms)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_grpc_message(r, list, end);
}


static ngx_int_t
ngx_http_llmgw_grpc_message(ngx_http_request_t *r, ngx_list_t *list,
    const llmgw_end_t *end)
{
    size_t       len;
    ngx_str_t    value;
    const char  *text;

    text = end->text ? end->text : llmgw_outcome_text(end->outcome);
    len = end->text ? end->text_len : ngx_strlen(text);

    if (len == 0) {
        return NGX_OK;
    }

    value.len = llmgw_grpc_message_encode(NULL, 0, text, len);
    value.data = ngx_pnalloc(r->pool, value.len + 1);

    if (value.data == NULL) {
        return NGX_ERROR;
    }

    (void) llmgw_grpc_message_encode((char *) value.data, value.len + 1, text,
                                     len);

    return ngx_http_llmgw_header_add(list, "grpc-message", &value)
           ? NGX_OK : NGX_ERROR;
}

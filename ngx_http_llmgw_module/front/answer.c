
/*
 * Answers: gRPC headers, trailers, and whole responses without a stream.
 *
 * A gRPC answer is always HTTP 200; what went wrong stands in grpc-status.
 * An answer without a message is one header block ("trailers-only").
 *
 * nginx itself raises statuses in our locations (413 body too large, 503 of
 * limit_req, 404, ...) and would send them as HTML.  A header filter turns
 * each of them into a gRPC answer on its way out.
 */

#include "front/answer.h"
#include "upstream/pool.h"


#define NGX_HTTP_LLMGW_PUSHBACK_MS  1000


static ngx_int_t ngx_http_llmgw_answer_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_answer_fields(ngx_http_request_t *r,
    ngx_list_t *list, llmgw_grpc_status_t status, const char *reason,
    ngx_str_t *message);
static ngx_int_t ngx_http_llmgw_answer_field(ngx_http_request_t *r,
    ngx_list_t *list, const char *name, ngx_str_t *value);
static void ngx_http_llmgw_answer_prepare(ngx_http_request_t *r);
static llmgw_grpc_status_t ngx_http_llmgw_answer_status(ngx_uint_t http);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


ngx_int_t
ngx_http_llmgw_answer_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_llmgw_answer_filter;

    return NGX_OK;
}


/* One header block, and the request is finalized. */

void
ngx_http_llmgw_answer(ngx_http_request_t *r, llmgw_grpc_status_t status,
    const char *reason, ngx_str_t *message)
{
    ngx_int_t  rc;

    ngx_http_llmgw_answer_prepare(r);

    r->header_only = 1;

    if (r->http_version < NGX_HTTP_VERSION_20) {
        r->headers_out.content_length_n = 0;
    }

    rc = ngx_http_llmgw_answer_fields(r, &r->headers_out.headers, status,
                                      reason, message);
    if (rc == NGX_OK) {
        rc = ngx_http_send_header(r);
    }

    ngx_http_finalize_request(r, rc == NGX_ERROR ? NGX_ERROR : NGX_OK);
}


void
ngx_http_llmgw_answer_text(ngx_http_request_t *r, llmgw_grpc_status_t status,
    const char *text)
{
    ngx_str_t               message;
    ngx_http_llmgw_pool_t  *pool;

    message.data = (u_char *) text;
    message.len = ngx_strlen(text);

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "llmgw: answered %s: %V", llmgw_grpc_status_name(status),
                  &message);

    pool = ngx_http_llmgw_worker_pool(r);

    if (pool) {
        ngx_http_llmgw_metrics_request(pool->zone, status, NULL);
    }

    ngx_http_llmgw_answer(r, status, NULL, &message);
}


/* One message and status OK, and the request is finalized. */

void
ngx_http_llmgw_answer_message(ngx_http_request_t *r, u_char *data, size_t len)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    b = ngx_create_temp_buf(r->pool, LLMGW_GRPC_PREFIX_BYTES + len);

    if (b == NULL
        || ngx_http_llmgw_answer_headers(r) == NGX_ERROR
        || ngx_http_llmgw_answer_trailers(r, LLMGW_GRPC_OK, NULL, NULL)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    b->last = ngx_http_llmgw_answer_prefix(b->last, len);
    b->last = ngx_cpymem(b->last, data, len);
    b->last_buf = 1;

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_output_filter(r, &out);

    ngx_http_finalize_request(r, rc);
}


/* An uncompressed message's prefix; where the message begins. */

u_char *
ngx_http_llmgw_answer_prefix(u_char *p, size_t len)
{
    *p++ = 0;
    *p++ = (u_char) (len >> 24);
    *p++ = (u_char) (len >> 16);
    *p++ = (u_char) (len >> 8);
    *p++ = (u_char) len;

    return p;
}


ngx_int_t
ngx_http_llmgw_answer_headers(ngx_http_request_t *r)
{
    ngx_http_llmgw_answer_prepare(r);

    return ngx_http_send_header(r);
}


static void
ngx_http_llmgw_answer_prepare(ngx_http_request_t *r)
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


ngx_int_t
ngx_http_llmgw_answer_trailers(ngx_http_request_t *r,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message)
{
    return ngx_http_llmgw_answer_fields(r, &r->headers_out.trailers, status,
                                        reason, message);
}


static ngx_int_t
ngx_http_llmgw_answer_fields(ngx_http_request_t *r, ngx_list_t *list,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message)
{
    size_t     len;
    ngx_str_t  value;
    u_char     buf[NGX_INT_T_LEN];

    value.data = buf;
    value.len = ngx_sprintf(buf, "%d", (int) status) - buf;

    if (ngx_http_llmgw_answer_field(r, list, "grpc-status", &value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reason) {
        value.data = (u_char *) reason;
        value.len = ngx_strlen(reason);

        if (ngx_http_llmgw_answer_field(r, list, "llmgw-reason", &value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (status == LLMGW_GRPC_RESOURCE_EXHAUSTED && reason) {
        /* we are full: a client that retries shall wait this long (gRFC A6) */
        value.data = buf;
        value.len = ngx_sprintf(buf, "%d", NGX_HTTP_LLMGW_PUSHBACK_MS) - buf;

        if (ngx_http_llmgw_answer_field(r, list, "grpc-retry-pushback-ms",
                                        &value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (message == NULL || message->len == 0) {
        return NGX_OK;
    }

    len = llmgw_grpc_message_encode(NULL, 0, (char *) message->data,
                                    message->len);

    value.data = ngx_pnalloc(r->pool, len + 1);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = llmgw_grpc_message_encode((char *) value.data, len + 1,
                                          (char *) message->data,
                                          message->len);

    return ngx_http_llmgw_answer_field(r, list, "grpc-message", &value);
}


static ngx_int_t
ngx_http_llmgw_answer_field(ngx_http_request_t *r, ngx_list_t *list,
    const char *name, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(list);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->lowcase_key = h->key.data;
    h->value.len = value->len;
    h->value.data = ngx_pstrdup(r->pool, value);

    if (h->value.data == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_answer_filter(ngx_http_request_t *r)
{
    ngx_uint_t                  http;
    ngx_http_llmgw_loc_conf_t  *llcf;
    static ngx_str_t            text = ngx_string("refused by the gateway");

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (llcf->upstream == NULL || r != r->main
        || r->headers_out.status < NGX_HTTP_SPECIAL_RESPONSE)
    {
        return ngx_http_next_header_filter(r);
    }

    http = r->headers_out.status;

    r->headers_out.status_line.len = 0;
    ngx_http_clear_location(r);
    ngx_http_llmgw_answer_prepare(r);

    r->header_only = 1;
    r->keepalive = r->keepalive && r->http_version >= NGX_HTTP_VERSION_20;

    if (r->http_version < NGX_HTTP_VERSION_20) {
        r->headers_out.content_length_n = 0;
    }

    if (ngx_http_llmgw_answer_fields(r, &r->headers_out.headers,
                                     ngx_http_llmgw_answer_status(http), NULL,
                                     &text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


/* Where nginx's own meaning is more exact than the general mapping. */

static llmgw_grpc_status_t
ngx_http_llmgw_answer_status(ngx_uint_t http)
{
    switch (http) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        return LLMGW_GRPC_RESOURCE_EXHAUSTED;

    case NGX_HTTP_BAD_REQUEST:
        return LLMGW_GRPC_INVALID_ARGUMENT;

    case NGX_HTTP_REQUEST_TIME_OUT:
        return LLMGW_GRPC_DEADLINE_EXCEEDED;

    case NGX_HTTP_INTERNAL_SERVER_ERROR:
        return LLMGW_GRPC_INTERNAL;

    default:
        return llmgw_grpc_status_of_http(http);
    }
}


/*
 * Answers as OpenAI's API has them: JSON, with the headers that each answer
 * has.
 */

#include "front/openai/openai_inner.h"
#include "http/header.h"


/* An id from outside goes into logs and headers. */
#define NGX_HTTP_LLMGW_OPENAI_ID_BYTES  128


static ngx_uint_t ngx_http_llmgw_openai_is_id(const ngx_str_t *id);
static ngx_int_t ngx_http_llmgw_openai_ms(ngx_http_request_t *r);
static ngx_buf_t *ngx_http_llmgw_openai_body(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *json);
static ngx_int_t ngx_http_llmgw_openai_error(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, ngx_str_t *json);


static const ngx_str_t  ngx_http_llmgw_openai_json =
    ngx_string("application/json");

/* Each of our answers has this header, which identifies it. */
static const char  ngx_http_llmgw_openai_time[] = "openai-processing-ms";


ngx_str_t
ngx_http_llmgw_openai_id(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&r->headers_in.headers, "x-request-id");

    return h && ngx_http_llmgw_openai_is_id(&h->value)
           ? h->value : ngx_http_llmgw_record_own_id(r);
}


/* 1: visible ASCII, and short enough. */

static ngx_uint_t
ngx_http_llmgw_openai_is_id(const ngx_str_t *id)
{
    size_t  i;

    for (i = 0; i < id->len; i++) {
        if (id->data[i] < 0x21 || id->data[i] > 0x7e) {
            return 0;
        }
    }

    return id->len && id->len <= NGX_HTTP_LLMGW_OPENAI_ID_BYTES;
}


ngx_int_t
ngx_http_llmgw_openai_header(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *type)
{
    u_char     *p;
    ngx_str_t   id;

    r->headers_out.status = status;
    r->headers_out.status_line.len = 0;

    p = ngx_strlchr(type->data, type->data + type->len, ';');

    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = p ? (size_t) (p - type->data)
                                        : type->len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    id = ngx_http_llmgw_openai_id(r);

    if (id.len
        && ngx_http_llmgw_header_add(&r->headers_out.headers, "x-request-id",
                                     &id)
           == NULL)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_ms(r);
}


/* Milliseconds since the request's first byte. */

static ngx_int_t
ngx_http_llmgw_openai_ms(ngx_http_request_t *r)
{
    u_char           *p;
    ngx_str_t         value;
    ngx_time_t       *now;
    ngx_msec_int_t    ms;

    p = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    now = ngx_timeofday();
    ms = (ngx_msec_int_t) ((now->sec - r->start_sec) * 1000
                           + (now->msec - r->start_msec));

    value.data = p;
    value.len = ngx_sprintf(p, "%M", (ngx_msec_t) ngx_max(ms, 0)) - p;

    return ngx_http_llmgw_header_add(&r->headers_out.headers,
                                     ngx_http_llmgw_openai_time, &value)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llmgw_openai_answer(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json)
{
    ngx_int_t    rc;
    ngx_chain_t  out;

    out.next = NULL;
    out.buf = ngx_http_llmgw_openai_body(r, status, json);

    if (out.buf == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, &out);
}


/* Sets the header, and returns the body; NULL: no memory. */

static ngx_buf_t *
ngx_http_llmgw_openai_body(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json)
{
    ngx_buf_t  *b;

    b = ngx_calloc_buf(r->pool);

    if (b == NULL
        || ngx_http_llmgw_openai_header(r, status,
                                        &ngx_http_llmgw_openai_json)
           != NGX_OK)
    {
        return NULL;
    }

    r->headers_out.content_length_n = json->len;

    b->pos = json->data;
    b->last = json->data + json->len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    return b;
}


ngx_int_t
ngx_http_llmgw_openai_refuse(ngx_http_request_t *r,
    const llmgw_openai_error_t *error)
{
    ngx_str_t  json;

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "llmgw: answered %ud: %s", error->status, error->message);

    if (ngx_http_llmgw_openai_error(r, error, &json) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_answer(r, error->status, &json);
}


ngx_int_t
ngx_http_llmgw_openai_end(ngx_http_request_t *r, const llmgw_end_t *end)
{
    ngx_str_t             json;
    llmgw_openai_error_t  error;

    ngx_http_llmgw_openai_error_of_end(&error, end);

    if (ngx_http_llmgw_openai_error_json(r, &error, &json) != NGX_OK
        || ngx_http_llmgw_openai_error_headers(r, error.status,
                                               end->pushback_ms)
           != NGX_OK
        || ngx_http_llmgw_header_reason(&r->headers_out.headers, end)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_answer(r, error.status, &json);
}


/* Adds an error's own headers, and writes its text. */

static ngx_int_t
ngx_http_llmgw_openai_error(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, ngx_str_t *json)
{
    if (ngx_http_llmgw_openai_error_json(r, error, json) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_error_headers(r, error->status, 0);
}


ngx_int_t
ngx_http_llmgw_openai_refused(ngx_http_request_t *r, ngx_chain_t *body)
{
    ngx_str_t             json;
    ngx_uint_t            status;
    llmgw_openai_error_t  error;

    status = r->headers_out.status;

    if (status < NGX_HTTP_BAD_REQUEST
        || ngx_http_llmgw_header_find(&r->headers_out.headers,
                                      ngx_http_llmgw_openai_time))
    {
        return NGX_OK;
    }

    llmgw_openai_error_of_status(&error, status);

    if (ngx_http_llmgw_openai_error(r, &error, &json) != NGX_OK) {
        return NGX_ERROR;
    }

    body->buf = ngx_http_llmgw_openai_body(r, status, &json);

    return body->buf ? NGX_OK : NGX_ERROR;
}

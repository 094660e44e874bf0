
/*
 * Errors as OpenAI's API has them: an HTTP status, a JSON object, and headers
 * that tell its clients whether to try again (core/openai/error.h).  A path
 * that ends in /messages is Anthropic's, whose object has another form:
 *
 *     {"error": {"message", "type", "param", "code"}}
 *     {"type": "error", "error": {"type", "message"}, "request_id"}
 */

#include "front/openai/openai_inner.h"
#include "http/header.h"
#include "http/outcome.h"
#include "proto/json/check.h"
#include "proto/json/write.h"
#include "proto/utf8.h"


/* The most bytes of an error as JSON. */
#define NGX_HTTP_LLMGW_OPENAI_ERROR_BYTES                                     \
    (6 * sizeof(llmgw_openai_error_t) + 256)

/* Anthropic's form of an error, without its message and the request's id. */
#define NGX_HTTP_LLMGW_OPENAI_ANTHROPIC_BYTES  128

/* The default time after which clients try again. */
#define NGX_HTTP_LLMGW_OPENAI_SOON_MS     1000

/* An engine's error text that is not JSON is cut to this. */
#define NGX_HTTP_LLMGW_OPENAI_SAID_BYTES  200


/* The status of an outcome; 0: that of http/outcome.c. */

static const ngx_uint_t  ngx_http_llmgw_openai_outcomes[LLMGW_NOUTCOMES] = {
    [LLMGW_OUTCOME_QUEUE_FULL] = 429,
    [LLMGW_OUTCOME_QUEUE_TIMEOUT] = 429
};


static ngx_uint_t ngx_http_llmgw_openai_is_anthropic(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_openai_anthropic(ngx_http_request_t *r,
    ngx_uint_t status, const void *message, size_t len, ngx_str_t *json);
static ngx_int_t ngx_http_llmgw_openai_error_wrap(ngx_pool_t *pool,
    const ngx_str_t *said, ngx_str_t *json);
static ngx_int_t ngx_http_llmgw_openai_error_quote(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *said, ngx_str_t *json);
static ngx_uint_t ngx_http_llmgw_openai_error_is_text(const ngx_str_t *said);


void
ngx_http_llmgw_openai_error_of_end(llmgw_openai_error_t *error,
    const llmgw_end_t *end)
{
    size_t                        len;
    ngx_uint_t                    status;
    const char                   *reason, *text;
    const llmgw_openai_status_t  *row;

    status = ngx_http_llmgw_openai_outcomes[end->outcome];

    if (status == 0) {
        status = ngx_http_llmgw_outcome_http(end);
    }

    row = llmgw_openai_status(status);
    reason = llmgw_outcome_reason(end->outcome);
    text = end->text ? end->text : llmgw_outcome_text(end->outcome);
    len = end->text ? end->text_len : ngx_strlen(text);

    if (len == 0 || !llmgw_utf8_is_valid((u_char *) text, len)) {
        text = row->message;
        len = ngx_strlen(text);
    }

    llmgw_openai_error_set(error, status, reason ? reason : row->code, NULL,
                           "%.*s", (int) len, text);
}


static ngx_uint_t
ngx_http_llmgw_openai_is_anthropic(ngx_http_request_t *r)
{
    return llmgw_anthropic_has((char *) r->uri.data, r->uri.len);
}


ngx_int_t
ngx_http_llmgw_openai_error_json(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, ngx_str_t *json)
{
    char    message[LLMGW_JSON_STRING_BYTES(sizeof(error->message))], *p;
    size_t  len;

    p = llmgw_json_string(message, error->message, ngx_strlen(error->message));
    len = p - message;

    if (ngx_http_llmgw_openai_is_anthropic(r)) {
        return ngx_http_llmgw_openai_anthropic(r, error->status, message, len,
                                               json);
    }

    p = ngx_pnalloc(r->pool, NGX_HTTP_LLMGW_OPENAI_ERROR_BYTES);
    if (p == NULL) {
        return NGX_ERROR;
    }

    json->data = (u_char *) p;

    p = llmgw_json_literal(p, "{\"error\":{\"message\":");
    p = llmgw_json_raw(p, message, len);
    p = llmgw_json_literal(p, ",\"type\":");
    p = llmgw_json_string(p, error->type, ngx_strlen(error->type));
    p = llmgw_json_literal(p, ",\"param\":");

    p = error->param[0] ? llmgw_json_string(p, error->param,
                                            ngx_strlen(error->param))
                        : llmgw_json_literal(p, "null");

    p = llmgw_json_literal(p, ",\"code\":");

    p = error->code ? llmgw_json_string(p, error->code,
                                        ngx_strlen(error->code))
                    : llmgw_json_literal(p, "null");

    p = llmgw_json_literal(p, "}}");
    json->len = (u_char *) p - json->data;

    return NGX_OK;
}


/* message: a JSON string, with its quotes. */

static ngx_int_t
ngx_http_llmgw_openai_anthropic(ngx_http_request_t *r, ngx_uint_t status,
    const void *message, size_t len, ngx_str_t *json)
{
    char        *p;
    ngx_str_t    id;
    const char  *type;

    id = ngx_http_llmgw_openai_id(r);
    type = llmgw_anthropic_type(status);

    p = ngx_pnalloc(r->pool, NGX_HTTP_LLMGW_OPENAI_ANTHROPIC_BYTES + len
                             + LLMGW_JSON_STRING_BYTES(id.len));
    if (p == NULL) {
        return NGX_ERROR;
    }

    json->data = (u_char *) p;

    p = llmgw_json_literal(p, "{\"type\":\"error\",\"error\":{\"type\":");
    p = llmgw_json_string(p, type, ngx_strlen(type));
    p = llmgw_json_literal(p, ",\"message\":");
    p = llmgw_json_raw(p, message, len);
    p = llmgw_json_literal(p, "},\"request_id\":");
    p = llmgw_json_string(p, id.data, id.len);
    p = llmgw_json_literal(p, "}");

    json->len = (u_char *) p - json->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_openai_error_shape(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *said, ngx_str_t *json)
{
    ngx_uint_t    is_anthropic;
    llmgw_json_t  root, error, message;

    if (llmgw_json_check(said->data, said->len, &root) != 0) {
        return ngx_http_llmgw_openai_error_quote(r, status, said, json);
    }

    is_anthropic = ngx_http_llmgw_openai_is_anthropic(r);
    error = llmgw_json_member(root, "error");
    message = llmgw_json_member(error.kind == LLMGW_JSON_OBJECT ? error : root,
                                "message");

    if (error.kind != LLMGW_JSON_END
        && (!is_anthropic
            || llmgw_json_is(llmgw_json_member(root, "type"), "error")))
    {
        *json = *said;
        return NGX_OK;
    }

    if (is_anthropic && message.kind == LLMGW_JSON_STRING) {
        return ngx_http_llmgw_openai_anthropic(r, status, message.begin,
                                               llmgw_json_bytes(message), json);
    }

    if (!is_anthropic && message.kind != LLMGW_JSON_END) {
        return ngx_http_llmgw_openai_error_wrap(r->pool, said, json);
    }

    return ngx_http_llmgw_openai_error_quote(r, status, said, json);
}


static ngx_int_t
ngx_http_llmgw_openai_error_wrap(ngx_pool_t *pool, const ngx_str_t *said,
    ngx_str_t *json)
{
    u_char  *p;

    p = ngx_pnalloc(pool, said->len + sizeof("{\"error\":}") - 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    json->data = p;
    json->len = ngx_sprintf(p, "{\"error\":%V}", said) - p;

    return NGX_OK;
}


/* Makes the message of another server's words, if there are any. */

static ngx_int_t
ngx_http_llmgw_openai_error_quote(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *said, ngx_str_t *json)
{
    size_t                len;
    llmgw_openai_error_t  error;

    llmgw_openai_error_of_status(&error, status);

    if (ngx_http_llmgw_openai_error_is_text(said)) {
        len = ngx_min(said->len, NGX_HTTP_LLMGW_OPENAI_SAID_BYTES);
        llmgw_openai_error_set(&error, status, error.code, NULL, "%.*s",
                               (int) len, (char *) said->data);
    }

    return ngx_http_llmgw_openai_error_json(r, &error, json);
}


/* 1: the text can be shown as a line: it is ASCII, and not a page. */

static ngx_uint_t
ngx_http_llmgw_openai_error_is_text(const ngx_str_t *said)
{
    size_t  i;

    for (i = 0; i < said->len; i++) {
        if (said->data[i] > 0x7e || said->data[i] == '<'
            || (said->data[i] < 0x20 && said->data[i] != '\n'))
        {
            return 0;
        }
    }

    return said->len != 0;
}


ngx_int_t
ngx_http_llmgw_openai_error_headers(ngx_http_request_t *r, ngx_uint_t status,
    int pushback_ms)
{
    ngx_list_t              *list;
    llmgw_openai_retry_t     retry;
    static const ngx_str_t   no = ngx_string("false");

    list = &r->headers_out.headers;
    retry = pushback_ms == 0 ? llmgw_openai_status(status)->retry
            : pushback_ms > 0 ? LLMGW_OPENAI_RETRY_SOON
                              : LLMGW_OPENAI_RETRY_NEVER;

    pushback_ms = pushback_ms ? pushback_ms : NGX_HTTP_LLMGW_OPENAI_SOON_MS;

    if (retry == LLMGW_OPENAI_RETRY_SOON
        && (ngx_http_llmgw_header_number(r, list, "retry-after",
                                         (pushback_ms + 999) / 1000)
            != NGX_OK
            || ngx_http_llmgw_header_number(r, list, "retry-after-ms",
                                            pushback_ms)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (retry == LLMGW_OPENAI_RETRY_NEVER
        && ngx_http_llmgw_header_add(list, "x-should-retry", &no) == NULL)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}

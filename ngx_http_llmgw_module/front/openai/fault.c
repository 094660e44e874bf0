
#include "core/openai/error.h"
#include "http/header.h"
#include "front/openai/fault.h"
#include "http/outcome.h"
#include "proto/json/check.h"
#include "proto/json/write.h"
#include "proto/utf8.h"


/* How soon clients try again where nothing else is known. */
#define NGX_HTTP_LLMGW_OPENAI_SOON_MS     1000

/* An engine's text that is no JSON is cut to this. */
#define NGX_HTTP_LLMGW_OPENAI_SAID_BYTES  200


typedef enum {
    NGX_HTTP_LLMGW_RETRY_AS_EVER = 0,   /* clients know by the status */
    NGX_HTTP_LLMGW_RETRY_SOON,          /* as it is told */
    NGX_HTTP_LLMGW_RETRY_NEVER          /* the gateway has tried enough */
} ngx_http_llmgw_retry_t;


/* By status: an outcome's code is its reason. */

typedef struct {
    ngx_uint_t               status;
    ngx_http_llmgw_retry_t   retry;
    const char              *type;
    const char              *code;
    const char              *message;
} ngx_http_llmgw_openai_status_t;


static const ngx_http_llmgw_openai_status_t
    ngx_http_llmgw_openai_statuses[] =
{
    { 400, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error", NULL,
      "The request is not valid." },
    { 401, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "invalid_api_key", "Incorrect API key provided." },
    { 403, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "permission_denied", "You are not allowed to do that." },
    { 404, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "not_found", "There is nothing at this URL." },
    { 405, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "method_not_supported", "This URL has no such method." },
    { 408, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "request_timeout", "The request did not arrive in time." },
    { 413, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "request_too_large", "The request is too large." },
    { 415, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "unsupported_media_type", "The request must be application/json." },
    { 429, NGX_HTTP_LLMGW_RETRY_SOON, "rate_limit_error",
      "rate_limit_exceeded", "Too many requests." },
    { 431, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error",
      "header_too_large", "The request's header is too large." },
    { 500, NGX_HTTP_LLMGW_RETRY_AS_EVER, "server_error", NULL,
      "The gateway had an error." },
    { 502, NGX_HTTP_LLMGW_RETRY_NEVER, "server_error", NULL,
      "No replica could serve the request." },
    { 503, NGX_HTTP_LLMGW_RETRY_SOON, "server_error",
      "service_unavailable", "The service is not available." },
    { 504, NGX_HTTP_LLMGW_RETRY_NEVER, "timeout_error",
      "deadline_exceeded", "The request's deadline has passed." },
    { 0, NGX_HTTP_LLMGW_RETRY_AS_EVER, "invalid_request_error", NULL,
      "The request was refused." },
};


/* The status of an outcome; 0: as http/outcome.c says. */

static const ngx_uint_t  ngx_http_llmgw_openai_outcomes[LLMGW_NOUTCOMES] = {
    [LLMGW_OUTCOME_QUEUE_FULL] = 429,
    [LLMGW_OUTCOME_QUEUE_TIMEOUT] = 429
};


static const ngx_http_llmgw_openai_status_t *
    ngx_http_llmgw_openai_error_find(ngx_uint_t status);
static ngx_int_t ngx_http_llmgw_openai_error_wrap(ngx_pool_t *pool,
    const ngx_str_t *said, ngx_str_t *body);
static ngx_int_t ngx_http_llmgw_openai_error_quote(ngx_pool_t *pool,
    ngx_uint_t status, const ngx_str_t *said, ngx_str_t *body);
static ngx_uint_t ngx_http_llmgw_openai_error_is_text(const ngx_str_t *said);


void
ngx_http_llmgw_openai_error_of_end(llmgw_openai_error_t *error,
    const llmgw_end_t *end)
{
    size_t                                 len;
    ngx_uint_t                             status;
    const char                            *reason, *text;
    const ngx_http_llmgw_openai_status_t  *found;

    status = ngx_http_llmgw_openai_outcomes[end->outcome];

    if (status == 0) {
        status = ngx_http_llmgw_outcome_http(end);
    }

    found = ngx_http_llmgw_openai_error_find(status);
    reason = llmgw_outcome_reason(end->outcome);
    text = end->text ? end->text : llmgw_outcome_text(end->outcome);
    len = end->text ? end->text_len : ngx_strlen(text);

    if (len == 0 || !llmgw_utf8_is_valid((u_char *) text, len)) {
        text = found->message;
        len = ngx_strlen(text);
    }

    llmgw_openai_error_set(error, status, found->type,
                           reason ? reason : found->code, NULL, "%.*s",
                           (int) len, text);
}


void
ngx_http_llmgw_openai_error_of_status(llmgw_openai_error_t *error,
    ngx_uint_t status)
{
    const ngx_http_llmgw_openai_status_t  *found;

    found = ngx_http_llmgw_openai_error_find(status);

    llmgw_openai_error_set(error, status, found->type, found->code, NULL,
                           "%s", found->message);
}


/* The last row stands for what has none of its own. */

static const ngx_http_llmgw_openai_status_t *
ngx_http_llmgw_openai_error_find(ngx_uint_t status)
{
    const ngx_http_llmgw_openai_status_t  *row;

    row = ngx_http_llmgw_openai_statuses;

    while (row->status && row->status != status) {
        row++;
    }

    if (row->status == 0 && status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
        return ngx_http_llmgw_openai_error_find(
                   NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return row;
}


u_char *
ngx_http_llmgw_openai_error_write(u_char *out,
    const llmgw_openai_error_t *error)
{
    char  *p = (char *) out;

    p = llmgw_json_literal(p, "{\"error\":{\"message\":");
    p = llmgw_json_string(p, error->message, ngx_strlen(error->message));
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

    return (u_char *) llmgw_json_literal(p, "}}");
}


ngx_int_t
ngx_http_llmgw_openai_error_shape(ngx_pool_t *pool, ngx_uint_t status,
    const ngx_str_t *said, ngx_str_t *body)
{
    llmgw_json_t  root;

    if (llmgw_json_check(said->data, said->len, &root) != 0) {
        return ngx_http_llmgw_openai_error_quote(pool, status, said, body);
    }

    if (llmgw_json_member(root, "error").kind != LLMGW_JSON_END) {
        *body = *said;
        return NGX_OK;
    }

    if (llmgw_json_member(root, "message").kind != LLMGW_JSON_END) {
        return ngx_http_llmgw_openai_error_wrap(pool, said, body);
    }

    return ngx_http_llmgw_openai_error_quote(pool, status, said, body);
}


static ngx_int_t
ngx_http_llmgw_openai_error_wrap(ngx_pool_t *pool, const ngx_str_t *said,
    ngx_str_t *body)
{
    u_char  *p;

    p = ngx_pnalloc(pool, said->len + sizeof("{\"error\":}") - 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = p;
    body->len = ngx_sprintf(p, "{\"error\":%V}", said) - p;

    return NGX_OK;
}


/* Another server's words, or none: they become the message. */

static ngx_int_t
ngx_http_llmgw_openai_error_quote(ngx_pool_t *pool, ngx_uint_t status,
    const ngx_str_t *said, ngx_str_t *body)
{
    u_char                *p;
    size_t                 len;
    llmgw_openai_error_t   error;

    ngx_http_llmgw_openai_error_of_status(&error, status);

    if (ngx_http_llmgw_openai_error_is_text(said)) {
        len = ngx_min(said->len, NGX_HTTP_LLMGW_OPENAI_SAID_BYTES);
        llmgw_openai_error_set(&error, status, error.type, error.code, NULL,
                               "%.*s", (int) len, (char *) said->data);
    }

    p = ngx_pnalloc(pool, NGX_HTTP_LLMGW_OPENAI_ERROR_BYTES);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = p;
    body->len = ngx_http_llmgw_openai_error_write(p, &error) - p;

    return NGX_OK;
}


/* 1: it can be shown as a line: ASCII, and not a page. */

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
    ngx_list_t               *list;
    ngx_http_llmgw_retry_t    retry;
    static const ngx_str_t    no = ngx_string("false");

    list = &r->headers_out.headers;
    retry = pushback_ms == 0 ? ngx_http_llmgw_openai_error_find(status)->retry
            : pushback_ms > 0 ? NGX_HTTP_LLMGW_RETRY_SOON
                              : NGX_HTTP_LLMGW_RETRY_NEVER;

    pushback_ms = pushback_ms ? pushback_ms : NGX_HTTP_LLMGW_OPENAI_SOON_MS;

    if (retry == NGX_HTTP_LLMGW_RETRY_SOON
        && (ngx_http_llmgw_header_number(r, list, "retry-after",
                                         (pushback_ms + 999) / 1000)
            != NGX_OK
            || ngx_http_llmgw_header_number(r, list, "retry-after-ms",
                                            pushback_ms)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (retry == NGX_HTTP_LLMGW_RETRY_NEVER
        && ngx_http_llmgw_header_add(list, "x-should-retry", &no) == NULL)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}

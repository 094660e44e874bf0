
/*
 * How much of a caller's limits remains, in each answer: also in refusals and
 * streams, and in engines' answers to native passes.
 *
 *     OpenAI's form    x-ratelimit-remaining-requests
 *     Anthropic's      anthropic-ratelimit-requests-remaining
 *
 * The figures are those at the admission or refusal of the request.  A limit
 * that the caller does not have has no headers.
 */

#include "core/openai/error.h"
#include "http/header.h"
#include "keys/keys.h"


/* "277777777h46m39s"; "2026-11-28T08:24:29Z" */
#define NGX_HTTP_LLMGW_KEYS_TIME_BYTES  32


/* The headers for one limit, in one of the two forms. */
typedef struct {
    const char                   *limit;
    const char                   *remaining;
    const char                   *reset;
} ngx_http_llmgw_keys_names_t;


static ngx_int_t ngx_http_llmgw_keys_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_keys_headers(ngx_http_request_t *r,
    const ngx_http_llmgw_keys_names_t *names, const llmgw_rate_t *rate,
    ngx_uint_t is_anthropic);
static u_char *ngx_http_llmgw_keys_duration(u_char *p, uint64_t ms);
static u_char *ngx_http_llmgw_keys_moment(u_char *p, uint64_t ms);


/* First index: is_anthropic.  Second: 0 for requests, 1 for tokens. */

static const ngx_http_llmgw_keys_names_t  ngx_http_llmgw_keys_names[2][2] = {
    { { "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests" },
      { "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens" } },
    { { "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset" },
      { "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset" } }
};


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


ngx_int_t
ngx_http_llmgw_keys_headers_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_llmgw_keys_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_keys_header_filter(ngx_http_request_t *r)
{
    ngx_uint_t                          is_anthropic;
    ngx_http_llmgw_caller_t            *caller;
    const ngx_http_llmgw_keys_names_t  *names;

    caller = r == r->main ? ngx_http_llmgw_caller(r) : NULL;

    if (caller == NULL || !caller->has_answer) {
        return ngx_http_next_header_filter(r);
    }

    is_anthropic = llmgw_anthropic_has((char *) r->uri.data, r->uri.len);
    names = ngx_http_llmgw_keys_names[is_anthropic];

    if (ngx_http_llmgw_keys_headers(r, &names[0], &caller->answer.requests,
                                    is_anthropic)
        != NGX_OK
        || ngx_http_llmgw_keys_headers(r, &names[1], &caller->answer.tokens,
                                       is_anthropic)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_llmgw_keys_headers(ngx_http_request_t *r,
    const ngx_http_llmgw_keys_names_t *names, const llmgw_rate_t *rate,
    ngx_uint_t is_anthropic)
{
    ngx_str_t    reset;
    ngx_list_t  *list;

    if (rate->limit == 0) {
        return NGX_OK;
    }

    list = &r->headers_out.headers;

    reset.data = ngx_pnalloc(r->pool, NGX_HTTP_LLMGW_KEYS_TIME_BYTES);
    if (reset.data == NULL) {
        return NGX_ERROR;
    }

    reset.len = (is_anthropic
                 ? ngx_http_llmgw_keys_moment(reset.data, rate->reset_ms)
                 : ngx_http_llmgw_keys_duration(reset.data, rate->reset_ms))
                - reset.data;

    return ngx_http_llmgw_header_number(r, list, names->limit, rate->limit)
           == NGX_OK
           && ngx_http_llmgw_header_number(r, list, names->remaining,
                                           rate->remaining)
              == NGX_OK
           && ngx_http_llmgw_header_add(list, names->reset, &reset)
           ? NGX_OK : NGX_ERROR;
}


/* As OpenAI writes it, whole seconds rounded up: 20ms, 1s, 6m0s, 1h2m3s. */

static u_char *
ngx_http_llmgw_keys_duration(u_char *p, uint64_t ms)
{
    uint64_t  s;

    if (ms > 0 && ms < 1000) {
        return ngx_sprintf(p, "%uLms", ms);
    }

    s = (ms + 999) / 1000;

    if (s >= 3600) {
        p = ngx_sprintf(p, "%uLh", s / 3600);
    }

    if (s >= 60) {
        p = ngx_sprintf(p, "%uLm", s / 60 % 60);
    }

    return ngx_sprintf(p, "%uLs", s % 60);
}


/* The time after that many ms, by RFC 3339, whole seconds rounded up. */

static u_char *
ngx_http_llmgw_keys_moment(u_char *p, uint64_t ms)
{
    ngx_tm_t  tm;

    ngx_gmtime(ngx_time() + (time_t) ((ms + 999) / 1000), &tm);

    return ngx_sprintf(p, "%4d-%02d-%02dT%02d:%02d:%02dZ",
                       tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                       tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec);
}


/*
 * llmgw_dashboard: the page of dashboard/, which asks llmgw_status.
 *
 * The page is compiled into the module, so that their versions match and there
 * is nothing to install.  dashboard/embed.py writes it to dashboard.h in two
 * parts, and the URL of the status goes between them.  The page's content
 * security policy allows one style and one script, by their hashes, and
 * requests to its own server: so markup that got in through a name could do
 * nothing.
 */

#include "http/header.h"
#include "pages/access.h"
#include "dashboard.h"


#define NGX_HTTP_LLMGW_DASHBOARD_URL  "status"


static ngx_int_t ngx_http_llmgw_dashboard_init(ngx_conf_t *cf,
    ngx_http_llmgw_page_conf_t *conf);
static ngx_int_t ngx_http_llmgw_dashboard_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_dashboard_headers(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf);
static ngx_int_t ngx_http_llmgw_dashboard_body(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf);


/* llmgw_dashboard [PATH] [access=local|any]; */

static const ngx_http_llmgw_param_t  ngx_http_llmgw_dashboard_params[] = {
    ngx_http_llmgw_access_param,
    ngx_http_llmgw_param(ngx_http_llmgw_page_conf_t, NULL, STRING, url,
        .may_be_empty = 1, .right = "a path"),
    { .kind = 0 }
};


const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_dashboard_kind = {
    .handler = ngx_http_llmgw_dashboard_handler,
    .params = ngx_http_llmgw_dashboard_params,
    .init = ngx_http_llmgw_dashboard_init,
};


static const struct {
    const char                   *name;
    ngx_str_t                     value;
} ngx_http_llmgw_dashboard_fixed[] = {

    /* the browser asks each time, and mostly gets 304 */
    { "Cache-Control", ngx_string("no-cache") },
    { "Content-Security-Policy", ngx_string(LLMGW_DASHBOARD_POLICY) },
    { "Referrer-Policy", ngx_string("no-referrer") },
    { "X-Content-Type-Options", ngx_string("nosniff") },
    { NULL, ngx_null_string }
};


/* The page contains the URL, and so its ETag depends on the URL, too. */

static ngx_int_t
ngx_http_llmgw_dashboard_init(ngx_conf_t *cf, ngx_http_llmgw_page_conf_t *conf)
{
    size_t      len;
    u_char     *p;
    ngx_str_t   url;

    if (conf->url.data == NULL) {
        ngx_str_set(&conf->url, NGX_HTTP_LLMGW_DASHBOARD_URL);
    }

    url = conf->url;

    /* the policy lets the page ask no other server */

    if (url.len == 0 || ngx_strstr(url.data, "//")) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "llmgw_dashboard: the status \"%V\" is not a path "
                           "on the same server", &url);
        return NGX_ERROR;
    }

    len = url.len + ngx_escape_html(NULL, url.data, url.len);

    p = ngx_pnalloc(cf->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    conf->url.data = p;
    conf->url.len = len;
    ngx_escape_html(p, url.data, url.len);

    p = ngx_pnalloc(cf->pool, sizeof("\"" LLMGW_DASHBOARD_HASH "-00000000\""));
    if (p == NULL) {
        return NGX_ERROR;
    }

    conf->etag.data = p;
    conf->etag.len = ngx_sprintf(p, "\"" LLMGW_DASHBOARD_HASH "-%08xD\"",
                                 ngx_crc32_long(url.data, url.len))
                     - p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_dashboard_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_llmgw_page_conf_t  *conf;

    conf = ngx_http_llmgw_page_conf_of(r);

    if (ngx_http_llmgw_dashboard_headers(r, conf) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_llmgw_dashboard_body(r, conf);
}


static ngx_int_t
ngx_http_llmgw_dashboard_headers(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf)
{
    ngx_uint_t  i;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = sizeof(llmgw_dashboard_head)
                                      + conf->url.len
                                      + sizeof(llmgw_dashboard_tail);

    ngx_str_set(&r->headers_out.content_type, "text/html");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    ngx_str_set(&r->headers_out.charset, "utf-8");

    for (i = 0; ngx_http_llmgw_dashboard_fixed[i].name; i++) {
        if (ngx_http_llmgw_header_add(&r->headers_out.headers,
                       ngx_http_llmgw_dashboard_fixed[i].name,
                       &ngx_http_llmgw_dashboard_fixed[i].value)
            == NULL)
        {
            return NGX_ERROR;
        }
    }

    r->headers_out.etag = ngx_http_llmgw_header_add(&r->headers_out.headers,
                                              "ETag", &conf->etag);

    return r->headers_out.etag ? NGX_OK : NGX_ERROR;
}


/* Sends the page's parts without copying them. */

static ngx_int_t
ngx_http_llmgw_dashboard_body(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf)
{
    ngx_buf_t    *b;
    ngx_uint_t    i;
    ngx_chain_t  *out, **last;
    ngx_str_t     parts[3];

    parts[0].data = (u_char *) llmgw_dashboard_head;
    parts[0].len = sizeof(llmgw_dashboard_head);
    parts[1] = conf->url;
    parts[2].data = (u_char *) llmgw_dashboard_tail;
    parts[2].len = sizeof(llmgw_dashboard_tail);

    last = &out;
    b = NULL;

    for (i = 0; i < 3; i++) {
        b = ngx_calloc_buf(r->pool);
        *last = ngx_alloc_chain_link(r->pool);

        if (b == NULL || *last == NULL) {
            return NGX_ERROR;
        }

        b->pos = parts[i].data;
        b->last = b->pos + parts[i].len;
        b->memory = 1;

        (*last)->buf = b;
        last = &(*last)->next;
    }

    *last = NULL;
    b->last_buf = (r == r->main);
    b->last_in_chain = 1;

    return ngx_http_output_filter(r, out);
}


/*
 * llmgw_dashboard: the page of dashboard/, which asks llmgw_status.
 *
 * The page is compiled into the module, so that their versions match and there
 * is nothing to install.  dashboard/embed.py writes it to dashboard.h in two
 * parts, and the URL of the status goes between them.  The page's content
 * security policy allows one style and one script, by their hashes, and
 * requests to its own server: markup that got in through a name could do
 * nothing.
 */

#include "http/header.h"
#include "pages/page.h"
#include "pages/pages.h"
#include "dashboard.h"


#define NGX_HTTP_LLMGW_DASHBOARD_URL  "status"


static ngx_int_t ngx_http_llmgw_dashboard_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_dashboard_headers(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf);
static ngx_int_t ngx_http_llmgw_dashboard_body(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf);
static ngx_int_t ngx_http_llmgw_dashboard_set(ngx_conf_t *cf,
    ngx_http_llmgw_loc_conf_t *llcf, ngx_str_t *url);


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


char *
ngx_http_llmgw_dashboard_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value, url;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    ngx_str_set(&url, NGX_HTTP_LLMGW_DASHBOARD_URL);

    if (cf->args->nelts > 1) {
        value = cf->args->elts;
        url = value[1];
    }

    /* the policy lets the page ask no other server */

    if (url.len == 0 || ngx_strstr(url.data, "//")) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "llmgw_dashboard: the status \"%V\" is not a path "
                           "on the same server", &url);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llmgw_dashboard_set(cf, llcf, &url) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_llmgw_conf_handler(cf, ngx_http_llmgw_dashboard_handler);
}


/* The page contains the URL, and so its ETag depends on the URL, too. */

static ngx_int_t
ngx_http_llmgw_dashboard_set(ngx_conf_t *cf, ngx_http_llmgw_loc_conf_t *llcf,
    ngx_str_t *url)
{
    size_t   len;
    u_char  *p;

    len = url->len + ngx_escape_html(NULL, url->data, url->len);

    p = ngx_pnalloc(cf->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    llcf->dashboard_url.data = p;
    llcf->dashboard_url.len = len;
    ngx_escape_html(p, url->data, url->len);

    p = ngx_pnalloc(cf->pool, sizeof("\"" LLMGW_DASHBOARD_HASH "-00000000\""));
    if (p == NULL) {
        return NGX_ERROR;
    }

    llcf->dashboard_etag.data = p;
    llcf->dashboard_etag.len =
                   ngx_sprintf(p, "\"" LLMGW_DASHBOARD_HASH "-%08xD\"",
                               ngx_crc32_long(url->data, url->len))
                   - p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_dashboard_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_llmgw_loc_conf_t  *llcf;

    rc = ngx_http_llmgw_page_accept(r);
    if (rc != NGX_OK) {
        return rc;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (ngx_http_llmgw_dashboard_headers(r, llcf) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_llmgw_dashboard_body(r, llcf);
}


static ngx_int_t
ngx_http_llmgw_dashboard_headers(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf)
{
    ngx_uint_t  i;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = sizeof(llmgw_dashboard_head)
                                      + llcf->dashboard_url.len
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
                                              "ETag", &llcf->dashboard_etag);

    return r->headers_out.etag ? NGX_OK : NGX_ERROR;
}


/* Sends the page's parts without copying them. */

static ngx_int_t
ngx_http_llmgw_dashboard_body(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf)
{
    ngx_buf_t    *b;
    ngx_uint_t    i;
    ngx_chain_t  *out, **last;
    ngx_str_t     parts[3];

    parts[0].data = (u_char *) llmgw_dashboard_head;
    parts[0].len = sizeof(llmgw_dashboard_head);
    parts[1] = llcf->dashboard_url;
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


#include "http/header.h"
#include "keys/keys.h"
#include "pages/access.h"


static ngx_int_t ngx_http_llmgw_access_key(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf, ngx_http_llmgw_keys_t *keys);
static ngx_int_t ngx_http_llmgw_access_deny(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf, const char *whom, const char *remedy);
static const char *ngx_http_llmgw_access_foreign(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_access_is_host(struct sockaddr *peer);


const ngx_conf_enum_t  ngx_http_llmgw_access_words[] = {
    { ngx_string("local"), NGX_HTTP_LLMGW_ACCESS_LOCAL },
    { ngx_string("any"), NGX_HTTP_LLMGW_ACCESS_ANY },
    { ngx_null_string, 0 }
};


ngx_int_t
ngx_http_llmgw_access(ngx_http_request_t *r, ngx_http_llmgw_page_conf_t *conf)
{
    const char                 *foreign;
    ngx_http_llmgw_loc_conf_t  *llcf;

    if (conf->access == NGX_HTTP_LLMGW_ACCESS_ANY) {
        return NGX_OK;
    }

    foreign = ngx_http_llmgw_access_foreign(r);

    if (foreign == NULL) {
        return NGX_OK;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (llcf->keys) {
        return ngx_http_llmgw_access_key(r, conf, llcf->keys);
    }

    return ngx_http_llmgw_access_deny(r, conf, foreign,
               "add \"access=any\" to it to answer other hosts, and restrict "
               "them by \"allow\" and \"deny\"; or set \"llmgw_keys\" there, "
               "to answer keys with \"admin\"");
}


static ngx_int_t
ngx_http_llmgw_access_key(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf, ngx_http_llmgw_keys_t *keys)
{
    const llmgw_key_t             *key;
    ngx_http_llmgw_key_failure_t   failure;
    static const ngx_str_t         basic = ngx_string("Basic realm=\"llmgw\"");

    if (ngx_http_llmgw_credential(r, keys->set, &key, &failure) == NGX_OK) {
        return key->is_admin ? NGX_OK
               : ngx_http_llmgw_access_deny(r, conf,
                     "a key that may not see it",
                     "add \"admin\" to that key's line of the key file");
    }

    ngx_http_llmgw_keys_failed(keys, failure);

    r->headers_out.www_authenticate = ngx_http_llmgw_header_add(
                  &r->headers_out.headers, "WWW-Authenticate", &basic);

    return r->headers_out.www_authenticate ? NGX_HTTP_UNAUTHORIZED
                                           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_llmgw_access_deny(ngx_http_request_t *r,
    ngx_http_llmgw_page_conf_t *conf, const char *whom, const char *remedy)
{
    if (!conf->is_logged) {
        conf->is_logged = 1;
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "llmgw: \"%V\" answers 403 to %s; %s (further 403 of "
                      "this location are not logged)", &conf->directive, whom,
                      remedy);
    }

    return NGX_HTTP_FORBIDDEN;
}


/*
 * Evidence that the request comes from another host; NULL: none.  A proxy on
 * this host also has an address of this host; it is recognized by the headers
 * that it adds.
 */

static const char *
ngx_http_llmgw_access_foreign(ngx_http_request_t *r)
{
    ngx_uint_t          i;
    static const char  *added[] = { "forwarded", "x-forwarded-for",
                                    "x-real-ip" };

    if (!ngx_http_llmgw_access_is_host(r->connection->sockaddr)) {
        return "a client on another host";
    }

    if (r->connection->proxy_protocol) {
        return "a connection with the PROXY protocol";
    }

    for (i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        if (ngx_http_llmgw_header_find(&r->headers_in.headers, added[i])) {
            return "a request that came through a proxy, by its header "
                   "Forwarded, X-Forwarded-For or X-Real-IP";
        }
    }

    return NULL;
}


/* 1: the peer is on this host, by its loopback address or a unix socket. */

static ngx_uint_t
ngx_http_llmgw_access_is_host(struct sockaddr *peer)
{
    struct in6_addr  *in6;

    switch (peer->sa_family) {

    case AF_UNIX:
        return 1;

    case AF_INET:
        return ntohl(((struct sockaddr_in *) peer)->sin_addr.s_addr) >> 24
               == IN_LOOPBACKNET;

    case AF_INET6:
        in6 = &((struct sockaddr_in6 *) peer)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(in6)
               || (IN6_IS_ADDR_V4MAPPED(in6)
                   && in6->s6_addr[12] == IN_LOOPBACKNET);

    default:
        return 0;
    }
}

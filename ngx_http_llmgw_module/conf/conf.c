
/*
 * The upstream{} block: llmgw_members, llmgw_zone, llmgw_hash and the static
 * `server` lines.
 *
 * Any of these directives assigns the block to this module, which then chooses
 * its peers.  Parameters that nginx's own balancers have and this module lacks
 * (backup, max_fails, a `zone` line) are errors, and are not silently ignored.
 */

#include "conf/admit.h"
#include "conf/param.h"
#include "proto/members/members.h"


#define NGX_HTTP_LLMGW_ZONE_DEFAULT  (2 * 1024 * 1024)

/* a key of more than a megabyte would be no prefix of a prompt any more */
#define NGX_HTTP_LLMGW_MAX_PREFIX    (1024 * 1024)
#define NGX_HTTP_LLMGW_MAX_VNODES    10000


static ngx_int_t ngx_http_llmgw_conf_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_llmgw_conf_servers(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_llmgw_srv_conf_t *lscf);
static ngx_str_t ngx_http_llmgw_conf_host(ngx_conf_t *cf, ngx_str_t *name);
static ngx_int_t ngx_http_llmgw_conf_server(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_upstream_server_t *server,
    ngx_addr_t *addr, ngx_http_llmgw_srv_conf_t *lscf);


const ngx_http_llmgw_param_t  ngx_http_llmgw_hash_params[] = {
    ngx_http_llmgw_srv_param("prefix", NUMBER, prefix, .min = 1,
        .max = NGX_HTTP_LLMGW_MAX_PREFIX),
    ngx_http_llmgw_srv_param("vnodes", NUMBER, vnodes, .min = 1,
        .max = NGX_HTTP_LLMGW_MAX_VNODES),
    ngx_http_llmgw_srv_param("load_factor", DECIMAL, load_factor,
        .max = 1000000, .digits = 3, .right = "0 (no bound) or 1 to 1000"),
    ngx_http_llmgw_srv_param("min_load", NUMBER, min_load,
        .max = NGX_MAX_INT32_VALUE),
    { .kind = 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_zone_size =
    ngx_http_llmgw_srv_param(NULL, ZONE, zone_size);


/* Assigns the block to this module. */

ngx_http_llmgw_srv_conf_t *
ngx_http_llmgw_conf_enable(ngx_conf_t *cf, void *conf)
{
    ngx_http_upstream_srv_conf_t  *uscf;
    ngx_http_llmgw_srv_conf_t     *lscf = conf, **slot;
    ngx_http_llmgw_main_conf_t    *lmcf;

    if (lscf->enabled) {
        return lscf;
    }

    uscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);
    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    slot = ngx_array_push(&lmcf->upstreams);
    if (slot == NULL) {
        return NULL;
    }

    *slot = lscf;
    lscf->enabled = 1;
    lscf->name = uscf->host;

    uscf->flags = NGX_HTTP_UPSTREAM_CREATE
                  |NGX_HTTP_UPSTREAM_WEIGHT
                  |NGX_HTTP_UPSTREAM_MAX_CONNS
                  |NGX_HTTP_UPSTREAM_DOWN;

    if (uscf->peer.init_upstream
        && uscf->peer.init_upstream != ngx_http_llmgw_conf_not_ours)
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "load balancing method redefined");
    }

    uscf->peer.init_upstream = ngx_http_llmgw_conf_init_upstream;

    return lscf;
}


char *
ngx_http_llmgw_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    u_char                     *p;
    ngx_str_t                  *value, size;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;
    p = (u_char *) ngx_strchr(value[1].data, ':');

    if (p == NULL || p == value[1].data) {
        return ngx_http_llmgw_conf_invalid(cf, &value[1], "name:size");
    }

    lscf->zone_name.data = value[1].data;
    lscf->zone_name.len = p - value[1].data;

    size.data = p + 1;
    size.len = value[1].data + value[1].len - size.data;

    return ngx_http_llmgw_param_read(cf, &ngx_http_llmgw_zone_size, &value[1],
                                     &size, lscf);
}


char *
ngx_http_llmgw_conf_hash(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    lscf->prefix = 0;
    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (lscf->prefix) {
        lscf->prefix_set = 1;

    } else {
        lscf->prefix = NGX_HTTP_LLMGW_PREFIX;
    }

    if (rv == NGX_CONF_OK && lscf->load_factor && lscf->load_factor < 1000) {
        return "has a \"load_factor\" between 0 and 1";
    }

    return rv;
}


/* Called at the end of the http{} block, when all its lines are known. */

static ngx_int_t
ngx_http_llmgw_conf_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llmgw_srv_conf_t   *lscf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llmgw_module);
    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

#if (NGX_HTTP_UPSTREAM_ZONE)
    if (us->shm_zone) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"zone\" is not supported in upstream \"%V\" in "
                      "%s:%ui, use \"llmgw_zone\"", &us->host, us->file_name,
                      us->line);
        return NGX_ERROR;
    }
#endif

    if (ngx_http_llmgw_conf_servers(cf, us, lscf) != NGX_OK
        || ngx_http_llmgw_conf_rules(cf, lscf) == NULL)
    {
        return NGX_ERROR;
    }

    if (lscf->zone_name.len == 0) {
        lscf->zone_size = NGX_HTTP_LLMGW_ZONE_DEFAULT;
        lscf->zone_name.data = ngx_pnalloc(cf->pool, 6 + us->host.len);

        if (lscf->zone_name.data == NULL) {
            return NGX_ERROR;
        }

        lscf->zone_name.len = ngx_sprintf(lscf->zone_name.data, "llmgw_%V",
                                          &us->host) - lscf->zone_name.data;
    }

    us->peer.init = lmcf->rooms->init_peer;

    if (ngx_http_llmgw_ssl_check(cf, &lscf->ssl, &us->host) != NGX_OK
        || (lscf->ssl.enable && lmcf->rooms->add_ssl(cf, lscf) != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (!lscf->index.set) {
        lscf->index.file = us->file_name;
        lscf->index.line = us->line;
    }

    return ngx_http_llmgw_conf_pools(cf, lscf);
}


static ngx_int_t
ngx_http_llmgw_conf_servers(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_uint_t                   i, j;
    ngx_http_upstream_server_t  *server;

    if (ngx_array_init(&lscf->statics, cf->pool, 4,
                       sizeof(ngx_http_llmgw_static_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    server = us->servers->elts;

    for (i = 0; i < us->servers->nelts; i++) {

        if (server[i].naddrs
            && (server[i].backup || server[i].max_fails != 1
                || server[i].fail_timeout != 10))
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"backup\", \"max_fails\" and \"fail_timeout\" are "
                          "not supported for server \"%V\" in upstream \"%V\" "
                          "in %s:%ui", &server[i].name, &us->host,
                          us->file_name, us->line);
            return NGX_ERROR;
        }

        for (j = 0; j < server[i].naddrs; j++) {
            if (ngx_http_llmgw_conf_server(cf, us, &server[i],
                                           &server[i].addrs[j], lscf)
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_conf_server(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_upstream_server_t *server, ngx_addr_t *addr,
    ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_uint_t                i;
    ngx_http_llmgw_static_t  *peer;

    if (addr->sockaddr->sa_family == AF_UNIX
        || addr->name.len >= LLMGW_MEMBERS_ADDRESS_BYTES)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "server \"%V\" in upstream \"%V\" in %s:%ui is no "
                      "TCP address", &addr->name, &us->host, us->file_name,
                      us->line);
        return NGX_ERROR;
    }

    peer = lscf->statics.elts;

    for (i = 0; i < lscf->statics.nelts; i++) {
        if (peer[i].id.len == addr->name.len
            && ngx_memcmp(peer[i].id.data, addr->name.data, addr->name.len)
               == 0)
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "duplicate server \"%V\" in upstream \"%V\" in "
                          "%s:%ui", &addr->name, &us->host, us->file_name,
                          us->line);
            return NGX_ERROR;
        }
    }

    peer = ngx_array_push(&lscf->statics);
    if (peer == NULL) {
        return NGX_ERROR;
    }

    peer->id = addr->name;
    peer->host = ngx_http_llmgw_conf_host(cf, &server->name);
    peer->weight = server->weight;
    peer->max_conns = server->max_conns;
    peer->down = server->down;

    return NGX_OK;
}


/* The host of a `server` line, or nothing if it is an address. */

static ngx_str_t
ngx_http_llmgw_conf_host(ngx_conf_t *cf, ngx_str_t *name)
{
    u_char      *colon;
    ngx_str_t    host;
    ngx_addr_t   addr;

    if (ngx_parse_addr_port(cf->pool, &addr, name->data, name->len)
        == NGX_OK)
    {
        ngx_str_null(&host);
        return host;
    }

    host = *name;
    colon = ngx_strlchr(host.data, host.data + host.len, ':');

    if (colon) {
        host.len = colon - host.data;
    }

    return host;
}

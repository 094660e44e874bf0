
/*
 * The upstream{} block: llmgw_members, llmgw_zone, llmgw_hash and the static
 * `server` lines.
 *
 * Any of the three makes the block ours: this module then chooses its peers.
 * Parameters that nginx's own balancers have and this module lacks (backup,
 * max_fails, a `zone` line) are errors, and are not silently ignored.
 */

#include "conf/admission.h"
#include "proto/members/members.h"


#define NGX_HTTP_LLMGW_ZONE_DEFAULT  (2 * 1024 * 1024)

/* a key of more than a megabyte would be no prefix of a prompt any more */
#define NGX_HTTP_LLMGW_MAX_PREFIX    (1024 * 1024)
#define NGX_HTTP_LLMGW_MAX_VNODES    10000


static char *ngx_http_llmgw_conf_hash_param(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *param);
static ngx_int_t ngx_http_llmgw_conf_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_llmgw_conf_servers(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_llmgw_srv_conf_t *lscf);
static ngx_int_t ngx_http_llmgw_conf_server(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_upstream_server_t *server,
    ngx_addr_t *addr, ngx_http_llmgw_srv_conf_t *lscf);


/* The block is ours from now on. */

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
    u_char                     *p;
    ssize_t                     size;
    ngx_str_t                  *value, s;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->zone_name.len) {
        return "is duplicate";
    }

    value = cf->args->elts;
    p = (u_char *) ngx_strchr(value[1].data, ':');

    if (p == NULL || p == value[1].data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone \"%V\", it must be name:size",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    s.data = p + 1;
    s.len = value[1].data + value[1].len - s.data;
    size = ngx_parse_size(&s);

    if (size == NGX_ERROR || size < (ssize_t) (16 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone size \"%V\", at least %uzk is needed",
                           &value[1], 16 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    lscf->zone_name.data = value[1].data;
    lscf->zone_name.len = p - value[1].data;
    lscf->zone_size = size;

    return NGX_CONF_OK;
}


char *
ngx_http_llmgw_conf_hash(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->hash_set) {
        return "is duplicate";
    }

    lscf->hash_set = 1;
    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llmgw_conf_hash_param(cf, lscf, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_conf_hash_param(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *param)
{
    ngx_int_t  n;

    if (ngx_strncmp(param->data, "prefix=", 7) == 0) {
        lscf->prefix_set = 1;
        return ngx_http_llmgw_conf_number(cf, param, 7, 1,
                                          NGX_HTTP_LLMGW_MAX_PREFIX,
                                          &lscf->prefix);
    }

    if (ngx_strncmp(param->data, "vnodes=", 7) == 0) {
        return ngx_http_llmgw_conf_number(cf, param, 7, 1,
                                          NGX_HTTP_LLMGW_MAX_VNODES,
                                          &lscf->vnodes);
    }

    if (ngx_strncmp(param->data, "min_load=", 9) == 0) {
        return ngx_http_llmgw_conf_number(cf, param, 9, 0,
                                          NGX_MAX_INT32_VALUE,
                                          &lscf->min_load);
    }

    if (ngx_strncmp(param->data, "load_factor=", 12) == 0) {
        n = ngx_atofp(param->data + 12, param->len - 12, 3);

        if (n == NGX_ERROR || (n != 0 && n < 1000) || n > 1000000) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid \"%V\", it must be 0 (no bound) or "
                               "1 to 1000", param);
            return NGX_CONF_ERROR;
        }

        lscf->load_factor = n;
        return NGX_CONF_OK;
    }

    return ngx_http_llmgw_conf_invalid(cf, param);
}


char *
ngx_http_llmgw_conf_invalid(ngx_conf_t *cf, ngx_str_t *param)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                       param);

    return NGX_CONF_ERROR;
}


char *
ngx_http_llmgw_conf_number(ngx_conf_t *cf, ngx_str_t *param, size_t skip,
    ngx_uint_t min, ngx_uint_t max, ngx_uint_t *field)
{
    ngx_int_t  n;

    n = ngx_atoi(param->data + skip, param->len - skip);

    if (n == NGX_ERROR || (ngx_uint_t) n < min || (ngx_uint_t) n > max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be %ui to %ui", param,
                           min, max);
        return NGX_CONF_ERROR;
    }

    *field = n;

    return NGX_CONF_OK;
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

    if (lmcf->rooms->add_zone(cf, lscf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!lscf->index.set) {
        lscf->index.file = us->file_name;
        lscf->index.line = us->line;
    }

    return lmcf->rooms->add_prefix(cf, lscf);
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
    peer->weight = server->weight;
    peer->max_conns = server->max_conns;
    peer->down = server->down;

    return NGX_OK;
}


/* Makes this the location's content handler: llmgw_status, llmgw_metrics. */

char *
ngx_http_llmgw_conf_handler(ngx_conf_t *cf, ngx_http_handler_pt handler)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler) {
        return "is duplicate, or the location has another handler";
    }

    clcf->handler = handler;

    return NGX_CONF_OK;
}

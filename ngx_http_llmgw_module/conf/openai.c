
/*
 * Settings of a location with llmgw_openai: names of models, and limits.
 */

#include "conf/param.h"
#include "core/openai/body.h"

#if (NGX_HTTP_V2)
#include <ngx_http_v2_module.h>
#endif


/* Engines name models by a path or by owner and name. */
#define NGX_HTTP_LLMGW_MODEL_NAME_MAX  512

/* nginx's default of client_max_body_size */
#define NGX_HTTP_LLMGW_BODY_DEFAULT    (1024 * 1024)

/* Lower values are warned of at start, as by agent/ctl/doctor/check_nginx.c. */
#define NGX_HTTP_LLMGW_FEW_STREAMS     1000
#define NGX_HTTP_LLMGW_FEW_REQUESTS    10000


static void ngx_http_llmgw_conf_openai_few_requests(ngx_conf_t *cf);
#if (NGX_HTTP_V2)
static void ngx_http_llmgw_conf_openai_few_streams(ngx_conf_t *cf);
static ngx_http_v2_srv_conf_t *ngx_http_llmgw_conf_openai_v2(ngx_conf_t *cf);
static ngx_uint_t ngx_http_llmgw_conf_openai_listens_v2(ngx_conf_t *cf);
#endif
static void ngx_http_llmgw_conf_models_name(
    ngx_http_llmgw_loc_conf_t *llcf);


static const ngx_http_llmgw_param_t  ngx_http_llmgw_model_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_model_t, "pool", UPSTREAM, upstream,
        .right = "an upstream"),
    { .kind = 0 }
};


/* llmgw_sse_keepalive TIME [header=TIME] | off; */

const ngx_http_llmgw_param_t  ngx_http_llmgw_keepalive_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_loc_conf_t, NULL, MSEC, sse_keepalive,
        .words = ngx_http_llmgw_off, .alone = 1,
        .right = "off or a time above 0"),
    ngx_http_llmgw_param(ngx_http_llmgw_loc_conf_t, "header", MSEC,
        sse_header),
    { .kind = 0 }
};


/* llmgw_model NAME [as ENGINE-NAME] [pool=UPSTREAM]; */

char *
ngx_http_llmgw_conf_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value;
    ngx_uint_t                  i, first;
    ngx_http_llmgw_model_t     *model;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    if (llcf->models == NULL) {
        llcf->models = ngx_array_create(cf->pool, 4,
                                        sizeof(ngx_http_llmgw_model_t));
        if (llcf->models == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;
    model = llcf->models->elts;

    if (value[1].len == 0 || value[1].len > NGX_HTTP_LLMGW_MODEL_NAME_MAX) {
        return "needs a name of 1 to 512 bytes";
    }

    for (i = 0; i < llcf->models->nelts; i++) {
        if (model[i].name.len == value[1].len
            && ngx_memcmp(model[i].name.data, value[1].data, value[1].len)
               == 0)
        {
            return "is duplicate: it has the name of another one";
        }
    }

    model = ngx_array_push(llcf->models);
    if (model == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(model, sizeof(ngx_http_llmgw_model_t));
    model->name = value[1];
    model->file = cf->conf_file->file.name.data;
    model->line = cf->conf_file->line;

    first = 2;

    if (cf->args->nelts > 3 && ngx_strcmp(value[2].data, "as") == 0) {
        model->engine = value[3];
        first = 4;

        if (model->engine.len == 0
            || model->engine.len > NGX_HTTP_LLMGW_MODEL_NAME_MAX)
        {
            return "needs an engine's name of 1 to 512 bytes";
        }
    }

    return ngx_http_llmgw_params(cf, ngx_http_llmgw_model_params, first,
                                 model);
}


/*
 * nginx's own default of client_max_body_size suits forms; a conversation with
 * an image, or a sound file, is longer.
 */

static void
ngx_http_llmgw_conf_openai_body(ngx_conf_t *cf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->client_max_body_size != NGX_HTTP_LLMGW_BODY_DEFAULT) {
        return;
    }

    clcf->client_max_body_size = LLMGW_OPENAI_MAX_BYTES;

    ngx_log_error(NGX_LOG_NOTICE, cf->log, 0,
                  "llmgw: location \"%V\" with \"llmgw_openai\" takes "
                  "bodies of 63m, as \"client_max_body_size\" is 1m there",
                  &clcf->name);
}


/* Logged for only one server; others may have the same settings. */

static void
ngx_http_llmgw_conf_openai_few_requests(ngx_conf_t *cf)
{
    ngx_http_core_srv_conf_t    *cscf;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (lmcf->said_few_requests
        || clcf->keepalive_requests >= NGX_HTTP_LLMGW_FEW_REQUESTS)
    {
        return;
    }

    lmcf->said_few_requests = 1;
    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "llmgw: keepalive_requests is %ui for \"llmgw_openai\" in "
                  "the server at %s:%ui, set keepalive_requests 1000000: "
                  "after so many calls a client's connection is ended",
                  clcf->keepalive_requests, cscf->file_name, cscf->line);
}


#if (NGX_HTTP_V2)

static void
ngx_http_llmgw_conf_openai_few_streams(ngx_conf_t *cf)
{
    ngx_http_v2_srv_conf_t      *h2scf;
    ngx_http_core_srv_conf_t    *cscf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    h2scf = lmcf->said_few_streams ? NULL : ngx_http_llmgw_conf_openai_v2(cf);

    if (h2scf == NULL
        || h2scf->concurrent_streams >= NGX_HTTP_LLMGW_FEW_STREAMS)
    {
        return;
    }

    lmcf->said_few_streams = 1;
    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "llmgw: http2_max_concurrent_streams is %ui for "
                  "\"llmgw_openai\" in the server at %s:%ui, set "
                  "http2_max_concurrent_streams 10000: a client over HTTP/2 "
                  "has one connection, and further calls wait in it",
                  h2scf->concurrent_streams, cscf->file_name, cscf->line);
}


/*
 * Settings of a server that speaks HTTP/2; else NULL.  The module is looked up
 * by name: an nginx without it must be able to load this one.
 */

static ngx_http_v2_srv_conf_t *
ngx_http_llmgw_conf_openai_v2(ngx_conf_t *cf)
{
    ngx_uint_t               i;
    ngx_module_t           **modules;
    ngx_http_conf_ctx_t     *ctx;
    ngx_http_v2_srv_conf_t  *h2scf;

    ctx = cf->ctx;
    h2scf = NULL;
    modules = cf->cycle->modules;

    for (i = 0; modules[i]; i++) {
        if (ngx_strcmp(modules[i]->name, "ngx_http_v2_module") == 0) {
            h2scf = ctx->srv_conf[modules[i]->ctx_index];
        }
    }

#if (nginx_version >= 1025001)
    if (h2scf && h2scf->enable) {
        return h2scf;
    }
#endif

    return ngx_http_llmgw_conf_openai_listens_v2(cf) ? h2scf : NULL;
}


/* 1: one of the server's `listen` lines has http2. */

static ngx_uint_t
ngx_http_llmgw_conf_openai_listens_v2(ngx_conf_t *cf)
{
    ngx_uint_t                  p, a, s;
    ngx_http_conf_port_t       *port;
    ngx_http_conf_addr_t       *addr;
    ngx_http_core_srv_conf_t   *cscf, **server;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    port = cmcf->ports ? cmcf->ports->elts : NULL;

    for (p = 0; port && p < cmcf->ports->nelts; p++) {
        addr = port[p].addrs.elts;

        for (a = 0; a < port[p].addrs.nelts; a++) {
            server = addr[a].servers.elts;

            for (s = 0; addr[a].opt.http2 && s < addr[a].servers.nelts; s++) {
                if (server[s] == cscf) {
                    return 1;
                }
            }
        }
    }

    return 0;
}

#endif


void
ngx_http_llmgw_conf_openai_init(ngx_http_llmgw_loc_conf_t *llcf)
{
    llcf->sse_keepalive = NGX_CONF_UNSET_MSEC;
    llcf->sse_header = NGX_CONF_UNSET_MSEC;
    llcf->default_max_tokens = NGX_CONF_UNSET_UINT;
}


/* Makes upstreams that lines name known before they have a replica. */

static void
ngx_http_llmgw_conf_models_name(ngx_http_llmgw_loc_conf_t *llcf)
{
    ngx_uint_t                     i;
    ngx_http_llmgw_model_t        *model;
    ngx_http_llmgw_srv_conf_t     *lscf;
    ngx_http_upstream_srv_conf_t  *us;

    if (llcf->models == NULL) {
        return;
    }

    model = llcf->models->elts;

    for (i = 0; i < llcf->models->nelts; i++) {
        us = model[i].upstream ? model[i].upstream : llcf->upstream;

        if (us && us->srv_conf) {
            lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llmgw_module);
            lscf->is_named = 1;
        }
    }
}


char *
ngx_http_llmgw_conf_openai_merge(ngx_conf_t *cf,
    ngx_http_llmgw_loc_conf_t *prev, ngx_http_llmgw_loc_conf_t *conf)
{
    ngx_http_llmgw_path_t   *path;
    ngx_http_llmgw_model_t  *model;

    if (conf->paths && (conf->protocol == NULL
                        || !conf->protocol->has_models))
    {
        path = conf->paths->elts;
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llmgw_openai_path\" needs \"llmgw_openai\" in its "
                      "location in %s:%ui", path->file, path->line);
        return NGX_CONF_ERROR;
    }

    if (conf->models && (conf->protocol == NULL
                         || !conf->protocol->has_models))
    {
        model = conf->models->elts;
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llmgw_model\" needs \"llmgw_openai\" in its "
                      "location in %s:%ui", model->file, model->line);
        return NGX_CONF_ERROR;
    }

    ngx_http_llmgw_conf_models_name(conf);

    if (conf->protocol && conf->protocol->has_models) {
        ngx_http_llmgw_conf_openai_body(cf);
        ngx_http_llmgw_conf_openai_few_requests(cf);
#if (NGX_HTTP_V2)
        ngx_http_llmgw_conf_openai_few_streams(cf);
#endif
    }

    ngx_conf_merge_msec_value(conf->sse_keepalive, prev->sse_keepalive, 15000);
    ngx_conf_merge_msec_value(conf->sse_header, prev->sse_header, 30000);
    ngx_conf_merge_uint_value(conf->default_max_tokens,
                              prev->default_max_tokens, 4096);
    ngx_conf_merge_str_value(conf->timeout_header, prev->timeout_header, "");

    return NGX_CONF_OK;
}


/*
 * The module as nginx sees it: configuration and hooks.  Only this file and
 * directives.c include all rooms, which include each other as follows:
 *
 *   conf/       directives                  -> core, proto; in all but core
 *   core/       decisions, pure             includes nothing
 *   http/       nginx's requests            -> core, proto
 *   zone/       the shared memory           -> core
 *   choice/     policies of the fleet       -> zone, core
 *   models/     models that members serve   -> core, proto
 *   standby/    groups with standbys        -> models, zone, core, proto
 *   fleet/      pools, replicas, workers    -> choice, models, standby, zone
 *   attempt/    claims, attempts, sessions  -> fleet, choice, zone
 *   keys/       callers and their accounts  -> zone, http, core, proto
 *   admit/      whether a request may enter -> keys, attempt, fleet, zone, http
 *   front/      what clients speak          -> admit, keys, attempt, fleet
 *   native/     grpc_pass and proxy_pass    -> admit, keys, attempt, fleet
 *   pages/      status, metrics             -> keys, fleet, zone, http
 *
 * The objects, and what each belongs to:
 *
 *   srv conf   one upstream{} block of ours
 *   upstream   an upstream{} block in this worker: the view of its members
 *   pool       one base model of an upstream in this worker: ring, replicas
 *   replica    one member or static address of a pool; owns its sessions
 *   session    one HTTP/2 connection to a replica, shared by many attempts
 *   stream     one client's request, from its body to its last byte
 *   attempt    one call to one replica for a stream, which has one at a time,
 *              or two while it is hedged
 */

#include "attempt/asking.h"
#include "choice/prefix_zone.h"
#include "directives.h"
#include "fleet/ssl.h"
#include "front/grpc.h"
#include "front/openai/openai.h"
#include "front/pool_size.h"
#include "front/refusal.h"
#include "front/stream.h"
#include "http/goaway.h"
#include "keys/keys.h"
#include "native/native.h"
#include "pages/pages.h"
#include "zone/directory.h"


static void *ngx_http_llmgw_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_llmgw_create_srv_conf(ngx_conf_t *cf);
static void *ngx_http_llmgw_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llmgw_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llmgw_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_llmgw_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_llmgw_init_process(ngx_cycle_t *cycle);
static void ngx_http_llmgw_exit_process(ngx_cycle_t *cycle);


static const ngx_http_llmgw_rooms_t  ngx_http_llmgw_rooms = {
    .init_peer = ngx_http_llmgw_native_init_peer,
    .add_zone = ngx_http_llmgw_zone_add,
    .add_prefix = ngx_http_llmgw_prefix_add,
    .add_directory = ngx_http_llmgw_directory_add,
    .add_ssl = ngx_http_llmgw_ssl_add,
    .events = &ngx_http_llmgw_asking_events,
    .grpc = &ngx_http_llmgw_grpc_protocol,
    .openai = &ngx_http_llmgw_openai_protocol,
};


static ngx_http_module_t  ngx_http_llmgw_module_ctx = {
    ngx_http_llmgw_variables_add,          /* preconfiguration */
    ngx_http_llmgw_postconfiguration,      /* postconfiguration */

    ngx_http_llmgw_create_main_conf,       /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_llmgw_create_srv_conf,        /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llmgw_create_loc_conf,        /* create location configuration */
    ngx_http_llmgw_merge_loc_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_llmgw_module = {
    NGX_MODULE_V1,
    &ngx_http_llmgw_module_ctx,            /* module context */
    ngx_http_llmgw_commands,               /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_llmgw_init_module,            /* init module */
    ngx_http_llmgw_init_process,           /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llmgw_exit_process,           /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_llmgw_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_main_conf_t));
    if (lmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&lmcf->upstreams, cf->pool, 2, sizeof(void *))
        != NGX_OK
        || ngx_array_init(&lmcf->keys, cf->pool, 1, sizeof(void *)) != NGX_OK
        || ngx_array_init(&lmcf->references, cf->pool, 2,
                          sizeof(ngx_http_llmgw_reference_t))
           != NGX_OK
        || ngx_array_init(&lmcf->passes, cf->pool, 2, sizeof(void *))
           != NGX_OK)
    {
        return NULL;
    }

    lmcf->rooms = &ngx_http_llmgw_rooms;
    lmcf->coalesce = NGX_CONF_UNSET_MSEC;
    lmcf->body_memory = NGX_CONF_UNSET_SIZE;
    lmcf->body_client = NGX_CONF_UNSET_PTR;

    return lmcf;
}


static void *
ngx_http_llmgw_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_srv_conf_t));
    if (lscf == NULL) {
        return NULL;
    }

    lscf->prefix = NGX_HTTP_LLMGW_PREFIX;
    lscf->vnodes = 150;
    lscf->load_factor = 1250;
    lscf->min_load = 8;
    lscf->policy = LLMGW_RANK_AFFINITY;

    ngx_http_llmgw_conf_resilience_defaults(lscf);
    ngx_http_llmgw_index_defaults(lscf);
    ngx_http_llmgw_ssl_defaults(&lscf->ssl);

    return lscf;
}


static void *
ngx_http_llmgw_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_loc_conf_t));
    if (llcf == NULL) {
        return NULL;
    }

    llcf->keys = NGX_CONF_UNSET_PTR;
    llcf->identity = NGX_CONF_UNSET_PTR;
    llcf->key = NGX_CONF_UNSET_PTR;
    llcf->class = NGX_CONF_UNSET_PTR;
    llcf->tenant = NGX_CONF_UNSET_PTR;
    llcf->tries = NGX_CONF_UNSET_UINT;
    llcf->resume = NGX_CONF_UNSET_UINT;
    llcf->connect_timeout = NGX_CONF_UNSET_MSEC;
    llcf->first_token_timeout = NGX_CONF_UNSET_MSEC;
    llcf->token_timeout = NGX_CONF_UNSET_MSEC;
    ngx_http_llmgw_conf_openai_init(llcf);

    return llcf;
}


static char *
ngx_http_llmgw_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_llmgw_loc_conf_t  *prev = parent;
    ngx_http_llmgw_loc_conf_t  *conf = child;

    ngx_conf_merge_ptr_value(conf->keys, prev->keys, NULL);
    ngx_conf_merge_ptr_value(conf->identity, prev->identity, NULL);
    ngx_conf_merge_ptr_value(conf->class, prev->class, NULL);
    ngx_conf_merge_ptr_value(conf->tenant, prev->tenant, NULL);
    ngx_conf_merge_uint_value(conf->tries, prev->tries, 3);
    ngx_conf_merge_uint_value(conf->resume, prev->resume, LLMGW_RESUME_IDS);
    ngx_conf_merge_msec_value(conf->connect_timeout, prev->connect_timeout,
                              1000);
    ngx_conf_merge_msec_value(conf->first_token_timeout,
                              prev->first_token_timeout, 60000);
    ngx_conf_merge_msec_value(conf->token_timeout, prev->token_timeout,
                              10000);

    if (ngx_http_llmgw_conf_openai_merge(cf, prev, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->key == NGX_CONF_UNSET_PTR) {
        conf->key = prev->key == NGX_CONF_UNSET_PTR ? NULL : prev->key;
        conf->key_queue = prev->key_queue;
        conf->key_from = prev->key_from;
        conf->key_by = prev->key_by;
    }

    /* "if" and "limit_except" blocks answer as the location around them does */

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && prev->page) {
        conf->page = prev->page;

        if (clcf->handler == NULL) {
            clcf->handler = ngx_http_llmgw_page_location;
        }
    }

    if (clcf->noname && conf->upstream == NULL) {
        conf->upstream = prev->upstream;
        conf->protocol = prev->protocol;
        conf->models = prev->models;

        if (clcf->handler == NULL && conf->protocol) {
            clcf->handler = conf->protocol->handler;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llmgw_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);

    if (ngx_http_llmgw_conf_check(cf, lmcf) != NGX_OK
        || ngx_http_llmgw_trace_conf(cf, lmcf) != NGX_OK
        || ngx_http_llmgw_conf_memory_init(cf, lmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_conf_init_msec_value(lmcf->coalesce, 1);

    ngx_http_llmgw_pool_size_conf(cf, lmcf);

    if (ngx_http_llmgw_goaway_init(cf) != NGX_OK
        || ngx_http_llmgw_refusal_init(cf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* a key is checked before a pass reads a body */

    if (ngx_http_llmgw_native_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    return lmcf->keys.nelts ? ngx_http_llmgw_keys_init(cf) : NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_init_module(ngx_cycle_t *cycle)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llmgw_module);

    return lmcf ? ngx_http_llmgw_wake_init(cycle, lmcf) : NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_init_process(ngx_cycle_t *cycle)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llmgw_module);

    if (lmcf == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    if (ngx_http_llmgw_keys_worker(lmcf, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_worker_init(lmcf, cycle);
}


static void
ngx_http_llmgw_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llmgw_module);

    if (lmcf) {
        ngx_http_llmgw_worker_done(lmcf);
        ngx_http_llmgw_keys_worker_done(lmcf);
    }
}

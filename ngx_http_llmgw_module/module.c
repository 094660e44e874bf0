
/*
 * The module as nginx sees it: directives, configuration, hooks.  The only file
 * that includes all rooms, which include each other so:
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
 *   admit/      whether a request may enter -> attempt, fleet, zone, http
 *   front/      what clients speak          -> admit, attempt, fleet, http
 *   native/     grpc_pass and proxy_pass    -> admit, attempt, fleet, http
 *   pages/      status, metrics             -> fleet, zone, http
 *
 * The objects, and what each belongs to:
 *
 *   srv conf   one upstream{} block of ours
 *   pool       an upstream{} block in this worker: view, ring, replicas
 *   replica    one member or static address of a pool; owns its sessions
 *   session    one HTTP/2 connection to a replica, shared by many attempts
 *   stream     one client's request, from its body to its last byte
 *   attempt    one replica's try at a stream, which has one at a time, or two
 *              while it is hedged
 */

#include "attempt/asking.h"
#include "choice/prefix_zone.h"
#include "choice/log.h"
#include "conf/admit.h"
#include "conf/param.h"
#include "fleet/ssl.h"
#include "front/grpc.h"
#include "front/pool_size.h"
#include "front/openai/openai.h"
#include "front/refusal.h"
#include "front/stream.h"
#include "http/record.h"
#include "native/native.h"
#include "pages/pages.h"


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
    .add_ssl = ngx_http_llmgw_ssl_add,
    .events = &ngx_http_llmgw_asking_events,
};


static ngx_conf_num_bounds_t  ngx_http_llmgw_tries_bounds = {
    ngx_conf_check_num_bounds, 1, 100
};


static ngx_conf_enum_t  ngx_http_llmgw_resume_modes[] = {
    { ngx_string("off"), LLMGW_RESUME_OFF },
    { ngx_string("ids"), LLMGW_RESUME_IDS },
    { ngx_string("text"), LLMGW_RESUME_TEXT },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_llmgw_max_tokens_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_MAX_INT32_VALUE
};


static ngx_command_t  ngx_http_llmgw_commands[] = {

    { ngx_string("llmgw_members"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_members,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_members_params },

    { ngx_string("llmgw_zone"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_zone,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_hash"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llmgw_conf_hash,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_hash_params },

    { ngx_string("llmgw_ssl"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_http_llmgw_ssl_conf_flag,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.enable),
      NULL },

    { ngx_string("llmgw_ssl_certificate"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.certificate),
      NULL },

    { ngx_string("llmgw_ssl_certificate_key"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.certificate_key),
      NULL },

    { ngx_string("llmgw_ssl_trusted_certificate"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.trusted_certificate),
      NULL },

    { ngx_string("llmgw_ssl_verify"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.verify),
      NULL },

    { ngx_string("llmgw_ssl_name"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.name),
      NULL },

    { ngx_string("llmgw_ssl_session_reuse"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.session_reuse),
      NULL },

    { ngx_string("llmgw_policy"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_policy,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_trace_decisions"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1234|NGX_CONF_TAKE5,
      ngx_http_llmgw_log_conf,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_queue"),
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,
      ngx_http_llmgw_conf_queue,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_queue_params },

    { ngx_string("llmgw_breaker"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234
                       |NGX_CONF_TAKE5|NGX_CONF_TAKE6,
      ngx_http_llmgw_conf_breaker,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_breaker_params },

    { ngx_string("llmgw_hedge"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_hedge,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_hedge_params },

    { ngx_string("llmgw_prefix_index"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llmgw_index_conf,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_index_params },

    { ngx_string("llmgw_slo"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1234,
      ngx_http_llmgw_conf_slo,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_admission"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE123,
      ngx_http_llmgw_conf_admission,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_tenant_budget"),
      NGX_HTTP_UPS_CONF|NGX_CONF_1MORE,
      ngx_http_llmgw_conf_budgets,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_class"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_told,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, class),
      "x-gateway-inference-objective" },

    { ngx_string("llmgw_tenant"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_told,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, tenant),
      "x-gateway-inference-fairness-id" },

    { ngx_string("llmgw_coalesce"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_coalesce_params },

    { ngx_string("llmgw_body_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_body_memory_params },

    { ngx_string("llmgw_pass"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_grpc_protocol },

    { ngx_string("llmgw_openai"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_openai_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_openai_protocol },

    { ngx_string("llmgw_model"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1234,
      ngx_http_llmgw_conf_model,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_sse_keepalive"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_keepalive_params },

    { ngx_string("llmgw_default_max_tokens"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, default_max_tokens),
      &ngx_http_llmgw_max_tokens_bounds },

    { ngx_string("llmgw_timeout_header"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, timeout_header),
      NULL },

    { ngx_string("llmgw_key"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_native_conf_key,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_key_params },

    { ngx_string("llmgw_tries"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, tries),
      &ngx_http_llmgw_tries_bounds },

    { ngx_string("llmgw_resume"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, resume),
      &ngx_http_llmgw_resume_modes },

    { ngx_string("llmgw_connect_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, connect_timeout),
      NULL },

    { ngx_string("llmgw_first_token_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, first_token_timeout),
      NULL },

    { ngx_string("llmgw_token_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, token_timeout),
      NULL },

    { ngx_string("llmgw_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_export_kind },

    { ngx_string("llmgw_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_status_kind },

    { ngx_string("llmgw_dashboard"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_dashboard_kind },

    { ngx_string("llmgw_ready"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_ready_kind },

      ngx_null_command
};

_Static_assert(sizeof(ngx_http_llmgw_commands) / sizeof(ngx_command_t) <= 64,
               "each directive has a bit of ngx_http_llmgw_given_t");


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

    if (ngx_http_llmgw_refusal_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_native_init(cf);
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

    return ngx_http_llmgw_worker_init(lmcf, cycle);
}


static void
ngx_http_llmgw_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llmgw_module);

    if (lmcf) {
        ngx_http_llmgw_worker_done(lmcf);
    }
}

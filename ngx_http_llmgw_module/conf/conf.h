
/*
 * The configuration, and what happens while nginx reads it.  Every room but
 * core/ includes this header, and it includes no room but core/: module.c puts
 * the functions of other rooms that are called here into the main configuration
 * (rooms).
 */

#ifndef _NGX_HTTP_LLMGW_CONF_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "core/breaker.h"
#include "core/flow/flow.h"
#include "core/flow/saturation.h"
#include "core/openai/affinity_key.h"
#include "core/outcome.h"
#include "core/policy/rank.h"

#include "conf/ssl.h"


extern ngx_module_t  ngx_http_llmgw_module;

typedef struct ngx_http_llmgw_worker_s  ngx_http_llmgw_worker_t;
typedef struct ngx_http_llmgw_pool_s    ngx_http_llmgw_pool_t;
typedef struct ngx_http_llmgw_upstream_s  ngx_http_llmgw_upstream_t;
typedef struct ngx_http_llmgw_srv_conf_s  ngx_http_llmgw_srv_conf_t;
typedef struct ngx_http_llmgw_wakes_s   ngx_http_llmgw_wakes_t;
typedef struct ngx_http_llmgw_waker_s   ngx_http_llmgw_waker_t;
typedef struct ngx_http_llmgw_rooms_s   ngx_http_llmgw_rooms_t;
typedef struct ngx_http_llmgw_fleet_events_s  ngx_http_llmgw_fleet_events_t;
typedef struct ngx_http_llmgw_clients_s ngx_http_llmgw_clients_t;
typedef struct ngx_http_llmgw_log_s     ngx_http_llmgw_log_t;
typedef struct ngx_http_llmgw_name_source_s  ngx_http_llmgw_name_source_t;
typedef struct ngx_http_llmgw_rules_s   ngx_http_llmgw_rules_t;
typedef struct ngx_http_llmgw_page_conf_s  ngx_http_llmgw_page_conf_t;
typedef struct ngx_http_llmgw_keys_s    ngx_http_llmgw_keys_t;
typedef struct ngx_http_llmgw_usage_log_s  ngx_http_llmgw_usage_log_t;
typedef struct ngx_http_llmgw_identity_conf_s  ngx_http_llmgw_identity_conf_t;


/* The protocol of a location's clients, which its content handler serves. */
typedef struct {
    ngx_http_handler_pt           handler;

    /*
     * 1: a request that has no location yet comes from a client of this
     * protocol.
     */
    ngx_uint_t                  (*owns)(ngx_http_request_t *r);

    /*
     * Makes an answer in this protocol of a status that nginx itself raised,
     * before its header is sent: changes the header, and sets body->buf if
     * the answer has a body.  NGX_ERROR: no memory.
     */
    ngx_int_t                   (*refuse)(ngx_http_request_t *r,
                                    ngx_chain_t *body);

    /*
     * Answers a request that did not reach the handler, with this status.
     * Returns the code with which to finalize the request.
     */
    ngx_int_t                   (*answer)(ngx_http_request_t *r,
                                    const llmgw_end_t *end);
    unsigned                      has_models:1; /* llmgw_model may be used */
} ngx_http_llmgw_protocol_t;


/*
 * Set by ngx_http_llmgw_conf_once(): bit i is the i-th directive of module.c.
 */
typedef uint64_t  ngx_http_llmgw_given_t;


typedef struct {
    ngx_http_llmgw_given_t        given;
    ngx_array_t                   upstreams;    /* of srv_conf_t * */
    ngx_array_t                   references;   /* of reference_t, to check */
    ngx_array_t                   passes;       /* of loc_conf_t * */
    ngx_array_t                   keys;         /* of keys_t *, one a zone */
    ngx_http_llmgw_usage_log_t   *usage_log;    /* NULL: none */
    const ngx_http_llmgw_rooms_t *rooms;
    ngx_http_llmgw_wakes_t       *wakes;
    ngx_int_t                     request_id_index;
    ngx_msec_t                    coalesce;     /* 0: off */
    unsigned                      said_few_requests:1;  /* warned already */
    unsigned                      said_few_streams:1;   /* warned already */
    size_t                        body_memory;  /* per worker */
    ngx_http_complex_value_t     *body_client;  /* what a client is known by;
                                                   NULL: by nothing */
    ngx_http_llmgw_waker_t       *waker;        /* in this worker */
    ngx_http_llmgw_worker_t      *worker;       /* in this worker */
    ngx_http_llmgw_clients_t     *clients;      /* in this worker */
} ngx_http_llmgw_main_conf_t;


/* A line that names an upstream{} block. */
typedef struct {
    ngx_http_upstream_srv_conf_t *upstream;
    ngx_str_t                     directive;
    u_char                       *file;
    ngx_uint_t                    line;
    ngx_uint_t                    needs_queue;
} ngx_http_llmgw_reference_t;


typedef struct {
    ngx_str_t                     id;           /* the address as text */
    ngx_str_t                     host;         /* empty: an address stands
                                                   in the line */
    struct sockaddr              *sockaddr;
    socklen_t                     socklen;
    ngx_uint_t                    weight;
    ngx_uint_t                    max_conns;
    unsigned                      down:1;
} ngx_http_llmgw_static_t;


/* llmgw_prefix_index */
typedef struct {
    ngx_uint_t                    block;        /* bytes */
    ngx_uint_t                    blocks;       /* of a replica */
    ngx_uint_t                    match;        /* of a prompt, looked at */
    size_t                        size;         /* of the zone */
    ngx_shm_zone_t               *shm_zone;     /* NULL: the policy reads no
                                                   prefixes */
    u_char                       *file;         /* where the directive stands,
                                                   or else the upstream{}
                                                   block */
    ngx_uint_t                    line;
    unsigned                      set:1;
} ngx_http_llmgw_index_t;


/* Configuration of an upstream{} block, and of each of its pools. */
struct ngx_http_llmgw_srv_conf_s {
    ngx_http_llmgw_given_t        given;
    ngx_str_t                     name;
    ngx_str_t                     members;      /* path; empty: static replicas
                                                   only */
    ngx_str_t                     model;        /* their base model; empty:
                                                   any */
    ngx_uint_t                    npools;       /* base models that may be
                                                   served at once */
    ngx_uint_t                    number;       /* of this pool */
    ngx_http_llmgw_srv_conf_t   **pools;        /* each pool's; the first is
                                                   the block itself */
    ngx_shm_zone_t               *directory;    /* which model has which pool;
                                                   NULL: there is one pool */
    ngx_str_t                     zone_name;
    size_t                        zone_size;
    uint32_t                      zone_number;  /* of this configuration, for
                                                   that zone */
    ngx_shm_zone_t               *shm_zone;
    ngx_array_t                   statics;      /* of static_t */

    ngx_uint_t                    prefix;       /* bytes */
    ngx_uint_t                    vnodes;
    ngx_uint_t                    load_factor;  /* permille, 0: no bound */
    ngx_uint_t                    min_load;

    llmgw_rank_policy_t           policy;
    llmgw_weighted_t              weighted;     /* with WEIGHTED */

    ngx_uint_t                    queue_size;   /* 0: off */
    ngx_msec_t                    queue_timeout;
    ngx_msec_t                    queue_ttl;    /* 0: none */
    ngx_msec_t                    queue_hold;   /* 0: requests without a
                                                   replica are refused */
    ngx_uint_t                    is_named;     /* an llmgw_model line names
                                                   it */
    llmgw_flow_conf_t             flow;         /* in what order requests
                                                   leave */
    llmgw_saturation_t            saturation;   /* and when they may */
    llmgw_breaker_conf_t          breaker;
    ngx_uint_t                    hedge_on;     /* if the request asks for it */
    ngx_msec_t                    hedge_delay;  /* 0: no hedge after a delay */
    ngx_uint_t                    hedge_budget; /* permille, for the delay */
    ngx_http_llmgw_rules_t       *rules;        /* classes, tenants, entry */
    ngx_http_llmgw_index_t        index;
    ngx_http_llmgw_ssl_conf_t     ssl;

    ngx_http_llmgw_log_t         *log;          /* of decisions; NULL: none */

    ngx_cycle_t                  *cycle;        /* the one that made the zone */
    ngx_http_llmgw_upstream_t    *upstream;     /* in this worker */

    unsigned                      enabled:1;
    unsigned                      prefix_set:1;
    unsigned                      admits:1;     /* requests are identified */
    unsigned                      reads_prefix:1;   /* as the policy does */

    ngx_array_t                  *protocols;    /* of a server{}'s locations */
};


/* llmgw_model: a name that clients may ask for. */
typedef struct {
    ngx_str_t                     name;
    ngx_str_t                     engine;       /* as engines call it; empty:
                                                   the same */
    ngx_http_upstream_srv_conf_t *upstream;     /* NULL: the location's */
    u_char                       *file;         /* where it stands */
    ngx_uint_t                    line;
} ngx_http_llmgw_model_t;


/* A path of OpenAI's API whose requests name a model. */
typedef struct {
    ngx_str_t                     path;         /* after the version */
    ngx_uint_t                    versions;     /* that may precede it */
    Llmgateway__Api               api;
    unsigned                      is_free:1;    /* its bytes stand for no
                                                   tokens */
    unsigned                      is_form:1;    /* and its body is a form, not
                                                   JSON */
    u_char                       *file;         /* of an llmgw_openai_path */
    ngx_uint_t                    line;
} ngx_http_llmgw_path_t;


/* What llmgw_key makes the key of. */
typedef enum {
    NGX_HTTP_LLMGW_KEY_VALUE = 0,
    NGX_HTTP_LLMGW_KEY_BODY,
    NGX_HTTP_LLMGW_KEY_OPENAI
} ngx_http_llmgw_key_from_t;


/* Default: how many bytes of a prompt are hashed. */
#define NGX_HTTP_LLMGW_PREFIX  64


typedef struct {
    ngx_http_llmgw_given_t        given;
    const ngx_http_llmgw_protocol_t *protocol;  /* NULL: it is none of a
                                                   front */
    ngx_http_upstream_srv_conf_t *upstream;
    ngx_http_core_srv_conf_t     *server;       /* the server of the llmgw_pass
                                                   line */

    ngx_http_llmgw_key_from_t     key_from;
    llmgw_openai_by_t             key_by;       /* from OPENAI */
    ngx_http_complex_value_t     *key;          /* from VALUE; NULL: none */
    ngx_http_upstream_srv_conf_t *key_queue;    /* queue=; NULL: no waiting */

    ngx_http_llmgw_name_source_t *class;        /* NULL: off */
    ngx_http_llmgw_name_source_t *tenant;       /* NULL: off */

    ngx_uint_t                    tries;
    ngx_uint_t                    resume;       /* llmgw_resume_mode_t */
    ngx_msec_t                    connect_timeout;
    ngx_msec_t                    first_token_timeout;
    ngx_msec_t                    token_timeout;

    ngx_array_t                  *models;       /* of model_t; NULL: none */
    ngx_array_t                  *paths;        /* of path_t, beside those that
                                                   are known; NULL: none */
    ngx_msec_t                    sse_keepalive;    /* 0: off */
    ngx_msec_t                    sse_header;
    ngx_uint_t                    default_max_tokens;
    ngx_str_t                     timeout_header;   /* empty: none */

    ngx_http_llmgw_page_conf_t   *page;         /* NULL: not a page */
    ngx_http_llmgw_keys_t        *keys;         /* NULL: off */
    ngx_http_llmgw_identity_conf_t  *identity;  /* NULL: off */
} ngx_http_llmgw_loc_conf_t;


/* NULL: first come, first served, as soon as a replica has capacity. */
static ngx_inline const llmgw_flow_conf_t *
ngx_http_llmgw_conf_flow(const ngx_http_llmgw_srv_conf_t *conf)
{
    return conf->flow.order != LLMGW_FLOW_FIFO
           || conf->flow.fairness != LLMGW_FLOW_GLOBAL_STRICT
           || conf->flow.has_shedding
           || conf->saturation.kind != LLMGW_SATURATION_NEVER ? &conf->flow
                                                              : NULL;
}


/* How much of a prompt enters the key of an OpenAI request, in bytes. */
static ngx_inline ngx_uint_t
ngx_http_llmgw_conf_openai_prefix(const ngx_http_llmgw_srv_conf_t *conf)
{
    return conf->prefix_set ? conf->prefix : 1024;
}


/* members.c, and conf.c: the upstream{} directives */
char *ngx_http_llmgw_conf_members(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llmgw_conf_hash(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_http_llmgw_srv_conf_t *ngx_http_llmgw_conf_enable(ngx_conf_t *cf,
    void *conf);

/*
 * members.c: to be called when the block was read: makes its pools and their
 * zones.
 */
ngx_int_t ngx_http_llmgw_conf_pools(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf);

/* pass.c: lines that name an upstream{} block */
char *ngx_http_llmgw_conf_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_http_upstream_srv_conf_t *ngx_http_llmgw_conf_refer(ngx_conf_t *cf,
    ngx_str_t *name, ngx_uint_t needs_queue);
ngx_int_t ngx_http_llmgw_conf_not_ours(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
ngx_int_t ngx_http_llmgw_conf_check(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* body_memory.c: llmgw_body_memory */
ngx_int_t ngx_http_llmgw_conf_memory_init(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* openai.c: llmgw_model and the like */
char *ngx_http_llmgw_conf_model(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_llmgw_conf_openai_init(ngx_http_llmgw_loc_conf_t *llcf);
char *ngx_http_llmgw_conf_openai_merge(ngx_conf_t *cf,
    ngx_http_llmgw_loc_conf_t *prev, ngx_http_llmgw_loc_conf_t *conf);

/* choice.c: llmgw_policy */
char *ngx_http_llmgw_conf_policy(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* resilience.c: llmgw_queue, llmgw_breaker, llmgw_hedge */
void ngx_http_llmgw_conf_resilience_defaults(ngx_http_llmgw_srv_conf_t *lscf);
char *ngx_http_llmgw_conf_queue(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_breaker(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_hedge(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* prefix_index.c: llmgw_prefix_index */
void ngx_http_llmgw_index_defaults(ngx_http_llmgw_srv_conf_t *lscf);
char *ngx_http_llmgw_index_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/*
 * Functions of other rooms that conf/, fleet/ and keys/ call without including
 * their headers.
 */
struct ngx_http_llmgw_rooms_s {
    ngx_http_upstream_init_peer_pt  init_peer;  /* native passes */
    ngx_int_t                     (*add_zone)(ngx_conf_t *cf,
                                      ngx_http_llmgw_srv_conf_t *conf);
    ngx_int_t                     (*add_prefix)(ngx_conf_t *cf,
                                      ngx_http_llmgw_srv_conf_t *conf);
    ngx_int_t                     (*add_directory)(ngx_conf_t *cf,
                                      ngx_http_llmgw_srv_conf_t *conf);
    ngx_int_t                     (*add_ssl)(ngx_conf_t *cf,
                                      ngx_http_llmgw_srv_conf_t *conf);
    const ngx_http_llmgw_fleet_events_t  *events;
    const ngx_http_llmgw_protocol_t      *grpc;     /* for llmgw_pass */
    const ngx_http_llmgw_protocol_t      *openai;
};


#endif /* _NGX_HTTP_LLMGW_CONF_H_INCLUDED_ */

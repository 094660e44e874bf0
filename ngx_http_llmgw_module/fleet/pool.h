
/*
 * A pool: what one worker knows of one upstream{} block, its members, its
 * replicas, the table over them, and when it looks for updates.
 */

#ifndef _NGX_HTTP_LLMGW_POOL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_POOL_H_INCLUDED_


#include "proto/members/members.h"

#include "choice/choice.h"
#include "fleet/worker.h"
#include "models/models.h"
#include "standby/standby.h"
#include "zone/zone.h"


#define NGX_HTTP_LLMGW_TICK_MS        10     /* view, while streams run */
#define NGX_HTTP_LLMGW_CHECK_MS       1000   /* file, stamps, dead rows */
#define NGX_HTTP_LLMGW_ABSENT_MS      200    /* file, while there is none */
#define NGX_HTTP_LLMGW_STALE_MS       3000   /* agent's heartbeat is 1 s */


typedef struct ngx_http_llmgw_table_s    ngx_http_llmgw_table_t;
typedef struct ngx_http_llmgw_replica_s  ngx_http_llmgw_replica_t;
typedef struct ngx_http_llmgw_waiting_s  ngx_http_llmgw_waiting_t;


struct ngx_http_llmgw_pool_s {
    ngx_queue_t                   queue;        /* of the worker */
    ngx_http_llmgw_worker_t      *worker;
    ngx_http_llmgw_srv_conf_t    *conf;
    ngx_http_llmgw_zone_t        *zone;
    ngx_http_llmgw_choice_t      *choice;       /* NULL: policy affinity */

    llmgw_members_reader_t       *reader;       /* NULL: static only */
    llmgw_members_view_t          view;
    ngx_http_llmgw_replica_t    **listed;       /* members, then statics */
    ngx_uint_t                    nlisted;
    ngx_uint_t                    nmembers;     /* of them, by id */
    uint64_t                      generation;   /* of the view */
    ngx_msec_t                    looked_ms;    /* at the generation */
    ngx_msec_t                    read_ms;      /* the view */

    ngx_rbtree_t                  tree;         /* replicas by id */
    ngx_rbtree_node_t             sentinel;
    ngx_http_llmgw_models_t       models;       /* of the view's members */
    ngx_http_llmgw_standbys_t     standbys;     /* the same */
    ngx_http_llmgw_table_t       *table;
    ngx_http_llmgw_table_t       *next;         /* its ring is being built */

    ngx_event_t                   check;
    ngx_event_t                   tick;
    ngx_event_t                   build;        /* posted, or its timer */
    ngx_msec_t                    rest_ms;      /* no build before */
    ngx_msec_t                    loads_ms;     /* read last */
    uint64_t                      clock_ms;     /* CLOCK_MONOTONIC, */
    ngx_msec_t                    clock_at_ms;  /* as it was here */

    ngx_http_llmgw_waiting_t     *waiting;      /* attempt/'s own */

    ngx_uint_t                    streams;      /* running */
    ngx_uint_t                    round;        /* of looking at statics */

    unsigned                      stale:1;      /* said so in the log */
    unsigned                      unbudgeted:1; /* the same */
    unsigned                      absent:1;
    unsigned                      refused:1;
    unsigned                      behind:1;     /* listed is in no table */
    unsigned                      build_failed:1;
    unsigned                      was_isolated:1;   /* when last applied */
};


ngx_http_llmgw_pool_t *ngx_http_llmgw_pool_create(
    ngx_http_llmgw_srv_conf_t *conf, ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_pool_destroy(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_look(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_loads(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_look_at_loads(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_stream_begins(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_stream_ends(ngx_http_llmgw_pool_t *pool);
ngx_uint_t ngx_http_llmgw_pool_is_stale(ngx_http_llmgw_pool_t *pool);
uint64_t ngx_http_llmgw_monotonic_ms(void);

/*
 * How the pool serves this name, as its engines know it.  By what listed
 * replicas report, whether they live or not: a model whose replicas are all
 * down is known, and has no replica.  SOME and MAYBE: the request's claim needs
 * ngx_http_llmgw_claim_model().
 */
llmgw_serves_t ngx_http_llmgw_pool_serves(ngx_http_llmgw_pool_t *pool,
    ngx_str_t *name);

/*
 * The names that living replicas serve, in pool->models, until the end of this
 * iteration of the event loop.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_pool_name(ngx_http_llmgw_pool_t *pool);

uint64_t ngx_http_llmgw_pool_clock_ms(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_POOL_H_INCLUDED_ */


/*
 * A pool: what one worker knows of one base model of an upstream: its
 * replicas, the table over them, and its queue.  An upstream has one or
 * several (fleet/upstream.h).
 *
 * A pool is made when a model is first bound to it, and lives until the worker
 * ends: when its model has gone it has no replicas, and the next model takes it
 * over.
 */

#ifndef _NGX_HTTP_LLMGW_POOL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_POOL_H_INCLUDED_


#include "core/directory.h"

#include "choice/choice.h"
#include "fleet/upstream.h"


typedef struct ngx_http_llmgw_table_s    ngx_http_llmgw_table_t;
typedef struct ngx_http_llmgw_replica_s  ngx_http_llmgw_replica_t;
typedef struct ngx_http_llmgw_waiting_s  ngx_http_llmgw_waiting_t;


struct ngx_http_llmgw_pool_s {
    ngx_http_llmgw_upstream_t    *upstream;
    ngx_http_llmgw_worker_t      *worker;
    ngx_http_llmgw_srv_conf_t    *conf;
    ngx_http_llmgw_zone_t        *zone;
    ngx_http_llmgw_choice_t      *choice;       /* NULL: policy affinity */

    uint64_t                      base;         /* hash of its base model; 0:
                                                   none is known */
    uint64_t                      binding;      /* number in the directory; 0:
                                                   none */
    char                          model[LLMGW_DIRECTORY_NAME_BYTES];
                                                /* of the binding */

    ngx_http_llmgw_replica_t    **listed;       /* members, then statics */
    ngx_uint_t                    nlisted;
    ngx_uint_t                    nmembers;     /* of these; sorted by id */

    ngx_rbtree_t                  tree;         /* replicas by id */
    ngx_rbtree_node_t             sentinel;
    ngx_http_llmgw_table_t       *table;
    ngx_http_llmgw_table_t       *next;         /* its ring is being built */

    ngx_event_t                   build;        /* posted, or its timer */
    ngx_msec_t                    rest_ms;      /* no build before this time */

    ngx_http_llmgw_waiting_t     *waiting;      /* attempt/'s own */

    ngx_uint_t                    round;        /* of looks at statics */

    unsigned                      unbudgeted:1; /* already logged */
    unsigned                      behind:1;     /* no table has all of listed */
    unsigned                      build_failed:1;
    unsigned                      was_isolated:1;   /* as of the last view
                                                       applied */
};


/* conf: that of the pool, not of the upstream{} block. */
ngx_http_llmgw_pool_t *ngx_http_llmgw_pool_create(
    ngx_http_llmgw_upstream_t *upstream, ngx_http_llmgw_srv_conf_t *conf);
void ngx_http_llmgw_pool_destroy(ngx_http_llmgw_pool_t *pool);

/* From now on its ring is built in one go, not in slices. */
void ngx_http_llmgw_pool_whole(ngx_http_llmgw_pool_t *pool);

/* Once a second: stamps and frees replicas, and sweeps the zone. */
void ngx_http_llmgw_pool_check(ngx_http_llmgw_pool_t *pool);

/*
 * As the functions of the same names for the pool's upstream
 * (fleet/upstream.h).
 */
void ngx_http_llmgw_pool_look(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_look_at_loads(ngx_http_llmgw_pool_t *pool);
uint64_t ngx_http_llmgw_pool_clock_ms(ngx_http_llmgw_pool_t *pool);

void ngx_http_llmgw_pool_stream_begins(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_stream_ends(ngx_http_llmgw_pool_t *pool);

/*
 * How the pool serves a model of this name, as engines know it.  SOME and
 * MAYBE: the request's claim needs ngx_http_llmgw_claim_model().
 */
llmgw_serves_t ngx_http_llmgw_pool_serves(ngx_http_llmgw_pool_t *pool,
    const ngx_str_t *name);

/* The pool's base model; NULL: none is known. */
const char *ngx_http_llmgw_pool_model(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_POOL_H_INCLUDED_ */

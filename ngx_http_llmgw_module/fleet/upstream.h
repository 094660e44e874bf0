
/*
 * An upstream: what one worker knows of one upstream{} block.  It reads the
 * block's members segment, once for all pools, and assigns each member to a
 * pool: a pool serves one base model.
 */

#ifndef _NGX_HTTP_LLMGW_UPSTREAM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_UPSTREAM_H_INCLUDED_


#include "proto/members/members.h"

#include "fleet/worker.h"
#include "models/models.h"
#include "standby/standby.h"
#include "zone/zone.h"


#define NGX_HTTP_LLMGW_TICK_MS        10     /* view, while streams run */
#define NGX_HTTP_LLMGW_CHECK_MS       1000   /* file, stamps, dead rows */
#define NGX_HTTP_LLMGW_ABSENT_MS      200    /* looks for a missing file */
#define NGX_HTTP_LLMGW_STALE_MS       3000   /* agent's heartbeat is 1 s */

#define NGX_HTTP_LLMGW_NO_POOL        255    /* in `takes` */


struct ngx_http_llmgw_upstream_s {
    ngx_queue_t                   queue;        /* of the worker */
    ngx_http_llmgw_worker_t      *worker;
    ngx_http_llmgw_srv_conf_t    *conf;         /* of the block and its first
                                                   pool */
    ngx_http_llmgw_pool_t       **pools;        /* conf->npools of them; NULL:
                                                   no model was bound to it yet,
                                                   which is never so for the
                                                   first */
    ngx_http_llmgw_pool_t        *main;         /* serves requests that name no
                                                   model: that of most
                                                   replicas */
    ngx_http_llmgw_zone_t        *zone;         /* of the first pool: counts
                                                   classes, tenants, takeovers
                                                   and bodies */

    llmgw_members_reader_t       *reader;       /* NULL: static only */
    llmgw_members_view_t          view;
    u_char                       *takes;        /* number of the pool that takes
                                                   each member of the view */
    size_t                        ntakes;       /* elements allocated */
    uint64_t                      generation;   /* of the view */
    ngx_msec_t                    looked_ms;    /* at the segment's
                                                   generation */
    ngx_msec_t                    read_ms;      /* when the view was read */
    ngx_http_llmgw_models_t       models;       /* of the view's members */
    ngx_http_llmgw_standbys_t     standbys;     /* of the view's members */
    ngx_uint_t                    nunrouted;    /* models without a pool */
    ngx_uint_t                    nsilent;      /* replicas of the view that
                                                   name no models */

    ngx_event_t                   check;
    ngx_event_t                   tick;
    ngx_msec_t                    loads_ms;     /* when read last */
    uint64_t                      clock_ms;     /* CLOCK_MONOTONIC then, */
    ngx_msec_t                    clock_at_ms;  /* by nginx's clock */
    ngx_uint_t                    streams;      /* running, of all pools */

    unsigned                      stale:1;      /* already logged */
    unsigned                      absent:1;
    unsigned                      refused:1;
};


ngx_http_llmgw_upstream_t *ngx_http_llmgw_upstream_create(
    ngx_http_llmgw_srv_conf_t *conf, ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_upstream_destroy(ngx_http_llmgw_upstream_t *upstream);

void ngx_http_llmgw_upstream_look(ngx_http_llmgw_upstream_t *upstream);
void ngx_http_llmgw_upstream_loads(ngx_http_llmgw_upstream_t *upstream);
void ngx_http_llmgw_upstream_look_at_loads(
    ngx_http_llmgw_upstream_t *upstream);
ngx_uint_t ngx_http_llmgw_upstream_is_stale(
    ngx_http_llmgw_upstream_t *upstream);

/*
 * CLOCK_MONOTONIC: as read once per iteration of the event loop; or read now.
 */
uint64_t ngx_http_llmgw_upstream_clock_ms(
    ngx_http_llmgw_upstream_t *upstream);
uint64_t ngx_http_llmgw_monotonic_ms(void);

/* 1: one of its pools has a replica that is routable. */
ngx_uint_t ngx_http_llmgw_upstream_has_routable(
    ngx_http_llmgw_upstream_t *upstream);

/*
 * apply.c: takes over the view.  NGX_ERROR: no memory; the rest is taken over
 * at the next look, since the generation is left as it was.
 */
ngx_int_t ngx_http_llmgw_upstream_apply(ngx_http_llmgw_upstream_t *upstream);

/*
 * bind.c: to be called when the members are counted: binds base models to
 * pools, in the directory that all workers share, and follows what other
 * workers have bound.  1: some pool has another model now, or none.
 */
ngx_uint_t ngx_http_llmgw_upstream_bind(ngx_http_llmgw_upstream_t *upstream);

/* The pool of a base model; NULL: it has none. */
ngx_http_llmgw_pool_t *ngx_http_llmgw_upstream_pool_of(
    ngx_http_llmgw_upstream_t *upstream, uint64_t base);

/*
 * Whether and how a name, the engines' name, is served, and by which pool: if
 * no model has it, by the pool of requests without a model.  Decided by what
 * listed replicas report, whether they live or not: a model whose replicas are
 * all down is known, and has no replica.
 */
llmgw_serves_t ngx_http_llmgw_upstream_serves(
    ngx_http_llmgw_upstream_t *upstream, const ngx_str_t *name,
    ngx_http_llmgw_pool_t **pool);

/*
 * The pool for a name of the configuration that no replica reports.  If all
 * replicas report their models, it is a pool of its own, as for a base model
 * whose replicas are gone: requests wait there for its first replica.
 * Otherwise an engine has to decide, and it is the pool of requests without a
 * model.  NULL: no pool is free, or no memory.
 */
ngx_http_llmgw_pool_t *ngx_http_llmgw_upstream_await(
    ngx_http_llmgw_upstream_t *upstream, const ngx_str_t *name);

/* 1: replicas report that name, but their base model has no pool. */
ngx_uint_t ngx_http_llmgw_upstream_lacks_pool(
    ngx_http_llmgw_upstream_t *upstream, const ngx_str_t *name);

/*
 * The names that living replicas serve, in upstream->models, until the end of
 * this iteration of the event loop.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_upstream_name(ngx_http_llmgw_upstream_t *upstream);


#endif /* _NGX_HTTP_LLMGW_UPSTREAM_H_INCLUDED_ */

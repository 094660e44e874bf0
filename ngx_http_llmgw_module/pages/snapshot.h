
/*
 * A snapshot of all pools, taken at once for a page that is written in slices:
 * what all workers have counted, and which members are listed.  The snapshot
 * holds its replicas until it is released, so that they are not freed.
 */

#ifndef _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_


#include "proto/members/shards.h"
#include "upstream/replica.h"
#include "upstream/table.h"
#include "upstream/queue.h"


/* A group with standbys, copied: the next slice may have another view. */
typedef struct {
    llmgw_standby_group_t         group;
    char                          name[LLMGW_GROUP_BYTES];
    char                          active[LLMGW_MEMBERS_NAME_BYTES];
                                                /* its id; "": none lives */
    llmgw_takeover_t              takeover;     /* zeroed: there was none */
} ngx_http_llmgw_standby_t;


/* A shard, copied for the same reason. */
typedef struct {
    llmgw_member_t                member;
    llmgw_member_load_t           load;
    const llmgw_shard_model_t    *model;        /* NULL: it is not told */
} ngx_http_llmgw_shard_t;


typedef struct {
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_counters_t     sum;          /* of all rows */
    ngx_http_llmgw_levels_t       levels;       /* the same */
    ngx_http_llmgw_replica_t    **replicas;     /* listed; held */
    ngx_uint_t                    n;
    llmgw_member_t               *gateways;     /* copies */
    ngx_uint_t                    ngateways;
    ngx_http_llmgw_standby_t     *standbys;     /* groups, copied */
    ngx_uint_t                    nstandbys;
    ngx_http_llmgw_shard_t       *shards;       /* copied */
    ngx_uint_t                    nshards;
} ngx_http_llmgw_snapshot_t;


/* A class or a tenant, copied: workers go on counting. */
typedef struct {
    llmgw_group_t                 counts;
    ngx_str_t                     name;         /* within counts */
    uint32_t                      in_flight;    /* of a tenant */
    ngx_uint_t                    has_any;      /* requests, ever */
} ngx_http_llmgw_group_t;


/*
 * An array with one snapshot for each pool, in the request's pool; NULL: out of
 * memory.
 */
ngx_array_t *ngx_http_llmgw_snapshot_take(ngx_http_request_t *r);

/* snapshot_shards.c: the view's shards, with what they compute. */
ngx_int_t ngx_http_llmgw_snapshot_shards(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_pool_t *memory);

/* Releases the replicas; snapshots may be NULL. */
void ngx_http_llmgw_snapshot_release(ngx_array_t *snapshots);

/* The i-th of a kind, as it is now; the first is "other".  NGX_DECLINED: there
   are no more. */
ngx_int_t ngx_http_llmgw_snapshot_group(ngx_http_llmgw_snapshot_t *snapshot,
    llmgw_group_kind_t kind, ngx_uint_t i, ngx_http_llmgw_group_t *group);


/* gauge.c */

typedef double (*ngx_http_llmgw_gauge_pool_pt)(
    ngx_http_llmgw_snapshot_t *snapshot);

#define NGX_HTTP_LLMGW_POOL_GAUGE(name, help)                                 \
    double ngx_http_llmgw_gauge_##name(ngx_http_llmgw_snapshot_t *snapshot);
#define NGX_HTTP_LLMGW_REPLICA_GAUGE(name, help)                              \
    uint64_t ngx_http_llmgw_gauge_##name(ngx_http_llmgw_replica_t *replica);

/* Below 0: it is not reported. */
#define NGX_HTTP_LLMGW_REPORTED_GAUGE_OF(name, help)                          \
    double ngx_http_llmgw_gauge_##name(ngx_http_llmgw_replica_t *replica);

NGX_HTTP_LLMGW_POOL_GAUGES(NGX_HTTP_LLMGW_POOL_GAUGE)
NGX_HTTP_LLMGW_REPLICA_GAUGES(NGX_HTTP_LLMGW_REPLICA_GAUGE)
NGX_HTTP_LLMGW_REPORTED_GAUGES(NGX_HTTP_LLMGW_REPORTED_GAUGE_OF)


#endif /* _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_ */

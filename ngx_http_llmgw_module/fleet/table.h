
/*
 * The table: a pool's replicas by index, the pick's data of each, and the ring
 * over them.  All three change together.
 */

#ifndef _NGX_HTTP_LLMGW_TABLE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_TABLE_H_INCLUDED_


#include "core/policy/pick.h"

#include "fleet/pool.h"


struct ngx_http_llmgw_table_s {
    ngx_http_llmgw_replica_t    **replicas;
    llmgw_pick_peer_t            *peers;        /* of the same indexes */
    llmgw_place_t                *places;       /* its slot, where it is
                                                   counted */
    llmgw_facts_t                *facts;        /* what each reports */
    llmgw_candidate_t            *candidates;   /* memory for saturation */
    uint32_t                     *counted;      /* memory for saturation */
    uint64_t                     *owners;       /* hash of id and process */
    llmgw_ring_node_t            *nodes;        /* of the same indexes; for the
                                                   ring */
    ngx_uint_t                    n;
    ngx_uint_t                    nusable;      /* peers, suspects and standbys
                                                   included */
    ngx_uint_t                    nstandbys;    /* of these, standbys */
    llmgw_pick_sums_t             sums;         /* of peers */
    llmgw_ring_t                 *ring;
    void                         *builder;      /* while the ring is built */
};


ngx_int_t ngx_http_llmgw_table_update(ngx_http_llmgw_pool_t *pool);

/*
 * apply.c: fills replicas, which has room for all, from the view and the static
 * lines; the replicas then belong to the table.
 */
void ngx_http_llmgw_table_apply(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_replica_t **replicas);

void ngx_http_llmgw_table_build(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_table_destroy(ngx_http_llmgw_table_t *table);
void ngx_http_llmgw_table_finish(ngx_http_llmgw_pool_t *pool);
ngx_uint_t ngx_http_llmgw_table_is_behind(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_table_peers(ngx_http_llmgw_pool_t *pool,
    llmgw_pick_pool_t *peers);

/*
 * How full the fleet is, as llmgw_queue defines it; 0 for `capacity`.
 * *is_known is 0 if no replica reports the facts for that: no request is held
 * then.
 */
double ngx_http_llmgw_table_saturation(ngx_http_llmgw_pool_t *pool,
    int *is_known);

/* 1: no replica is usable, and there is no standby to wait for. */
ngx_uint_t ngx_http_llmgw_table_is_empty(ngx_http_llmgw_pool_t *pool);

/* How long requests are held while no replica is there; 0: they are not. */
ngx_msec_t ngx_http_llmgw_table_hold_ms(ngx_http_llmgw_pool_t *pool);

/*
 * To be called when the view becomes stale or fresh again: updates the
 * standbys.
 */
void ngx_http_llmgw_table_standbys(ngx_http_llmgw_pool_t *pool);
ngx_uint_t ngx_http_llmgw_table_has_routable(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_TABLE_H_INCLUDED_ */


/*
 * Functions of attempt/ that the fleet calls: the only calls in that direction.
 * The table is attempt/'s (attempt/asking.c); module.c puts it into the
 * configuration, and each worker finds it there.
 *
 * attempt/'s own data of a worker, a pool and a replica hangs on a pointer or
 * the head of a list there, which fleet/ keeps and does not read.  The one
 * exception: a replica with sessions or attempts is not freed.
 */

#ifndef _NGX_HTTP_LLMGW_FLEET_EVENTS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_FLEET_EVENTS_H_INCLUDED_


#include "fleet/pool.h"


struct ngx_http_llmgw_fleet_events_s {
    /*
     * Called before the worker's first pool is made, and after its last one has
     * ended.
     */
    ngx_int_t                   (*worker_begins)(
                                    ngx_http_llmgw_worker_t *worker,
                                    ngx_cycle_t *cycle);
    void                        (*worker_ends)(
                                    ngx_http_llmgw_worker_t *worker);

    /*
     * Called when pool->zone is there, but no view yet.  pool_ends() is called
     * when all replicas have ended, even if pool_begins() was not called.
     */
    ngx_int_t                   (*pool_begins)(ngx_http_llmgw_pool_t *pool);
    void                        (*pool_ends)(ngx_http_llmgw_pool_t *pool);

    /* Another worker has found that a claim of this one is the queue's head. */
    void                        (*woken)(ngx_http_llmgw_pool_t *pool);

    /* The replicas' load reports were read; a view was applied. */
    void                        (*loads_read)(ngx_http_llmgw_pool_t *pool);
    void                        (*view_applied)(ngx_http_llmgw_pool_t *pool);

    /*
     * The replica's record has changed: attempts may have to leave the replica.
     */
    void                        (*replica_changed)(
                                    ngx_http_llmgw_replica_t *replica);

    /*
     * The replica has moved, or is no longer listed: no new call uses its
     * connections.
     */
    void                        (*replica_left)(
                                    ngx_http_llmgw_replica_t *replica);

    /* The replica is freed after this. */
    void                        (*replica_ends)(
                                    ngx_http_llmgw_replica_t *replica);
};


#endif /* _NGX_HTTP_LLMGW_FLEET_EVENTS_H_INCLUDED_ */

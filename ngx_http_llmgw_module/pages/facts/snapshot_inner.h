
/* Shared by snapshot.c and snapshot_pools.c. */

#ifndef _NGX_HTTP_LLMGW_SNAPSHOT_INNER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SNAPSHOT_INNER_H_INCLUDED_


#include "pages/facts/snapshot.h"


/* Adds those of all upstreams of the worker. */
ngx_int_t ngx_http_llmgw_snapshot_pools(ngx_array_t *snapshots,
    ngx_http_llmgw_worker_t *worker);

/*
 * Takes that of a pool; with is_first also what all pools of the upstream
 * share.
 */
ngx_int_t ngx_http_llmgw_snapshot_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_pool_t *memory);

/*
 * Leaves out counts from before the pool's model was bound, as they are not the
 * model's.
 */
void ngx_http_llmgw_snapshot_part(ngx_http_llmgw_snapshot_t *snapshot);


#endif /* _NGX_HTTP_LLMGW_SNAPSHOT_INNER_H_INCLUDED_ */

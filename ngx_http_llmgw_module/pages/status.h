
/* The values that llmgw_status is made of; each is NULL if out of memory. */

#ifndef _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_


#include <jansson.h>

#include "pages/snapshot.h"


/* status_pool.c: the pool as a whole */
json_t *ngx_http_llmgw_status_pool(ngx_http_llmgw_snapshot_t *snapshot);

/* A histogram of times to the first token. */
json_t *ngx_http_llmgw_status_group_times(const llmgw_group_t *group);

/* status_fleet.c: parts of it */
json_t *ngx_http_llmgw_status_policy(const ngx_http_llmgw_srv_conf_t *conf);
json_t *ngx_http_llmgw_status_index(const ngx_http_llmgw_srv_conf_t *conf);
json_t *ngx_http_llmgw_status_admission(ngx_http_llmgw_pool_t *pool);
json_t *ngx_http_llmgw_status_queue(ngx_http_llmgw_pool_t *pool);

/*
 * status_fleet.c, status_member.c: the i-th of a list.  NGX_DONE: there are no
 * more; NGX_DECLINED: it has nothing to show.
 */
ngx_int_t ngx_http_llmgw_status_class(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);
ngx_int_t ngx_http_llmgw_status_tenant(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);
ngx_int_t ngx_http_llmgw_status_standby(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);
ngx_int_t ngx_http_llmgw_status_gateway(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);
ngx_int_t ngx_http_llmgw_status_replica(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);

/* status_shard.c: likewise. */
ngx_int_t ngx_http_llmgw_status_shard(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json);

/* {"p50_ms": ..., "p99_ms": ...} of a slot's weights, or null for none. */
json_t *ngx_http_llmgw_status_quantiles(const uint64_t *weights);


#endif /* _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_ */

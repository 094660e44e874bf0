
/* The values that llmgw_status is made of; each is NULL if out of memory. */

#ifndef _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_


#include <jansson.h>

#include "pages/snapshot.h"


/* status_pool.c: the pool as a whole */
json_t *ngx_http_llmgw_status_pool(ngx_http_llmgw_snapshot_t *snapshot);

/* status_member.c */
json_t *ngx_http_llmgw_status_gateway(const llmgw_member_t *member);
json_t *ngx_http_llmgw_status_replica(ngx_http_llmgw_replica_t *replica);

/* {"p50_ms": ..., "p99_ms": ...} of a slot's weights, or null for none. */
json_t *ngx_http_llmgw_status_quantiles(const uint64_t *weights);


#endif /* _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_ */


/* The values that llmgw_status is made of; NULL: out of memory. */

#ifndef _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_


#include <jansson.h>

#include "pages/snapshot.h"


/* status_pool.c: what is asked of the pool as a whole */
json_t *ngx_http_llmgw_status_pool(ngx_http_llmgw_snapshot_t *snapshot);

/* status_member.c */
json_t *ngx_http_llmgw_status_gateway(const llmgw_member_t *member);
json_t *ngx_http_llmgw_status_replica(ngx_http_llmgw_replica_t *replica);

/* Of weights as slots have them: {"p50_ms": ..., "p99_ms": ...} or null. */
json_t *ngx_http_llmgw_status_quantiles(const uint64_t *weights);


#endif /* _NGX_HTTP_LLMGW_STATUS_H_INCLUDED_ */

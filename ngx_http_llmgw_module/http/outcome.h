
/*
 * Outcomes in gRPC and in HTTP: one table (outcome.c).
 */

#ifndef _NGX_HTTP_LLMGW_HTTP_OUTCOME_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HTTP_OUTCOME_H_INCLUDED_


#include "core/outcome.h"
#include "proto/grpc/session.h"


llmgw_grpc_status_t ngx_http_llmgw_outcome_grpc(const llmgw_end_t *end);
int ngx_http_llmgw_outcome_http(const llmgw_end_t *end);

/*
 * How long a client should wait before it retries; 0: not specified; -1: it
 * should not retry.
 */
int ngx_http_llmgw_outcome_pushback_ms(const llmgw_end_t *end);


#endif /* _NGX_HTTP_LLMGW_HTTP_OUTCOME_H_INCLUDED_ */

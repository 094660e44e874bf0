
/*
 * The call that an attempt makes at its replica: LLMReplica.Generate.
 */

#ifndef _NGX_HTTP_LLMGW_GENERATE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_GENERATE_H_INCLUDED_


#include "upstream/attempt.h"


/* Opens the call on the attempt's session, which is ready for it. */
ngx_int_t ngx_http_llmgw_generate_send(ngx_http_llmgw_attempt_t *attempt);

/* What a session with replicas calls. */
const llmgw_grpc_callbacks_t *ngx_http_llmgw_generate_callbacks(void);


#endif /* _NGX_HTTP_LLMGW_GENERATE_H_INCLUDED_ */


/*
 * Sessions that are read at intervals while the worker is busy:
 * core/coalesce.h has the rule and its reason, coalesce.c the reading.
 */

#ifndef _NGX_HTTP_LLMGW_COALESCE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_COALESCE_H_INCLUDED_


#include "conf/param.h"
#include "core/coalesce.h"


typedef struct ngx_http_llmgw_session_s  ngx_http_llmgw_session_t;


typedef struct {
    llmgw_coalesce_load_t         load;
    ngx_queue_t                   sessions;     /* read at intervals */
    ngx_event_t                   timer;
} ngx_http_llmgw_coalesce_t;


/* llmgw_coalesce */
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_coalesce_params[];


void ngx_http_llmgw_coalesce_init(ngx_http_llmgw_worker_t *worker,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_coalesce_done(ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_coalesce_event(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_coalesce_written(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_coalesce_leave(ngx_http_llmgw_session_t *session);


#endif /* _NGX_HTTP_LLMGW_COALESCE_H_INCLUDED_ */

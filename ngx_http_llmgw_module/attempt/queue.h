
/*
 * The queue as a worker sees it: which of its claims wait, and which is next.
 * The order, over all workers, is in core/admission/queue.h.
 */

#ifndef _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_


#include "attempt/claim.h"


/* The waiting claims of a pool in this worker. */
struct ngx_http_llmgw_waiting_s {
    ngx_uint_t                    n;            /* claims that wait */
    ngx_uint_t                    nheld;        /* of these, held: no replica is
                                                   there */
    ngx_event_t                   turn;         /* posted: the head's */
    ngx_event_t                   timer;
    time_t                        full_logged;
    unsigned                      is_new:1;     /* view, since the held ones
                                                   claimed last */
    ngx_http_llmgw_claim_t       *claims[];     /* by entry in the queue */
};


/* NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_queue_init(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_queue_done(ngx_http_llmgw_pool_t *pool);

/* Add and remove a claim of this worker that waits in claim->ask.entry. */
void ngx_http_llmgw_queue_joined(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_queue_left(ngx_http_llmgw_claim_t *claim, uint32_t entry);

/* Wakes the worker in which the head waits, which may be this one. */
void ngx_http_llmgw_queue_tell(ngx_http_llmgw_pool_t *pool,
    const llmgw_wake_t *wake);

/* New reports of replicas: there may be capacity for the head now. */
void ngx_http_llmgw_queue_loads_read(ngx_http_llmgw_pool_t *pool);

/* A new view: a waiting claim may be granted now, or be held. */
void ngx_http_llmgw_queue_view_applied(ngx_http_llmgw_pool_t *pool);

/*
 * The head claims, then the next one, as long as the head waits in this worker.
 */
void ngx_http_llmgw_queue_run(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_ */

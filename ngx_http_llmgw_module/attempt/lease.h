
/*
 * A lease: reserved capacity at a replica, from the pick to the end of the
 * attempt.
 */

#ifndef _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_


#include "core/admission/admission.h"

#include "fleet/pool.h"


typedef struct {
    ngx_http_llmgw_replica_t     *replica;      /* NULL: none is held */
    llmgw_lease_t                 held;
    ngx_msec_t                    start_ms;
} ngx_http_llmgw_lease_t;


/*
 * To be called when lease->replica and ->held were set. change: what became of
 * the replica's circuit.
 */
void ngx_http_llmgw_lease_began(ngx_http_llmgw_lease_t *lease,
    llmgw_breaker_change_t change);

/* To be called when the replica's first byte or token has come. */
void ngx_http_llmgw_lease_proves(ngx_http_llmgw_lease_t *lease);

/* Counts tokens sent to the client; call it before the lease's end. */
void ngx_http_llmgw_lease_tokens(ngx_http_llmgw_lease_t *lease, ngx_uint_t n);

/* Counts a failed attempt; call it before the lease's end. */
void ngx_http_llmgw_lease_fails(ngx_http_llmgw_lease_t *lease);

/*
 * Counts that the replica's engine does not know a model that it reports; call
 * it before the lease's end.
 */
void ngx_http_llmgw_lease_denies(ngx_http_llmgw_lease_t *lease);

/* Ends the lease; does nothing if no lease is held. */
void ngx_http_llmgw_lease_end(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict);


#endif /* _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_ */

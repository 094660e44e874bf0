
/*
 * A lease: a replica's slot that is held, from the pick to the end of the
 * attempt.
 */

#ifndef _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_


#include "zone/zone.h"


typedef struct ngx_http_llmgw_replica_s  ngx_http_llmgw_replica_t;


/* A replica's slot that is held: replica is NULL where none is. */
typedef struct {
    ngx_http_llmgw_replica_t     *replica;
    ngx_http_llmgw_slot_t        *slot;         /* as it was then */
    llmgw_breaker_ticket_t        ticket;
    ngx_msec_t                    start_ms;
    unsigned                      is_judged:1;
} ngx_http_llmgw_lease_t;


/* Under the zone's lock, with lease->replica set; forced: past its breaker. */
void ngx_http_llmgw_lease_begin_locked(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_lease_t *lease, ngx_uint_t forced);

/* The replica's first byte or token came. */
void ngx_http_llmgw_lease_proves(ngx_http_llmgw_lease_t *lease);

/* Counts a failed attempt; before its end. */
void ngx_http_llmgw_lease_fails(ngx_http_llmgw_lease_t *lease);

/* Once; nothing where none is held. */
void ngx_http_llmgw_lease_end(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict);


#endif /* _NGX_HTTP_LLMGW_LEASE_H_INCLUDED_ */


/*
 * Whose a request is, and whether it may enter.
 *
 * A request may have a class, which says how urgent it is and what times it
 * wants, and a tenant, who is to pay for it.  Nothing that a client says of
 * itself is believed unless llmgw_class and llmgw_tenant say so; where they are
 * off, a request has neither, and nothing here costs more than a look at them.
 *
 *   identify ---> enter --- refused ---------------------------> left
 *                   |                                              ^
 *                   +--- admitted: queue, replicas, tokens --------+
 *
 * A request enters once, before routing and before the queue; a retry, a
 * failover and a wait are no second entry.  What it took when it entered, a
 * place in its tenant's budget and tokens of the bucket, it gives back or
 * settles when it has left, exactly once.
 */

#ifndef _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_


#include "conf/admission.h"
#include "core/outcome.h"
#include "http/record.h"
#include "zone/zone.h"


/* What the request's own message says; empty: nothing. */
typedef struct {
    ngx_str_t                     class;        /* InferRequest.slo_class */
    ngx_str_t                     tenant;       /* InferRequest.tenant_id */
} ngx_http_llmgw_said_t;


typedef struct {
    llmgw_group_t                *class_group;  /* where it counts; NULL: it
                                                   has no class */
    llmgw_group_t                *tenant_group; /* the same */
    uint64_t                      tenant;       /* hash of its name; 0: none */
    uint32_t                      class;        /* index in the upstream's
                                                   classes; LLMGW_CLASSES_MAX:
                                                   other, or none */
    int32_t                       priority;     /* core/admission/classes.h */
    ngx_msec_t                    ttft;         /* its class's targets; 0: it */
    ngx_msec_t                    itl;          /* has none */
    double                        tokens;       /* taken out of the bucket */
    unsigned                      entered:1;    /* counted in flight */
} ngx_http_llmgw_identity_t;


/* How a request has ended, for the counts of its groups. */
typedef struct {
    llmgw_outcome_t               outcome;
    ngx_msec_t                    first_token_ms;   /* from the request; where
                                                   none came, of the end */
    ngx_msec_t                    stream_ms;    /* from first to last token */
    ngx_uint_t                    tokens;
    ngx_int_t                     prompt_tokens;    /* as the engine counted
                                                   them; -1: it did not say */
    unsigned                      has_times:1;  /* the four above are known */
} ngx_http_llmgw_leave_t;


/*
 * identity.c: decides whose the request is: the only place that does.  Sets
 * all of *identity, and the record's class and tenant.
 */
void ngx_http_llmgw_identify(ngx_http_request_t *r,
    ngx_http_llmgw_zone_t *zone, const ngx_http_llmgw_srv_conf_t *lscf,
    const ngx_http_llmgw_said_t *said, ngx_http_llmgw_record_t *record,
    ngx_http_llmgw_identity_t *identity);

/*
 * enter.c: NGX_OK: it may enter.  NGX_DECLINED: it is refused, and *end says
 * why.  bytes: of its prompt's text.  capacity: of all replicas together; -1:
 * it is not limited.
 */
ngx_int_t ngx_http_llmgw_enter(ngx_http_llmgw_zone_t *zone,
    const ngx_http_llmgw_srv_conf_t *lscf,
    ngx_http_llmgw_identity_t *identity, size_t bytes, int64_t capacity,
    llmgw_end_t *end);

/* Counts how it ended, and gives back what it had; once for each request. */
void ngx_http_llmgw_leave(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_identity_t *identity, const ngx_http_llmgw_leave_t *leave);


#endif /* _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_ */

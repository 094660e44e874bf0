
/*
 * Class and tenant of a request, and its admission.
 *
 * A request may have a class, which says how urgent it is and what times it
 * wants, and a tenant, which stands for its user.  Both come from its caller's
 * key (keys/keys.h), or else from llmgw_class and llmgw_tenant.  What a client
 * itself states counts only if these directives permit it.  If they are off and
 * the key has neither, a request has no class and no tenant, and costs nothing
 * here.
 *
 *   identify ---> enter --- refused ---------------------------> leave
 *                   |                                              ^
 *                   +--- admitted: queue, replicas, tokens --------+
 *
 * A request enters once, before routing and before the queue; a retry, a
 * failover or a wait does not admit it again.  A request that was admitted has
 * taken a place in its tenant's budget and tokens of the bucket; both are
 * returned or settled when it leaves, exactly once.
 */

#ifndef _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_


#include "attempt/claim.h"
#include "conf/admit.h"
#include "core/outcome.h"
#include "http/record.h"
#include "keys/keys.h"


/* Class and tenant in the request's own message. */
typedef struct {
    ngx_str_t                     class;        /* InferRequest.slo_class, or
                                                   service_tier */
    ngx_str_t                     tenant;       /* InferRequest.tenant_id */
    size_t                        text_bytes;   /* of its prompt */
} ngx_http_llmgw_said_t;


typedef struct {
    ngx_http_llmgw_said_t         said;
    ngx_http_llmgw_whose_t        whose;        /* for the usage record */
    ngx_str_t                     name;         /* of its tenant, also of one
                                                   that is not configured */
    llmgw_cohort_t               *class_cohort; /* counts it; NULL: it has no
                                                   class */
    llmgw_cohort_t               *tenant_cohort;    /* counts it; NULL: no
                                                       tenant */
    const ngx_http_llmgw_tenant_t  *budget;     /* NULL: its tenant has none */
    uint32_t                      class;        /* index in the upstream's
                                                   classes; LLMGW_CLASSES_MAX:
                                                   another, or none */
    int32_t                       priority;     /* core/admission/classes.h */
    ngx_msec_t                    ttft;         /* targets of its class; 0: */
    ngx_msec_t                    itl;          /* there is none */
    int64_t                       tokens;       /* taken out of the bucket */
    unsigned                      is_known:1;   /* identified; has not left */
    unsigned                      in_flight:1;  /* counted in its tenant's
                                                   budget */
    unsigned                      has_paid:1;   /* tokens is set */
} ngx_http_llmgw_identity_t;


/* How a request has ended. */
typedef struct {
    llmgw_outcome_t               outcome;
    ngx_msec_t                    first_token_ms;   /* since the request */
    ngx_msec_t                    tokens_ms;    /* from first to last token */
    ngx_uint_t                    tokens;
    unsigned                      has_times:1;  /* the three above are set */

    ngx_int_t                     prompt_tokens;    /* as the engine counted
                                                       them; -1: not reported */
} ngx_http_llmgw_leave_t;


/*
 * 1: requests of that location to that upstream, by that caller, may have a
 * class or a tenant, and so have to be identified.
 */
static ngx_inline ngx_uint_t
ngx_http_llmgw_admits(const ngx_http_llmgw_loc_conf_t *llcf,
    const ngx_http_llmgw_srv_conf_t *lscf,
    const ngx_http_llmgw_caller_t *caller)
{
    return llcf->class || llcf->tenant || lscf->admits
           || (caller && (caller->class.len || caller->tenant.len));
}


/*
 * identity.c: determines the request's class and tenant; nothing else does.
 * *identity has to be zeroed but for `said`, and to outlive the request's usage
 * record, which refers to identity->whose from now on.  The claim gets what the
 * queue's order depends on.
 */
void ngx_http_llmgw_identify(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_caller_t *caller, ngx_http_llmgw_record_t *record,
    ngx_http_llmgw_claim_t *claim);

/*
 * enter.c: NGX_OK: it may enter.  NGX_DECLINED: it is refused, and *end says
 * why; ngx_http_llmgw_leave() has to be called all the same.
 */
ngx_int_t ngx_http_llmgw_enter(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_claim_t *claim, llmgw_end_t *end);

/*
 * Counts the request's outcome, and returns what the request has taken;
 * idempotent.
 */
void ngx_http_llmgw_leave(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, const ngx_http_llmgw_leave_t *leave);


#endif /* _NGX_HTTP_LLMGW_ADMIT_H_INCLUDED_ */

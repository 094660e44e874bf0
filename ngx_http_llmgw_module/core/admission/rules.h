
/*
 * Admission rules: may this request enter at all?  Asked before routing and
 * before any queue; a request that is refused here is answered at once.
 *
 *     always-admit  everything
 *     reject-all    nothing; to see what refusals look like
 *     token-bucket  its input tokens fit into the bucket (bucket.h)
 *
 * Before any of them a tenant that is over its budget loses its sheddable
 * requests.  A budget is the share of the fleet's places that it may hold, and
 * over it is in_flight > fraction x capacity: a tenant with fraction 0 gets one
 * request through, since that is counted only when it is sent.  A tenant
 * without a budget is never over it, and is not counted either.  The array of
 * budgets is the caller's, indexed by the caller's own numbers of tenants.
 *
 * Names and semantics are those of BLIS.
 */

#ifndef LLMGW_RULES_H
#define LLMGW_RULES_H

#include <stddef.h>

#include "core/admission/bucket.h"


typedef struct {
    double    fraction;         /* 0 to 1 */
    uint32_t  has_budget;
    uint32_t  in_flight;
} llmgw_tenant_t;

typedef enum {
    LLMGW_RULE_ALWAYS = 0,
    LLMGW_RULE_REJECT_ALL,
    LLMGW_RULE_TOKEN_BUCKET
} llmgw_rule_kind_t;

/* Zeroed: admits everything. */
typedef struct {
    llmgw_rule_kind_t  kind;
    llmgw_bucket_t    *bucket;          /* token-bucket's */
    int64_t            capacity;        /* of the fleet, for tenants' budgets */
} llmgw_rule_t;

typedef struct {
    int32_t                priority;    /* of its class: classes.h */
    int64_t                tokens;      /* what it costs */
    int64_t                now_us;
    const llmgw_tenant_t  *tenant;      /* NULL: has no budget */
} llmgw_rule_request_t;

typedef enum {
    LLMGW_RULE_ADMITTED = 0,
    LLMGW_RULE_TENANT_BUDGET,
    LLMGW_RULE_REJECTED,                /* by reject-all */
    LLMGW_RULE_NO_TOKENS
} llmgw_rule_code_t;


/* Returns 0; -1: the fraction is not from 0 to 1. */
int llmgw_tenant_init(llmgw_tenant_t *tenant, double fraction);

/* capacity: places of the whole fleet; below 1 counts as 1 */
static inline int
llmgw_tenant_is_over(const llmgw_tenant_t *tenant, int64_t capacity)
{
    capacity = capacity < 1 ? 1 : capacity;

    return tenant->has_budget
           && tenant->in_flight > tenant->fraction * (double) capacity;
}

/*
 * Finds a rule by its name, with '-' or '_' between words. 0, or -1: unknown.
 */
int llmgw_rule_kind(const char *name, size_t len, llmgw_rule_kind_t *kind);

/* The name in directives and on pages; only for rules that nginx has. */
const char *llmgw_rule_word(llmgw_rule_kind_t kind);

/* May take tokens out of the bucket; nothing else changes. */
llmgw_rule_code_t llmgw_rule_admit(const llmgw_rule_t *rule,
    const llmgw_rule_request_t *request);

#endif /* LLMGW_RULES_H */

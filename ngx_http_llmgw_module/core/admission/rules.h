
/*
 * Admission rules: may this request enter at all?  Asked before routing and
 * before any queue; a request that is refused here is answered at once.
 *
 *     always-admit  everything
 *     reject-all    nothing; to see what refusals look like
 *     token-bucket  its input tokens fit into the bucket (bucket.h)
 *     tier-shed     where some replica's load is above `overload`, only
 *                   requests of at least `min_priority`
 *     gaie-legacy   where the fleet is saturated (core/flow/saturation.h:
 *                   utilization), only requests that may not be shed
 *
 * Before any of them a tenant that is over its budget loses its sheddable
 * requests (tenant.h).
 *
 * Semantics and words of refusals are those of BLIS, whose names these are.
 */

#ifndef LLMGW_RULES_H
#define LLMGW_RULES_H

#include <stddef.h>

#include "core/admission/bucket.h"
#include "core/admission/tenant.h"
#include "core/policy/candidate.h"


#define LLMGW_RULE_REASON_BYTES  192

typedef enum {
    LLMGW_RULE_ALWAYS = 0,
    LLMGW_RULE_REJECT_ALL,
    LLMGW_RULE_TOKEN_BUCKET,
    LLMGW_RULE_TIER_SHED,
    LLMGW_RULE_GAIE_LEGACY
} llmgw_rule_kind_t;

/* Zeroed: admits everything. */
typedef struct {
    llmgw_rule_kind_t  kind;
    llmgw_bucket_t    *bucket;          /* token-bucket's */
    int64_t            overload;        /* tier-shed: above this load */
    int32_t            min_priority;    /* tier-shed */
    double             queue_depth;     /* gaie-legacy: of a full replica */
    double             kv_utilization;  /* gaie-legacy: likewise */
    int64_t            capacity;        /* for budgets of tenants */
} llmgw_rule_t;

typedef struct {
    int32_t                   priority;     /* of its class: classes.h */
    int64_t                   tokens;       /* what it costs */
    int64_t                   now_us;
    const llmgw_tenant_t     *tenant;       /* NULL: has no budget */
    const llmgw_candidate_t  *candidates;
    uint32_t                  n;
} llmgw_rule_request_t;

typedef enum {
    LLMGW_RULE_ADMITTED = 0,
    LLMGW_RULE_TENANT_BUDGET,
    LLMGW_RULE_REJECTED,                /* by reject-all */
    LLMGW_RULE_NO_TOKENS,
    LLMGW_RULE_TIER,
    LLMGW_RULE_SATURATED
} llmgw_rule_code_t;

/* The answer, and the numbers that its reason names. */
typedef struct {
    llmgw_rule_code_t  code;
    int32_t            priority;
    int32_t            min_priority;    /* LLMGW_RULE_TIER */
    int64_t            load;            /* LLMGW_RULE_TIER */
    double             saturation;      /* LLMGW_RULE_SATURATED */
} llmgw_rule_verdict_t;


/* By its name, with '-' or '_' between words: 0; -1: there is none. */
int llmgw_rule_kind(const char *name, size_t len, llmgw_rule_kind_t *kind);

/* May take tokens out of the bucket; nothing else changes. */
llmgw_rule_verdict_t llmgw_rule_admit(const llmgw_rule_t *rule,
    const llmgw_rule_request_t *request);

/*
 * A verdict in words: "" if admitted, else like "tier-shed: class=batch
 * priority=-1 < min=3 load=7".  Cut to LLMGW_RULE_REASON_BYTES with its NUL.
 */
void llmgw_rule_reason(const llmgw_rule_verdict_t *verdict,
    const char *class_name, size_t class_len,
    char reason[LLMGW_RULE_REASON_BYTES]);

#endif /* LLMGW_RULES_H */

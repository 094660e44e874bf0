
/*
 * Admission rules: may this request enter at all?  Asked before routing and
 * before any queue; a request that is refused here is answered at once.
 *
 *     always-admit  everything
 *     reject-all    nothing; to see what refusals look like
 *     token-bucket  its input tokens fit into the bucket (bucket.h)
 *
 * Before any of them a tenant that is over its budget loses its sheddable
 * requests (tenant.h).
 *
 * Semantics are those of BLIS, whose names these are.
 */

#ifndef LLMGW_RULES_H
#define LLMGW_RULES_H

#include <stddef.h>

#include "core/admission/bucket.h"
#include "core/admission/tenant.h"


typedef enum {
    LLMGW_RULE_ALWAYS = 0,
    LLMGW_RULE_REJECT_ALL,
    LLMGW_RULE_TOKEN_BUCKET
} llmgw_rule_kind_t;

/* Zeroed: admits everything. */
typedef struct {
    llmgw_rule_kind_t  kind;
    llmgw_bucket_t    *bucket;          /* token-bucket's */
    int64_t            capacity;        /* for budgets of tenants */
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


/* By its name, with '-' or '_' between words: 0; -1: there is none. */
int llmgw_rule_kind(const char *name, size_t len, llmgw_rule_kind_t *kind);

/* As directives and pages write it; of a rule that nginx has. */
const char *llmgw_rule_word(llmgw_rule_kind_t kind);

/* May take tokens out of the bucket; nothing else changes. */
llmgw_rule_code_t llmgw_rule_admit(const llmgw_rule_t *rule,
    const llmgw_rule_request_t *request);

#endif /* LLMGW_RULES_H */


/*
 * How full the fleet is: 0 empty, 1 and above full.
 *
 *     never        0, whatever happens
 *     utilization  the mean over all candidates of the larger of queue_depth /
 *                  its threshold and kv_utilization / its threshold
 *     concurrency  requests in flight / (candidates x max_concurrency)
 *
 * A fleet without a candidate is full, except for `never`.  Formulas of the
 * Gateway API Inference Extension as BLIS has them, exact in every bit.
 */

#ifndef LLMGW_SATURATION_H
#define LLMGW_SATURATION_H

#include <stddef.h>

#include "core/policy/candidate.h"
#include "core/policy/facts.h"


typedef enum {
    LLMGW_SATURATION_NEVER = 0,
    LLMGW_SATURATION_UTILIZATION,
    LLMGW_SATURATION_CONCURRENCY
} llmgw_saturation_kind_t;

typedef struct {
    llmgw_saturation_kind_t  kind;
    double                   queue_depth;       /* finite, above 0 */
    double                   kv_utilization;    /* finite, above 0 */
    int64_t                  max_concurrency;   /* above 0 */
} llmgw_saturation_t;


/* The name in directives and on pages. */
const char *llmgw_saturation_word(llmgw_saturation_kind_t kind);

double llmgw_saturation(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n);

/*
 * Saturation of a live fleet, by its living peers, or by the suspects if none
 * lives. Unknown facts must hold no request back: a fact that no peer reports
 * reads as 0; if only some peers do not report it, facts.h has the rule.
 * *is_known is 0 where `utilization` had nothing to read at all.  Without any
 * peer it is 0: the pick then has the reason.
 *
 * candidates and peers: memory for as many as the pool has.
 */
double llmgw_saturation_live(const llmgw_saturation_t *saturation,
    const llmgw_fleet_t *fleet, uint64_t now_ms,
    llmgw_candidate_t *candidates, uint32_t *peers, int *is_known);

#endif /* LLMGW_SATURATION_H */


/* How full the fleet is.  saturation.h has the formulas. */

#include "core/flow/saturation.h"


const char *
llmgw_saturation_word(llmgw_saturation_kind_t kind)
{
    static const char *const  words[] = {
        [LLMGW_SATURATION_NEVER] = "capacity",
        [LLMGW_SATURATION_UTILIZATION] = "utilization",
        [LLMGW_SATURATION_CONCURRENCY] = "concurrency"
    };

    return words[kind];
}


static double
saturation_utilization(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    double    sum, queue, kv;
    uint32_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {
        queue = candidates[i].queue_depth / saturation->queue_depth;
        kv = candidates[i].kv_utilization / saturation->kv_utilization;
        sum += queue > kv ? queue : kv;
    }

    return sum / n;
}


static double
saturation_concurrency(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    int64_t   in_flight;
    uint32_t  i;

    in_flight = 0;

    for (i = 0; i < n; i++) {
        in_flight += candidates[i].in_flight;
    }

    return (double) in_flight / (double) (n * saturation->max_concurrency);
}


double
llmgw_saturation(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    if (saturation->kind == LLMGW_SATURATION_NEVER) {
        return 0;
    }

    if (n == 0) {
        return 1;
    }

    return saturation->kind == LLMGW_SATURATION_UTILIZATION
           ? saturation_utilization(saturation, candidates, n)
           : saturation_concurrency(saturation, candidates, n);
}

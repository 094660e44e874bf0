
/*
 * A candidate: the facts of a replica when a policy ranks it, or when a rule
 * reads the fleet.
 *
 * The candidates of a decision are an array, in an order that does not change
 * from one decision to the next as long as the replicas do not: ties go to the
 * first, and round robin counts positions.  `replica` is the caller's number of
 * a replica and means the same one in every decision; prefix/index.h and cold.h
 * know replicas by it.
 *
 * Facts may be old.  The code that fills them decides what an unknown fact
 * reads as.
 */

#ifndef LLMGW_CANDIDATE_H
#define LLMGW_CANDIDATE_H

#include <stdint.h>


typedef struct {
    uint32_t  replica;
    int32_t   in_flight;        /* sent there and not ended; counts are >= 0 */
    int32_t   queue_depth;      /* waiting in the replica */
    int32_t   batch_size;       /* running in the replica */
    uint32_t  cached;           /* blocks of the prompt, from its first on
                                   without a gap, in the replica's KV cache */
    double    kv_utilization;   /* used of all KV blocks, 0 to 1 */
} llmgw_candidate_t;


/* Requests that wait, run and are on their way there. */
static inline int64_t
llmgw_candidate_load(const llmgw_candidate_t *candidate)
{
    return (int64_t) candidate->queue_depth + candidate->batch_size
           + candidate->in_flight;
}

#endif /* LLMGW_CANDIDATE_H */

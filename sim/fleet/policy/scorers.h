
/*
 * Scorers of the simulator: core's, and some for comparisons.
 *
 *     load-aware     0.5 x (1 - min(queue_depth, 128) / 128), as in llm-d
 *     vllm-dp        min-max of 4 x queue_depth + batch_size: how vLLM spreads
 *                    requests over its own data-parallel engines
 *     lora-affinity  1 for all: simulated replicas load no adapters
 */

#ifndef FLEET_SCORERS_H
#define FLEET_SCORERS_H

#include "core/policy/score.h"


/* A table for llmgw_weighted_parse(). */
extern const llmgw_scorer_t *const  fleet_scorers[];

/* The replacement of queue-depth that reads all load, running or not. */
extern const llmgw_scorer_t  fleet_effective_depth;

#endif /* FLEET_SCORERS_H */

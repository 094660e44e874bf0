
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


/* A table of scorers for llmgw_weighted_parse(). */
extern const llmgw_scorer_t *const  fleet_scorers[];

/*
 * Takes the place of queue-depth for FLEET_SIGNAL_EFFECTIVE: it reads waiting
 * and running requests.
 */
extern const llmgw_scorer_t  fleet_effective_depth;

#endif /* FLEET_SCORERS_H */

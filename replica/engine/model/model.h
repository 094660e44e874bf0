
/*
 * The engine `model`: the simulator's replica model in real time.
 *
 * It batches, caches prefixes, preempts and takes as long as the model says,
 * and it says what the simulated engine says.  So a fleet can be simulated by
 * llmgw-sim and really run behind a gateway, and the two compared.
 */

#ifndef MODEL_ENGINE_H
#define MODEL_ENGINE_H

#include "replica/engine/run.h"


extern const engine_kind_t  model_engine_kind;


/* 0, or -1 and one line: these options are no model. */
int model_engine_check(const engine_options_t *options, char *error,
    size_t bytes);

#endif /* MODEL_ENGINE_H */


/*
 * Weights of an engine that computes nothing with them.
 *
 * A simulated engine is asleep, or ready, once the files of --weights are
 * loaded; without --weights it is so at once.
 */

#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "replica/engine/engine.h"


/* To be called at the end of a kind's open(): leads to ENGINE_ASLEEP with
   is_standby, else to ENGINE_READY. 0, or -1 and one line in the log. */
int engine_weights_open(engine_t *engine, const engine_options_t *options);

/* To be called at the end of the kind's wake(): leads to ENGINE_READY. */
void engine_weights_wake(engine_t *engine);

void engine_weights_close(engine_t *engine);

#endif /* ENGINE_WEIGHTS_H */


/*
 * Weights of an engine that computes nothing with them.
 *
 * The simulated engines are asleep, or ready, once what --weights names is
 * there; without it they are so at once.
 */

#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "replica/engine/engine.h"


/* The last act of a kind's open().  0, or -1 and one line in the log. */
int engine_weights_open(engine_t *engine, const engine_options_t *options);

/* The last act of its wake(). */
void engine_weights_wake(engine_t *engine);

void engine_weights_close(engine_t *engine);

#endif /* ENGINE_WEIGHTS_H */

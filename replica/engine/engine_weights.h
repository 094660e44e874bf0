
/*
 * Weights of an engine that computes nothing: it only holds them.
 *
 * The simulated engines are asleep, or ready, once what --weights names is
 * there; without it they are so at once.
 */

#ifndef HELD_H
#define HELD_H

#include "replica/engine/engine.h"


/* The last act of a kind's open().  0, or -1 and one line in the log. */
int held_open(engine_t *engine, const engine_options_t *options);

/* The last act of its wake(). */
void held_wake(engine_t *engine);

void held_close(engine_t *engine);

/* on_failed of any kind: the engine is data. */
void held_fail(void *data);

#endif /* HELD_H */

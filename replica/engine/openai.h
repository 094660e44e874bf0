
/*
 * Engines behind HTTP that speak OpenAI's API, each in its dialect.
 */

#ifndef OPENAI_H
#define OPENAI_H

#include "replica/engine/engine.h"


extern const engine_kind_t  openai_kind;

/*
 * For an engine of this kind that is started here: openai_move() sets the URL
 * of its next process; openai_look_now() has it probed at once, since its
 * process has ended.
 */
void openai_move(engine_t *engine, const char *url);
void openai_look_now(engine_t *engine);

#endif /* OPENAI_H */


/*
 * Engines behind HTTP that speak OpenAI's API, each in its dialect.
 */

#ifndef OPENAI_H
#define OPENAI_H

#include "replica/engine/engine.h"


extern const engine_kind_t  openai_kind;

#endif /* OPENAI_H */

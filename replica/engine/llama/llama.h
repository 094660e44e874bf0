
/*
 * A real engine in this process: a model of a GGUF file, run by libllama.
 * The plugin beside the program has it; core.h says how they talk.
 */

#ifndef LLAMA_KIND_H
#define LLAMA_KIND_H

#include "replica/engine/engine.h"


extern const engine_kind_t  llama_kind;

#endif /* LLAMA_KIND_H */

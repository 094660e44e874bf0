
/*
 * The kinds of engines, by the name of --engine, and which options each takes.
 */

#ifndef KINDS_H
#define KINDS_H

#include "replica/engine/engine.h"


#define KINDS_ERROR_BYTES  256

/* The names, for --help. */
#define KINDS_NAMES  "sim|model|llama|openai|vllm|sglang|llamacpp|auto"

/* What options of these names ask for; no values of --engine. */
#define KINDS_ORCHESTRATE  "orchestrate"
#define KINDS_SHARD        "shard"

/*
 * The kind that these options ask for; NULL and a reason: there is none, or
 * they do not go together.
 */
const engine_kind_t *kinds_choose(const engine_options_t *options,
    char error[KINDS_ERROR_BYTES]);

#endif /* KINDS_H */

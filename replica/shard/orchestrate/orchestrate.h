
/*
 * The kind of engine that has a model's vocabulary and none of its layers,
 * which shards compute (--orchestrate).
 */

#ifndef ORCHESTRATE_H
#define ORCHESTRATE_H

#include "replica/engine/engine.h"


extern const engine_kind_t  orchestrate_kind;

#endif /* ORCHESTRATE_H */

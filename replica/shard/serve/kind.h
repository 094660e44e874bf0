
/*
 * The kind of engine that --shard asks for: no generations, but Shard.Forward
 * (proto/shard.proto) over a slice of a model.
 */

#ifndef SHARD_KIND_H
#define SHARD_KIND_H

#include "replica/engine/engine.h"


extern const engine_kind_t  shard_kind;

#endif /* SHARD_KIND_H */

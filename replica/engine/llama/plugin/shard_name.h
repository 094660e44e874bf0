
/*
 * The name of a sharded model's numerics.  All its slices that compute the same
 * bits have the same name, and so has the model's head, which computes nothing.
 * So what is tried is not a slice's own weights, but ggml's operations on
 * weights of the model's types.
 *
 * In the name: the weights id, the library, the processor's code, what that
 * code makes of some numbers (kernels.h), and whether activations are halves
 * on their way.  Not in it: where the model is cut, and whether rows are
 * computed one by one, since neither changes a bit.  Where activations are
 * halves, each cut rounds them, so an orchestrator's own name must say where
 * its pipeline is cut.
 */

#ifndef SHARD_NAME_H
#define SHARD_NAME_H

#include "replica/engine/llama/plugin/backend.h"


/*
 * Makes the name for a slice or a head; ggml's code must be loaded.  0, or -1
 * and an error.
 */
int shard_name(const char *file, const backend_t *backend, int is_fp16,
    char name[CORE_NAME_BYTES], char error[CORE_ERROR_BYTES]);

#endif /* SHARD_NAME_H */


/*
 * The context parameters with which results are exact, for a whole model and
 * for its slices.
 *
 * A stream is to continue elsewhere with the same bits, so its results may
 * depend neither on the other sequences of a call nor on the lengths of chunks.
 * That holds, on the processors tried, for quantized weights with a KV cache of
 * q8_0 and flash attention, where each row is summed up by itself; each
 * sequence needs its own cells (kv_unified off), and weights stay as the file
 * has them (use_extra_bufts off).  The model itself is then tried.
 *
 * Where a head does not divide into blocks of q8_0, the cache is f16 without
 * flash attention.  The bits of such an attention depend on how many rows a
 * call has.  The next layer rounds most of these differences away, but not
 * all, so a trial of some rows does not find them: one row a call is exact.
 */

#ifndef PROFILE_H
#define PROFILE_H

#include <llama.h>


/*
 * Opens a context with these parameters, changed so that results are exact.
 * Sets *is_stepwise to 1 if they are so only with one row a call, and does not
 * touch it otherwise.  NULL: libllama makes no such context.
 */
struct llama_context *profile_open_context(struct llama_model *model,
    struct llama_context_params params, int *is_stepwise);

#endif /* PROFILE_H */

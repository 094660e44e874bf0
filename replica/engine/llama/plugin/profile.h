
/*
 * The profile in which results are exact, wherever a model is computed with it:
 * whole, or in slices.
 *
 * A stream is to continue elsewhere with the same bits, so nothing may depend
 * on what else is computed: neither on the other sequences of a call nor on
 * the lengths of chunks.  That holds, on the processors tried, for quantized
 * weights with a KV cache of q8_0 and flash attention, where each row is
 * summed up by itself; each sequence needs its own cells (kv_unified off),
 * and weights stay as the file has them (use_extra_bufts off).  The model
 * itself is then tried.
 *
 * Where a head does not divide into blocks of q8_0, the cache is f16 without
 * flash attention.  The bits of such an attention depend on how many rows a
 * call has.  The next layer rounds most of these differences away, but not
 * all, so a trial of some rows does not find them: one row a call is exact.
 */

#ifndef PROFILE_H
#define PROFILE_H

#include <llama.h>


/* A context in which results are exact, of the parameters that are set; sets
   *is_stepwise to 1 where they are with one row a call only, and does not touch
   it otherwise.  NULL: libllama makes no such context. */
struct llama_context *profile_open_context(struct llama_model *model,
    struct llama_context_params params, int *is_stepwise);

#endif /* PROFILE_H */

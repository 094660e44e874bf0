
/*
 * A prompt as tokens: four bytes of text are one, and each token that was
 * delivered before is one more.
 */

#ifndef MODEL_PROMPT_H
#define MODEL_PROMPT_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_PROMPT_TOKEN_BYTES  4

/* How many, with those delivered before. */
uint32_t model_prompt_tokens(size_t prompt_bytes, uint32_t delivered);

/*
 * The hashes of its full blocks, each chained to those before it.  Texts that
 * begin alike have the same first hashes; so have two attempts that go on
 * behind the same tokens.  The caller frees them.  NULL: memory; without a full
 * block there is one entry that means nothing.
 */
uint64_t *model_prompt_hashes(const uint8_t *prompt, size_t bytes,
    uint32_t delivered, uint32_t block_tokens, uint32_t *n);

#endif /* MODEL_PROMPT_H */

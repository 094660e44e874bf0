
/*
 * A prompt as tokens: one for each four bytes of text, and one for each token
 * that was delivered before.
 */

#ifndef MODEL_PROMPT_H
#define MODEL_PROMPT_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_PROMPT_TOKEN_BYTES  4

/* Number of tokens, with those delivered before. */
uint32_t model_prompt_tokens(size_t prompt_bytes, uint32_t delivered);

/*
 * The hashes of its full blocks, each chained to those before it.  Prompts that
 * begin alike have the same first hashes; so have two attempts that continue
 * after the same tokens.  The caller frees the array, which has one unused
 * entry if there is no full block.  NULL: out of memory.
 */
uint64_t *model_prompt_hashes(const uint8_t *prompt, size_t bytes,
    uint32_t delivered, uint32_t block_tokens, uint32_t *n);

#endif /* MODEL_PROMPT_H */

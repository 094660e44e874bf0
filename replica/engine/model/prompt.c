
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

#include "replica/engine/model/prompt.h"


uint32_t
model_prompt_tokens(size_t prompt_bytes, uint32_t delivered)
{
    return (uint32_t) ((prompt_bytes + MODEL_PROMPT_TOKEN_BYTES - 1)
                       / MODEL_PROMPT_TOKEN_BYTES) + delivered;
}


/* The hash of delivered tokens: they depend only on the prompt and on their
   number. */
static uint64_t
prompt_hash_delivered(const uint8_t *prompt, size_t bytes, size_t end,
    uint64_t before)
{
    return XXH3_64bits_withSeed(&end, sizeof(end),
                                XXH3_64bits_withSeed(prompt, bytes, before));
}


uint64_t *
model_prompt_hashes(const uint8_t *prompt, size_t bytes, uint32_t delivered,
    uint32_t block_tokens, uint32_t *n)
{
    size_t     i, from, end, block_bytes;
    uint64_t   hash, *hashes;

    *n = model_prompt_tokens(bytes, delivered) / block_tokens;
    hashes = malloc((*n + 1) * sizeof(uint64_t));

    if (hashes == NULL) {
        return NULL;
    }

    hash = 0;
    block_bytes = (size_t) block_tokens * MODEL_PROMPT_TOKEN_BYTES;

    for (i = 0; i < *n; i++) {
        from = i * block_bytes;
        end = from + block_bytes;
        hash = end <= bytes
               ? XXH3_64bits_withSeed(prompt + from, block_bytes, hash)
               : prompt_hash_delivered(prompt, bytes, end, hash);
        hashes[i] = hash != 0 ? hash : 1;
    }

    return hashes;
}

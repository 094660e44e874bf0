
/*
 * The key of a request: requests with the same key have much of their prompt
 * in common, so a replica that has served one has it in its cache.
 *
 * It is made of the model, cache_salt, the whole of tools and of those system
 * and developer messages that stand before the first user message (Responses:
 * instructions; Anthropic: system), and the beginning of that user message.
 * Later messages are not part of it, so the second turn of a conversation has
 * the key of the first.
 *
 * It is made of values, not of bytes: white space, escapes and the order of
 * keys do not matter.  An object's hash is the sum of the hashes of its members
 * (key and value mixed), which is the same in any order; an array's depends on
 * the order.  A user message is its text, whether it is a string or comes in
 * parts; other parts count by their hash.
 *
 * For a form it is made of the model and of the file's beginning and length:
 * the same file goes to the same replica, and different ones spread.
 */

#ifndef LLMGW_OPENAI_AFFINITY_KEY_H
#define LLMGW_OPENAI_AFFINITY_KEY_H

#include <stdint.h>

#include "core/openai/body.h"


typedef enum {
    LLMGW_OPENAI_BY_PROMPT = 0,
    LLMGW_OPENAI_BY_CACHE_KEY,      /* prompt_cache_key, if the body has one */
    LLMGW_OPENAI_BY_USER            /* user, if the body has one */
} llmgw_openai_by_t;


/*
 * At most `prefix` bytes of the first user message enter the key, or of the
 * prompt of completions and embeddings.  With another `by` than BY_PROMPT, a
 * string with a character or more in that member is the whole key.
 */
uint64_t llmgw_openai_affinity_key(const llmgw_openai_body_t *body,
    size_t prefix, llmgw_openai_by_t by);

#endif /* LLMGW_OPENAI_AFFINITY_KEY_H */

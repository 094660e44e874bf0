
/*
 * Hashes of a body's values, not of its bytes: white space, escapes and the
 * order of keys do not matter.  An object's hash is the sum of the hashes of
 * its members (key and value mixed), which is the same in any order; an array's
 * depends on the order.
 */

#ifndef LLMGW_OPENAI_VALUE_H
#define LLMGW_OPENAI_VALUE_H

#include <stdint.h>

#include "core/openai/body.h"


uint64_t llmgw_openai_hash(llmgw_json_t value);
uint64_t llmgw_openai_hash_string(const llmgw_json_t *string);

/* The result depends on the order of a and b. */
uint64_t llmgw_openai_mix(uint64_t a, uint64_t b);

/* Mixes in the value of a span; 0 if the body has none. */
uint64_t llmgw_openai_mix_span(uint64_t hash, const llmgw_openai_body_t *body,
    llmgw_openai_span_t span);

/*
 * Mixes in what separates entries of an engine's cache before any message:
 * model or adapter, cache_salt, tools.
 */
uint64_t llmgw_openai_seed(const llmgw_openai_body_t *body);

/* The messages, or the prompt, or the input. */
llmgw_json_t llmgw_openai_prompt(const llmgw_openai_body_t *body);

/*
 * 1: it holds messages, or items of Responses; 0: a string, texts, token ids.
 */
int llmgw_openai_has_objects(llmgw_json_t prompt);

#endif /* LLMGW_OPENAI_VALUE_H */

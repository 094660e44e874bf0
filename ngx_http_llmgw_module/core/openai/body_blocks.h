
/*
 * The blocks of a request (core/prefix/blocks.h): requests that begin with the
 * same messages begin with the same blocks.  So each turn of a conversation
 * has all blocks of the turn before it.
 *
 * They are made of the canonical text of all messages in their order,
 *
 *     FF role FF [FE hash] text
 *
 * FF and FE are bytes that no text contains.  The text of a message is its
 * content, whether that is a string or comes in parts; texts of several parts
 * stand below each other, and a part without text counts by its hash. `hash` is
 * that of the message's other members, as tool_calls; there is none where it
 * has no others.  White space, escapes and the order of keys do not matter, nor
 * does cache_control, which clients move from turn to turn.
 *
 * `system` (Anthropic) and `instructions` (Responses) are a first message, and
 * a prompt or input that is no list of messages is a message of the user.
 * Model, cache_salt and tools are in the seed: requests that differ there have
 * no block in common.
 */

#ifndef LLMGW_OPENAI_BODY_BLOCKS_H
#define LLMGW_OPENAI_BODY_BLOCKS_H

#include <stdint.h>

#include "core/openai/body.h"


/*
 * Sets the first blocks, at most `max`, of `bytes` bytes each, and returns how
 * many.  Messages after the one that fills the last block are not read.
 */
uint32_t llmgw_openai_blocks(const llmgw_openai_body_t *body, uint32_t bytes,
    uint64_t *hashes, uint32_t max);

#endif /* LLMGW_OPENAI_BODY_BLOCKS_H */

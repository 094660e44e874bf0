
/*
 * Whether bytes are JSON in UTF-8 that is safe to hand to any engine.
 * proto/json/check.h knows at once that nearly all are.  Of the others yajl has
 * the last word, and says what is wrong with them; with numbers left as text it
 * has no opinion on 1e400 or integers of a thousand digits.
 *
 * This is stricter than yajl 2.1.0: UTF-8 must be that of RFC 3629, \v and \f
 * are no white space, half a surrogate pair is no character, an unfinished
 * string behind the value is garbage, and no value lies deeper than a limit.
 */

#ifndef LLMGW_OPENAI_JUDGE_H
#define LLMGW_OPENAI_JUDGE_H

#include "core/openai/body.h"


/* 0: it is.  -1: error says what is wrong, and where. */
int llmgw_judge_json(const uint8_t *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error);

#endif /* LLMGW_OPENAI_JUDGE_H */

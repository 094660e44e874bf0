
/*
 * The JSON of an answer with logprobs, which the gateway cannot write itself.
 */

#ifndef CHUNK_H
#define CHUNK_H

#include "replica/engine/llama/answer.h"


/*
 * One chunk, with the tokens that are sent now or with the reason of the end;
 * or the whole answer.  The caller frees it.  NULL: out of memory.
 */
char *chunk_make(answer_t *answer, const char *reason);
char *chunk_whole(answer_t *answer, const char *reason);

/* The logprobs object of no token; and adds the logprobs of the tokens that are
   sent now to `all`. */
json_t *chunk_no_logprobs(const answer_t *answer);
void chunk_add_logprobs(const answer_t *answer, json_t *all);

size_t chunk_characters(const char *text, size_t len);

#endif /* CHUNK_H */

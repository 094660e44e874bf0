
/*
 * An answer's JSON, where the gateway cannot write it: with logprobs.
 */

#ifndef CHUNK_H
#define CHUNK_H

#include "replica/engine/llama/answer.h"


/*
 * One chunk with what goes now, or with the reason of the end; or the whole
 * answer.  To be freed; NULL: out of memory.
 */
char *chunk_make(answer_t *answer, const char *reason);
char *chunk_whole(answer_t *answer, const char *reason);

/* Those of no token, and those of what goes now, added to others. */
json_t *chunk_no_logprobs(const answer_t *answer);
void chunk_add_logprobs(const answer_t *answer, json_t *all);

size_t chunk_characters(const char *text, size_t len);

#endif /* CHUNK_H */

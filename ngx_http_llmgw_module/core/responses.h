
/*
 * Which replica has a response of OpenAI's Responses API.
 *
 * An engine keeps its responses in its own memory: a request that continues an
 * earlier response (previous_response_id), or asks for one by its id, can be
 * served only by the process that made the response, and only for its account.
 *
 * A table in shared memory, of sets of eight.  A response is in the set that
 * its id's hash names, and a new one takes the place of the oldest there: the
 * table never grows, and forgets what was made long ago.
 *
 * The caller holds the lock of the shared memory.  A process may be killed in
 * the middle of a note.  No entry refers to another one, and each has a seal
 * over all that it says, written last; an entry whose seal does not fit is
 * empty.  So nothing has to be mended.
 */

#ifndef LLMGW_RESPONSES_H
#define LLMGW_RESPONSES_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_RESPONSES_WAYS    8
#define LLMGW_RESPONSE_ID_MAX   128     /* bytes; engines' have some 40 */


typedef struct {
    uint64_t  owner;            /* hash of a replica's id and its process's
                                   start */
    uint64_t  account;          /* hash of its name; 0: there are none */
} llmgw_response_t;

typedef struct llmgw_responses_s  llmgw_responses_t;


/* The number of bytes that nsets sets need; nsets is a power of two. */
size_t llmgw_responses_bytes(uint32_t nsets);

/* The most sets that so many bytes have room for; 0: none. */
uint32_t llmgw_responses_sets(size_t bytes);

/* memory has to be zeroed. */
llmgw_responses_t *llmgw_responses_init(void *memory, uint32_t nsets);

/* Adds a response, or updates a known one. */
void llmgw_responses_note(llmgw_responses_t *all, const void *id, size_t len,
    const llmgw_response_t *response);

/* 1: *response is set; 0: unknown, or forgotten. */
int llmgw_responses_find(const llmgw_responses_t *all, const void *id,
    size_t len, llmgw_response_t *response);

#endif /* LLMGW_RESPONSES_H */

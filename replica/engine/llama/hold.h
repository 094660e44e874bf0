
/*
 * Holds tokens back until their text is whole.
 *
 * A token may end in the middle of a character, or in what may become a stop
 * string.  Its text and its id are sent together with the token that settles
 * it.  So the text that was sent is always the text of the ids that were sent,
 * and another replica can continue from there.
 *
 * Each byte that is not UTF-8 is sent as U+FFFD.
 */

#ifndef HOLD_H
#define HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "replica/engine/llama/sample.h"


#define HOLD_PIECE_BYTES   1024     /* of a token; the longest are spaces */
#define HOLD_STOPS_MAX     16
#define HOLD_STOP_BYTES    1024     /* of one stop string */

typedef struct {
    uint32_t           id;
    size_t             end;         /* end of its bytes in hold->bytes */
    sample_logprobs_t  logprobs;
} hold_token_t;

typedef struct {
    char          *stops[HOLD_STOPS_MAX];   /* NUL-ended; freed with the hold */
    size_t         nstops;

    char          *bytes;           /* of the tokens that are held */
    size_t         len;
    size_t         bytes_size;
    hold_token_t  *tokens;
    size_t         ntokens;
    size_t         tokens_size;

    char          *text;            /* see hold_take() */
    size_t         text_len;
    size_t         text_size;
    size_t         nout;            /* the first tokens, which go with text */
    int            is_stopped;
} hold_t;


/* Adds a generated token.  0, or -1: out of memory. */
int hold_add(hold_t *hold, uint32_t id, const char *piece, size_t len,
    const sample_logprobs_t *logprobs);

/*
 * Finds what can be sent now: sets hold->text and hold->nout, the number of its
 * tokens, which stay until hold_sent().  is_last: no token follows, so all can
 * be sent.  Sets hold->is_stopped if a stop string was found: the text ends
 * before it, and so does the generation.  0, or -1: out of memory.
 */
int hold_take(hold_t *hold, int is_last);
void hold_sent(hold_t *hold);

void hold_done(hold_t *hold);

/* Writes the bytes as valid UTF-8 into *text, which grows.  0, or -1: out of
   memory. */
int hold_whole(char **text, size_t *size, size_t *len, const char *bytes,
    size_t nbytes);

#endif /* HOLD_H */


/*
 * Text on its way out: tokens are held back until what they say is whole.
 *
 * A token may end in the middle of a character, or in what may become a stop
 * string.  It goes out, and its id is told, with the token that settles it: so
 * the text that was sent is always the text of the ids that were sent, and
 * another replica can go on from there.
 *
 * Bytes that are no UTF-8 go out as U+FFFD each.
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
    size_t             end;         /* of its bytes in hold->bytes */
    sample_logprobs_t  logprobs;
} hold_token_t;

typedef struct {
    char          *stops[HOLD_STOPS_MAX];   /* NUL-ended; freed with it */
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
    size_t         nout;            /* tokens that go with it: the first */
    int            is_stopped;
} hold_t;


/* 0, or -1: out of memory. */
int hold_add(hold_t *hold, uint32_t id, const char *piece, size_t len,
    const sample_logprobs_t *logprobs);

/*
 * What can go: hold->text, and the first hold->nout tokens, which stay until
 * hold_sent().  is_last: nothing comes behind, all goes.  is_stopped: a stop
 * string came; the text ends before it, and all is over.  0, or -1: out of
 * memory.
 */
int hold_take(hold_t *hold, int is_last);
void hold_sent(hold_t *hold);

void hold_done(hold_t *hold);

/* The bytes as UTF-8 into *text, which grows; 0, or -1: out of memory. */
int hold_whole(char **text, size_t *size, size_t *len, const char *bytes,
    size_t nbytes);

#endif /* HOLD_H */

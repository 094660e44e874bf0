
/*
 * Held text.  What can be sent is found in bytes: up to where characters are
 * whole, then up to where a stop string may begin, then back to the end of a
 * token.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/hold.h"


#define HOLD_REPLACEMENT  "\xef\xbf\xbd"


/* Room for n items of a size in an array that grows.  0, or -1. */
static int
hold_grow(void **items, size_t *size, size_t n, size_t item_bytes)
{
    void    *grown;
    size_t   room;

    if (n <= *size) {
        return 0;
    }

    room = n + n / 2 + 16;
    grown = realloc(*items, room * item_bytes);

    if (grown == NULL) {
        return -1;
    }

    *items = grown;
    *size = room;

    return 0;
}


/* Whether a byte may be the second one of a character (RFC 3629). */
static int
hold_is_second(uint8_t first, uint8_t second)
{
    uint8_t  low, high;

    low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

    return second >= low && second <= high;
}


/* Bytes of the first character; 0: it is incomplete; -1: it is invalid. */
static int
hold_char(const char *text, size_t len)
{
    int             i, n;
    const uint8_t  *p;

    p = (const uint8_t *) text;

    if (p[0] < 0x80) {
        return 1;
    }

    if (p[0] < 0xC2 || p[0] > 0xF4) {
        return -1;
    }

    n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;

    for (i = 1; i < n; i++) {
        if ((size_t) i == len) {
            return 0;
        }

        if (i == 1 ? !hold_is_second(p[0], p[1]) : (p[i] & 0xC0) != 0x80) {
            return -1;
        }
    }

    return n;
}


/* Bytes of the text in which each character is whole or invalid. */
static size_t
hold_whole_bytes(const hold_t *h)
{
    int     n;
    size_t  i;

    for (i = 0; i < h->len; i += (size_t) (n > 0 ? n : 1)) {
        n = hold_char(h->bytes + i, h->len - i);

        if (n == 0) {
            break;
        }
    }

    return i;
}


/* Where the first stop string begins; len: there is none. */
static size_t
hold_find_stop(const hold_t *h, size_t len)
{
    char    *found;
    size_t   i, first;

    first = len;

    for (i = 0; i < h->nstops; i++) {
        found = memmem(h->bytes, len, h->stops[i], strlen(h->stops[i]));

        if (found != NULL && (size_t) (found - h->bytes) < first) {
            first = (size_t) (found - h->bytes);
        }
    }

    return first;
}


/* The position from which the text may be the beginning of a stop string; len:
   there is none. */
static size_t
hold_may_stop(const hold_t *h, size_t len)
{
    size_t  i, at, n, first;

    first = len;

    for (i = 0; i < h->nstops; i++) {
        n = strlen(h->stops[i]) - 1;

        for (at = len > n ? len - n : 0; at < first; at++) {
            if (memcmp(h->bytes + at, h->stops[i], len - at) == 0) {
                first = at;
            }
        }
    }

    return first;
}


int
hold_whole(char **text, size_t *size, size_t *len, const char *bytes,
    size_t nbytes)
{
    int     n;
    size_t  i;

    *len = 0;

    if (hold_grow((void **) text, size, 3 * nbytes + 1, 1) != 0) {
        return -1;
    }

    for (i = 0; i < nbytes; i += (size_t) (n > 0 ? n : 1)) {
        n = hold_char(bytes + i, nbytes - i);

        if (n > 0) {
            memcpy(*text + *len, bytes + i, (size_t) n);
            *len += (size_t) n;

        } else {
            memcpy(*text + *len, HOLD_REPLACEMENT, 3);
            *len += 3;
        }
    }

    (*text)[*len] = '\0';

    return 0;
}


int
hold_add(hold_t *h, uint32_t id, const char *piece, size_t len,
    const sample_logprobs_t *logprobs)
{
    hold_token_t  *token;

    if (hold_grow((void **) &h->bytes, &h->bytes_size, h->len + len + 1, 1)
        != 0
        || hold_grow((void **) &h->tokens, &h->tokens_size, h->ntokens + 1,
                     sizeof(hold_token_t)) != 0)
    {
        return -1;
    }

    memcpy(h->bytes + h->len, piece, len);
    h->len += len;

    token = &h->tokens[h->ntokens++];
    token->id = id;
    token->end = h->len;
    token->logprobs = *logprobs;

    return 0;
}


int
hold_take(hold_t *h, int is_last)
{
    size_t  len, stop;

    h->nout = 0;

    if (h->ntokens == 0) {
        return hold_whole(&h->text, &h->text_size, &h->text_len, "", 0);
    }

    len = is_last ? h->len : hold_whole_bytes(h);
    stop = hold_find_stop(h, len);

    if (stop < len || is_last) {
        h->is_stopped = (stop < len);
        h->nout = h->ntokens;

        return hold_whole(&h->text, &h->text_size, &h->text_len, h->bytes,
                          stop);
    }

    len = hold_may_stop(h, len);

    while (h->nout < h->ntokens && h->tokens[h->nout].end <= len) {
        h->nout++;
    }

    len = h->nout > 0 ? h->tokens[h->nout - 1].end : 0;

    if (len == 0) {
        h->nout = 0;    /* tokens without text wait for some */
    }

    return hold_whole(&h->text, &h->text_size, &h->text_len, h->bytes, len);
}


void
hold_sent(hold_t *h)
{
    size_t  i, gone;

    h->text_len = 0;

    if (h->nout == 0) {
        return;
    }

    gone = h->tokens[h->nout - 1].end;
    h->len -= gone;
    h->ntokens -= h->nout;
    memmove(h->bytes, h->bytes + gone, h->len);
    memmove(h->tokens, h->tokens + h->nout,
            h->ntokens * sizeof(hold_token_t));

    for (i = 0; i < h->ntokens; i++) {
        h->tokens[i].end -= gone;
    }

    h->nout = 0;
}


void
hold_done(hold_t *h)
{
    size_t  i;

    for (i = 0; i < h->nstops; i++) {
        free(h->stops[i]);
    }

    free(h->bytes);
    free(h->tokens);
    free(h->text);
    memset(h, 0, sizeof(*h));
}

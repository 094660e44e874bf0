
/*
 * Prompts: words of a fixed length, computed from the seed and the origin of
 * the tokens.
 */

#include "sim/live/drive.h"

#include <stdlib.h>

#include "common/rnd.h"


/*
 * Writes the word for an origin and a place: letters, and a space at the end.
 */
static void
write_word(char *at, int64_t bytes, uint64_t origin, uint32_t place)
{
    rnd_t    rnd;
    int64_t  i;

    rnd.state = origin + (uint64_t) place * 0x9e3779b97f4a7c15ULL;

    for (i = 0; i < bytes - 1; i++) {
        at[i] = (char) ('a' + rnd_below(&rnd, 26));
    }

    at[bytes - 1] = ' ';
}


char *
live_prompt(const live_ask_t *ask, size_t *len)
{
    char                  *text;
    rnd_t                  seed;
    int64_t                bytes_per_token;
    uint32_t               i, n;
    uint64_t               salt;
    const work_request_t  *r;

    r = ask->request;
    bytes_per_token = ask->driver->options->bytes_per_token;
    seed.state = ask->driver->options->seed;
    salt = rnd_next(&seed);
    n = r->input_tokens > 0 ? r->input_tokens : 1;
    *len = (size_t) n * (size_t) bytes_per_token;
    text = malloc(*len + 1);

    if (text == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        write_word(text + (size_t) i * (size_t) bytes_per_token,
                   bytes_per_token, salt ^ (i < r->prefix_tokens
                                            ? r->prefix_origin
                                            : r->body_origin), i);
    }

    text[*len] = '\0';

    return text;
}

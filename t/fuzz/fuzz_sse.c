
/*
 * An engine's event stream, from the network: the events are the same if the
 * stream comes in one piece or in pieces that the input itself chooses.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/sse.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    uint64_t  hash;
    size_t    n;
} seen_t;


static void
mix(seen_t *seen, const void *bytes, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        seen->hash = (seen->hash ^ ((const uint8_t *) bytes)[i])
                     * 0x100000001b3ULL;
    }
}


static int
note(void *arg, const char *data, size_t len, int is_error)
{
    seen_t  *seen;

    seen = arg;
    seen->n++;
    mix(seen, &len, sizeof(len));
    mix(seen, &is_error, sizeof(is_error));
    mix(seen, data, len);

    if (len == 0) {
        abort();
    }

    return 0;
}


/* step: 0: all in one piece; else pieces of 1 to step bytes. */
static seen_t
parse(const char *bytes, size_t size, size_t step)
{
    size_t   at, len;
    sse_t    sse;
    seen_t   seen = { 0, 0 };

    sse_init(&sse, note, &seen);

    for (at = 0; at < size; at += len) {
        len = step > 0 ? 1 + (uint8_t) bytes[at] % step : size;
        len = len < size - at ? len : size - at;

        if (sse_feed(&sse, bytes + at, len) != SSE_DONE) {
            abort();
        }
    }

    if (sse_end(&sse) != SSE_DONE) {
        abort();
    }

    sse_done(&sse);

    return seen;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t  step;
    seen_t  whole, cut;

    if (size > SSE_EVENT_BYTES / 2) {
        return 0;
    }

    whole = parse((const char *) data, size, 0);

    for (step = 1; step <= 16; step *= 4) {
        cut = parse((const char *) data, size, step);

        if (cut.hash != whole.hash || cut.n != whole.n) {
            abort();
        }
    }

    return 0;
}

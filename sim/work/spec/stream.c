
/* Draws a stream's arrivals, one after the other. */

#include "sim/work/spec/stream.h"

#include <math.h>


/*
 * Whether a client is active at a time.  *last is the end of its last window.
 */
static int
is_active(const work_lifecycle_t *l, int64_t at_us, int64_t *last)
{
    int                   active;
    size_t                i;
    const work_window_t  *w;

    w = l->windows.items;
    active = 0;
    *last = 0;

    for (i = 0; i < l->windows.n; i++) {
        active |= at_us >= w[i].start_us && at_us < w[i].end_us;
        *last = w[i].end_us > *last ? w[i].end_us : *last;
    }

    return active;
}


static int
next_of_window(work_stream_t *s)
{
    if (s->next == s->ngaps) {
        return 0;
    }

    s->at_us += s->gaps[s->next++];

    return s->at_us < s->end_us;
}


static int
next_of_client(work_stream_t *s)
{
    int64_t                  last;
    const work_lifecycle_t  *l;

    l = s->client->lifecycle;

    for ( ;; ) {
        s->at_us += work_gap(&s->gap, &s->rnd);

        if (s->at_us >= WORK_MAX_US
            || (s->end_us > 0 && s->at_us >= s->end_us))
        {
            return 0;
        }

        if (l == NULL || is_active(l, s->at_us, &last)) {
            return 1;
        }

        if (s->at_us >= last) {
            return 0;
        }
    }
}


int
work_stream_next(work_stream_t *stream)
{
    if (!stream->is_over) {
        stream->is_over = stream->is_window ? !next_of_window(stream)
                                            : !next_of_client(stream);
    }

    return !stream->is_over;
}


int
work_stream_fill(work_stream_t *stream, int64_t start_us, double rate,
    work_arena_t *arena)
{
    size_t   i;
    double   n, scale;
    int64_t  length, sum;

    length = stream->end_us - start_us;
    n = ceil(rate * (double) length / 1e6);

    if (!(n <= WORK_MAX_REQUESTS)) {
        return -1;
    }

    stream->ngaps = (size_t) n;
    stream->gaps = work_arena_alloc(arena, stream->ngaps * sizeof(int64_t) + 1);
    stream->at_us = start_us;
    scale = 0;

    for (i = 0; i < stream->ngaps; i++) {
        stream->gaps[i] = work_gap(&stream->gap, &stream->rnd);
        scale += (double) stream->gaps[i];
    }

    scale = scale > 0 ? (double) length / scale : 1;
    sum = 0;

    for (i = 0; i < stream->ngaps; i++) {
        stream->gaps[i] = (int64_t) ((double) stream->gaps[i] * scale);
        sum += stream->gaps[i];
    }

    if (stream->ngaps > 0) {
        stream->gaps[stream->ngaps - 1] += length - sum;
    }

    return 0;
}


/*
 * A stream of arrivals: one client's, or one client's in one of its windows.
 * Arrivals are drawn one at a time, so a workload of any length needs no more
 * memory than its requests.
 */

#ifndef WORK_STREAM_H
#define WORK_STREAM_H

#include "sim/work/spec/gap.h"
#include "sim/work/spec/share.h"


typedef struct {
    const work_client_t  *client;
    uint32_t              order;            /* among streams, for ties */
    rnd_t                 rnd;
    work_gap_t            gap;
    const work_sample_t  *input;
    const work_sample_t  *output;
    const work_sample_t  *reason;           /* percent; may be NULL */
    int64_t              *gaps;             /* of a window, scaled */
    size_t                ngaps;
    size_t                next;             /* next one of gaps[] */
    int64_t               at_us;            /* of the last arrival */
    int64_t               end_us;           /* it ends then; 0: no end */
    uint64_t              nsessions;        /* sessions begun so far */
    int                   is_window;
    int                   is_over;
} work_stream_t;

/*
 * Draws the next arrival: 1, and at_us is its time; or 0: there is none, and
 * the stream is over.
 */
int work_stream_next(work_stream_t *stream);

/*
 * Draws the gaps of a window: as many as its rate gives, scaled so that their
 * sum is its length.  0, or -1: more than WORK_MAX_REQUESTS.
 */
int work_stream_fill(work_stream_t *stream, int64_t start_us, double rate,
    work_arena_t *arena);

#endif /* WORK_STREAM_H */


/*
 * Gaps between tokens.  All requests of a step have the same gap, so a step's
 * gap is kept once, and a request that completes adds one to all steps that it
 * was in: +1 at the first, -1 behind the last.  Steps of requests that do not
 * complete, or were preempted, do not count.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/model/replica_inner.h"


static int
gaps_grow(model_gaps_t *gaps)
{
    uint32_t   capacity;
    int32_t   *changes;
    int64_t   *gaps_us;

    capacity = gaps->capacity > 0 ? 2 * gaps->capacity : 256;
    gaps_us = realloc(gaps->gaps_us, capacity * sizeof(int64_t));

    if (gaps_us == NULL) {
        return -1;
    }

    gaps->gaps_us = gaps_us;
    changes = realloc(gaps->changes, capacity * sizeof(int32_t));

    if (changes == NULL) {
        return -1;
    }

    memset(changes + gaps->capacity, 0,
           (capacity - gaps->capacity) * sizeof(int32_t));

    gaps->changes = changes;
    gaps->capacity = capacity;

    return 0;
}


int
model_gaps_add(model_gaps_t *gaps, int64_t gap_us)
{
    /* One more, for the change behind the last step. */
    if (gaps->n + 2 > gaps->capacity && gaps_grow(gaps) != 0) {
        return -1;
    }

    gaps->gaps_us[gaps->n++] = gap_us;

    return 0;
}


int
model_gaps_break(model_gaps_t *gaps, model_request_t *request, uint64_t end)
{
    uint32_t       capacity;
    model_span_t  *spans;

    if (gaps->nspans == gaps->spans_capacity) {
        capacity = gaps->spans_capacity > 0 ? 2 * gaps->spans_capacity : 64;
        spans = realloc(gaps->spans, capacity * sizeof(model_span_t));

        if (spans == NULL) {
            return -1;
        }

        gaps->spans = spans;
        gaps->spans_capacity = capacity;
    }

    gaps->spans[gaps->nspans].first = request->span;
    gaps->spans[gaps->nspans].end = end;
    gaps->spans[gaps->nspans].before = request->spans;
    request->spans = ++gaps->nspans;
    request->span = end + 1;

    return 0;
}


void
model_gaps_count(model_gaps_t *gaps, const model_request_t *request,
    uint64_t end)
{
    uint32_t             i;
    const model_span_t  *span;

    if (gaps->n == 0) {
        return;
    }

    if (end > request->span) {
        gaps->changes[request->span - 1]++;
        gaps->changes[end - 1]--;
    }

    for (i = request->spans; i != 0; i = span->before) {
        span = &gaps->spans[i - 1];
        gaps->changes[span->first - 1]++;
        gaps->changes[span->end - 1]--;
    }
}


void
model_gaps_done(model_gaps_t *gaps)
{
    free(gaps->gaps_us);
    free(gaps->changes);
    free(gaps->spans);
}


void
model_replica_gaps(const model_replica_t *replica,
    void (*gap)(void *data, int64_t gap_us, uint64_t count), void *data)
{
    int64_t   count;
    uint32_t  i;

    count = 0;

    for (i = 0; i < replica->gaps.n; i++) {
        count += replica->gaps.changes[i];

        if (count > 0) {
            gap(data, replica->gaps.gaps_us[i], (uint64_t) count);
        }
    }
}


/*
 * Gaps between tokens.  All requests of a step have the same gap, so a step's
 * gap is kept once, and a request that completes adds one to all steps that it
 * was in: +1 at the first, -1 after the last.  Steps of requests that do not
 * complete, and steps before a preemption, do not count.
 *
 * When there are many steps, those before all running requests are final: they
 * are folded into a table that counts each gap.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/model/replica_inner.h"


#define FOLD_STEPS  16384       /* steps; 200 kB */


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


/* The first step that a running request may still count. */
static uint64_t
gaps_first_open(model_replica_t *replica)
{
    uint32_t                i, span, open;
    uint64_t                first, step;
    const model_gaps_t     *gaps;
    const model_request_t  *request;

    gaps = &replica->gaps;
    first = replica->step;
    open = 0;

    for (i = 0; i < replica->batch.n; i++) {
        request = replica->batch.requests[i];

        if (request->is_prefilling) {
            continue;
        }

        step = request->span;

        for (span = request->spans; span != 0;
             span = gaps->spans[span - 1].before)
        {
            step = gaps->spans[span - 1].first;
            open++;
        }

        first = step < first ? step : first;
    }

    if (open == 0) {
        replica->gaps.nspans = 0;
    }

    return first;
}


static int
gaps_fold_one(model_gaps_t *gaps, int64_t gap_us, uint64_t count)
{
    uint32_t      place, capacity;
    model_gap_t  *folded;

    place = model_hashes_get(&gaps->places, (uint64_t) gap_us);

    if (place != MODEL_HASHES_NONE) {
        gaps->folded[place].count += count;
        return 0;
    }

    if (gaps->nfolded == gaps->folded_capacity) {
        capacity = gaps->folded_capacity > 0 ? 2 * gaps->folded_capacity : 64;
        folded = realloc(gaps->folded, capacity * sizeof(model_gap_t));

        if (folded == NULL) {
            return -1;
        }

        gaps->folded = folded;
        gaps->folded_capacity = capacity;
    }

    gaps->folded[gaps->nfolded].gap_us = gap_us;
    gaps->folded[gaps->nfolded].count = count;

    return model_hashes_put(&gaps->places, (uint64_t) gap_us,
                            gaps->nfolded++);
}


/* Folds the steps before `first`.  0, or -1: no memory. */
static int
gaps_fold(model_gaps_t *gaps, uint64_t first)
{
    uint32_t  i, n;

    n = (uint32_t) (first - gaps->first);

    for (i = 0; i < n; i++) {
        gaps->before += gaps->changes[i];

        if (gaps->before > 0
            && gaps_fold_one(gaps, gaps->gaps_us[i],
                             (uint64_t) gaps->before) != 0)
        {
            return -1;
        }
    }

    /*
     * For requests that ended with the last step, changes[] has one item more.
     */
    memmove(gaps->gaps_us, gaps->gaps_us + n,
            (gaps->n - n) * sizeof(int64_t));
    memmove(gaps->changes, gaps->changes + n,
            (gaps->n + 1 - n) * sizeof(int32_t));
    memset(gaps->changes + gaps->n + 1 - n, 0, n * sizeof(int32_t));

    gaps->n -= n;
    gaps->first = first;
    gaps->fold_at = 2 * gaps->n > FOLD_STEPS ? 2 * gaps->n : FOLD_STEPS;

    return 0;
}


int
model_gaps_add(model_replica_t *replica, int64_t gap_us)
{
    model_gaps_t  *gaps;

    gaps = &replica->gaps;

    if (gaps->first == 0) {
        gaps->first = replica->step;
        gaps->fold_at = FOLD_STEPS;
    }

    if (gaps->n >= gaps->fold_at
        && gaps_fold(gaps, gaps_first_open(replica)) != 0)
    {
        return -1;
    }

    /* One more item, for the change after the last step. */
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
        gaps->changes[request->span - gaps->first]++;
        gaps->changes[end - gaps->first]--;
    }

    for (i = request->spans; i != 0; i = span->before) {
        span = &gaps->spans[i - 1];
        gaps->changes[span->first - gaps->first]++;
        gaps->changes[span->end - gaps->first]--;
    }
}


void
model_gaps_done(model_gaps_t *gaps)
{
    free(gaps->gaps_us);
    free(gaps->changes);
    free(gaps->spans);
    free(gaps->folded);
    model_hashes_done(&gaps->places);
}


void
model_replica_gaps(const model_replica_t *replica,
    void (*gap)(void *data, int64_t gap_us, uint64_t count), void *data)
{
    int64_t              count;
    uint32_t             i;
    const model_gaps_t  *gaps;

    gaps = &replica->gaps;

    for (i = 0; i < gaps->nfolded; i++) {
        gap(data, gaps->folded[i].gap_us, gaps->folded[i].count);
    }

    count = gaps->before;

    for (i = 0; i < gaps->n; i++) {
        count += gaps->changes[i];

        if (count > 0) {
            gap(data, gaps->gaps_us[i], (uint64_t) count);
        }
    }
}

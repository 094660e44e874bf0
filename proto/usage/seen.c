
/* The set of records seen so far.  seen.h says how. */

#include <stdlib.h>
#include <string.h>

#include "proto/usage/seen.h"


typedef struct {
    uint64_t              first;
    uint64_t              last;
} seen_range_t;

typedef struct {
    llmgw_usage_source_t  source;
    seen_range_t         *ranges;       /* ascending, with gaps between them */
    size_t                n;
    size_t                size;
} seen_source_t;

struct llmgw_seen_s {
    seen_source_t        *sources;
    size_t                n;
    size_t                size;
    size_t                last;         /* index of the source found last */
    size_t                nranges;      /* ranges of all sources */
};


llmgw_seen_t *
llmgw_seen_create(void)
{
    return calloc(1, sizeof(llmgw_seen_t));
}


void
llmgw_seen_destroy(llmgw_seen_t *seen)
{
    size_t  i;

    if (seen == NULL) {
        return;
    }

    for (i = 0; i < seen->n; i++) {
        free(seen->sources[i].ranges);
    }

    free(seen->sources);
    free(seen);
}


/* Makes room for one more item in an array; 0: there is no memory. */
static int
seen_grow(void *array, size_t n, size_t *size, size_t bytes)
{
    void    *more;
    size_t   wanted;

    if (n < *size) {
        return 1;
    }

    wanted = *size ? 2 * *size : 4;
    more = realloc(*(void **) array, wanted * bytes);

    if (more == NULL) {
        return 0;
    }

    *(void **) array = more;
    *size = wanted;

    return 1;
}


static int
seen_is(const seen_source_t *known, const llmgw_usage_source_t *source)
{
    return strcmp(known->source.birth, source->birth) == 0
           && strcmp(known->source.gateway, source->gateway) == 0;
}


/* Many records in a row have the same source. */
static seen_source_t *
seen_source(llmgw_seen_t *seen, const llmgw_usage_source_t *source)
{
    size_t  i;

    if (seen->last < seen->n && seen_is(&seen->sources[seen->last], source)) {
        return &seen->sources[seen->last];
    }

    for (i = 0; i < seen->n; i++) {
        if (seen_is(&seen->sources[i], source)) {
            seen->last = i;
            return &seen->sources[i];
        }
    }

    if (seen->n == LLMGW_SEEN_SOURCES
        || !seen_grow(&seen->sources, seen->n, &seen->size,
                      sizeof(seen_source_t)))
    {
        return NULL;
    }

    seen->last = seen->n++;
    seen->sources[seen->last] = (seen_source_t) { .source = *source };

    return &seen->sources[seen->last];
}


/* The first range that ends at n or later, or just before n. */
static size_t
seen_place(const seen_source_t *source, uint64_t n)
{
    size_t  low, high, middle;

    low = 0;
    high = source->n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (source->ranges[middle].last + 1 < n) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


static void
seen_move(seen_source_t *source, size_t to, size_t from)
{
    memmove(source->ranges + to, source->ranges + from,
            (source->n - from) * sizeof(seen_range_t));
}


llmgw_seen_rc_t
llmgw_seen_add(llmgw_seen_t *seen, const llmgw_usage_source_t *source,
    uint64_t n)
{
    size_t          i;
    seen_range_t   *range;
    seen_source_t  *known;

    known = seen_source(seen, source);

    if (known == NULL) {
        return LLMGW_SEEN_FULL;
    }

    i = seen_place(known, n);
    range = known->ranges + i;

    if (i < known->n && range->first <= n && n <= range->last) {
        return LLMGW_SEEN_DOUBLE;
    }

    if (i < known->n && range->last + 1 == n) {
        range->last = n;

        if (i + 1 < known->n && range[1].first == n + 1) {
            range->last = range[1].last;        /* the gap is closed */
            seen_move(known, i + 1, i + 2);
            known->n--;
            seen->nranges--;
        }

        return LLMGW_SEEN_NEW;
    }

    if (i < known->n && range->first == n + 1) {
        range->first = n;
        return LLMGW_SEEN_NEW;
    }

    if (seen->nranges == LLMGW_SEEN_RANGES
        || !seen_grow(&known->ranges, known->n, &known->size,
                      sizeof(seen_range_t)))
    {
        return LLMGW_SEEN_FULL;
    }

    seen_move(known, i + 1, i);
    known->ranges[i] = (seen_range_t) { n, n };
    known->n++;
    seen->nranges++;

    return LLMGW_SEEN_NEW;
}

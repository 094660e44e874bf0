
/*
 * Gaps between tokens, counted.
 */

#include <stdlib.h>

#include "sim/report/figure/gaps.h"


#define GAPS_SLOTS  4096            /* initial number; a power of two */


static report_count_t *
gaps_slot(const report_gaps_t *gaps, int64_t value)
{
    size_t  i;

    i = (size_t) ((uint64_t) value * 0x9e3779b97f4a7c15ULL >> 20);

    for (i &= gaps->nslots - 1; gaps->slots[i].count > 0; ) {
        if (gaps->slots[i].value == value) {
            break;
        }

        i = (i + 1) & (gaps->nslots - 1);
    }

    return &gaps->slots[i];
}


static void
gaps_grow(report_gaps_t *gaps)
{
    size_t         i;
    report_gaps_t  grown;

    grown = *gaps;
    grown.nslots = gaps->nslots == 0 ? GAPS_SLOTS : 2 * gaps->nslots;
    grown.slots = calloc(grown.nslots, sizeof(report_count_t));

    if (grown.slots == NULL) {
        gaps->failed = 1;
        return;
    }

    for (i = 0; i < gaps->nslots; i++) {
        if (gaps->slots[i].count > 0) {
            *gaps_slot(&grown, gaps->slots[i].value) = gaps->slots[i];
        }
    }

    free(gaps->slots);
    *gaps = grown;
}


void
report_gap(void *data, int64_t gap_us, uint64_t count)
{
    report_gaps_t      *gaps;
    report_count_t  *slot;

    gaps = data;

    if (2 * gaps->n >= gaps->nslots) {
        gaps_grow(gaps);
    }

    if (gaps->failed || count == 0) {
        return;
    }

    slot = gaps_slot(gaps, gap_us);
    gaps->n += slot->count == 0;
    slot->value = gap_us;
    slot->count += count;
}


static int
gaps_cmp(const void *a, const void *b)
{
    const report_count_t  *x, *y;

    x = a;
    y = b;

    return (x->value > y->value) - (x->value < y->value);
}


int
report_gaps_list(report_gaps_t *gaps, report_count_t **list, size_t *n)
{
    size_t  i, kept;

    kept = 0;

    for (i = 0; i < gaps->nslots; i++) {
        if (gaps->slots[i].count > 0) {
            gaps->slots[kept++] = gaps->slots[i];
        }
    }

    if (kept > 1) {
        qsort(gaps->slots, kept, sizeof(report_count_t), gaps_cmp);
    }

    *list = gaps->slots;
    *n = kept;

    return gaps->failed ? -1 : 0;
}


/*
 * Gaps between tokens: a fleet has millions of them and few thousand different
 * ones, so they are counted, not kept.  Open addressing, at most half full.
 */

#ifndef REPORT_GAPS_H
#define REPORT_GAPS_H

#include "sim/report/figure/stat.h"


/* Zeroed: empty. */
typedef struct {
    report_count_t  *slots;
    size_t           nslots;
    size_t           n;
    int              failed;        /* for want of memory */
} report_gaps_t;


/* data: the report_gaps_t. */
void report_gap(void *data, int64_t gap_us, uint64_t count);

/*
 * Ascending, for the caller to free; the table is used up.  0, or -1 if memory
 * ran out on the way.
 */
int report_gaps_list(report_gaps_t *gaps, report_count_t **list, size_t *n);

#endif /* REPORT_GAPS_H */

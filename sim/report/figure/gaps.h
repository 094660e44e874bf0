
/*
 * Gaps between tokens: a fleet has millions of them but only a few thousand
 * different lengths, so each length is counted.  Open addressing, at most half
 * full.
 */

#ifndef REPORT_GAPS_H
#define REPORT_GAPS_H

#include "sim/report/figure/stat.h"


/* A zeroed table is empty. */
typedef struct {
    report_count_t  *slots;
    size_t           nslots;
    size_t           n;
    int              failed;        /* memory ran out */
} report_gaps_t;


/* Adds `count` gaps of one length; data is the report_gaps_t. */
void report_gap(void *data, int64_t gap_us, uint64_t count);

/*
 * Sets *list to the gaps in ascending order, to be freed by the caller; the
 * table is no longer valid.  0, or -1: memory ran out, here or earlier.
 */
int report_gaps_list(report_gaps_t *gaps, report_count_t **list, size_t *n);

#endif /* REPORT_GAPS_H */

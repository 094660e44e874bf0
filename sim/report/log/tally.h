
/*
 * Counts how often each name occurs.
 */

#ifndef REPORT_LOG_TALLY_H
#define REPORT_LOG_TALLY_H

#include <stddef.h>
#include <stdint.h>


#define REPORT_TALLY_BYTES  64          /* of a name; a longer one is cut */
#define REPORT_TALLY_MAX    65536       /* rows; further names share one */

typedef struct {
    char                 name[REPORT_TALLY_BYTES];
    uint64_t             n;
} report_tally_row_t;

/* Zeroed: empty. */
typedef struct {
    report_tally_row_t  *rows;
    size_t               n;
    uint32_t            *slots;         /* by hash: row + 1; a power of two */
    size_t               nslots;
} report_tally_t;


/* Counts a name.  0, or -1: no memory. */
int report_tally(report_tally_t *tally, const char *name);

/*
 * Sorts the rows, the most frequent first.  Nothing may be counted afterwards.
 */
void report_tally_sort(report_tally_t *tally);

void report_tally_done(report_tally_t *tally);

#endif /* REPORT_LOG_TALLY_H */

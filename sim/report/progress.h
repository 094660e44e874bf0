
/*
 * A progress bar on stderr, where that is a terminal.  It is drawn when its
 * share changes by a percent, so nothing needs a clock.
 */

#ifndef REPORT_PROGRESS_H
#define REPORT_PROGRESS_H

#include <stdint.h>


typedef struct {
    const char  *label;
    uint64_t     total;
    int          percent;           /* as drawn; -1: nothing yet */
    int          is_on;
} report_progress_t;


void report_progress_init(report_progress_t *p, const char *label,
    uint64_t total);

/* Draws the bar; note is shown after it, or is "". */
void report_progress(report_progress_t *p, uint64_t done, const char *note);

/* Removes the bar. */
void report_progress_done(report_progress_t *p);

#endif /* REPORT_PROGRESS_H */


/*
 * A progress bar.
 */

#include <stdio.h>
#include <unistd.h>

#include "sim/report/progress.h"


#define PROGRESS_CELLS  30


void
report_progress_init(report_progress_t *p, const char *label, uint64_t total)
{
    p->label = label;
    p->total = total;
    p->percent = -1;
    p->is_on = total > 0 && isatty(STDERR_FILENO);
}


void
report_progress(report_progress_t *p, uint64_t done, const char *note)
{
    int  i, percent;

    if (!p->is_on) {
        return;
    }

    percent = done >= p->total ? 100 : (int) (done * 100 / p->total);

    if (percent == p->percent && *note == '\0') {
        return;
    }

    p->percent = percent;
    fprintf(stderr, "\r%s [", p->label);

    for (i = 0; i < PROGRESS_CELLS; i++) {
        putc(i * 100 < percent * PROGRESS_CELLS ? '#' : '.', stderr);
    }

    fprintf(stderr, "] %3d %% %s\033[K", percent, note);
    fflush(stderr);
}


void
report_progress_done(report_progress_t *p)
{
    if (p->is_on && p->percent >= 0) {
        fputs("\r\033[K", stderr);
    }

    p->is_on = 0;
}

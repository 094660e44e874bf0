
/*
 * Files of the detectors: their settings, and their verdicts.
 */

#ifndef REPORT_SATURATION_FILE_H
#define REPORT_SATURATION_FILE_H

#include <stdio.h>

#include "sim/report/figure/saturation.h"
#include "sim/work/error.h"


/*
 * Reads settings, strict YAML: `threshold: {threshold_ms: }` and
 * `backlog_drift: {window_size_sec: ...}`, each allowed only if its detector is
 * selected.  0, or -1 and *error.
 */
int report_saturation_read(report_saturation_t *s, const char *path,
    work_error_t *error);

/*
 * Writes {"final": {...}, "trace": [...]}: runs the detectors over the requests
 * again, and writes every verdict.  0, or -1: no memory.
 */
int report_saturation_write(const report_saturation_t *s,
    const report_served_t *served, size_t n, FILE *out);

#endif /* REPORT_SATURATION_FILE_H */

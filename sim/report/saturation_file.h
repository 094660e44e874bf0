
/*
 * Files of the detectors: their settings, and their verdicts.
 */

#ifndef REPORT_SATURATION_FILE_H
#define REPORT_SATURATION_FILE_H

#include <stdio.h>

#include "sim/report/figure/saturation.h"
#include "sim/work/error.h"


/*
 * Settings, strict YAML: `threshold: {threshold_ms: }` and `backlog_drift:
 * {window_size_sec: ...}`, each only where its detector is selected.  0, or -1
 * and *error.
 */
int report_saturation_read(report_saturation_t *s, const char *path,
    work_error_t *error);

/*
 * {"final": {...}, "trace": [...]}: runs the detectors over the requests once
 * more, with every verdict written down.  0, or -1 without memory.
 */
int report_saturation_write(const report_saturation_t *s,
    const report_served_t *served, size_t n, FILE *out);

#endif /* REPORT_SATURATION_FILE_H */

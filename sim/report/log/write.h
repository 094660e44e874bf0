
/*
 * Writes the decision log: a line of JSON for each decision, with everything
 * that it was made of, in core's format (core/decision/write.h).
 */

#ifndef REPORT_LOG_WRITE_H
#define REPORT_LOG_WRITE_H

#include <stdio.h>

#include "core/decision/write.h"
#include "sim/fleet/fleet.h"


typedef struct {
    FILE                  *out;
    const fleet_config_t  *config;
    uint32_t               top;         /* candidates written; 0: all */
    double                 sample;      /* share of requests, 0 to 1 */
    double                *cold;        /* memory: one item per replica */
    double                *scores;      /* likewise, per scorer and replica */
    uint32_t              *heap;        /* likewise */
    uint32_t              *shown;       /* likewise, and one item more */
    char                  *line;        /* memory for a line; grows */
    size_t                 size;
    int                    no_memory;   /* a line could not be written */
} report_log_t;


/* Opens the log and writes its first lines.  0, or -1 with errno. */
int report_log_open(report_log_t *log, const char *path,
    const fleet_config_t *config, uint32_t top, double sample);

/* Callbacks of fleet_watch_t; data is the report_log_t. */
void report_log_decided(void *data, const fleet_decision_t *decision);
void report_log_chose(void *data, const fleet_chosen_t *chosen);

/*
 * Closes the log and frees its memory.  0, or -1 with errno if not everything
 * could be written.
 */
int report_log_close(report_log_t *log);

#endif /* REPORT_LOG_WRITE_H */

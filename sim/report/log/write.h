
/*
 * The decision log: each decision with all that it was made of, a line of JSON
 * each, in core's words (core/decision/write.h).
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
    double                *cold;        /* memory for so many replicas */
    double                *scores;      /* likewise, for each scorer */
    uint32_t              *heap;        /* likewise */
    uint32_t              *shown;       /* likewise, and one more */
    char                  *line;        /* grows with what is written */
    size_t                 size;
    int                    no_memory;   /* for a line */
} report_log_t;


/* Writes the first lines.  0, or -1 with errno. */
int report_log_open(report_log_t *log, const char *path,
    const fleet_config_t *config, uint32_t top, double sample);

/* Callbacks of fleet_watch_t, data: the report_log_t. */
void report_log_decided(void *data, const fleet_decision_t *decision);
void report_log_chose(void *data, const fleet_chosen_t *chosen);

/* 0, or -1 with errno: not all could be written.  Frees all. */
int report_log_close(report_log_t *log);

#endif /* REPORT_LOG_WRITE_H */

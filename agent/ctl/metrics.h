
/* Metrics that consist of more than one counter. */

#ifndef CTL_METRICS_H
#define CTL_METRICS_H

#include <stdio.h>

#include <jansson.h>


/*
 * Prints metrics from the object "pipelines" of the agent's status, which is
 * not NULL.
 */
void ctl_metrics_pipelines(FILE *out, const char *agent,
    const json_t *pipelines);

/* The same from the object "callers". */
void ctl_metrics_callers(FILE *out, const char *agent, json_t *callers);

#endif /* CTL_METRICS_H */

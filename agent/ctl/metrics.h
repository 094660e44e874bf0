
/* Metrics that are made of more than a counter each. */

#ifndef CTL_METRICS_H
#define CTL_METRICS_H

#include <stdio.h>

#include <jansson.h>


/* Of the object "pipelines" of the agent's status, which is not NULL. */
void ctl_metrics_pipelines(FILE *out, const char *agent,
    const json_t *pipelines);

/* The same, of the object "callers". */
void ctl_metrics_callers(FILE *out, const char *agent, json_t *callers);

#endif /* CTL_METRICS_H */


/*
 * llmgwctl metrics: the agent's counters in Prometheus' format, for the node
 * exporter's textfile collector or the like.  So an agent needs no HTTP server:
 * it listens on no further port, and only root and its group may ask it.  A
 * counter that an agent of another version lacks is left out.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"
#include "ctl/metrics.h"
#include "common/swim_counters.h"


typedef struct {
    const char  *name;
    const char  *help;
} ctl_metric_t;


static const ctl_metric_t  ctl_counters[] = {
#define X(name, help)  { #name, help },
    SWIM_COUNTERS(X)
#undef X
};

static const ctl_metric_t  ctl_gauges[] = {
    { "joined", "1: it has received another member's table" },
    { "isolated", "1: this agent is probably cut off" },
    { "incarnation", "its incarnation" },
    { "backlog", "updates still being gossiped" },
    { "local_health", "0 (good) to 8: how slow it finds itself" },
    { "doubt", "local_health by its former name, for one version" }
};

#define CTL_COUNT(table)  (sizeof(table) / sizeof((table)[0]))


static void
ctl_metrics_head(FILE *out, const char *name, const char *suffix,
    const char *help, const char *type)
{
    fprintf(out, "# HELP llmgw_agent_%s%s %s\n# TYPE llmgw_agent_%s%s %s\n",
            name, suffix, help, name, suffix, type);
}


static void
ctl_metrics_one(FILE *out, const char *id, const ctl_metric_t *metric,
    const char *suffix, const char *type, const json_t *value)
{
    if (value == NULL) {
        return;
    }

    ctl_metrics_head(out, metric->name, suffix, metric->help, type);
    fprintf(out, "llmgw_agent_%s%s{agent=\"%s\"} %" JSON_INTEGER_FORMAT "\n",
            metric->name, suffix, id,
            json_is_true(value) ? 1 : json_integer_value(value));
}


/* Prints one series for each key of the object. */
static void
ctl_metrics_keyed(FILE *out, const char *id, const char *name,
    const char *label, const char *help, const char *type, json_t *object)
{
    json_t      *value;
    const char  *key, *suffix;

    suffix = strcmp(type, "counter") == 0 ? "_total" : "";
    ctl_metrics_head(out, name, suffix, help, type);

    json_object_foreach(object, key, value) {
        fprintf(out, "llmgw_agent_%s%s{agent=\"%s\",%s=\"%s\"} %"
                JSON_INTEGER_FORMAT "\n", name, suffix, id, label, key,
                json_integer_value(value));
    }
}


static void
ctl_metrics_show(const ctl_t *ctl, json_t *status, FILE *out)
{
    size_t       i;
    json_t      *counters, *pipelines, *callers;
    const char  *id;

    (void) ctl;

    id = ctl_text(status, "id");
    counters = json_object_get(status, "counters");

    ctl_metrics_head(out, "info", "", "identity, as labels", "gauge");
    fprintf(out, "llmgw_agent_info{agent=\"%s\",role=\"%s\",cluster=\"%s\","
            "version=\"%s\"} 1\n", id, ctl_text(status, "role"),
            ctl_text(status, "cluster"), ctl_text(status, "version"));

    ctl_metrics_head(out, "uptime_seconds", "",
                     "time since the agent started", "gauge");
    fprintf(out, "llmgw_agent_uptime_seconds{agent=\"%s\"} %.3f\n", id,
            (double) ctl_number(status, "uptime_ms") / 1000);

    for (i = 0; i < CTL_COUNT(ctl_gauges); i++) {
        ctl_metrics_one(out, id, &ctl_gauges[i], "", "gauge",
                        json_object_get(status, ctl_gauges[i].name));
    }

    ctl_metrics_keyed(out, id, "members", "state", "members by liveness",
                      "gauge", json_object_get(status, "members"));

    for (i = 0; i < CTL_COUNT(ctl_counters); i++) {
        ctl_metrics_one(out, id, &ctl_counters[i], "_total", "counter",
                        json_object_get(counters, ctl_counters[i].name));
    }

    ctl_metrics_keyed(out, id, "dropped", "reason", "datagrams dropped",
                      "counter", json_object_get(counters, "dropped"));

    pipelines = json_object_get(status, "pipelines");

    if (pipelines != NULL) {
        ctl_metrics_pipelines(out, id, pipelines);
    }

    callers = json_object_get(status, "callers");

    if (callers != NULL) {
        ctl_metrics_callers(out, id, callers);
    }
}


int
ctl_metrics(const ctl_t *ctl)
{
    return ctl_show(ctl, "status", "role", ctl_metrics_show);
}

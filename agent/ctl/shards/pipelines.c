
/*
 * Metrics from a replica's report about the shards that it uses, and a shard's
 * about its callers: the objects "pipelines" and "callers" of the agent's
 * status (docs/control.md).
 *
 * The replica made them, so any field may be missing or of another type: a
 * figure that is not there is left out, and text that becomes a label is
 * escaped.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/metrics.h"


#define PIPELINES_MAX_SHARDS   32       /* a request has 16 at most */
#define PIPELINES_MAX_REASONS  32
#define PIPELINES_MAX_CALLERS  32       /* a shard reports 17 at most */
#define PIPELINES_LABEL_BYTES  512

typedef struct {
    const char  *name;
    const char  *type;
    const char  *key;
    const char  *count;     /* for a summary without a count of its own: the
                               field that has it */
    const char  *help;
} pipelines_metric_t;


static const pipelines_metric_t  pipelines_whole[] = {
    { "pipeline_ready", "gauge", "ready", NULL,
      "1: a whole pipeline exists" },
    { "pipeline_streams", "gauge", "streams", NULL,
      "streams that shards compute" },
    { "pipeline_waiting", "gauge", "waiting", NULL,
      "streams that wait for a pipeline" },
    { "pipeline_tokens", "counter", "tokens", NULL,
      "tokens that shards computed" },
    { "pipeline_construct_seconds", "summary", "construct_us", "constructs",
      "time to build a pipeline" },
    { "pipeline_first_token_seconds", "summary", "first_token_us", NULL,
      "time to the first token of a stream" },
    { "pipeline_history_bytes", "gauge", "history_bytes", NULL,
      "kept to be computed again" },
    { "pipeline_fallbacks", "counter", "fallbacks", NULL,
      "streams that went on without shards" },
    { "pipeline_replays", "counter", "replays", NULL,
      "histories that were computed again" },
    { "pipeline_replayed_rows", "counter", "replayed_rows", NULL,
      "positions in these" },
    { "pipeline_rewinds", "counter", "rewinds", NULL,
      "streams that were computed again from their tokens" },
    { "pipeline_histories_dropped", "counter", "histories_dropped", NULL,
      "histories dropped for lack of memory" },
    { "pipeline_audited_rows", "counter", "audited_rows", NULL,
      "positions that two shards computed, to compare" },
    { "pipeline_audits", "gauge", "audits", NULL,
      "audits that run" },
    { "pipeline_audits_skipped", "counter", "audits_skipped", NULL,
      "audits that were due and did not take place, or broke off" },
    { "pipeline_audits_differed", "counter", "audits_differed", NULL,
      "audits in which two shards computed different bits" }
};

/* One series for each reason. */
static const pipelines_metric_t  pipelines_failovers =
    { "pipeline_failovers", "counter", "failovers", NULL,
      "shards that were replaced under a stream" };

static const pipelines_metric_t  pipelines_each[] = {
    { "shard_latency_seconds", "summary", "latency_us", "steps",
      "time from a step to its result" },
    { "shard_sessions", "gauge", "sessions", NULL,
      "sessions of this replica there" },
    { "shard_failovers", "counter", "failovers", NULL,
      "times that it was replaced under a stream" },
    { "shard_corruption_detected", "counter", "corruptions", NULL,
      "results that could not be right" },
    { "shard_differed", "counter", "differed", NULL,
      "audits in which it differed from two others" },
    { "shard_excluded_seconds", "gauge", "excluded_ms", NULL,
      "time until it gets new sessions again" }
};

static const pipelines_metric_t  pipelines_callers[] = {
    { "shard_caller_sessions", "gauge", "sessions", NULL,
      "sessions that the caller has at this shard" },
    { "shard_caller_opened", "counter", "opened", NULL,
      "sessions that this shard took from the caller" },
    { "shard_caller_rows", "counter", "rows", NULL,
      "positions that this shard computed for the caller" },
    { "shard_caller_refusals", "counter", "refused", NULL,
      "sessions of the caller that this shard refused or ended, by reason" }
};

#define PIPELINES_COUNT(table)  (sizeof(table) / sizeof((table)[0]))


static const char *
pipelines_suffix(const pipelines_metric_t *metric)
{
    return strcmp(metric->type, "counter") == 0 ? "_total" : "";
}


static void
pipelines_head(FILE *out, const pipelines_metric_t *metric)
{
    fprintf(out, "# HELP llmgw_%s%s %s\n# TYPE llmgw_%s%s %s\n",
            metric->name, pipelines_suffix(metric), metric->help,
            metric->name, pipelines_suffix(metric), metric->type);
}


/* Prints microseconds as seconds; labels: those of the series, or "". */
static void
pipelines_print_summary(FILE *out, const pipelines_metric_t *metric,
    const char *labels, const json_t *parent, const json_t *object)
{
    size_t         i;
    const json_t  *count, *value;

    static const struct {
        const char  *key, *quantile;
    } quantiles[] = { { "p50", "0.5" }, { "p95", "0.95" } };

    for (i = 0; i < PIPELINES_COUNT(quantiles); i++) {
        value = json_object_get(object, quantiles[i].key);

        if (json_is_number(value)) {
            fprintf(out, "llmgw_%s{%s,quantile=\"%s\"} %.6f\n", metric->name,
                    labels, quantiles[i].quantile,
                    json_number_value(value) / 1e6);
        }
    }

    value = json_object_get(object, "sum");
    count = json_object_get(object, "count");

    if (count == NULL && metric->count != NULL) {
        count = json_object_get(parent, metric->count);
    }

    if (json_is_number(value) && json_is_integer(count)) {
        fprintf(out, "llmgw_%s_sum{%s} %.6f\nllmgw_%s_count{%s} %"
                JSON_INTEGER_FORMAT "\n", metric->name, labels,
                json_number_value(value) / 1e6, metric->name, labels,
                json_integer_value(count));
    }
}


static void
pipelines_print(FILE *out, const pipelines_metric_t *metric,
    const char *labels, const json_t *parent)
{
    double         number;
    const json_t  *value;

    value = json_object_get(parent, metric->key);

    if (json_is_object(value)) {
        pipelines_print_summary(out, metric, labels, parent, value);

    } else if (json_is_boolean(value) || json_is_number(value)) {
        number = json_is_true(value) ? 1 : json_number_value(value);
        number /= strstr(metric->key, "_ms") ? 1e3 : 1;
        fprintf(out, "llmgw_%s%s{%s} %.15g\n", metric->name,
                pipelines_suffix(metric), labels, number);
    }
}


/* Appends NAME="TEXT" to the labels, escaped as the format requires; a longer
   text is cut. */
static void
pipelines_label(char *labels, size_t size, const char *before,
    const char *name, const char *text)
{
    size_t  len;

    len = (size_t) snprintf(labels, size, "%s,%s=\"", before, name);

    for (/* void */; *text && len < size - 4; text++) {
        if (*text == '"' || *text == '\\') {
            labels[len++] = '\\';
        }

        labels[len++] = *text == '\n' ? ' ' : *text;
    }

    memcpy(labels + len, "\"", 2);
}


/*
 * Prints a series of the counter for each reason; labels are the ones that all
 * these series have.
 */
static void
pipelines_print_reasons(FILE *out, const pipelines_metric_t *metric,
    const char *labels, json_t *counts)
{
    char         more[2 * PIPELINES_LABEL_BYTES];
    size_t       n;
    json_t      *value;
    const char  *reason;

    n = 0;

    json_object_foreach(counts, reason, value) {
        if (json_is_integer(value) && n++ < PIPELINES_MAX_REASONS) {
            pipelines_label(more, sizeof(more), labels, "reason",
                            reason);
            fprintf(out, "llmgw_%s_total{%s} %" JSON_INTEGER_FORMAT "\n",
                    metric->name, more, json_integer_value(value));
        }
    }
}


static void
pipelines_print_shards(FILE *out, const char *of_agent, const json_t *shards)
{
    char         labels[PIPELINES_LABEL_BYTES];
    size_t       i, k;
    json_t      *shard;
    const char  *id;

    for (i = 0; i < PIPELINES_COUNT(pipelines_each); i++) {
        pipelines_head(out, &pipelines_each[i]);

        json_array_foreach(shards, k, shard) {
            id = json_string_value(json_object_get(shard, "id"));

            if (id != NULL && k < PIPELINES_MAX_SHARDS) {
                pipelines_label(labels, sizeof(labels), of_agent, "shard",
                                id);
                pipelines_print(out, &pipelines_each[i], labels, shard);
            }
        }
    }
}


void
ctl_metrics_pipelines(FILE *out, const char *agent, const json_t *pipelines)
{
    char     labels[PIPELINES_LABEL_BYTES];
    size_t   i;
    json_t  *value;

    snprintf(labels, sizeof(labels), "agent=\"%s\"", agent);

    for (i = 0; i < PIPELINES_COUNT(pipelines_whole); i++) {
        if (json_object_get(pipelines, pipelines_whole[i].key) != NULL) {
            pipelines_head(out, &pipelines_whole[i]);
            pipelines_print(out, &pipelines_whole[i], labels, pipelines);
        }
    }

    value = json_object_get(pipelines, "failovers");

    if (json_is_object(value)) {
        pipelines_head(out, &pipelines_failovers);
        pipelines_print_reasons(out, &pipelines_failovers, labels, value);
    }

    value = json_object_get(pipelines, "shards");

    if (json_array_size(value) > 0) {
        pipelines_print_shards(out, labels, value);
    }
}


/* Prints one metric of all callers. */
static void
pipelines_print_callers(FILE *out, const pipelines_metric_t *metric,
    const char *of_agent, json_t *callers)
{
    char         labels[PIPELINES_LABEL_BYTES];
    size_t       n;
    json_t      *caller, *value;
    const char  *id;

    n = 0;
    pipelines_head(out, metric);

    json_object_foreach(callers, id, caller) {
        if (n++ == PIPELINES_MAX_CALLERS) {
            break;
        }

        pipelines_label(labels, sizeof(labels), of_agent, "caller", id);
        value = json_object_get(caller, metric->key);

        if (json_is_object(value)) {
            pipelines_print_reasons(out, metric, labels, value);

        } else {
            pipelines_print(out, metric, labels, caller);
        }
    }
}


void
ctl_metrics_callers(FILE *out, const char *agent, json_t *callers)
{
    char    labels[PIPELINES_LABEL_BYTES];
    size_t  i;

    snprintf(labels, sizeof(labels), "agent=\"%s\"", agent);

    for (i = 0; i < PIPELINES_COUNT(pipelines_callers); i++) {
        pipelines_print_callers(out, &pipelines_callers[i], labels, callers);
    }
}


/*
 * One workload, simulated many times.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/gateway/gateway.h"
#include "sim/variant.h"


#define VARIANT_REQUESTS  1000          /* default of the number of requests */


void
variant_common_init(variant_common_t *common)
{
    sim_settings_init(&common->settings);
    work_flags_init(&common->workload, VARIANT_REQUESTS);
}


/* --- the workload */

static int
variant_targets(variant_source_t *source, const work_yaml_list_t *slos,
    char *error)
{
    const char *const  texts[REPORT_TIMES] = {
        source->common->slo_ttft, source->common->slo_itl,
        source->common->slo_e2e
    };

    return report_targets_read(&source->targets, slos, texts, error);
}


static int
variant_source_trace(variant_source_t *s, char *error)
{
    work_error_t             wrong;
    const variant_common_t  *c;

    c = s->common;

    if (c->trace_header == NULL || c->trace_data == NULL) {
        snprintf(error, VARIANT_ERROR_BYTES,
                 "--trace-header and --trace-data go together");
        return -1;
    }

    if (work_trace_read(&s->trace, c->trace_header, c->trace_data, &wrong)
        != 0)
    {
        snprintf(error, VARIANT_ERROR_BYTES, "%s", wrong.text);
        return -1;
    }

    snprintf(s->words, sizeof(s->words), "trace %.200s, %zu requests",
             c->trace_data, s->trace.n);

    return variant_targets(s, &s->trace.header.slos, error);
}


static int
variant_source_spec(variant_source_t *s, char *error)
{
    work_error_t             wrong;
    const sim_settings_t    *set;
    const variant_common_t  *c;

    c = s->common;
    set = &c->settings;

    if (work_flags_spec(&c->workload, set->seed != SIM_SEED_UNSET,
                        sim_seed(set), &s->spec, &s->max_requests, &s->arena,
                        &wrong) != 0)
    {
        snprintf(error, VARIANT_ERROR_BYTES, "%s", wrong.text);
        return -1;
    }

    if (c->workload.workload_spec != NULL) {
        snprintf(s->words, sizeof(s->words), "specification %.200s",
                 c->workload.workload_spec);

    } else {
        snprintf(s->words, sizeof(s->words), "%s at %g requests/s",
                 c->workload.workload, c->workload.rate > 0
                                       ? c->workload.rate : 1);
    }

    return variant_targets(s, &s->spec.slos, error);
}


int
variant_source_init(variant_source_t *source,
    const variant_common_t *common, char error[VARIANT_ERROR_BYTES])
{
    memset(source, 0, sizeof(*source));
    source->common = common;
    work_trace_init(&source->trace);

    return common->trace_header != NULL || common->trace_data != NULL
           ? variant_source_trace(source, error)
           : variant_source_spec(source, error);
}


void
variant_source_done(variant_source_t *source)
{
    work_trace_done(&source->trace);
    work_arena_done(&source->arena);
}


/* --- a run */

static int
variant_work(variant_run_t *v, variant_source_t *s,
    const sim_settings_t *settings, work_error_t *wrong)
{
    int64_t                 horizon_us;
    work_replay_options_t   options;

    if (s->common->trace_header == NULL) {
        horizon_us = settings->horizon_us != SIM_UNSET
                     ? settings->horizon_us : s->spec.horizon_us;
        v->plan.fleet.horizon_us = horizon_us > 0 ? horizon_us : INT64_MAX;

        return work_generate(&v->work, &s->spec, s->max_requests, horizon_us,
                             wrong);
    }

    if (settings->horizon_us == SIM_UNSET) {
        v->plan.fleet.horizon_us = work_trace_horizon(&s->trace);
    }

    memset(&options, 0, sizeof(options));
    options.mode = WORK_REPLAY_FIXED;
    options.seed = (uint64_t) sim_seed(settings);
    options.horizon_us = v->plan.fleet.horizon_us;

    return work_from_trace(&v->work, &s->trace, &options, wrong);
}


int
variant_run(variant_run_t *v, variant_source_t *source,
    const sim_settings_t *settings, const fleet_watch_t *watch,
    char error[VARIANT_ERROR_BYTES])
{
    work_error_t  wrong;

    memset(v, 0, sizeof(*v));
    work_init(&v->work);

    if (sim_plan_make(&v->plan, settings) != 0) {
        snprintf(error, VARIANT_ERROR_BYTES, "%s", v->plan.error);
        return -1;
    }

    if (variant_work(v, source, settings, &wrong) != 0) {
        snprintf(error, VARIANT_ERROR_BYTES, "%s", wrong.text);
        return -1;
    }

    if (gateway_serve(settings->gateway, &v->plan.fleet, &v->work, watch,
                      &v->result, error, VARIANT_ERROR_BYTES) != 0)
    {
        return -1;
    }

    v->run.config = &v->plan.fleet;
    v->run.work = &v->work;
    v->run.result = &v->result;
    v->run.targets = source->targets.n > 0 ? &source->targets : NULL;

    return 0;
}


void
variant_run_done(variant_run_t *v)
{
    fleet_result_done(&v->result);
    work_done(&v->work);
    sim_plan_done(&v->plan);
}


/* --- words */

static int
variant_refuse(char *error, const char *what, const char *text)
{
    snprintf(error, VARIANT_ERROR_BYTES, "variant \"%.200s\" %s", text, what);

    return -1;
}


/* Splits at blanks; quotes hold a word together and are removed. */
static int
variant_split(const char *p, char *memory, char **list, int max)
{
    int   n;
    char  quote;

    for (n = 0; ; n++) {
        p += strspn(p, " \t\n");

        if (*p == '\0') {
            return n;
        }

        if (n == max) {
            return -1;
        }

        list[n] = memory;
        quote = '\0';

        for ( ; *p != '\0' && (quote != '\0'
                               || !isspace((unsigned char) *p)); p++)
        {
            if (quote == '\0' && (*p == '"' || *p == '\'')) {
                quote = *p;

            } else if (*p == quote && quote != '\0') {
                quote = '\0';

            } else {
                *memory++ = *p;
            }
        }

        *memory++ = '\0';

        if (quote != '\0') {
            return -1;
        }
    }
}


static int
variant_policy(const char *text, char *memory, char **list)
{
    size_t  len;

    len = strcspn(text, "=");
    list[0] = "--routing-policy";
    list[1] = memory;
    sprintf(memory, "%.*s", (int) len, text);

    if (text[len] == '\0') {
        return 2;
    }

    list[2] = "--routing-scorers";
    list[3] = memory + len + 1;
    strcpy(list[3], text + len + 1);

    return 4;
}


int
variant_words(const char *text, char name[VARIANT_NAME_BYTES],
    char *memory, char **list, int max, char error[VARIANT_ERROR_BYTES])
{
    int          n;
    size_t       len;
    const char  *options;

    options = strncmp(text, "--", 2) == 0 ? text : strstr(text, " --");
    len = options == NULL || options == text ? strlen(text)
          : (size_t) (options - text);

    if (options != NULL && options != text) {
        if (text[len - 1] != ':') {
            return variant_refuse(error, "is not NAME: --OPTION ...", text);
        }

        len--;
    }

    if (len == 0 || max < 4) {
        return variant_refuse(error, "has no name", text);
    }

    snprintf(name, VARIANT_NAME_BYTES, "%.*s", (int) len, text);

    if (options == NULL) {
        return variant_policy(text, memory, list);
    }

    n = variant_split(options, memory, list, max);

    return n >= 0 ? n
           : variant_refuse(error, "has too many words, or an open quote",
                            text);
}

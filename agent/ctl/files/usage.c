
/* llmgwctl usage: how much each client used, from the logs of gateways. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/main.h"
#include "ctl/files/usage_print.h"
#include "proto/date.h"
#include "proto/usage/log.h"


static const option_t  ctl_usage_table[] = {
    { .name = "since", .kind = OPTION_STRING, .metavar = "TIME",
      .offset = offsetof(ctl_options_t, since),
      .help = "only what ended at that time or later, as 2026-11-28" },
    { .name = "until", .kind = OPTION_STRING, .metavar = "TIME",
      .offset = offsetof(ctl_options_t, until),
      .help = "only what ended before, as 2026-12-01T12:00Z" },
    { .name = "by", .kind = OPTION_STRING, .metavar = "LIST",
      .value = "key", .offset = offsetof(ctl_options_t, by),
      .help = "sums for each of key, tenant, class, model, gateway, day" },
    { .name = "format", .kind = OPTION_STRING, .metavar = "FORMAT",
      .value = "table", .offset = offsetof(ctl_options_t, format),
      .help = "table, csv or json" },
    { .name = NULL }
};

const options_spec_t  ctl_usage_spec = {
    .program = "llmgwctl usage",
    .synopsis = "[options] FILE...",
    .summary = "Adds up logs of usage records, plain or compressed by gzip, in "
               "any order.\nA record that is in them twice counts once.  Times "
               "are UTC.",
    .table = ctl_usage_table
};


/* Reads a time.  0; or CTL_USAGE, and an error was reported. */
static int
usage_time(const char *option, const char *text, uint64_t *unix_ms)
{
    return text == NULL || llmgw_date_read(text, strlen(text), unix_ms) == 0
           ? CTL_DONE : ctl_usage(option, text);
}


static int
usage_by(ctl_usage_query_t *query, const char *list)
{
    char      *name, *rest, copy[128];
    ctl_by_t   by;
    uint32_t   seen;

    seen = 0;
    snprintf(copy, sizeof(copy), "%s", list);

    for (name = strtok_r(copy, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest))
    {
        for (by = 0; by < CTL_NBY; by++) {
            if (strcmp(ctl_usage_by_name(by), name) == 0) {
                break;
            }
        }

        if (by == CTL_NBY || (seen & (1u << by))) {
            break;
        }

        seen |= 1u << by;
        query->by[query->nby++] = by;
    }

    return name == NULL && query->nby > 0 && strlen(list) < sizeof(copy)
           ? CTL_DONE
           : ctl_usage("--by: some of key, tenant, class, model, gateway, day,"
                       " each once, not", list);
}


static void
usage_explain(const ctl_usage_sum_t *sum, const char *path)
{
    switch (ctl_usage_sum_rc(sum)) {
    case CTL_USAGE_GAPS:
        fprintf(stderr, "llmgwctl: the records have too many gaps to know "
                "which are there twice; add up fewer files at a time\n");
        break;
    case CTL_USAGE_GROUPS_FULL:
        fprintf(stderr, "llmgwctl: more than %d sums; use --by with less\n",
                CTL_USAGE_GROUPS);
        break;
    case CTL_USAGE_ENOMEM:
        fprintf(stderr, "llmgwctl: out of memory\n");
        break;
    default:
        fprintf(stderr, "llmgwctl: \"%s\" cannot be read to its end; if it is"
                " compressed, it is cut off\n", path);
    }
}


static int
usage_read(ctl_usage_sum_t *sum, const char *path)
{
    int                              rc;
    llmgw_usage_log_t               *log;
    const llmgw_usage_log_counts_t  *counts;

    log = llmgw_usage_log_open(path);

    if (log == NULL) {
        fprintf(stderr, "llmgwctl: \"%s\": %s\n", path, strerror(errno));
        return CTL_FAILED;
    }

    do {
        rc = llmgw_usage_log_step(log, LLMGW_USAGE_LOG_STEP_LINES,
                                  ctl_usage_sum_record, sum);
    } while (rc == 1);

    counts = llmgw_usage_log_counts(log);

    if (counts->wrong > 0) {
        fprintf(stderr, "llmgwctl: \"%s\": %llu of %llu lines are no records;"
                " the first is line %llu: %s\n", path,
                (unsigned long long) counts->wrong,
                (unsigned long long) counts->lines,
                (unsigned long long) counts->wrong_line, counts->wrong_why);
    }

    llmgw_usage_log_close(log);

    if (rc != 0) {
        usage_explain(sum, path);
    }

    return rc == 0 ? CTL_DONE : CTL_FAILED;
}


static int
usage_sum(const ctl_t *ctl, const ctl_usage_query_t *query,
    ctl_usage_print_pt print)
{
    int               i, status;
    ctl_usage_sum_t  *sum;

    sum = ctl_usage_sum_create(query);

    if (sum == NULL) {
        fprintf(stderr, "llmgwctl: out of memory\n");
        return CTL_FAILED;
    }

    status = CTL_DONE;

    for (i = 0; i < ctl->nwords && status == CTL_DONE; i++) {
        status = usage_read(sum, ctl->words[i]);
    }

    if (status == CTL_DONE) {
        print(sum, query, stdout);
    }

    ctl_usage_sum_destroy(sum);

    return status;
}


int
ctl_usage_logs(const ctl_t *ctl)
{
    int                     status;
    ctl_usage_query_t       query = { .until_ms = UINT64_MAX };
    ctl_usage_print_pt      print;
    const ctl_options_t    *options = &ctl->options;

    status = usage_time("--since is not a time like 2026-11-28 or "
                        "2026-11-28T12:00Z:", options->since, &query.since_ms);

    if (status == CTL_DONE) {
        status = usage_time("--until is not a time like 2026-11-28 or "
                            "2026-11-28T12:00Z:", options->until,
                            &query.until_ms);
    }

    if (status == CTL_DONE) {
        status = usage_by(&query, options->by);
    }

    if (status != CTL_DONE) {
        return status;
    }

    print = ctl_usage_format(ctl->is_json ? "json" : options->format);

    return print == NULL
           ? ctl_usage("--format: table, csv or json, not", options->format)
           : usage_sum(ctl, &query, print);
}

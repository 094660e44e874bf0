
/*
 * The report as one JSON object.  docs/man/llmgw-client.1 describes its
 * fields; a time without any sample is null.
 */

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/bench_inner.h"


#define BENCH_JSON_FLAGS  (JSON_COMPACT|JSON_REAL_PRECISION(12))


static json_t *
bench_json_real(double value)
{
    return json_real(round(value * 1e6) / 1e6);
}


static json_t *
bench_json_ms(double ns)
{
    return bench_json_real(ns / (double) BENCH_NS_MS);
}


static json_t *
bench_json_times(const histogram_t *h)
{
    if (h->n == 0) {
        return json_null();
    }

    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "count", (json_int_t) h->n,
                     "min", bench_json_ms((double) h->min),
                     "mean", bench_json_ms(histogram_mean(h)),
                     "p50", bench_json_ms((double) histogram_quantile(h, 0.5)),
                     "p90", bench_json_ms((double) histogram_quantile(h, 0.9)),
                     "p99",
                     bench_json_ms((double) histogram_quantile(h, 0.99)),
                     "p999",
                     bench_json_ms((double) histogram_quantile(h, 0.999)),
                     "max", bench_json_ms((double) h->max));
}


static json_t *
bench_json_errors(const bench_tally_t *tally)
{
    size_t                     i;
    json_t                    *errors;
    const bench_tally_kind_t  *kind;

    errors = json_array();

    for (i = 0; i < tally->n; i++) {
        kind = &tally->kinds[i];

        (void) json_array_append_new(errors,
                   json_pack("{s:s, s:s, s:s, s:I}",
                             "class", bench_tally_class_name(kind->class),
                             "code", kind->code, "reason", kind->reason,
                             "count", (json_int_t) kind->count));
    }

    return errors;
}


static json_t *
bench_json_requests(const bench_t *bench)
{
    return json_pack("{s:I, s:I, s:o, s:I, s:I, s:I}",
                     "started", (json_int_t) bench->nstarted,
                     "ok", (json_int_t) bench->counts.ok,
                     "per_second",
                     bench_json_real((double) bench->counts.ok
                                     / bench_report_seconds(bench)),
                     "failed", (json_int_t) bench->nfailed,
                     "unfinished", (json_int_t) bench->nrunning,
                     "never_begun", (json_int_t) bench->waiting);
}


static json_t *
bench_json_tokens(const bench_t *bench)
{
    return json_pack("{s:I, s:o, s:I}",
                     "count", (json_int_t) bench->counts.tokens,
                     "per_second",
                     bench_json_real((double) bench->counts.tokens
                                     / bench_report_seconds(bench)),
                     "takeovers", (json_int_t) bench->counts.takeovers);
}


static json_t *
bench_json_all_times(const bench_counts_t *counts)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
                     "first_token", bench_json_times(&counts->first_token),
                     "gap", bench_json_times(&counts->gap),
                     "takeover", bench_json_times(&counts->takeover),
                     "lag", bench_json_times(&counts->lag),
                     "total", bench_json_times(&counts->total),
                     "refusal", bench_json_times(&counts->refusal));
}


int
bench_json(const bench_t *bench)
{
    char    *line;
    json_t  *object;

    object = json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o,"
                       " s:o, s:o, s:o, s:o, s:o}",
                       "gateway", bench->options.gateway,
                       "method", bench_method(bench),
                       "connections",
                       (json_int_t) bench->options.connections,
                       "streams", (json_int_t) bench->options.streams,
                       "max_tokens", (json_int_t) bench->options.max_tokens,
                       "began", bench_json_real((double) bench->began_ns
                                                / (double) BENCH_NS_S),
                       "ended", bench_json_real((double) bench->ended_ns
                                                / (double) BENCH_NS_S),
                       "seconds",
                       bench_json_real(bench_report_seconds(bench)),
                       "requests", bench_json_requests(bench),
                       "tokens", bench_json_tokens(bench),
                       "ms", bench_json_all_times(&bench->counts),
                       "errors", bench_json_errors(&bench->tally),
                       "client_cpu_seconds",
                       bench_json_real(bench_report_client_cpu_s(bench)));

    line = object != NULL ? json_dumps(object, BENCH_JSON_FLAGS) : NULL;
    json_decref(object);

    if (line == NULL) {
        fprintf(stderr, "llmgw-client: out of memory\n");
        return -1;
    }

    puts(line);
    free(line);

    return 0;
}


/*
 * The report for people, and the progress line.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/bench_inner.h"
#include "common/os/mono.h"


double
bench_report_seconds(const bench_t *bench)
{
    return (double) (bench->ended_ns - bench->began_ns) / (double) BENCH_NS_S;
}


static double
bench_report_usage_s(const struct rusage *usage)
{
    return (double) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec)
           + (double) (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec)
             / 1e6;
}


double
bench_report_client_cpu_s(const bench_t *bench)
{
    return bench_report_usage_s(&bench->usage_ended)
           - bench_report_usage_s(&bench->usage_began);
}


static double
bench_report_ms(const histogram_t *h, double share)
{
    return (double) histogram_quantile(h, share) / (double) BENCH_NS_MS;
}


static void
bench_report_times(const char *name, const histogram_t *h)
{
    if (h->n == 0) {
        return;
    }

    printf("%-14s %10" PRIu64 " %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name,
           h->n, histogram_mean(h) / (double) BENCH_NS_MS,
           bench_report_ms(h, 0.5), bench_report_ms(h, 0.9),
           bench_report_ms(h, 0.99), bench_report_ms(h, 0.999),
           (double) h->max / (double) BENCH_NS_MS);
}


static const char *
bench_report_loop(const bench_options_t *o, char *buf, size_t capacity)
{
    if (o->rate > 0) {
        snprintf(buf, capacity, "open loop at %g/s", o->rate);
        return buf;
    }

    return o->is_lockstep ? "lockstep" : "closed loop";
}


static void
bench_report_errors(const bench_tally_t *tally)
{
    size_t                     i;
    const bench_tally_kind_t  *kind;

    for (i = 0; i < tally->n; i++) {
        kind = &tally->kinds[i];
        printf("%s%10" PRIu64 "  %s: %s%s%s\n", i == 0 ? "\n" : "",
               kind->count, bench_tally_class_name(kind->class), kind->code,
               kind->reason[0] != '\0' ? ", " : "", kind->reason);
    }
}


static void
bench_report_rates(const bench_t *bench)
{
    double                 seconds;
    const bench_counts_t  *counts;

    counts = &bench->counts;
    seconds = bench_report_seconds(bench);

    printf("tokens         %10" PRIu64 "  %11.1f/s   %.2f us of this client's"
           " CPU each\n", counts->tokens, (double) counts->tokens / seconds,
           counts->tokens > 0 ? bench_report_client_cpu_s(bench) * 1e6
                                / (double) counts->tokens : 0.0);
    printf("requests       %10" PRIu64 "  %11.1f/s   failed %" PRIu64
           ", unfinished %zu", counts->ok, (double) counts->ok / seconds,
           bench->nfailed, bench->nrunning);

    if (bench->options.rate > 0) {
        printf(", never begun %" PRIu64, bench->waiting);
    }

    printf("\n");

    if (counts->takeovers > 0) {
        printf("takeovers      %10" PRIu64 "\n", counts->takeovers);
    }
}


const char *
bench_method(const bench_t *bench)
{
    return bench->options.is_openai ? "openai" : bench->options.method;
}


void
bench_report(const bench_t *bench)
{
    char                    loop[64];
    const bench_counts_t   *counts;
    const bench_options_t  *o;

    o = &bench->options;
    counts = &bench->counts;

    printf("%s at %s: %d x %d streams, %s, %.3f s\n\n",
           bench_method(bench), o->gateway, (int) o->connections,
           (int) o->streams,
           bench_report_loop(o, loop, sizeof(loop)),
           bench_report_seconds(bench));

    bench_report_rates(bench);

    printf("\n%-14s %10s %9s %9s %9s %9s %9s %9s\n", "ms", "count", "mean",
           "p50", "p90", "p99", "p99.9", "max");
    bench_report_times("first token", &counts->first_token);
    bench_report_times("gap", &counts->gap);
    bench_report_times("takeover gap", &counts->takeover);
    bench_report_times("lag", &counts->lag);
    bench_report_times("end to end", &counts->total);
    bench_report_times("refusal", &counts->refusal);

    bench_report_errors(&bench->tally);
}


void
bench_report_progress(void *data)
{
    uint64_t        now_ns;
    const bench_t  *bench;

    static const char *const  phases[] = {
        "connecting", "warming up", "measuring", "draining"
    };

    bench = data;

    if (bench->phase == BENCH_OVER) {
        fputs("\r\033[K", stderr);
        return;
    }

    now_ns = mono_ns();

    fprintf(stderr, "\r%s %.1f s, %" PRIu64 " tokens, %" PRIu64
            " requests, %zu running, %" PRIu64 " failed\033[K",
            phases[bench->phase],
            bench->schedule_ns > 0 ? (double) (now_ns - bench->schedule_ns)
                                     / (double) BENCH_NS_S : 0.0,
            bench->counts.tokens, bench->counts.ok, bench->nrunning,
            bench->nfailed);
    fflush(stderr);
}


/* Goodput of both sides, by class and by time. */

#include "sim/live/goodput.h"

#include <math.h>
#include <string.h>


/*
 * The order in which a request's times are judged; the first one missed ends
 * the judgement.
 */
static const report_time_t  judged[REPORT_TIMES] = {
    REPORT_TTFT, REPORT_E2E, REPORT_ITL
};

typedef struct {
    int64_t            count;
    report_attained_t  real;
    report_attained_t  sim;
} tally_t;

typedef struct {
    const live_compare_t  *options;
    const work_itl_t      *itl;
    tally_t                tallies[REPORT_MAX_TARGETS];
    int                    lacks_itl;
    int64_t                first_send_us;
    int64_t                last_chunk_us;
} goodput_t;


/*
 * A time of 0 is unknown.  A target counts as seen when it is judged; after a
 * target that a request misses, its other targets are not judged.
 */
static void
judge(goodput_t *g, const report_target_t *target, report_attained_t *tally,
    const double ms[REPORT_TIMES])
{
    int            i, good;
    report_time_t  t;

    good = ms[REPORT_TTFT] > 0 && ms[REPORT_E2E] >= ms[REPORT_TTFT];

    for (i = 0; i < REPORT_TIMES && good; i++) {
        t = judged[i];

        if (!(target->ms[t] > 0)) {
            continue;
        }

        if (t == REPORT_ITL && !(ms[t] > 0)) {
            g->lacks_itl = 1;
            good = 0;
            break;
        }

        good = ms[t] <= target->ms[t];
        tally->seen[t]++;
        tally->met[t] += good;
    }

    tally->good += good;
}


/* The mean of a request's positive gaps; 0: it has none. */
static double
itl_ms(const work_itl_t *itl, int64_t id)
{
    size_t               i, n, gaps;
    double               sum;
    const work_chunk_t  *chunks;

    if (itl == NULL) {
        return 0;
    }

    chunks = work_itl_of(itl, id, &n);
    sum = 0;
    gaps = 0;

    for (i = 1; i < n; i++) {
        if (chunks[i].at_us > chunks[i - 1].at_us) {
            sum += (double) (chunks[i].at_us - chunks[i - 1].at_us);
            gaps++;
        }
    }

    return gaps > 0 ? sum / (double) gaps / 1000.0 : 0;
}


static int
is(const work_name_t *name, const char *text)
{
    return strcmp(name->text, text) == 0;
}


static void
count(goodput_t *g, const work_record_t *r, const live_sim_t *sim)
{
    double                  ms[REPORT_TIMES];
    tally_t                *tally;
    const report_target_t  *target;

    target = report_target_find(&g->options->targets, r->slo_class->text);

    if (target == NULL || (!is(r->status, "ok") && !is(r->status, "error")
                           && !is(r->status, "timeout")))
    {
        return;
    }

    tally = &g->tallies[target - g->options->targets.list];
    tally->count++;

    if (is(r->status, "ok")) {
        ms[REPORT_TTFT] = (double) (r->first_chunk_us - r->send_us) / 1000.0;
        ms[REPORT_E2E] = (double) (r->last_chunk_us - r->send_us) / 1000.0;
        ms[REPORT_ITL] = itl_ms(g->itl, r->request_id);
        judge(g, target, &tally->real, ms);
    }

    ms[REPORT_TTFT] = sim->ttft_us / 1000.0;
    ms[REPORT_E2E] = sim->e2e_us / 1000.0;
    ms[REPORT_ITL] = sim->itl_mean_us / 1000.0;
    judge(g, target, &tally->sim, ms);
}


static void
count_all(goodput_t *g, const work_trace_t *trace, const live_sims_t *sims)
{
    size_t                i;
    const live_sim_t     *sim;
    const work_record_t  *r;

    g->first_send_us = -1;

    for (i = 0; i < trace->n; i++) {
        r = &trace->records[i];
        sim = r->request_id < g->options->warm_up
              ? NULL : live_sims_find(sims, r->request_id);

        if (sim == NULL) {
            continue;
        }

        if (g->first_send_us < 0 || r->send_us < g->first_send_us) {
            g->first_send_us = r->send_us;
        }

        if (r->last_chunk_us > g->last_chunk_us) {
            g->last_chunk_us = r->last_chunk_us;
        }

        count(g, r, sim);
    }
}


static double
share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double) part / (double) whole : 0;
}


static void
write_targets(report_json_t *j, const report_targets_t *targets)
{
    size_t  i;

    report_json_object(j, "targets");

    for (i = 0; i < targets->n; i++) {
        report_json_object(j, targets->list[i].slo_class);
        report_json_double(j, "TTFTMs", targets->list[i].ms[REPORT_TTFT]);
        report_json_double(j, "ITLMs", targets->list[i].ms[REPORT_ITL]);
        report_json_double(j, "E2EMs", targets->list[i].ms[REPORT_E2E]);
        report_json_end(j);
    }

    report_json_end(j);
}


static void
write_by_time(report_json_t *j, const char *key, const report_target_t *target,
    const report_attained_t *a)
{
    size_t  i;

    static const struct {
        const char     *name;
        report_time_t   time;
    } times[REPORT_TIMES] = {
        { "e2e", REPORT_E2E }, { "itl", REPORT_ITL }, { "ttft", REPORT_TTFT }
    };

    if (!(target->ms[REPORT_TTFT] > 0 || target->ms[REPORT_ITL] > 0
          || target->ms[REPORT_E2E] > 0))
    {
        return;
    }

    report_json_object(j, key);

    for (i = 0; i < REPORT_TIMES; i++) {
        if (target->ms[times[i].time] > 0) {
            report_json_double(j, times[i].name,
                               share(a->met[times[i].time],
                                     a->seen[times[i].time]));
        }
    }

    report_json_end(j);
}


void
live_goodput(report_json_t *j, const live_compare_t *options,
    const work_trace_t *trace, const live_sims_t *sims, const work_itl_t *itl)
{
    size_t                   i;
    double                   seconds;
    tally_t                 *t;
    goodput_t                g;
    const report_targets_t  *targets;

    targets = &options->targets;

    if (targets->n == 0) {
        return;
    }

    memset(&g, 0, sizeof(g));
    g.options = options;
    g.itl = itl;
    count_all(&g, trace, sims);
    seconds = g.first_send_us >= 0 && g.last_chunk_us > g.first_send_us
              ? (double) (g.last_chunk_us - g.first_send_us) / 1e6 : 0;

    report_json_object(j, "goodput");
    write_targets(j, targets);
    report_json_object(j, "per_class");

    for (i = 0; i < targets->n; i++) {
        t = &g.tallies[i];
        report_json_object(j, targets->list[i].slo_class);
        report_json_int(j, "count", t->count);
        report_json_double(j, "real_slo_attainment",
                           share(t->real.good, t->count));
        report_json_double(j, "sim_slo_attainment",
                           share(t->sim.good, t->count));
        report_json_double(j, "real_goodput_rps", seconds > 0
                           ? (double) t->real.good / seconds : 0);
        report_json_double(j, "sim_goodput_rps", seconds > 0
                           ? (double) t->sim.good / seconds : 0);
        write_by_time(j, "real_attainment_by_dim", &targets->list[i],
                      &t->real);
        write_by_time(j, "sim_attainment_by_dim", &targets->list[i], &t->sim);
        report_json_end(j);
    }

    report_json_end(j);

    if (g.lacks_itl) {
        report_json_bool(j, "skipped_itl", 1);
    }

    report_json_end(j);
}


/*
 * Pairs requests by id, computes figures of both sides, and writes them as
 * BLIS's report.
 */

#include "sim/live/goodput.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/stat.h"

/* Bits that a token takes on the network. */
#define TOKEN_BITS  32

typedef struct {
    live_pairs_t  ttft;
    live_pairs_t  e2e;
    live_pairs_t  itl;
    int64_t       warm_up;
    int64_t       matched;
    int64_t       unmatched;
    int64_t       token_mismatches;
    int64_t       itl_dropped;
} matched_t;

/* In the words of BLIS's report, for its readers. */
static const char *const  limitations[] = {
    "BLIS models discrete batch steps. Real servers use iteration-level "
    "continuous batching. This may cause systematic TTFT prediction error "
    "under high load.",
    "Sim constructs synthetic prefix token IDs. Prefix cache hit rates may "
    "differ from real server, especially after evictions.",
    "If the real server uses speculative decoding, actual token generation "
    "patterns differ from sim's sequential model.",
    "Token mismatch detection uses ServerInputTokens (server-reported "
    "prompt_tokens) when available. Non-zero token_mismatches on "
    "observe-generated prefix-cached traces typically reflect KV-block "
    "granularity rounding (simulator accounts tokens in multiples of "
    "BlockSizeTokens; server reports raw count). Expected variance is at most "
    "BlockSizeTokens tokens per request. This is expected behavior, not data "
    "corruption.",
};

#define NLIMITATIONS  (sizeof(limitations) / sizeof(limitations[0]))


static int
pairs_init(live_pairs_t *pairs, size_t max)
{
    pairs->real = calloc(max, sizeof(double));
    pairs->sim = calloc(max, sizeof(double));
    pairs->n = 0;

    return pairs->real != NULL && pairs->sim != NULL ? 0 : -1;
}


static void
pairs_done(live_pairs_t *pairs)
{
    free(pairs->real);
    free(pairs->sim);
}


static void
pairs_add(live_pairs_t *pairs, double real, double sim)
{
    pairs->real[pairs->n] = real;
    pairs->sim[pairs->n++] = sim;
}


static double
transfer_us(double bandwidth_mbps, int64_t tokens)
{
    if (bandwidth_mbps <= 0) {
        return 0;
    }

    return (double) tokens * TOKEN_BITS / (bandwidth_mbps * 1e6) * 1e6;
}


/* The mean of a request's gaps, without negative ones. */
static void
match_itl(matched_t *m, const work_itl_t *itl, const live_sim_t *sim)
{
    size_t               i, n, gaps;
    double               sum, delta, predicted;
    const work_chunk_t  *chunks;

    chunks = work_itl_of(itl, sim->id, &n);

    if (n < 2) {
        return;
    }

    sum = 0;
    gaps = 0;

    for (i = 1; i < n; i++) {
        delta = (double) (chunks[i].at_us - chunks[i - 1].at_us);

        if (delta >= 0) {
            sum += delta;
            gaps++;
        }
    }

    if (gaps == 0) {
        m->itl_dropped++;
        return;
    }

    predicted = sim->output_tokens > 1
                ? (sim->e2e_us - sim->ttft_us)
                  / (double) (sim->output_tokens - 1) : 0;
    pairs_add(&m->itl, sum / (double) gaps, predicted);
}


static void
match(matched_t *m, const live_compare_t *o, const work_record_t *r,
    const live_sim_t *sim)
{
    double   ttft, e2e, net, up, down;
    int64_t  input;

    m->matched++;
    input = r->server_input_tokens > 0 ? r->server_input_tokens
                                       : r->input_tokens;
    m->token_mismatches += input != sim->input_tokens
                           || r->output_tokens != sim->output_tokens;
    ttft = (double) (r->first_chunk_us - r->send_us);
    e2e = (double) (r->last_chunk_us - r->send_us);

    /* The clock went back; BLIS counts these twice, too. */
    if (ttft < 0 || e2e < 0) {
        m->unmatched++;
        return;
    }

    net = (double) o->rtt_us;
    up = transfer_us(o->bandwidth_mbps, sim->input_tokens);
    down = transfer_us(o->bandwidth_mbps, sim->output_tokens);
    pairs_add(&m->ttft, ttft, sim->ttft_us + net + up);
    pairs_add(&m->e2e, e2e, sim->e2e_us + net + up + down);
}


static void
match_all(matched_t *m, const live_compare_t *o, const work_trace_t *trace,
    const live_sims_t *sims, const work_itl_t *itl)
{
    size_t                i;
    const live_sim_t     *sim;
    const work_record_t  *r;

    for (i = 0; i < trace->n; i++) {
        r = &trace->records[i];

        if (r->request_id < o->warm_up) {
            m->warm_up++;
            continue;
        }

        sim = live_sims_find(sims, r->request_id);

        if (sim == NULL) {
            m->unmatched++;
            continue;
        }

        match(m, o, r, sim);

        if (itl != NULL) {
            match_itl(m, itl, sim);
        }
    }
}


static void
write_pair(report_json_t *j, const char *what, double real, double sim)
{
    char  key[40];

    snprintf(key, sizeof(key), "real_%s", what);
    report_json_double(j, key, real);
    snprintf(key, sizeof(key), "sim_%s", what);
    report_json_double(j, key, sim);
    snprintf(key, sizeof(key), "%s_error", what);
    report_json_double(j, key, sim - real);
    snprintf(key, sizeof(key), "%s_percent_error", what);
    report_json_double(j, key, real > 0 ? fabs(sim - real) / real : 0);
}


static double
mean(const double *values, size_t n)
{
    size_t  i;
    double  sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += values[i];
    }

    return sum / (double) n;
}


/* Writes the figures of a metric, and finally sorts each side of its pairs. */
static void
write_metric(report_json_t *j, const char *name, live_pairs_t *p, FILE *text)
{
    size_t          i;
    double          real, sim;
    live_quality_t  q;

    static const struct {
        const char  *name;
        double       p;
    } points[] = { { "median", 50 }, { "p50", 50 }, { "p90", 90 },
                   { "p95", 95 }, { "p99", 99 } };

    if (p->n == 0) {
        return;
    }

    live_quality(p, &q);
    real = mean(p->real, p->n);
    sim = mean(p->sim, p->n);
    report_sort(p->real, p->n);
    report_sort(p->sim, p->n);

    report_json_object(j, name);
    report_json_object(j, "workload_level");
    write_pair(j, "mean", real, sim);

    for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        write_pair(j, points[i].name,
                   report_percentile(p->real, p->n, points[i].p),
                   report_percentile(p->sim, p->n, points[i].p));
    }

    report_json_end(j);
    report_json_object(j, "request_level");
    report_json_double(j, "mape", q.mape);
    report_json_double(j, "pearson_r", q.pearson);
    report_json_string(j, "bias_direction", q.bias);
    report_json_string(j, "quality", q.quality);
    report_json_end(j);
    report_json_int(j, "count", (int64_t) p->n);
    report_json_end(j);

    if (text != NULL) {
        fprintf(text, "%-4s  mean %.0f us, simulated %.0f us; error of a "
                "request %.1f %%, r %.3f, %s: %s\n", name, real, sim,
                q.mape * 100, q.pearson, q.bias, q.quality);
    }
}


static void
write_info(report_json_t *j, const matched_t *m)
{
    report_json_object(j, "trace_info");
    report_json_int(j, "num_requests",
                    m->matched + m->warm_up + m->unmatched);
    report_json_int(j, "warm_up_excluded", m->warm_up);
    report_json_int(j, "matched_pairs", m->matched);
    report_json_int(j, "token_mismatches", m->token_mismatches);

    if (m->itl_dropped > 0) {
        report_json_int(j, "itl_dropped", m->itl_dropped);
    }

    report_json_end(j);
}


static void
write_hit_rate(report_json_t *j, const live_compare_t *o,
    const work_trace_kv_t *kv)
{
    double  error;

    if (kv == NULL || o->hit_rate < 0) {
        return;
    }

    error = fabs(o->hit_rate - kv->hit_rate) * 100;
    report_json_object(j, "hit_rate");
    report_json_double(j, "real_hit_rate", kv->hit_rate);
    report_json_double(j, "sim_hit_rate", o->hit_rate);
    report_json_double(j, "abs_error_pp", error);
    report_json_double(j, "tolerance_pp", o->hit_rate_tolerance);
    report_json_bool(j, "within", error <= o->hit_rate_tolerance + 1e-9);
    report_json_string(j, "source", kv->source != NULL ? kv->source : "");
    report_json_end(j);
}


static void
write_report(const live_compare_t *o, matched_t *m, const work_trace_t *trace,
    const live_sims_t *sims, const work_itl_t *itl, FILE *out, FILE *summary)
{
    size_t          i;
    live_quality_t  ttft;
    report_json_t   j;

    live_quality(&m->ttft, &ttft);
    report_json_init(&j, out, 2);
    report_json_object(&j, NULL);
    write_info(&j, m);
    report_json_object(&j, "metrics");
    write_metric(&j, "e2e", &m->e2e, summary);
    write_metric(&j, "itl", &m->itl, summary);
    write_metric(&j, "ttft", &m->ttft, summary);
    report_json_end(&j);
    report_json_object(&j, "config_match");
    report_json_end(&j);
    report_json_array(&j, "known_limitations");

    for (i = 0; i < NLIMITATIONS; i++) {
        report_json_string(&j, NULL, limitations[i]);
    }

    report_json_end(&j);
    live_goodput(&j, o, trace, sims, itl);
    write_hit_rate(&j, o, trace->header.observed_kv);
    report_json_object(&j, "ttft_tolerance");
    report_json_double(&j, "mape", ttft.mape);
    report_json_double(&j, "threshold", o->ttft_threshold);
    report_json_bool(&j, "within", ttft.mape <= o->ttft_threshold);
    report_json_end(&j);
    report_json_end(&j);
}


int
live_compare(const live_compare_t *options, const work_trace_t *trace,
    const live_sims_t *sims, const work_itl_t *itl, FILE *out, FILE *summary,
    work_error_t *error)
{
    int        rc;
    size_t     max;
    matched_t  m;

    memset(&m, 0, sizeof(m));
    max = trace->n + 1;

    if (pairs_init(&m.ttft, max) != 0 || pairs_init(&m.e2e, max) != 0
        || pairs_init(&m.itl, max) != 0)
    {
        rc = work_fail(error, trace->data_file, 0, "no memory left");
        goto done;
    }

    match_all(&m, options, trace, sims, itl);

    if (m.ttft.n == 0) {
        rc = work_fail(error, trace->data_file, 0, m.matched == 0
                       ? "no request's id is among the simulation's results"
                       : "no request that can be compared has times");
        goto done;
    }

    rc = 0;
    write_report(options, &m, trace, sims, itl, out, summary);

done:

    pairs_done(&m.ttft);
    pairs_done(&m.e2e);
    pairs_done(&m.itl);

    return rc;
}

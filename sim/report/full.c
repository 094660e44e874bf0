
/*
 * A run as one JSON document.
 */

#include <math.h>
#include <string.h>

#include "sim/report/full.h"


#define FULL_MS  1e-3               /* milliseconds in a microsecond */


static void
full_dist(report_json_t *json, const char *key, const report_dist_t *d,
    double unit)
{
    if (d->count == 0) {
        return;
    }

    report_json_object(json, key);
    report_json_uint(json, "count", d->count);
    report_json_double(json, "mean_ms", d->mean * unit);
    report_json_double(json, "p50_ms", d->p50 * unit);
    report_json_double(json, "p95_ms", d->p95 * unit);
    report_json_double(json, "p99_ms", d->p99 * unit);
    report_json_double(json, "min_ms", d->min * unit);
    report_json_double(json, "max_ms", d->max * unit);
    report_json_end(json);
}


static void
full_parts(report_json_t *json, const char *key, const report_parts_t *parts,
    int has_times)
{
    int                   t;
    size_t                i;
    const report_part_t  *p;

    if (parts->n == 0) {
        return;
    }

    report_json_object(json, key);

    for (i = 0; i < parts->n; i++) {
        p = &parts->list[i];
        report_json_object(json, p->name);
        report_json_uint(json, "completed", p->completed);

        if (!has_times || p->output_tokens > 0) {
            report_json_uint(json, "output_tokens", p->output_tokens);
        }

        for (t = 0; has_times && t < REPORT_TIMES; t++) {
            full_dist(json, report_time_names[t], &p->times[t], FULL_MS);
        }

        report_json_end(json);
    }

    report_json_end(json);
}


/* Writes a count for every status that occurred. */
static void
full_statuses(const fleet_result_t *r, report_json_t *json)
{
    size_t    i;
    uint64_t  counts[FLEET_STATUSES] = { 0 };

    for (i = 0; i < r->n; i++) {
        counts[r->outcomes[i].status]++;
    }

    report_json_object(json, "requests");

    for (i = 0; i < FLEET_STATUSES; i++) {
        if (counts[i] > 0) {
            report_json_uint(json, fleet_status_names[i], counts[i]);
        }
    }

    report_json_end(json);
}


static void
full_anomalies(const fleet_result_t *r, const report_summary_t *s,
    report_json_t *json)
{
    size_t            i;
    report_anomaly_t  list[REPORT_ANOMALIES];

    report_anomalies(s, r, list);
    report_json_object(json, "anomalies");

    for (i = 0; i < REPORT_ANOMALIES; i++) {
        if (list[i].key != NULL) {
            report_json_uint(json, list[i].key, list[i].count);
        }
    }

    report_json_object(json, "shed_by_class");

    for (i = 0; i < s->nshed; i++) {
        if (s->shed[i].n > 0) {
            report_json_uint(json, s->shed[i].name, s->shed[i].n);
        }
    }

    report_json_end(json);
    report_json_end(json);
}


static void
full_sessions(const report_sessions_t *sessions, report_json_t *json)
{
    if (sessions->n == 0) {
        return;
    }

    report_json_object(json, "sessions");
    report_json_uint(json, "count", sessions->n);
    full_dist(json, "ttft_cold", &sessions->cold, 1);
    full_dist(json, "ttft_warm", &sessions->warm, 1);
    full_dist(json, "duration", &sessions->duration, 1);
    report_json_end(json);
}


static void
full_pools(const report_run_t *run, const report_pools_t *p,
    report_json_t *json)
{
    if (p->split == 0) {
        return;
    }

    report_json_object(json, "pools");
    report_json_uint(json, "split", p->split);
    report_json_uint(json, "transferred", p->transferred);
    report_json_uint(json, "dropped_at_decode_kv", p->dropped);
    report_json_double(json, "prefill_rps", p->prefill_rps);
    report_json_double(json, "decode_rps", p->decode_rps);
    report_json_double(json, "imbalance", p->imbalance);
    full_dist(json, "ttft", &p->ttft, FULL_MS);
    full_dist(json, "transfer", &p->transfer, FULL_MS);

    if (run->config->pools.has_contention) {
        report_json_uint(json, "peak_transfers",
                         run->result->transfers_peak);
        report_json_double(json, "mean_transfers", p->mean_transfers);
    }

    report_json_end(json);
}


static void
full_fitness(const report_fitness_t *fitness, const report_summary_t *s,
    report_json_t *json)
{
    size_t  i;

    report_json_object(json, "fitness");
    report_json_double(json, "score", report_fitness_score(fitness, s));

    for (i = 0; i < REPORT_FITNESS_KEYS; i++) {
        if (fitness->is_given[i]) {
            report_json_double(json, report_fitness_keys[i],
                               report_fitness_value(s, i));
        }
    }

    report_json_end(json);
}


static void
full_decided(const report_decided_t *d, report_json_t *json)
{
    report_json_object(json, "decisions");
    report_json_uint(json, "admitted", d->admitted);
    report_json_uint(json, "rejected", d->rejected);
    report_json_uint(json, "routed", d->routed);
    report_json_double(json, "mean_regret",
                       d->routed == 0 ? 0
                       : d->regret_sum / (double) d->routed);
    report_json_double(json, "max_regret", d->regret_max);
    report_json_end(json);
}


void
report_extras(const fleet_result_t *result, report_json_t *json)
{
    size_t  i;

    if (result->nextras == 0) {
        return;
    }

    report_json_object(json, "gateway");

    for (i = 0; i < result->nextras; i++) {
        report_json_uint(json, result->extras[i].name,
                         result->extras[i].value);
    }

    report_json_end(json);
}


/*
 * Reasons for which BLIS's gateway refuses requests; the reasons of admission
 * rules are told apart by the beginning of `detail`.  Our own gateway counts
 * its refusals itself, among the figures of "gateway".
 */
static const struct {
    const char      *key;
    fleet_status_t   status;
    const char      *detail;
} full_reasons[] = {
    { "tenant_budget", FLEET_REJECTED_ADMISSION, "tenant-budget-shed" },
    { "reject_all", FLEET_REJECTED_ADMISSION, "reject-all" },
    { "token_bucket", FLEET_REJECTED_ADMISSION, "insufficient tokens" },
    { "tier_shed", FLEET_REJECTED_ADMISSION, "tier-shed:" },
    { "gaie_saturated", FLEET_REJECTED_ADMISSION, "gaie-saturated:" },
    { "no_replica", FLEET_REJECTED_ROUTING, "" },
    { "queue_full", FLEET_GATEWAY_REJECTED, "" },
    { "displaced", FLEET_GATEWAY_SHED, "" },
    { "expired", FLEET_GATEWAY_EXPIRED, "" },
    { "evicted", FLEET_GATEWAY_EVICTED, "" }
};

#define FULL_REASONS  (sizeof(full_reasons) / sizeof(full_reasons[0]))


/*
 * Index of the reason for which a request was refused; FULL_REASONS: it was
 * not.
 */
static size_t
full_reason(const fleet_outcome_t *o)
{
    size_t  i;

    for (i = 0; i < FULL_REASONS; i++) {
        if (o->status == full_reasons[i].status
            && strncmp(o->detail, full_reasons[i].detail,
                       strlen(full_reasons[i].detail)) == 0)
        {
            break;
        }
    }

    return i;
}


void
report_refused(const fleet_result_t *result, report_json_t *json)
{
    size_t    i;
    uint64_t  n, counts[FULL_REASONS + 1] = { 0 };

    if (result->nextras > 0) {
        return;
    }

    for (i = 0; i < result->n; i++) {
        counts[full_reason(&result->outcomes[i])]++;
    }

    n = result->n - counts[FULL_REASONS];

    if (n == 0) {
        return;
    }

    report_json_object(json, "refused");

    for (i = 0; i < FULL_REASONS; i++) {
        if (counts[i] > 0) {
            report_json_uint(json, full_reasons[i].key, counts[i]);
        }
    }

    report_json_end(json);
}


static void
full_cluster(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    report_json_t *json)
{
    report_json_object(json, "cluster");
    report_metrics_json(&s->cluster, json, NULL, NULL);
    report_json_end(json);

    full_statuses(run->result, json);
    full_anomalies(run->result, s, json);
    report_extras(run->result, json);
    report_refused(run->result, json);

    report_json_object(json, "cache");
    report_json_double(json, "hit_rate_mean", s->cluster.cache_hit_rate);
    report_json_double(json, "hit_rate_by_block", s->hit_rate_by_block);
    report_json_double(json, "preemption_rate", s->preemption_rate);
    report_json_end(json);

    full_parts(json, "classes", &s->classes, 1);
    full_parts(json, "models", &s->models, 1);
    full_parts(json, "tenants", &s->tenants, 0);

    if (s->tenants.n > 0) {
        report_json_double(json, "tenants_jain", s->jain);
    }

    full_sessions(&s->sessions, json);
    full_pools(run, &s->pools, json);

    if (fitness->n > 0) {
        full_fitness(fitness, s, json);
    }

    if (decided != NULL) {
        full_decided(decided, json);
    }
}


static int
full_instance(const report_run_t *run, uint32_t replica, report_json_t *json)
{
    int               rc;
    report_metrics_t  m;

    rc = report_instance(run, replica, &m);

    if (rc == 0) {
        report_json_object(json, NULL);
        report_metrics_json(&m, json, NULL, NULL);
        report_json_end(json);
    }

    report_metrics_done(&m);

    return rc;
}


int
report_full(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out)
{
    uint32_t       i;
    report_json_t  json;

    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);
    full_cluster(run, s, fitness, decided, &json);
    report_json_array(&json, "instances");

    for (i = 0; i < run->result->nreplicas; i++) {
        if (full_instance(run, i, &json) != 0) {
            return -1;
        }
    }

    report_json_end(&json);
    report_json_end(&json);
    putc('\n', out);

    return 0;
}


#include <stdio.h>
#include <string.h>

#include "replica/shard/flow/flow_inner.h"
#include "replica/shard/flow/stats.h"

#define RATE_NS  10000000000ULL

/* "MODEL:FIRST-LAST@MEMBER"; what is longer is cut. */
#define STATS_ID_BYTES  256


static void
stats_times(flow_times_t *times, const histogram_t *us)
{
    *times = (flow_times_t) {
        .sum_us = (uint64_t) us->sum,
        .count = us->n,
        .p50_us = histogram_quantile(us, 0.5),
        .p95_us = histogram_quantile(us, 0.95)
    };
}


static double
stats_rate(flows_t *flows)
{
    uint64_t  now, ns;

    now = flows_now(flows);
    ns = now - flows->rate_ns;

    if (ns >= RATE_NS) {
        flows->tokens_per_s = (flows->tokens - flows->rate_tokens) * 1e9 / ns;
        flows->rate_tokens = flows->tokens;
        flows->rate_ns = now;
    }

    return flows->tokens_per_s;
}


static size_t
stats_waiting(const flows_t *flows)
{
    size_t         n;
    const flow_t  *flow;

    n = 0;

    for (flow = flows->queue; flow != NULL; flow = flow->behind) {
        n++;
    }

    return n;
}


static uint64_t
stats_failovers(const flows_t *flows)
{
    size_t    i;
    uint64_t  n;

    n = flows->stalls;

    for (i = 0; i < SHARD_REASONS_COUNT; i++) {
        n += flows->failovers[i];
    }

    return n;
}


void
flows_stats(flows_t *flows, flow_stats_t *stats)
{
    *stats = (flow_stats_t) {
        .flows = flows->nflows,
        .waiting = stats_waiting(flows),
        .building = flows->building,
        .history_bytes = flows->history_bytes,
        .history_max = flows->options.history_max,
        .tokens = flows->tokens,
        .tokens_per_s = stats_rate(flows),
        .failovers = stats_failovers(flows),
        .stalls = flows->stalls,
        .corruptions = flows->failovers[SHARD_CORRUPTION],
        .replays = flows->replays,
        .replayed_rows = flows->replayed_rows,
        .rewinds = flows->rewinds,
        .evictions = flows->evictions
    };

    stats_times(&stats->construct, &flows->construct);
    stats_times(&stats->first_token, &flows->first_token);
}


static json_t *
stats_times_json(const flow_times_t *times)
{
    return json_pack("{sIsIsIsI}", "count", (json_int_t) times->count,
                     "sum", (json_int_t) times->sum_us,
                     "p50", (json_int_t) times->p50_us,
                     "p95", (json_int_t) times->p95_us);
}


/* Failovers by their reasons; reasons that never came are left out. */
static json_t *
stats_failovers_json(const flows_t *flows)
{
    size_t   i;
    json_t  *json;

    json = json_object();

    for (i = 0; i < SHARD_REASONS_COUNT; i++) {
        if (flows->failovers[i] > 0) {
            json_object_set_new(json, shard_reason_name(i),
                                json_integer(flows->failovers[i]));
        }
    }

    if (flows->stalls > 0) {
        json_object_set_new(json, "stalled", json_integer(flows->stalls));
    }

    return json;
}


static json_t *
stats_shard_json(const flows_t *flows, const flow_shard_t *shard)
{
    char          id[STATS_ID_BYTES];
    flow_times_t  latency;

    stats_times(&latency, &shard->latency);
    (void) snprintf(id, sizeof(id), "%s:%u-%u@%s", flows->options.model,
             shard->first, shard->last, shard->id);

    return json_pack("{sssssisisisIsosIsIsI}", "id", id, "member", shard->id,
                     "first", shard->first, "last", shard->last,
                     "sessions", shard->users,
                     "steps", (json_int_t) shard->steps,
                     "latency_us", stats_times_json(&latency),
                     "failovers", (json_int_t) shard->failovers,
                     "corruptions", (json_int_t) shard->corruptions,
                     "differed", (json_int_t) shard->differed);
}


/* Shards in use come first, since there may be too many others. */
static json_t *
stats_shards_json(const flows_t *flows)
{
    int                  is_unused;
    size_t               i;
    json_t              *json;
    const flow_shard_t  *shard;

    json = json_array();

    for (is_unused = 0; is_unused < 2; is_unused++) {
        for (i = 0; i < flows->shards.n; i++) {
            shard = flows->shards.all[i];

            if ((shard->users == 0) == is_unused
                && json_array_size(json) < FLOW_REPORT_SHARDS)
            {
                json_array_append_new(json, stats_shard_json(flows, shard));
            }
        }
    }

    return json;
}


/* Adds what the fleet knows of a shard to what flows know of it. */
static void
stats_add_info(void *data, const fleet_shard_info_t *info)
{
    size_t       i;
    json_t      *shards = data, *shard;
    const char  *member;

    json_array_foreach(shards, i, shard) {
        member = json_string_value(json_object_get(shard, "member"));

        if (info->excluded_ms > 0 && strcmp(member, info->id) == 0) {
            json_object_set_new(shard, "excluded_ms",
                                json_integer(info->excluded_ms));
            json_object_set_new(shard, "excluded_for",
                                json_string(info->excluded_for));
        }
    }
}


static void
stats_add_audits(json_t *report, const flows_t *flows)
{
    const flow_audit_stats_t  *a;

    a = &flows->audit_stats;
    json_object_set_new(report, "audited_rows", json_integer(a->rows));
    json_object_set_new(report, "audits", json_integer(flows->naudits));
    json_object_set_new(report, "audits_skipped", json_integer(a->skipped));
    json_object_set_new(report, "audits_differed", json_integer(a->differed));

    if (flows->audit_alert[0] != '\0') {
        json_object_set_new(report, "audit_alert",
                            json_string(flows->audit_alert));
    }
}


json_t *
flows_report(flows_t *flows, int is_ready, uint64_t fallbacks)
{
    json_t        *shards, *report;
    flow_stats_t   stats;

    flows_stats(flows, &stats);
    shards = stats_shards_json(flows);
    flows->world->each(flows->fleet, stats_add_info, shards);

    report = json_pack("{sbsisIsIsIsIsIsososfsosIsIsIsIsIso}",
                       "ready", is_ready, "streams", (int) stats.flows,
                       "waiting", (json_int_t) stats.waiting,
                       "tokens", (json_int_t) stats.tokens,
                       "history_bytes", (json_int_t) stats.history_bytes,
                       "history_max_bytes", (json_int_t) stats.history_max,
                       "constructs", (json_int_t) stats.construct.count,
                       "construct_us", stats_times_json(&stats.construct),
                       "first_token_us", stats_times_json(&stats.first_token),
                       "tokens_per_s", stats.tokens_per_s,
                       "failovers", stats_failovers_json(flows),
                       "fallbacks", (json_int_t) fallbacks,
                       "replays", (json_int_t) stats.replays,
                       "replayed_rows", (json_int_t) stats.replayed_rows,
                       "rewinds", (json_int_t) stats.rewinds,
                       "histories_dropped", (json_int_t) stats.evictions,
                       "shards", shards);

    if (flows->options.audit_ppm > 0) {
        stats_add_audits(report, flows);
    }

    return report;
}

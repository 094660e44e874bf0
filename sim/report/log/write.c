
/*
 * The decision log, written.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rnd.h"
#include "core/policy/order.h"
#include "sim/report/figure/json.h"
#include "sim/report/log/write.h"


#define LOG_BUFFER_BYTES  (1 << 20)

static const char *const  log_pools[] = { "", "prefill", "decode" };


static void
log_line(report_log_t *log, report_json_t *json, const char *kind)
{
    report_json_init(json, log->out, 0);
    json->exact = 1;
    report_json_object(json, NULL);
    report_json_string(json, "kind", kind);
}


static void
log_line_end(report_log_t *log, report_json_t *json)
{
    report_json_end(json);
    putc('\n', log->out);
}


/* Weights as they were given: the reader divides them by their sum again. */
static void
log_policy(report_log_t *log, uint32_t pool, const fleet_policy_t *policy)
{
    uint32_t       i;
    report_json_t  json;

    log_line(log, &json, "policy");
    report_json_string(&json, "pool", log_pools[pool]);
    report_json_string(&json, "policy", pool == 0
                       ? log->config->routing.policy_name : "weighted");

    if (policy->kind == LLMGW_RANK_WEIGHTED) {
        report_json_array(&json, "scorers");

        for (i = 0; i < policy->weighted.n; i++) {
            report_json_object(&json, NULL);
            report_json_string(&json, "name",
                               policy->weighted.weights[i].scorer->name);
            report_json_double(&json, "weight",
                               policy->weighted.weights[i].given);
            report_json_end(&json);
        }

        report_json_end(&json);

        if (log->config->routing.signal == FLEET_SIGNAL_EFFECTIVE) {
            report_json_string(&json, "queue_depth", "effective");
        }
    }

    log_line_end(log, &json);
}


static void
log_head(report_log_t *log)
{
    report_json_t           json;
    const fleet_routing_t  *routing;

    log_line(log, &json, "log");
    report_json_int(&json, "version", REPORT_LOG_VERSION);
    report_json_string(&json, "writer", "llmgw-sim");
    log_line_end(log, &json);

    routing = &log->config->routing;
    log_policy(log, 0, &routing->policy);

    if (routing->has_prefill) {
        log_policy(log, 1, &routing->prefill);
    }

    if (routing->has_decode) {
        log_policy(log, 2, &routing->decode);
    }
}


int
report_log_open(report_log_t *log, const char *path,
    const fleet_config_t *config, uint32_t top, double sample)
{
    uint32_t  n;

    memset(log, 0, sizeof(*log));
    n = config->replicas;

    log->config = config;
    log->top = top;
    log->sample = sample;
    log->cold = calloc(n, sizeof(double));
    log->scores = calloc((size_t) n * LLMGW_NSCORERS, sizeof(double));
    log->heap = calloc(n, sizeof(uint32_t));
    log->out = fopen(path, "w");

    if (log->cold == NULL || log->scores == NULL || log->heap == NULL
        || log->out == NULL)
    {
        return -1;
    }

    setvbuf(log->out, NULL, _IOFBF, LOG_BUFFER_BYTES);
    log_head(log);

    return 0;
}


/* A request is in the sample with all its decisions, or with none. */
static int
log_takes(const report_log_t *log, const work_request_t *request)
{
    rnd_t  rnd;

    if (log->sample >= 1) {
        return 1;
    }

    rnd.state = request->index;

    return (double) (rnd_next(&rnd) >> 11) / (double) (1ULL << 53)
           < log->sample;
}


void
report_log_decided(void *data, const fleet_decision_t *decision)
{
    report_log_t          *log;
    report_json_t          json;
    const work_request_t  *r;

    log = data;
    r = decision->request;

    if (decision->kind != FLEET_DECISION_ADMISSION || !log_takes(log, r)) {
        return;
    }

    log_line(log, &json, "admission");
    report_json_int(&json, "t_us", decision->clock_us);
    report_json_string(&json, "request", r->id);
    report_json_string(&json, "slo_class", r->slo_class->text);
    report_json_string(&json, "tenant", r->tenant->text);
    report_json_uint(&json, "tokens", r->input_tokens);
    report_json_bool(&json, "admitted", decision->is_admitted);

    if (!decision->is_admitted) {
        report_json_string(&json, "reason", decision->reason);
    }

    log_line_end(log, &json);
}


static void
log_scores(report_log_t *log, report_json_t *json,
    const fleet_chosen_t *c, uint32_t position)
{
    uint32_t  i;

    if (c->ranker->policy != LLMGW_RANK_WEIGHTED) {
        return;
    }

    report_json_array(json, "scores");

    for (i = 0; i < c->ranker->weighted.n; i++) {
        report_json_double(json, NULL,
                           log->scores[(size_t) i * c->scoring->n
                                       + position]);
    }

    report_json_end(json);
}


static void
log_candidate(report_log_t *log, report_json_t *json,
    const fleet_chosen_t *c, uint32_t position)
{
    char                      id[24];
    unsigned                  needs;
    const llmgw_candidate_t  *from;

    from = &c->scoring->candidates[position];
    needs = llmgw_rank_needs(c->ranker);
    snprintf(id, sizeof(id), "instance_%u", from->replica);

    report_json_object(json, NULL);
    report_json_string(json, "id", id);
    report_json_uint(json, "position", position);
    report_json_int(json, "in_flight", from->in_flight);
    report_json_int(json, "queue", from->queue_depth);
    report_json_int(json, "batch", from->batch_size);
    report_json_double(json, "kv", from->kv_utilization);
    report_json_uint(json, "free_blocks", c->free_blocks[from->replica]);

    if (needs & LLMGW_NEEDS_MATCHED) {
        report_json_uint(json, "matched", c->scoring->matched[from->replica]);
    }

    if (needs & LLMGW_NEEDS_CACHED) {
        report_json_uint(json, "cached", from->cached);
    }

    if (needs & LLMGW_NEEDS_COLD) {
        report_json_double(json, "cold", log->cold[position]);
    }

    if (needs & LLMGW_NEEDS_ADAPTER) {
        report_json_bool(json, "adapter", (int) from->has_adapter);
    }

    log_scores(log, json, c, position);
    report_json_double(json, "rank", c->ranks[position]);
    report_json_end(json);
}


/* All in their order; or the best by rank, which the chosen one is of. */
static void
log_candidates(report_log_t *log, report_json_t *json,
    const fleet_chosen_t *c)
{
    uint32_t       i, n, next;
    llmgw_order_t  order;

    n = c->scoring->n;
    report_json_array(json, "candidates");

    if (log->top == 0 || log->top >= n) {
        for (i = 0; i < n; i++) {
            log_candidate(log, json, c, i);
        }

    } else {
        llmgw_order_init(&order, c->ranks, n, log->heap, NULL);

        for (i = 0; i < log->top; i++) {
            next = llmgw_order_next(&order);
            log_candidate(log, json, c, next);
        }
    }

    report_json_end(json);
}


/* What the policy read and is not in the candidates: made once a choice. */
static void
log_prepare(report_log_t *log, const fleet_chosen_t *c)
{
    uint32_t                 i;
    const llmgw_scoring_t   *s;
    const llmgw_weighted_t  *w;

    s = c->scoring;
    w = &c->ranker->weighted;

    if (s->cold != NULL) {
        llmgw_cold_rank(s->cold, s->candidates, s->n, log->cold);
    }

    if (c->ranker->policy == LLMGW_RANK_WEIGHTED) {
        for (i = 0; i < w->n; i++) {
            w->weights[i].scorer->score(s, &log->scores[(size_t) i * s->n]);
        }
    }
}


void
report_log_chose(void *data, const fleet_chosen_t *chosen)
{
    report_log_t   *log;
    report_json_t   json;

    log = data;

    if (!log_takes(log, chosen->request)) {
        return;
    }

    log_prepare(log, chosen);

    log_line(log, &json, "route");
    report_json_int(&json, "t_us", chosen->clock_us);
    report_json_string(&json, "request", chosen->request->id);
    report_json_string(&json, "pool", log_pools[chosen->role]);
    report_json_uint(&json, "blocks", chosen->scoring->nblocks);
    report_json_uint(&json, "of", chosen->scoring->n);

    if (chosen->ranker->policy == LLMGW_RANK_ROUND_ROBIN) {
        report_json_uint(&json, "turn", chosen->ranker->turn);
    }

    report_json_uint(&json, "chosen", chosen->chosen);
    report_json_string(&json, "reason", chosen->reason);
    log_candidates(log, &json, chosen);
    log_line_end(log, &json);
}


int
report_log_close(report_log_t *log)
{
    int  rc;

    rc = 0;

    if (log->out != NULL) {
        rc = ferror(log->out) ? -1 : 0;
        rc |= fclose(log->out) != 0 ? -1 : 0;
    }

    free(log->cold);
    free(log->scores);
    free(log->heap);
    memset(log, 0, sizeof(*log));

    return rc;
}

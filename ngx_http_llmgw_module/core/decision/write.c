
/* Lines of the decision log.  write.h has their kinds. */

#include <string.h>

#include "core/decision/write.h"
#include "core/policy/order.h"


static void
write_begin(llmgw_line_t *out, const char *kind)
{
    llmgw_line_open(out, NULL, '{');
    llmgw_line_word(out, "kind", kind);
}


static void
write_end(llmgw_line_t *out)
{
    llmgw_line_close(out, '}');
    llmgw_line_end(out);
}


static void
write_worker(llmgw_line_t *out, llmgw_decision_worker_t worker)
{
    if (worker != 0) {
        llmgw_line_int(out, "worker", worker);
    }
}


void
llmgw_decision_head(llmgw_line_t *out, const char *writer,
    llmgw_decision_worker_t worker)
{
    write_begin(out, "log");
    llmgw_line_int(out, "version", LLMGW_DECISION_VERSION);
    llmgw_line_word(out, "writer", writer);
    write_worker(out, worker);
    write_end(out);
}


/*
 * Writes weights as they were given: a reader divides them by their sum again.
 */
static void
write_scorers(llmgw_line_t *out, const llmgw_weighted_t *weighted)
{
    uint32_t  i;

    llmgw_line_open(out, "scorers", '[');

    for (i = 0; i < weighted->n; i++) {
        llmgw_line_open(out, NULL, '{');
        llmgw_line_word(out, "name", weighted->weights[i].scorer->name);
        llmgw_line_double(out, "weight", weighted->weights[i].given);
        llmgw_line_close(out, '}');
    }

    llmgw_line_close(out, ']');
}


void
llmgw_decision_policy(llmgw_line_t *out,
    const llmgw_decision_policy_t *policy)
{
    write_begin(out, "policy");
    llmgw_line_text(out, "pool", policy->pool);
    llmgw_line_word(out, "policy", policy->name);

    if (policy->weighted != NULL) {
        write_scorers(out, policy->weighted);

        if (policy->is_effective) {
            llmgw_line_word(out, "queue_depth", "effective");
        }
    }

    if (policy->ring != NULL) {
        llmgw_line_int(out, "vnodes", policy->ring->vnodes);
        llmgw_line_int(out, "load_factor_permille",
                       policy->ring->load_factor_permille);
        llmgw_line_int(out, "min_load", policy->ring->min_load);
    }

    write_worker(out, policy->worker);
    write_end(out);
}


static void
write_model(llmgw_line_t *out, llmgw_line_text_t model)
{
    if (model.text != NULL) {
        llmgw_line_text(out, "model", model);
    }
}


void
llmgw_decision_admission(llmgw_line_t *out,
    const llmgw_decision_admission_t *admission)
{
    write_begin(out, "admission");
    llmgw_line_int(out, "t_us", admission->t_us);
    llmgw_line_text(out, "request", admission->request);

    if (admission->pool.text != NULL) {
        llmgw_line_text(out, "pool", admission->pool);
    }

    write_model(out, admission->model);

    llmgw_line_text(out, "slo_class", admission->slo_class);
    llmgw_line_text(out, "tenant", admission->tenant);

    if (admission->tokens >= 0) {
        llmgw_line_int(out, "tokens", admission->tokens);
    }

    llmgw_line_bool(out, "admitted", admission->reason == NULL);

    if (admission->reason != NULL) {
        llmgw_line_word(out, "reason", admission->reason);
    }

    write_worker(out, admission->worker);
    write_end(out);
}


static void
write_scores(llmgw_line_t *out, const llmgw_decision_route_t *route,
    uint32_t position)
{
    uint32_t  i;

    if (route->ranker->policy != LLMGW_RANK_WEIGHTED) {
        return;
    }

    llmgw_line_open(out, "scores", '[');

    for (i = 0; i < route->ranker->weighted.n; i++) {
        llmgw_line_double(out, NULL,
                          route->scores[(size_t) i * route->scoring->n
                                        + position]);
    }

    llmgw_line_close(out, ']');
}


static void
write_unknown(llmgw_line_t *out, unsigned unknown)
{
    unsigned  i;

    static const char *const  names[] = { "queue", "batch", "kv" };

    if (unknown == 0) {
        return;
    }

    llmgw_line_open(out, "unknown", '[');

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (unknown & 1u << i) {
            llmgw_line_word(out, NULL, names[i]);
        }
    }

    llmgw_line_close(out, ']');
}


static void
write_pick(llmgw_line_t *out, const llmgw_decision_replica_t *replica)
{
    static const char *const  states[] = {
        [LLMGW_PEER_UNUSABLE] = "unusable",
        [LLMGW_PEER_SUSPECT] = "suspect",
        [LLMGW_PEER_ALIVE] = "alive",
        [LLMGW_PEER_STANDBY] = "standby",
        [LLMGW_PEER_LAST] = "last"
    };

    llmgw_line_int(out, "foreign", replica->foreign);
    llmgw_line_int(out, "weight", replica->weight);
    llmgw_line_word(out, "state", states[replica->state]);

    if (replica->is_open) {
        llmgw_line_word(out, "circuit", "open");
        llmgw_line_int(out, "retry_ms", replica->retry_ms);
    }
}


static void
write_replica(llmgw_line_t *out, const llmgw_decision_replica_t *replica)
{
    static const char *const  lacks[] = {
        [LLMGW_LACKS_STATE] = "state",
        [LLMGW_LACKS_TRUST] = "excluded",
        [LLMGW_LACKS_CAPACITY] = "full",
        [LLMGW_LACKS_TIME] = "pushed_back",
        [LLMGW_LACKS_CIRCUIT] = "circuit"
    };

    if (replica->age_ms >= 0) {
        llmgw_line_int(out, "age_ms", replica->age_ms);
    }

    write_unknown(out, replica->unknown);

    if (replica->has_pick) {
        write_pick(out, replica);
    }

    if (replica->lacks != LLMGW_LACKS_NOTHING) {
        llmgw_line_word(out, "failed", lacks[replica->lacks]);

    } else if (replica->was_passed) {
        llmgw_line_word(out, "failed", "passed");
    }
}


/* The policy's inputs beyond load. */
static void
write_needed(llmgw_line_t *out, const llmgw_decision_route_t *route,
    uint32_t position)
{
    unsigned                  needs;
    const llmgw_candidate_t  *from;

    from = &route->scoring->candidates[position];
    needs = llmgw_rank_needs(route->ranker);

    if (needs & LLMGW_NEEDS_MATCHED) {
        llmgw_line_int(out, "matched",
                       route->scoring->matched[from->replica]);
    }

    if (needs & LLMGW_NEEDS_CACHED) {
        llmgw_line_int(out, "cached", from->cached);
    }

    if (needs & LLMGW_NEEDS_COLD) {
        llmgw_line_double(out, "cold", route->cold[position]);
    }
}


static void
write_candidate(llmgw_line_t *out, const llmgw_decision_route_t *route,
    uint32_t position)
{
    const llmgw_candidate_t   *from;
    llmgw_decision_replica_t   replica;

    from = &route->scoring->candidates[position];
    memset(&replica, 0, sizeof(replica));
    replica.free_blocks = -1;
    replica.age_ms = -1;
    route->describe(route->data, position, &replica);

    llmgw_line_open(out, NULL, '{');
    llmgw_line_text(out, "id", replica.id);
    llmgw_line_int(out, "position", position);
    llmgw_line_int(out, "in_flight", from->in_flight);
    llmgw_line_int(out, "queue", from->queue_depth);
    llmgw_line_int(out, "batch", from->batch_size);
    llmgw_line_double(out, "kv", from->kv_utilization);

    if (replica.free_blocks >= 0) {
        llmgw_line_int(out, "free_blocks", replica.free_blocks);
    }

    write_needed(out, route, position);
    write_scores(out, route, position);
    llmgw_line_double(out, "rank", route->ranks != NULL
                      ? route->ranks[position] : position == route->chosen);
    write_replica(out, &replica);
    llmgw_line_close(out, '}');
}


static void
write_how(llmgw_line_t *out, const llmgw_decision_route_t *route)
{
    if (route->ranker->policy == LLMGW_RANK_ROUND_ROBIN) {
        llmgw_line_int(out, "turn", (int64_t) route->ranker->turn);
    }

    if (route->random != NULL) {
        llmgw_line_hex(out, "random", *route->random);
    }

    if (route->key != NULL) {
        llmgw_line_hex(out, "key", *route->key);
    }

    if (route->sums != NULL) {
        llmgw_line_open(out, "sums", '{');
        llmgw_line_int(out, "load", (int64_t) route->sums->load);
        llmgw_line_int(out, "weight", (int64_t) route->sums->weight);
        llmgw_line_close(out, '}');
    }

    if (route->outcome != NULL) {
        llmgw_line_word(out, "outcome", route->outcome);
    }

    if (route->route != NULL) {
        llmgw_line_word(out, "route", route->route);
    }

    if (route->chosen != LLMGW_RANK_NONE) {
        llmgw_line_int(out, "chosen", route->chosen);

    } else if (route->replica.len != 0) {
        llmgw_line_text(out, "replica", route->replica);
    }

    if (route->reason != NULL) {
        llmgw_line_word(out, "reason", route->reason);
    }
}


void
llmgw_decision_route(llmgw_line_t *out,
    const llmgw_decision_route_t *route)
{
    uint32_t  i;

    write_begin(out, "route");
    llmgw_line_int(out, "t_us", route->t_us);
    llmgw_line_text(out, "request", route->request);
    llmgw_line_text(out, "pool", route->pool);
    write_model(out, route->model);
    write_worker(out, route->worker);

    if (route->attempt != 0) {
        llmgw_line_int(out, "attempt", route->attempt);
    }

    llmgw_line_int(out, "blocks", route->scoring->nblocks);
    llmgw_line_int(out, "of", route->scoring->n);
    write_how(out, route);

    llmgw_line_open(out, "candidates", '[');

    for (i = 0; route->shown == NULL && i < route->scoring->n; i++) {
        write_candidate(out, route, i);
    }

    for (i = 0; route->shown != NULL && i < route->nshown; i++) {
        write_candidate(out, route, route->shown[i]);
    }

    llmgw_line_close(out, ']');
    write_end(out);
}


void
llmgw_decision_prepare(const llmgw_ranker_t *ranker,
    const llmgw_scoring_t *scoring, double *scores, double *cold)
{
    uint32_t                 i;
    const llmgw_weighted_t  *w;

    w = &ranker->weighted;

    if (scoring->cold != NULL) {
        llmgw_cold_rank(scoring->cold, scoring->candidates, scoring->n, cold);
    }

    for (i = 0; ranker->policy == LLMGW_RANK_WEIGHTED && i < w->n; i++) {
        w->weights[i].scorer->score(scoring, &scores[(size_t) i * scoring->n]);
    }
}


/*
 * For a choice by the ring, which has no ranks: the chosen one and the first
 * ones.
 */
static uint32_t
top_unranked(const llmgw_decision_route_t *route, uint32_t n, uint32_t *shown)
{
    uint32_t  i, nshown;

    nshown = 0;

    if (route->chosen != LLMGW_RANK_NONE) {
        shown[nshown++] = route->chosen;
    }

    for (i = 0; nshown < n; i++) {
        if (i != route->chosen) {
            shown[nshown++] = i;
        }
    }

    return nshown;
}


uint32_t
llmgw_decision_top(const llmgw_decision_route_t *route, uint32_t n,
    uint32_t *heap, uint32_t *shown)
{
    int            has_chosen;
    uint32_t       i;
    llmgw_order_t  order;

    has_chosen = route->chosen == LLMGW_RANK_NONE;

    if (route->ranks == NULL) {
        return top_unranked(route, n, shown);
    }

    llmgw_order_init(&order, route->ranks, route->scoring->n, heap,
                     route->random);

    for (i = 0; i < n; i++) {
        shown[i] = llmgw_order_next(&order);
        has_chosen |= shown[i] == route->chosen;
    }

    if (!has_chosen) {
        shown[i++] = route->chosen;
    }

    return i;
}

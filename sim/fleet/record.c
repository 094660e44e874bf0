
/*
 * Reports decisions to the run's fleet_watch_t.
 *
 * A choice is reported with its best candidates and its regret: the difference
 * between the scores of the best and the chosen one.  A score is that of the
 * policy's scorers; for a policy without scorers it is the negated load.
 * Candidates with equal scores come in the order of their names, as BLIS sorts
 * them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/fleet/fleet_inner.h"


int
record_init(fleet_t *f)
{
    f->ranked = fleet_alloc(f, f->config->replicas, sizeof(fleet_ranked_t));

    return f->failed ? -1 : 0;
}


void
record_admission(fleet_t *f, const work_request_t *w, int is_admitted,
    const char *reason)
{
    fleet_decision_t  decision;

    if (f->watch == NULL || f->watch->decided == NULL) {
        return;
    }

    decision = (fleet_decision_t) {
        .kind = FLEET_DECISION_ADMISSION,
        .clock_us = f->loop.clock_us,
        .request = w,
        .is_admitted = is_admitted,
        .reason = reason,
        .chosen = FLEET_NONE
    };
    f->watch->decided(f->watch->data, &decision);
}


static int
record_compare(const void *a, const void *b)
{
    char                   s[16], t[16];
    const fleet_ranked_t  *x = a, *y = b;

    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }

    snprintf(s, sizeof(s), "%u", x->replica);
    snprintf(t, sizeof(t), "%u", y->replica);

    return strcmp(s, t);
}


static double
record_rank(fleet_t *f, const llmgw_ranker_t *ranker,
    const llmgw_scoring_t *scoring, uint32_t chosen)
{
    double                    score, of_chosen;
    uint32_t                  i;
    const llmgw_candidate_t  *c;

    for (i = 0, of_chosen = 0; i < scoring->n; i++) {
        c = &scoring->candidates[i];
        score = ranker->policy == LLMGW_RANK_WEIGHTED
                ? f->ranks[i] : -(double) llmgw_candidate_load(c);
        of_chosen = i == chosen ? score : of_chosen;
        f->ranked[i] = (fleet_ranked_t) {
            .replica = c->replica,
            .queue_depth = c->queue_depth,
            .batch_size = c->batch_size,
            .in_flight = c->in_flight,
            .free_blocks = f->seen_free[c->replica],
            .kv_utilization = c->kv_utilization,
            .score = score
        };
    }

    qsort(f->ranked, scoring->n, sizeof(fleet_ranked_t), record_compare);

    return f->ranked[0].score > of_chosen ? f->ranked[0].score - of_chosen
                                          : 0;
}


static void
record_keep(fleet_t *f, const llmgw_ranker_t *ranker,
    const llmgw_scoring_t *scoring, const work_request_t *w, uint32_t chosen)
{
    uint32_t  top;

    f->choice = (fleet_decision_t) {
        .clock_us = f->loop.clock_us,
        .request = w,
        .is_admitted = 1,
        .reason = f->reason,
        .chosen = scoring->candidates[chosen].replica
    };
    top = f->config->top;

    if (top > 0) {
        f->choice.regret = record_rank(f, ranker, scoring, chosen);
        f->choice.top = f->ranked;
        f->choice.ntop = top < scoring->n ? top : scoring->n;
    }
}


/* Writes why candidates[chosen] was chosen, as BLIS words it. */
static void
record_reason(fleet_t *f, const fleet_policy_t *policy,
    const llmgw_scoring_t *scoring, uint32_t chosen)
{
    switch (policy->ranker.policy) {

    case LLMGW_RANK_ROUND_ROBIN:
        snprintf(f->reason, sizeof(f->reason), "round-robin[%" PRIu64 "]",
                 policy->ranker.turn);
        return;

    case LLMGW_RANK_WEIGHTED:
        snprintf(f->reason, sizeof(f->reason),
                 "weighted-scoring (score=%.3f)", f->ranks[chosen]);
        return;

    default:
        snprintf(f->reason, sizeof(f->reason), "%s (load=%" PRId64 ")",
                 fleet_policy_name(policy),
                 llmgw_candidate_load(&scoring->candidates[chosen]));
        return;
    }
}


/*
 * Keeps a choice for record_tell(), since the policy's memory changes now;
 * calls the hook `chose` at once.
 */
void
record_choice(fleet_t *f, const fleet_ranker_t *ranker,
    const llmgw_scoring_t *scoring, const fleet_request_t *r, uint32_t chosen)
{
    fleet_chosen_t         told;
    const work_request_t  *w;

    if (f->watch == NULL
        || (f->watch->decided == NULL && f->watch->chose == NULL))
    {
        return;
    }

    w = work_at(f->work, r->index);
    record_reason(f, &ranker->policy, scoring, chosen);

    if (f->watch->decided != NULL) {
        record_keep(f, &ranker->policy.ranker, scoring, w, chosen);
    }

    if (f->watch->chose != NULL) {
        told = (fleet_chosen_t) {
            .clock_us = f->loop.clock_us,
            .request = w,
            .role = (uint32_t) (ranker - f->rankers),
            .ranker = &ranker->policy.ranker,
            .scoring = scoring,
            .ranks = f->ranks,
            .free_blocks = f->seen_free,
            .chosen = chosen,
            .reason = f->reason
        };
        f->watch->chose(f->watch->data, &told);
    }
}


void
record_tell(fleet_t *f, fleet_decision_kind_t kind)
{
    if (f->watch != NULL && f->watch->decided != NULL) {
        f->choice.kind = kind;
        f->watch->decided(f->watch->data, &f->choice);
    }
}

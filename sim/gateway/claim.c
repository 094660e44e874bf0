
/*
 * A claim for a request, as in attempt/claim.c of nginx: core/admission/
 * decides, and what it decides about the queue is carried out here.
 */

#include "sim/gateway/gateway_inner.h"


static void
claim_leased(gateway_t *g, uint32_t i, uint32_t replica)
{
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    outcome->status = FLEET_IN_INSTANCE;
    outcome->replica = replica;
    outcome->was_injected = 1;

    if (outcome->route_us == FLEET_NEVER) {
        outcome->route_us = g->loop.clock_us;
    }

    if (outcome->gw_enqueue_us != FLEET_NEVER
        && outcome->gw_dispatch_us == FLEET_NEVER)
    {
        outcome->gw_dispatch_us = g->loop.clock_us;
    }
}


static void
claim_queued(gateway_t *g, uint32_t i)
{
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    outcome->status = FLEET_IN_GATEWAY;
    g->counts->queued++;

    if (outcome->gw_enqueue_us == FLEET_NEVER) {
        outcome->gw_enqueue_us = g->loop.clock_us;
    }
}


/* Carries out what core's answer tells to do with the queue. */
static void
claim_apply(gateway_t *g, uint32_t i, uint32_t entry,
    const llmgw_admission_answer_t *answer)
{
    stream_t  *s = gateway_stream(g, i);
    front_t   *front = &g->fronts[s->front];

    excluded_forget(s, answer->forget);

    if (answer->has_left && entry != LLMGW_QUEUE_NONE) {
        front->waiting[entry] = STREAM_NONE;
    }

    if (answer->has_joined) {
        front->waiting[s->claim.entry] = i;
    }

    if (front->shared->queue.length > g->counts->queue_peak) {
        g->counts->queue_peak = front->shared->queue.length;
    }

    front_wake(g, front, &answer->wake);
}


/*
 * Counts a violation of FIFO order: an eligible waiting request has an older
 * ticket than the one that was served.
 */
static void
claim_check_order(gateway_t *g, const stream_t *s, const front_t *front)
{
    uint32_t                    i;
    const llmgw_queue_t        *queue = &front->shared->queue;
    const llmgw_queue_entry_t  *entry;

    if (s->serve.has_begun) {
        return;                 /* streams that have begun precede all others */
    }

    i = queue->waits.first;

    if (i != LLMGW_QUEUE_NONE) {
        entry = &queue->entries[i];
        g->counts->overtaken += !entry->is_skipped && !entry->is_urgent
                                && entry->ticket < s->claim.ticket;
    }
}


llmgw_admission_rc_t
claim_make(gateway_t *g, uint32_t i)
{
    uint32_t                        entry;
    uint64_t                        random;
    stream_t                       *s = gateway_stream(g, i);
    front_t                        *front = &g->fronts[s->front];
    llmgw_admission_answer_t        answer;
    const llmgw_admission_view_t   *view;

    s->claim.excluded = s->excluded;
    s->claim.nexcluded = s->nexcluded;
    excluded_look(g, s);
    entry = s->claim.entry;
    view = front_view(g, front);
    random = rnd_next(&g->rnd);

    choice_rank(g, front, i, &s->claim, random);
    front->nheld -= s->claim.is_held;
    llmgw_admission_claim(&front->self, view, &s->claim,
                          &s->attempts[0].lease, gateway_ms(g), random,
                          &answer);
    front->nheld += s->claim.is_held;
    claim_apply(g, i, entry, &answer);

    if (answer.rc == LLMGW_ADMISSION_LEASED) {
        claim_check_order(g, s, front);
        choice_note(front, answer.picked.peer);
        claim_leased(g, i, answer.picked.peer);

    } else if (answer.rc == LLMGW_ADMISSION_WAITS && !s->serve.waits) {
        claim_queued(g, i);
    }

    return answer.rc;
}


void
claim_second(gateway_t *g, uint32_t i)
{
    uint32_t                   excluded[STREAM_EXCLUDED + 1], k;
    uint64_t                   random;
    stream_t                  *s = gateway_stream(g, i);
    front_t                   *front = &g->fronts[s->front];
    llmgw_claim_t              claim;
    llmgw_admission_answer_t   answer;

    excluded_look(g, s);
    claim = s->claim;

    for (k = 0; k < s->nexcluded; k++) {
        excluded[k] = s->excluded[k];
    }

    excluded[k++] = s->attempts[0].replica;
    claim.excluded = excluded;
    claim.nexcluded = k;

    random = rnd_next(&g->rnd);
    choice_rank(g, front, i, &claim, random);
    llmgw_admission_second(&front->self, front_view(g, front), &claim,
                           g->config->hedge_permille != 0,
                           &s->attempts[1].lease, gateway_ms(g), random,
                           &answer);

    if (answer.rc == LLMGW_ADMISSION_LEASED) {
        choice_note(front, answer.picked.peer);
        g->counts->hedges++;
        llmgw_serve_hedged(&s->serve);
        attempt_start(g, 2 * i + 1, answer.picked.peer);
    }
}


/*
 * A request, from its arrival to its end, served by as many attempts as it
 * takes: what front/serve.c and front/ended.c do in nginx, with the same calls
 * to core.
 */

#include <stdlib.h>

#include "sim/fleet/ring.h"
#include "sim/gateway/gateway_inner.h"


/* --- exclusions */

static void
stream_exclude(stream_t *s, uint32_t replica, int failed)
{
    if (s->nexcluded == STREAM_EXCLUDED) {
        return;
    }

    s->excluded_failed &= ~(UINT64_C(1) << s->nexcluded);
    s->excluded_failed |= (uint64_t) (failed != 0) << s->nexcluded;
    s->excluded[s->nexcluded++] = replica;
}


/* As front/serve.c: one that failed it may be asked again, but not yet. */
static void
stream_avoid(gateway_t *g, stream_t *s, uint32_t replica, int failed)
{
    stream_exclude(s, replica, failed);

    if (!failed) {
        return;
    }

    s->pause_end_us = s->attempts[0].began_us
                      + 1000 * (int64_t) llmgw_resume_pause_ms(&s->resume,
                                                     rnd_next(&g->rnd));
    s->claim.may_restart = 1;
    s->claim.has_paused = (s->pause_end_us <= g->clock_us);
}


static void
stream_forget(stream_t *s, llmgw_forget_t forget)
{
    uint32_t  i, n;

    if (forget == LLMGW_FORGET_NOTHING) {
        return;
    }

    n = s->nexcluded;
    s->nexcluded = 0;

    for (i = 0; i < n && forget == LLMGW_FORGET_BUT_FAILED; i++) {
        if (s->excluded_failed >> i & 1) {
            stream_exclude(s, s->excluded[i], 1);
        }
    }
}


/* As upstream/claim.c: this stream asks the replica later. */
static void
stream_push_back(gateway_t *g, stream_t *s, uint32_t replica)
{
    stream_look_at_pushed(g, s);

    if (s->npushed < STREAM_PUSHED) {
        s->pushed[s->npushed] = replica;
        s->pushed_ms[s->npushed++] = gateway_ms(g)
                        + llmgw_full_pushback_ms(LLMGW_PUSHBACK_NONE,
                                                 ++s->refusals);
    }
}


void
stream_look_at_pushed(gateway_t *g, stream_t *s)
{
    uint32_t  i, n;

    n = s->npushed;
    s->npushed = 0;
    s->told.until_ms = UINT64_MAX;

    for (i = 0; i < n; i++) {

        if (s->pushed_ms[i] <= gateway_ms(g)) {
            continue;
        }

        if (s->pushed_ms[i] < s->told.until_ms) {
            s->told.until_ms = s->pushed_ms[i];
        }

        s->pushed[s->npushed] = s->pushed[i];
        s->pushed_ms[s->npushed++] = s->pushed_ms[i];
    }

    s->told.peers = s->pushed;
    s->told.npeers = s->npushed;
    s->claim.pushed = s->npushed != 0 ? &s->told : NULL;
}


/* --- the end */

void
stream_over(gateway_t *g, uint32_t i, fleet_status_t status,
    const char *detail)
{
    llmgw_wake_t      wake;
    stream_t         *s = gateway_stream(g, i);
    front_t          *front = &g->fronts[s->front];
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    attempt_end(g, 2 * i, LLMGW_VERDICT_NEUTRAL);
    attempt_end(g, 2 * i + 1, LLMGW_VERDICT_NEUTRAL);

    if (s->claim.entry != LLMGW_QUEUE_NONE) {
        front->waiting[s->claim.entry] = STREAM_NONE;
        llmgw_admission_leave(&front->self, &s->claim, gateway_ms(g), &wake);
        front_wake(g, front, &wake);
    }

    s->waits = 0;
    s->timer++;
    outcome->status = status;
    outcome->detail = detail;
    outcome->output_tokens = s->tokens;

    if (status != FLEET_COMPLETED && status != FLEET_LENGTH_CAPPED) {
        outcome->end_us = g->clock_us;
    }

    free(s->hashes);
    s->hashes = NULL;
    g->ended++;
}


/* No replica, or no try, is left. */
static void
stream_give_up(gateway_t *g, uint32_t i, const char *why, uint64_t *count)
{
    if (gateway_stream(g, i)->has_begun) {
        g->counts->lost++;
        stream_over(g, i, FLEET_LOST, why);
        return;
    }

    (*count)++;
    stream_over(g, i, FLEET_REJECTED_ROUTING, why);
}


/* --- the claim */

static void
stream_leased(gateway_t *g, uint32_t i, uint32_t replica)
{
    stream_t         *s = gateway_stream(g, i);
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    s->waits = 0;
    outcome->status = FLEET_IN_INSTANCE;
    outcome->replica = replica;
    outcome->was_injected = 1;

    if (outcome->route_us == FLEET_NEVER) {
        outcome->route_us = g->clock_us;
        s->hedge_us = g->config->hedge_us == 0
                      ? 0 : g->clock_us + g->config->hedge_us;
    }

    if (outcome->gw_enqueue_us != FLEET_NEVER
        && outcome->gw_dispatch_us == FLEET_NEVER)
    {
        outcome->gw_dispatch_us = g->clock_us;
    }

    attempt_start(g, 2 * i, replica);
    timer_arm(g, i);
}


static void
stream_waits(gateway_t *g, uint32_t i)
{
    stream_t         *s = gateway_stream(g, i);
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    if (!s->waits) {
        s->waits = 1;
        s->queue_end_us = g->clock_us + g->config->queue_us;
        outcome->status = FLEET_IN_GATEWAY;
        g->counts->queued++;

        if (outcome->gw_enqueue_us == FLEET_NEVER) {
            outcome->gw_enqueue_us = g->clock_us;
        }
    }

    timer_arm(g, i);
}


/* Carries out what an answer says of the queue. */
static void
stream_obey(gateway_t *g, uint32_t i, uint32_t entry,
    const llmgw_admission_answer_t *answer)
{
    stream_t  *s = gateway_stream(g, i);
    front_t   *front = &g->fronts[s->front];

    stream_forget(s, answer->forget);

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


/* FIFO: nobody who waits, and may go, has an older ticket. */
static void
stream_check_order(gateway_t *g, const stream_t *s, const front_t *front)
{
    uint32_t                    i;
    const llmgw_queue_t        *queue = &front->shared->queue;
    const llmgw_queue_entry_t  *entry;

    if (s->has_begun) {
        return;                 /* those stand before all others */
    }

    i = queue->waits.first;

    if (i != LLMGW_QUEUE_NONE) {
        entry = &queue->entries[i];
        g->counts->overtaken += !entry->is_skipped && !entry->is_urgent
                                && entry->ticket < s->claim.ticket;
    }
}


void
stream_claim(gateway_t *g, uint32_t i)
{
    uint32_t                        entry;
    uint64_t                        random;
    stream_t                       *s = gateway_stream(g, i);
    front_t                        *front = &g->fronts[s->front];
    llmgw_admission_answer_t        answer;
    const llmgw_admission_view_t   *view;

    s->claim.is_urgent = s->has_begun;
    s->claim.is_last = llmgw_resume_is_last_try(&s->resume);
    s->claim.excluded = s->excluded;
    s->claim.nexcluded = s->nexcluded;
    stream_look_at_pushed(g, s);
    entry = s->claim.entry;
    view = front_view(g, front);
    random = rnd_next(&g->rnd);

    choice_rank(g, front, i, &s->claim, random);
    llmgw_admission_claim(&front->self, view, &s->claim,
                          &s->attempts[0].lease, gateway_ms(g), random,
                          &answer);
    stream_obey(g, i, entry, &answer);

    if (llmgw_claim_pauses(&s->claim, answer.rc)) {
        s->pauses = 1;
        timer_arm(g, i);
        return;
    }

    switch (answer.rc) {

    case LLMGW_ADMISSION_LEASED:
        stream_check_order(g, s, front);
        choice_note(front, answer.picked.peer);
        stream_leased(g, i, answer.picked.peer);
        return;

    case LLMGW_ADMISSION_WAITS:
        stream_waits(g, i);
        return;

    case LLMGW_ADMISSION_FULL:
    case LLMGW_ADMISSION_SKIPPABLE:
        if (s->has_begun) {
            stream_give_up(g, i, "queue_full", &g->counts->refused_queue);
            return;
        }

        g->counts->refused_queue++;
        stream_over(g, i, FLEET_GATEWAY_REJECTED, "queue_full");
        return;

    case LLMGW_ADMISSION_OPEN:
        stream_give_up(g, i, "circuits_open", &g->counts->refused_open);
        return;

    default:
        stream_give_up(g, i, "no_replicas", &g->counts->refused_none);
        return;
    }
}


/* --- the beginning */

static int
stream_hash(gateway_t *g, stream_t *s, const work_request_t *w)
{
    uint32_t  b, block_tokens;

    block_tokens = (uint32_t) g->fleet->model.block_tokens;
    s->nhashes = (w->input_tokens + w->output_tokens) / block_tokens;
    s->hashes = gateway_alloc(g, s->nhashes, sizeof(uint64_t));

    if (s->hashes == NULL) {
        return -1;
    }

    for (b = 0; b < s->nhashes; b++) {
        s->hashes[b] = work_block_hash(w, block_tokens, b);
    }

    return 0;
}


void
stream_arrive(gateway_t *g, uint32_t i)
{
    stream_t              *s = gateway_stream(g, i);
    const work_request_t  *w = work_at(g->work, i);

    g->result->classes[w->slo_class->id].injected++;
    g->result->outcomes[i].status = FLEET_IN_GATEWAY;

    s->front = i % g->config->gateways;
    s->claim.hash = fleet_key(w, g->config->key_tokens,
                              (uint32_t) g->fleet->model.block_tokens);
    s->claim.entry = LLMGW_QUEUE_NONE;
    s->resume.tries_max = g->config->tries;
    s->resume.failovers_max = g->config->failovers;

    if (stream_hash(g, s, w) == 0) {
        stream_claim(g, i);
    }
}


/* --- what attempts bring */

/* The first token: its attempt serves, the other one is not needed. */
void
stream_begun(gateway_t *g, uint32_t attempt)
{
    uint32_t                i = attempt / 2;
    stream_t               *s = gateway_stream(g, i);
    attempt_t              *a = gateway_attempt(g, attempt);
    front_t                *front = &g->fronts[s->front];
    llmgw_admission_end_t   end;

    s->hedge_us = 0;
    s->last_us = g->clock_us;

    if (!s->has_begun) {
        s->has_begun = 1;
        s->first_us = g->clock_us;
        g->result->outcomes[i].ttft_us = g->clock_us
                                         - work_at(g->work, i)->arrival_us;
    }

    g->result->outcomes[i].replica = a->replica;
    llmgw_admission_prove(&front->self, &g->config->breaker, &a->lease,
                          gateway_ms(g), &end);
    front_wake(g, front, &end.wake);

    if (gateway_attempt(g, attempt ^ 1)->is_active) {
        g->counts->hedges_won += attempt % 2;
        attempt_end(g, attempt ^ 1, LLMGW_VERDICT_NEUTRAL);
    }

    timer_arm(g, i);
}


static void
stream_measure(gateway_t *g, uint32_t i)
{
    stream_t         *s = gateway_stream(g, i);
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    outcome->itl_count = s->tokens > 0 ? s->tokens - 1 : 0;
    outcome->itl_sum_us = s->tokens > 1 ? s->last_us - s->first_us : 0;
}


void
stream_served(gateway_t *g, uint32_t attempt)
{
    uint32_t               i = attempt / 2;
    stream_t              *s = gateway_stream(g, i);
    attempt_t             *a = gateway_attempt(g, attempt);
    fleet_status_t         status;
    fleet_outcome_t       *outcome = &g->result->outcomes[i];
    status = a->call.is_length_capped ? FLEET_LENGTH_CAPPED : FLEET_COMPLETED;
    (void) llmgw_resume_next(&s->resume, LLMGW_ENDING_FINAL, a->tokens,
                             s->tokens);
    s->tokens = a->base + a->tokens;
    s->last_us = g->clock_us;
    outcome->preemptions += a->call.preemptions;
    outcome->e2e_us = g->clock_us - work_at(g->work, i)->arrival_us;
    stream_measure(g, i);

    attempt_end(g, attempt, LLMGW_VERDICT_SUCCESS);
    stream_over(g, i, status, "");
}


/* The replica's own word that it cannot be served, or that it is too late. */
void
stream_refused(gateway_t *g, uint32_t attempt, model_end_t end)
{
    static const char *const  whens[] = {
        [MODEL_TIMED_OUT_RUNNING] = "running",
        [MODEL_TIMED_OUT_QUEUED] = "queued",
        [MODEL_PAST_DUE] = "past_due_at_enqueue"
    };

    if (end == MODEL_UNSERVABLE) {
        g->result->outcomes[attempt / 2].was_injected = 0;
        attempt_end(g, attempt, LLMGW_VERDICT_SUCCESS);
        stream_over(g, attempt / 2, FLEET_UNSERVABLE, "");
        return;
    }

    attempt_end(g, attempt, LLMGW_VERDICT_NEUTRAL);
    stream_over(g, attempt / 2, FLEET_TIMED_OUT, whens[end]);
}


/* As upstream/attempt.c: gossip's news tell nothing that is not known. */
static llmgw_verdict_t
stream_verdict(llmgw_ending_t ending, llmgw_cause_t cause)
{
    return ending != LLMGW_ENDING_FAILED || cause == LLMGW_CAUSE_MEMBER_DOWN
           || cause == LLMGW_CAUSE_MEMBER_DEAD
           || cause == LLMGW_CAUSE_MEMBER_STALLED
           ? LLMGW_VERDICT_NEUTRAL : LLMGW_VERDICT_FAILURE;
}


/* Takes stock of an attempt that broke: what the client has of it. */
static uint32_t
stream_settle(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause)
{
    stream_t   *s = gateway_stream(g, attempt / 2);
    attempt_t  *a = gateway_attempt(g, attempt);

    attempt_look(g, attempt);

    if (a->tokens > 0 && !s->has_begun) {
        stream_begun(g, attempt);       /* its first token was on its way */
    }

    if (a->base + a->tokens > s->tokens) {
        s->tokens = a->base + a->tokens;
        s->last_us = a->heard_us + g->config->network_us;
    }

    if (ending == LLMGW_ENDING_FAILED) {
        g->counts->failed[cause]++;

        if (cause == LLMGW_CAUSE_CONNECT) {
            front_refused(g, &g->fronts[s->front], a->replica);
        }

    } else {
        g->counts->turned_away++;

        if (ending == LLMGW_ENDING_FULL) {
            front_full(g, &g->fronts[s->front], a->replica);
        }
    }

    attempt_end(g, attempt, stream_verdict(ending, cause));

    return a->tokens;
}


/* An attempt ended before its stream did. */
void
stream_lost(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause)
{
    uint32_t              i = attempt / 2, tokens, replica;
    stream_t             *s = gateway_stream(g, i);
    llmgw_resume_step_t   step;

    replica = gateway_attempt(g, attempt)->replica;
    tokens = stream_settle(g, attempt, ending, cause);

    if (gateway_attempt(g, attempt ^ 1)->is_active) {
        stream_avoid(g, s, replica, ending == LLMGW_ENDING_FAILED);

        if (ending == LLMGW_ENDING_FULL) {
            stream_push_back(g, s, replica);
        }

        timer_arm(g, i);
        return;                 /* the other one runs on alone */
    }

    if (s->tokens >= work_at(g->work, i)->output_tokens && s->has_begun) {
        stream_measure(g, i);
        g->result->outcomes[i].e2e_us = g->clock_us
                                        - work_at(g->work, i)->arrival_us;
        stream_over(g, i, FLEET_COMPLETED, "");
        return;
    }

    step = llmgw_resume_next(&s->resume, ending, tokens, s->tokens);

    if (step.next != LLMGW_NEXT_AGAIN) {
        stream_give_up(g, i, "tries_exhausted", &g->counts->refused_none);
        return;
    }

    g->counts->failovers += s->has_begun;

    if (step.clear_excluded) {
        stream_forget(s, LLMGW_FORGET_ALL);
    }

    if (step.exclude) {
        stream_avoid(g, s, replica, step.counted);
    }

    if (ending == LLMGW_ENDING_FULL) {
        s->claim.saw_full = 1;
        stream_push_back(g, s, replica);
    }

    stream_claim(g, i);
}

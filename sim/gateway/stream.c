
/*
 * A request, from its arrival to its end.  core/serve/serve.h decides which
 * attempts serve it, as in nginx; this file carries that out in virtual time.
 */

#include <stdlib.h>

#include "sim/fleet/ring.h"
#include "sim/gateway/gateway_inner.h"


/* --- the end */

static void
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
        front->nheld -= s->claim.is_held;
        llmgw_admission_leave(&front->self, &s->claim, gateway_ms(g), &wake);
        front_wake(g, front, &wake);
    }

    s->timer++;
    outcome->status = status;
    outcome->detail = detail;
    outcome->output_tokens = s->tokens;

    if (status != FLEET_COMPLETED && status != FLEET_LENGTH_CAPPED) {
        outcome->end_us = g->loop.clock_us;
    }

    free(s->hashes);
    s->hashes = NULL;
    g->loop.ended++;
    g->loop.is_over |= g->loop.ended == g->work->n;
}


/*
 * Ends a stream without success: it is lost if it had a first token, else
 * refused.
 */
static void
stream_give_up(gateway_t *g, uint32_t i, fleet_status_t status,
    const char *why, uint64_t *count)
{
    if (gateway_stream(g, i)->serve.has_begun) {
        g->counts->lost++;
        stream_over(g, i, FLEET_LOST, why);
        return;
    }

    (*count)++;
    stream_over(g, i, status, why);
}


static void
stream_complete(gateway_t *g, uint32_t i, const attempt_t *a)
{
    int               is_capped;
    stream_t         *s = gateway_stream(g, i);
    fleet_outcome_t  *outcome = &g->result->outcomes[i];

    is_capped = a->final_us != 0 && a->call.is_length_capped;
    outcome->preemptions += a->final_us != 0 ? a->call.preemptions : 0;
    outcome->e2e_us = g->loop.clock_us - work_at(g->work, i)->arrival_us;
    outcome->itl_count = s->tokens > 0 ? s->tokens - 1 : 0;
    outcome->itl_sum_us = s->tokens > 1 ? s->last_us - s->first_us : 0;
    stream_over(g, i, is_capped ? FLEET_LENGTH_CAPPED : FLEET_COMPLETED, "");
}


/* it: the attempt that ended last, or ATTEMPT_NONE. */
static void
stream_end(gateway_t *g, uint32_t i, uint32_t it, llmgw_outcome_t outcome)
{
    const char  *why = llmgw_outcome_reason(outcome);

    switch (outcome) {

    case LLMGW_OUTCOME_SERVED:
        stream_complete(g, i, gateway_attempt(g, it));
        return;

    case LLMGW_OUTCOME_DEADLINE:
        stream_over(g, i, FLEET_TIMED_OUT, "gateway");
        return;

    case LLMGW_OUTCOME_QUEUE_FULL:
        stream_give_up(g, i, FLEET_GATEWAY_REJECTED, why,
                       &g->counts->refused_queue);
        return;

    case LLMGW_OUTCOME_QUEUE_TIMEOUT:
        stream_give_up(g, i, FLEET_GATEWAY_EXPIRED, why,
                       &g->counts->refused_timeout);
        return;

    case LLMGW_OUTCOME_CIRCUITS_OPEN:
        stream_give_up(g, i, FLEET_REJECTED_ROUTING, why,
                       &g->counts->refused_open);
        return;

    default:
        stream_give_up(g, i, FLEET_REJECTED_ROUTING, why,
                       &g->counts->refused_none);
        return;
    }
}


/* --- what core is given */

/* Rounds a time up, so that it is not due too early. */
static uint64_t
stream_ms(int64_t us)
{
    return (uint64_t) (us + 999) / 1000;
}


static llmgw_serve_facts_t
stream_facts(gateway_t *g, uint32_t i)
{
    stream_t       *s = gateway_stream(g, i);
    const int64_t   deadline_us = work_at(g->work, i)->deadline_us;

    return (llmgw_serve_facts_t) {
        .attempts = { &s->attempts[0].state, &s->attempts[1].state },
        .claim = &s->claim,
        .now_ms = gateway_ms(g),
        .deadline_ms = deadline_us != 0 ? stream_ms(deadline_us) + 1 : 0,
        .patience_ms = stream_ms(g->config->queue_us),
        .hedge_delay_ms = stream_ms(g->config->hedge_us),
        .first_token_ms = stream_ms(g->config->first_token_us),
        .token_ms = stream_ms(g->config->token_us)
    };
}


/*
 * Tokens do not move the timer: when it is due, attempt_look() tells when the
 * last token came.
 */
static void
stream_arm(gateway_t *g, uint32_t i)
{
    uint64_t                     due_ms;
    stream_t                    *s = gateway_stream(g, i);
    const llmgw_serve_facts_t    facts = stream_facts(g, i);

    due_ms = facts.now_ms + llmgw_serve_wait_ms(&s->serve, &facts);
    gateway_later(g, ((int64_t) due_ms - 1) * 1000, EVENT_TIMER, i, ++s->timer,
                  0);
}


/* --- steps */

/* Carries out a step of core, but not what is to happen next. */
static void
stream_settle(gateway_t *g, uint32_t i, uint32_t it,
    const llmgw_serve_step_t *step)
{
    uint32_t   replica;
    stream_t  *s = gateway_stream(g, i);

    if (step->stops_other) {
        attempt_end(g, it ^ 1, LLMGW_VERDICT_NEUTRAL);
    }

    if (step->forgets) {
        excluded_forget(s, LLMGW_FORGET_ALL);
    }

    if (step->excludes || step->pushes_back) {
        replica = gateway_attempt(g, it)->replica;
        excluded_add(s, replica, step->keeps);

        if (step->pushes_back) {
            excluded_push_back(g, s, replica);
        }
    }
}


/*
 * Fails silent attempts by an event each, because no attempt may end within a
 * step.
 */
static void
stream_runs(gateway_t *g, uint32_t i, const llmgw_serve_step_t *step)
{
    uint32_t  k;

    for (k = 0; k < 2; k++) {
        if (step->silent >> k & 1) {
            attempt_break(g, 2 * i + k, LLMGW_ENDING_FAILED,
                          llmgw_attempt_timeout(
                              &gateway_attempt(g, 2 * i + k)->state),
                          g->loop.clock_us);
        }
    }

    stream_arm(g, i);
}


/*
 * it: the attempt that ended, or ATTEMPT_NONE.  The stream may have ended when
 * this returns.
 */
static void
stream_follow(gateway_t *g, uint32_t i, uint32_t it, llmgw_serve_step_t step)
{
    stream_t              *s = gateway_stream(g, i);
    llmgw_serve_facts_t    facts;
    llmgw_admission_rc_t   rc;

    for ( ;; ) {
        stream_settle(g, i, it, &step);

        switch (step.next) {

        case LLMGW_SERVE_CLAIMS:
            rc = claim_make(g, i);
            facts = stream_facts(g, i);
            step = llmgw_serve_claimed(&s->serve, &facts, rc);
            break;

        case LLMGW_SERVE_STARTS:
            attempt_start(g, 2 * i, g->result->outcomes[i].replica);
            facts = stream_facts(g, i);
            step = llmgw_serve_started(&s->serve, &facts);
            break;

        case LLMGW_SERVE_HEDGES:
            claim_second(g, i);
            stream_runs(g, i, &step);
            return;

        case LLMGW_SERVE_RUNS:
            stream_runs(g, i, &step);
            return;

        case LLMGW_SERVE_EXPIRES:
            stream_end(g, i, it, gateway_stream(g, i)->claim.is_held
                                 ? LLMGW_OUTCOME_NO_REPLICAS
                                 : LLMGW_OUTCOME_QUEUE_TIMEOUT);
            return;

        default:
            stream_end(g, i, it, step.outcome);
            return;
        }
    }
}


void
stream_turn(gateway_t *g, uint32_t i)
{
    const llmgw_serve_facts_t  facts = stream_facts(g, i);

    stream_follow(g, i, ATTEMPT_NONE,
                  llmgw_serve_begin(&gateway_stream(g, i)->serve, &facts));
}


void
stream_due(gateway_t *g, uint32_t i)
{
    uint32_t             k;
    stream_t            *s = gateway_stream(g, i);
    llmgw_serve_facts_t  facts;

    for (k = 0; k < 2; k++) {
        if (s->attempts[k].state.is_running) {
            attempt_look(g, 2 * i + k);
        }
    }

    facts = stream_facts(g, i);
    stream_follow(g, i, ATTEMPT_NONE,
                  llmgw_serve_expired(&s->serve, &facts));
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
    s->serve.hedge = g->config->hedge_us != 0 ? LLMGW_HEDGE_LATER
                                              : LLMGW_HEDGE_NEVER;
    s->serve.resume.tries_max = g->config->tries;
    s->serve.resume.failovers_max = g->config->failovers;

    if (stream_hash(g, s, w) == 0) {
        stream_turn(g, i);
    }
}


/* --- what attempts report */

/*
 * The first token of an attempt: it serves the stream, and the other attempt
 * ends.
 */
void
stream_begun(gateway_t *g, uint32_t attempt)
{
    uint32_t                i = attempt / 2;
    stream_t               *s = gateway_stream(g, i);
    attempt_t              *a = gateway_attempt(g, attempt);
    front_t                *front = &g->fronts[s->front];
    llmgw_serve_step_t      step;
    llmgw_admission_end_t   end;

    s->last_us = g->loop.clock_us;

    if (!s->serve.has_begun) {
        s->first_us = g->loop.clock_us;
        g->result->outcomes[i].ttft_us = g->loop.clock_us
                                         - work_at(g->work, i)->arrival_us;
    }

    g->result->outcomes[i].replica = a->replica;
    g->counts->hedges_won += s->serve.has_second && attempt % 2;

    front_answered(g, front, a->replica);
    link_received(g, attempt);
    llmgw_admission_prove(&front->self, &g->config->breaker, &a->lease,
                          gateway_ms(g), &end);
    front_wake(g, front, &end.wake);

    a->state.has_begun = 1;
    step = llmgw_serve_first(&s->serve);
    stream_settle(g, i, attempt, &step);
    stream_arm(g, i);
}


/* The replica refused the request, or its deadline has passed there. */
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


/* Takes over what an attempt that ended has delivered to the client. */
static void
stream_take(gateway_t *g, uint32_t attempt)
{
    stream_t   *s = gateway_stream(g, attempt / 2);
    attempt_t  *a = gateway_attempt(g, attempt);

    attempt_look(g, attempt);

    if (a->state.tokens > 0 && !a->state.has_begun) {
        stream_begun(g, attempt);       /* in the network until now */
    }

    if (a->base + a->state.tokens > s->tokens) {
        s->tokens = a->base + a->state.tokens;
        s->last_us = a->heard_us + g->config->network_us;
    }
}


/* What an attempt's end shows about its replica and its connection. */
static void
stream_learn(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause)
{
    front_t          *front;
    const attempt_t  *a = gateway_attempt(g, attempt);

    front = &g->fronts[gateway_stream(g, attempt / 2)->front];

    if (ending == LLMGW_ENDING_FAILED) {
        g->counts->failed[cause]++;

        if (cause == LLMGW_CAUSE_CONNECT) {
            if (link_refused(g, attempt)) {
                front_refused(g, front, a->replica);
            }

        } else if (cause == LLMGW_CAUSE_TOKEN_TIMEOUT
                   || cause == LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT)
        {
            link_timed_out(g, attempt);
        }

        return;
    }

    front_answered(g, front, a->replica);
    link_received(g, attempt);
    g->counts->turned_away += ending != LLMGW_ENDING_FINAL;

    if (ending == LLMGW_ENDING_FULL) {
        front_full(g, front, a->replica);
    }
}


void
stream_ended(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause)
{
    uint32_t             i = attempt / 2;
    stream_t            *s = gateway_stream(g, i);
    llmgw_serve_end_t    end = { .which = attempt % 2, .ending = ending };
    llmgw_serve_step_t   step;
    llmgw_serve_facts_t  facts;

    stream_take(g, attempt);
    stream_learn(g, attempt, ending, cause);
    attempt_end(g, attempt, llmgw_attempt_verdict(ending, cause));

    if (s->serve.has_begun
        && s->tokens >= work_at(g->work, i)->output_tokens)
    {
        end.ending = LLMGW_ENDING_FINAL;
    }

    end.stream_tokens = s->tokens;
    end.random = end.ending == LLMGW_ENDING_FINAL ? 0 : rnd_next(&g->rnd);
    facts = stream_facts(g, i);
    step = llmgw_serve_ended(&s->serve, &facts, &end);
    g->counts->failovers += step.fails_over;
    stream_follow(g, i, attempt, step);
}

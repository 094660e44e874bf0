
/*
 * All waits of a stream, on one timer: in the queue, before it asks replicas
 * again that have failed it, for a hedge, for an attempt's first token and for
 * each next one, for the client's deadline.
 *
 * A token does not move the timer: when it is due, attempt_look() says when
 * the last one came, and the rest of the timeout is waited for.
 */

#include "sim/gateway/gateway_inner.h"


/* When an attempt has been silent for too long, as far as is known now. */
static int64_t
timer_silence(gateway_t *g, uint32_t attempt)
{
    const attempt_t  *a = gateway_attempt(g, attempt);

    if (!a->is_active) {
        return INT64_MAX;
    }

    return a->heard_us + (a->tokens > 0 ? g->config->token_us
                                        : g->config->first_token_us);
}


static int64_t
timer_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}


void
timer_arm(gateway_t *g, uint32_t i)
{
    int64_t          at_us;
    stream_t        *s = gateway_stream(g, i);
    const int64_t    deadline_us = work_at(g->work, i)->deadline_us;

    s->timer++;
    at_us = deadline_us == 0 ? INT64_MAX : deadline_us;

    if (s->waits) {
        at_us = timer_min(at_us, s->queue_end_us);
    }

    if (s->pauses) {
        at_us = timer_min(at_us, s->pause_end_us);
    }

    if (s->hedge_us != 0) {
        at_us = timer_min(at_us, s->hedge_us);
    }

    at_us = timer_min(at_us, timer_silence(g, 2 * i));
    at_us = timer_min(at_us, timer_silence(g, 2 * i + 1));

    if (at_us != INT64_MAX) {
        gateway_later(g, at_us > g->clock_us ? at_us : g->clock_us + 1,
                      EVENT_TIMER, i, s->timer, 0);
    }
}


/* A second attempt, if core says so. */
static void
timer_hedge(gateway_t *g, uint32_t i)
{
    uint32_t                   excluded[STREAM_EXCLUDED + 1], k;
    uint64_t                   random;
    stream_t                  *s = gateway_stream(g, i);
    front_t                   *front = &g->fronts[s->front];
    llmgw_claim_t              claim;
    llmgw_admission_answer_t   answer;

    s->hedge_us = 0;

    if (s->has_begun || !s->attempts[0].is_active
        || s->attempts[1].is_active)
    {
        return;
    }

    stream_look_at_pushed(g, s);
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
        attempt_start(g, 2 * i + 1, answer.picked.peer);
    }
}


/* 1: the attempt was given up, and the stream may be over. */
static int
timer_check(gateway_t *g, uint32_t attempt)
{
    attempt_t  *a = gateway_attempt(g, attempt);

    if (!a->is_active) {
        return 0;
    }

    attempt_look(g, attempt);

    if (timer_silence(g, attempt) > g->clock_us) {
        return 0;
    }

    stream_lost(g, attempt, LLMGW_ENDING_FAILED,
                a->tokens > 0 ? LLMGW_CAUSE_TOKEN_TIMEOUT
                              : LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT);

    return 1;
}


void
timer_due(gateway_t *g, uint32_t i)
{
    stream_t       *s = gateway_stream(g, i);
    const int64_t   deadline_us = work_at(g->work, i)->deadline_us;

    if (deadline_us != 0 && g->clock_us >= deadline_us) {
        stream_over(g, i, FLEET_TIMED_OUT, "gateway");
        return;
    }

    if (s->waits && g->clock_us >= s->queue_end_us) {
        if (s->has_begun) {
            g->counts->lost++;
            stream_over(g, i, FLEET_LOST, "queue_timeout");
            return;
        }

        g->counts->refused_timeout++;
        stream_over(g, i, FLEET_GATEWAY_EXPIRED, "queue_timeout");
        return;
    }

    if (s->pauses && g->clock_us >= s->pause_end_us) {
        s->pauses = 0;
        s->claim.has_paused = 1;
        stream_claim(g, i);
        return;
    }

    if (s->hedge_us != 0 && g->clock_us >= s->hedge_us) {
        timer_hedge(g, i);
    }

    if (timer_check(g, 2 * i) || timer_check(g, 2 * i + 1)) {
        return;
    }

    timer_arm(g, i);
}

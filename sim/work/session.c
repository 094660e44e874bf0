
/* Makes the next round of a session after the last one has ended. */

#include "sim/work/session_plan.h"

#include <stdio.h>
#include <string.h>


/* Plans are indexed by the ids of the sessions' names. */
struct work_sessions_s {
    work_plan_t  **plans;
    size_t         max;
    int64_t        horizon_us;          /* 0: none */
    uint64_t       limit;
    uint64_t       made;                /* later rounds made so far */
};


void
work_sessions_init(work_t *work, int64_t horizon_us)
{
    work->sessions = work_arena_alloc(&work->arena, sizeof(*work->sessions));
    work->sessions->horizon_us = horizon_us;
    work->sessions->limit = UINT64_MAX;
}


void
work_sessions_limit(work_t *work, uint64_t rounds)
{
    work->sessions->limit = rounds;
}


work_plan_t *
work_session_add(work_t *work, const work_request_t *first)
{
    size_t             max;
    work_plan_t       *plan, **plans;
    work_sessions_t   *sessions;

    sessions = work->sessions;

    if (first->session->id >= sessions->max) {
        max = 2 * (size_t) first->session->id + 64;
        plans = work_arena_alloc(&work->arena, max * sizeof(plans[0]));

        if (sessions->max > 0) {
            memcpy(plans, sessions->plans, sessions->max * sizeof(plans[0]));
        }

        sessions->plans = plans;
        sessions->max = max;
    }

    plan = work_arena_alloc(&work->arena, sizeof(*plan));
    sessions->plans[first->session->id] = plan;

    return plan;
}


static work_plan_t *
plan_of(const work_t *work, const work_request_t *r)
{
    if (work->sessions == NULL || r->session->id == 0
        || r->session->id >= work->sessions->max)
    {
        return NULL;
    }

    return work->sessions->plans[r->session->id];
}


static int64_t
plan_next(work_plan_t *plan, const int64_t *list, const work_sample_t *sample)
{
    return list != NULL ? list[plan->round] : work_sample(sample, &plan->rnd);
}


/* When the next round arrives: now, plus its think time. */
static int64_t
plan_arrival(work_plan_t *plan, int64_t now_us)
{
    if (plan->thinks == NULL && plan->think == NULL) {
        return now_us + plan->think_us;
    }

    return now_us + plan_next(plan, plan->thinks, plan->think);
}


static void
set_round_id(work_t *work, work_request_t *r)
{
    int   len;
    char  text[512];

    len = snprintf(text, sizeof(text), "session_%.400s_round_%u_%llu",
                   r->session->text, r->round,
                   (unsigned long long) work->sessions->made);
    r->id = work_arena_text(&work->arena, text, (size_t) len);
}


static uint32_t
clip_tokens(int64_t tokens)
{
    return tokens < WORK_MAX_TOKENS ? (uint32_t) tokens : WORK_MAX_TOKENS;
}


/* Adds the round after `last`, whose number is plan->round already. */
static work_request_t *
next_round(work_t *work, work_plan_t *plan, const work_request_t *last,
    uint32_t output_tokens, int64_t input, int64_t output)
{
    uint32_t         index;
    work_request_t  *r;

    r = work_add(work);
    index = r->index;
    *r = *last;
    r->index = index;
    r->round = plan->round;
    r->priority = last->priority;
    r->think_time_us = 0;
    r->reason_ratio = 0;
    r->text_tokens = r->image_tokens = 0;
    r->audio_tokens = r->video_tokens = 0;
    r->output_tokens = clip_tokens(output);
    r->max_output_tokens = r->output_tokens;
    set_round_id(work, r);

    if (plan->accumulates) {
        output_tokens = output_tokens < last->output_tokens
                        ? output_tokens : last->output_tokens;
        r->input_tokens = clip_tokens((int64_t) last->input_tokens
                                      + output_tokens + input);

    } else {
        r->input_tokens = clip_tokens(r->prefix_tokens + input);
    }

    work_set_origin(r, plan->accumulates);

    return r;
}


work_request_t *
work_followup(work_t *work, const work_request_t *r, work_end_t end,
    uint32_t output_tokens, int64_t now_us)
{
    int64_t           arrival_us, input, output;
    work_plan_t      *plan;
    work_request_t   *next;
    work_sessions_t  *sessions;

    plan = plan_of(work, r);

    if (plan == NULL || plan->is_over) {
        return NULL;
    }

    sessions = work->sessions;
    plan->is_over = 1;

    if (end != WORK_END_COMPLETED || sessions->made >= sessions->limit
        || work->n >= WORK_MAX_REQUESTS
        || (plan->rounds != WORK_ROUNDS_UNLIMITED
            && plan->round + 1 >= plan->rounds))
    {
        return NULL;
    }

    arrival_us = plan_arrival(plan, now_us);

    if (sessions->horizon_us > 0 && arrival_us > sessions->horizon_us) {
        return NULL;
    }

    input = plan_next(plan, plan->inputs, plan->input);
    output = plan_next(plan, plan->outputs, plan->output);
    plan->is_over = 0;
    plan->round++;
    sessions->made++;

    next = next_round(work, plan, r, output_tokens, input, output);
    next->arrival_us = arrival_us;
    next->deadline_us = plan->timeout_us > 0 ? arrival_us + plan->timeout_us
                                             : 0;

    return next;
}


/* Which replica is next, and whether enough others remain without it. */

#include <string.h>

#include "rollout/rollout_inner.h"


static unsigned
rollout_active(const rollout_t *rollout)
{
    size_t    i;
    unsigned  n;

    n = 0;

    for (i = 0; i < rollout->nsteps; i++) {
        n += rollout_is_active(&rollout->steps[i]);
    }

    return n;
}


/* The routable replicas, less those whose step has begun. */
static unsigned
rollout_available(const rollout_t *rollout, const rollout_view_t *view)
{
    size_t                 i;
    unsigned               n;
    const llmgw_member_t  *member;

    n = 0;

    for (i = 0; i < view->n; i++) {
        n += llmgw_member_is_routable(&view->members[i]);
    }

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout_is_active(&rollout->steps[i])) {
            member = rollout_find(view, rollout->steps[i].id);
            n -= member != NULL && llmgw_member_is_routable(member);
        }
    }

    return n;
}


static void
rollout_begin_step(rollout_step_t *step, const llmgw_member_t *member,
    uint64_t now_us)
{
    rollout_enter(step, ROLLOUT_DRAINING, ROLLOUT_NOTHING, now_us);

    if (rollout_is_present(member)) {
        rollout_drain(step, member);

    } else {
        step->held_us = now_us;
    }
}


/* 1: it has begun, or is done. */
static int
rollout_try(rollout_t *rollout, rollout_step_t *step,
    const rollout_view_t *view, uint64_t now_us)
{
    const llmgw_member_t  *member;

    member = rollout_find(view, step->id);

    if (rollout_is_up(rollout, member)) {
        rollout_enter(step, ROLLOUT_SKIPPED, ROLLOUT_NOTHING, now_us);
        return 1;
    }

    if (member != NULL && llmgw_member_is_routable(member)
        && rollout_available(rollout, view) <= rollout->min_available)
    {
        return 0;
    }

    rollout_begin_step(step, member, now_us);

    return 1;
}


/* While a step is under way, its replica will be routable again. */
static void
rollout_look_blocked(rollout_t *rollout, rollout_step_t *step,
    const rollout_view_t *view, uint64_t now_us)
{
    if (rollout_active(rollout) > 0) {
        rollout->blocked_us = 0;

    } else if (rollout->blocked_us == 0) {
        rollout->blocked_us = now_us;

    } else if (now_us >= rollout->blocked_us + rollout->rejoin_timeout_us) {
        rollout_fail(rollout, step, now_us,
                     "%u replicas are routable and %u have to stay so, for "
                     "%.3g s", rollout_available(rollout, view),
                     rollout->min_available,
                     rollout->rejoin_timeout_us / 1e6);
    }
}


void
rollout_look_waiting(rollout_t *rollout, const rollout_view_t *view,
    uint64_t now_us)
{
    size_t           i;
    rollout_step_t  *step;

    for (i = 0; i < rollout->nsteps && !rollout->is_ending; i++) {
        step = &rollout->steps[i];

        if (step->state != ROLLOUT_WAITING) {
            continue;
        }

        if (rollout_active(rollout) >= rollout->max_unavailable) {
            return;
        }

        if (!rollout_try(rollout, step, view, now_us)) {
            rollout_look_blocked(rollout, step, view, now_us);
            return;
        }

        rollout->blocked_us = 0;
        rollout_look_at(rollout, step, view, now_us);
    }
}

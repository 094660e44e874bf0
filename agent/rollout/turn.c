
/*
 * Decides which replica is next, and whether enough others remain without it.
 */

#include <string.h>

#include "proto/members/member.h"
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
rollout_available(const rollout_t *rollout, const llmgw_roster_t *roster)
{
    size_t                 i;
    unsigned               n;
    const llmgw_member_t  *member;

    n = 0;

    for (i = 0; i < roster->n; i++) {
        n += llmgw_member_is_routable(&roster->members[i]);
    }

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout_is_active(&rollout->steps[i])) {
            member = llmgw_roster_find(roster, rollout->steps[i].id);
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


/* 1: its agent is already starting a process of the new version, which is
   waited for: loading weights may take minutes. */
static int
rollout_is_coming(const rollout_t *rollout, const llmgw_member_t *member)
{
    return llmgw_group_has_process(member, member->group)
           && member->service == LLMGW_SERVICE_STARTING
           && strcmp(member->model_version, rollout->to) == 0;
}


static void
rollout_begin_member(rollout_t *rollout, rollout_step_t *step,
    const llmgw_member_t *member, rollout_way_t way, uint64_t now_us)
{
    strcpy(step->group, member->group);

    if (way == ROLLOUT_BY_SWITCH) {
        step->group_epoch = member->group_epoch;
        rollout_enter(step, ROLLOUT_SWITCHING, ROLLOUT_SWITCH, now_us);

    } else if (rollout_is_coming(rollout, member)) {
        step->start_ms = 0;
        rollout_enter(step, ROLLOUT_REJOINING, ROLLOUT_NOTHING, now_us);

    } else {
        rollout_replace(rollout, step, now_us);
    }
}


/*
 * Tries to begin a step.  1: it has begun, or is done; 0: not now; -1: it may
 * begin when its group has moved on.
 */
static int
rollout_try(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us)
{
    const char            *why;
    rollout_way_t          way;
    const llmgw_member_t  *member;

    member = llmgw_roster_find(roster, step->id);

    if (rollout_is_up(rollout, member)) {
        rollout_enter(step, ROLLOUT_SKIPPED, ROLLOUT_NOTHING, now_us);
        return 1;
    }

    way = rollout_way(rollout, step, roster, member, &why);

    if (way == ROLLOUT_NOT_NOW) {
        return -1;
    }

    if (way != ROLLOUT_BY_DRAIN) {
        rollout_begin_member(rollout, step, member, way, now_us);
        return 1;
    }

    if (member != NULL && llmgw_member_is_routable(member)
        && rollout_available(rollout, roster) <= rollout->min_available)
    {
        return 0;
    }

    rollout_begin_step(step, member, now_us);

    return 1;
}


/* Fails a step that waited too long, with the reason why it cannot begin. */
static void
rollout_fail_blocked(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us)
{
    double       waited_s;
    const char  *why;

    waited_s = rollout->rejoin_timeout_us / 1e6;

    if (rollout_way(rollout, step, roster,
                    llmgw_roster_find(roster, step->id), &why)
        == ROLLOUT_NOT_NOW)
    {
        rollout_fail(rollout, step, now_us, "%s, for %.3g s", why, waited_s);

    } else {
        rollout_fail(rollout, step, now_us,
                     "%u replicas are routable and %u must stay routable, for "
                     "%.3g s", rollout_available(rollout, roster),
                     rollout->min_available, waited_s);
    }
}


/*
 * Checks whether steps are blocked.  While a step is under way, its replica
 * will be routable again.
 */
static void
rollout_look_blocked(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us)
{
    if (rollout_active(rollout) > 0) {
        rollout->blocked_us = 0;

    } else if (rollout->blocked_us == 0) {
        rollout->blocked_us = now_us;

    } else if (now_us >= rollout->blocked_us + rollout->rejoin_timeout_us) {
        rollout_fail_blocked(rollout, step, roster, now_us);
    }
}


void
rollout_look_waiting(rollout_t *rollout, const llmgw_roster_t *roster,
    uint64_t now_us)
{
    int              rc;
    size_t           i;
    rollout_step_t  *step, *blocked;

    blocked = NULL;

    for (i = 0; i < rollout->nsteps && !rollout->is_ending; i++) {
        step = &rollout->steps[i];

        if (step->state != ROLLOUT_WAITING) {
            continue;
        }

        if (rollout_active(rollout) >= rollout->max_unavailable) {
            return;
        }

        rc = rollout_try(rollout, step, roster, now_us);

        if (rc <= 0) {
            blocked = blocked != NULL ? blocked : step;

        } else {
            rollout->blocked_us = 0;
            rollout_look_at(rollout, step, roster, now_us);
        }

        if (rc == 0) {
            break;
        }
    }

    if (blocked != NULL && !rollout->is_ending) {
        rollout_look_blocked(rollout, blocked, roster, now_us);
    }
}

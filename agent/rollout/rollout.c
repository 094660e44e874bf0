
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/members/member.h"
#include "rollout/drained.h"
#include "rollout/rollout_inner.h"


const char *
rollout_state_name(rollout_state_t state)
{
    static const char *const  names[] = {
        "waiting", "drain", "switch", "stop", "start", "restart", "rejoin",
        "probe", "release", "undo", "done", "skipped", "absent", "undone",
        "failed"
    };

    return names[state];
}


const char *
rollout_verdict_name(rollout_verdict_t verdict)
{
    static const char *const  names[] = {
        "running", "complete", "failed", "aborted", "yielded"
    };

    return names[verdict];
}


static int
rollout_has_ended(const rollout_step_t *step)
{
    return step->state >= ROLLOUT_DONE;
}


int
rollout_is_active(const rollout_step_t *step)
{
    return step->state != ROLLOUT_WAITING && !rollout_has_ended(step);
}


void
rollout_enter(rollout_step_t *step, rollout_state_t state,
    rollout_action_t due, uint64_t now_us)
{
    step->state = state;
    step->due = due;
    step->since_us = now_us;
    step->is_changed = 1;
}


/* --- the end */

static void
rollout_undo(rollout_step_t *step, rollout_state_t outcome, uint64_t now_us)
{
    step->outcome = outcome;

    if (step->is_drained) {
        rollout_enter(step, ROLLOUT_UNDOING, ROLLOUT_UNDRAIN, now_us);

    } else {
        rollout_enter(step, outcome, ROLLOUT_NOTHING, now_us);
    }
}


void
rollout_end(rollout_t *rollout, rollout_verdict_t verdict, uint64_t now_us)
{
    size_t           i;
    rollout_step_t  *step;

    if (rollout->is_ending) {
        return;                 /* keep the first reason */
    }

    rollout->is_ending = 1;
    rollout->verdict = verdict;

    for (i = 0; i < rollout->nsteps; i++) {
        step = &rollout->steps[i];

        if (step->state == ROLLOUT_WAITING
            || step->state == ROLLOUT_DRAINING)
        {
            rollout_undo(step, ROLLOUT_UNDONE, now_us);
        }
    }
}


/*
 * Cleans the text that a command or a replica wrote: it may have any bytes, and
 * be cut within a character.  A terminal would act on some of them, and JSON
 * cannot carry others, so that the last line of the update would never be sent.
 */
static void
rollout_clean(char *text)
{
    for ( /* void */ ; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            *text = '?';
        }
    }
}


void
rollout_fail(rollout_t *rollout, rollout_step_t *step, uint64_t now_us,
    const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(step->reason, sizeof(step->reason), format, args);
    va_end(args);
    rollout_clean(step->reason);

    step->failed_in = step->state;
    rollout_undo(step, ROLLOUT_FAILED, now_us);
    rollout_end(rollout, ROLLOUT_BROKEN, now_us);
}


int
rollout_is_over(const rollout_t *rollout)
{
    size_t  i;

    for (i = 0; i < rollout->nsteps; i++) {
        if (!rollout_has_ended(&rollout->steps[i])) {
            return 0;
        }
    }

    return 1;
}


/* --- from step to step */

void
rollout_replace(rollout_t *rollout, rollout_step_t *step, uint64_t now_us)
{
    if (rollout->has_stop) {
        rollout_enter(step, ROLLOUT_STOPPING, ROLLOUT_STOP, now_us);

    } else if (rollout->has_start) {
        rollout_enter(step, ROLLOUT_STARTING, ROLLOUT_START, now_us);

    } else {
        rollout_enter(step, ROLLOUT_RESTARTING, ROLLOUT_RESTART, now_us);
    }
}


static void
rollout_finish(rollout_t *rollout, rollout_step_t *step, uint64_t now_us)
{
    rollout_enter(step, ROLLOUT_DONE, ROLLOUT_NOTHING, now_us);
    rollout->begin_us = now_us + rollout->settle_us;
}


void
rollout_let_in(rollout_t *rollout, rollout_step_t *step, uint64_t now_us)
{
    if (step->is_drained) {
        rollout_enter(step, ROLLOUT_RELEASING, ROLLOUT_UNDRAIN, now_us);

    } else {
        rollout_finish(rollout, step, now_us);
    }
}


const char *
rollout_probed(const rollout_step_t *step)
{
    return step->successor[0] != '\0' ? step->successor : step->id;
}


static void
rollout_proved(rollout_t *rollout, rollout_step_t *step, uint64_t now_us)
{
    if (step->successor[0] != '\0') {
        step->successor[0] = '\0';
        rollout_replace(rollout, step, now_us);

    } else {
        rollout_let_in(rollout, step, now_us);
    }
}


static void
rollout_done(rollout_t *rollout, rollout_step_t *step, uint64_t now_us)
{
    switch (step->state) {
    case ROLLOUT_DRAINING:
        step->held_us = now_us;
        step->renew_us = now_us + ROLLOUT_RENEW_US;
        break;
    case ROLLOUT_STOPPING:
        rollout_enter(step, ROLLOUT_STARTING, ROLLOUT_START, now_us);
        break;
    case ROLLOUT_STARTING:
    case ROLLOUT_RESTARTING:
        rollout_enter(step, ROLLOUT_REJOINING, ROLLOUT_NOTHING, now_us);
        break;
    case ROLLOUT_PROBING:
        rollout_proved(rollout, step, now_us);
        break;
    case ROLLOUT_RELEASING:
        rollout_finish(rollout, step, now_us);
        break;
    default:
        break;
    }
}


/*
 * 1: a failure does not matter, since no process was serving, and there was
 * nothing to drain or to stop.
 */
static int
rollout_is_harmless(const rollout_step_t *step)
{
    return !step->is_serving && (step->state == ROLLOUT_DRAINING
                                 || step->state == ROLLOUT_STOPPING);
}


void
rollout_result(rollout_t *rollout, size_t i, rollout_action_t action,
    const char *error, uint64_t now_us)
{
    rollout_step_t  *step;

    step = &rollout->steps[i];

    if (action == ROLLOUT_RENEW) {
        step->is_renewing = 0;
        return;
    }

    step->doing = ROLLOUT_NOTHING;

    if (step->state == ROLLOUT_UNDOING) {

        /*
         * the result of a drain that was under way is of no interest any more
         */
        if (action == ROLLOUT_UNDRAIN) {
            rollout_enter(step, step->outcome, ROLLOUT_NOTHING, now_us);
        }

    } else if (error == NULL || rollout_is_harmless(step)) {
        rollout_done(rollout, step, now_us);

    } else {
        rollout_fail(rollout, step, now_us, "%s", error);
    }
}


/* --- facts */

int
rollout_is_present(const llmgw_member_t *member)
{
    return member != NULL && (member->liveness == LLMGW_LIVENESS_ALIVE
                              || member->liveness == LLMGW_LIVENESS_SUSPECT);
}


static int
rollout_serves(const llmgw_member_t *member)
{
    return rollout_is_present(member)
           && (member->service == LLMGW_SERVICE_READY
               || member->service == LLMGW_SERVICE_STALLED);
}


int
rollout_is_in_place(const llmgw_member_t *member)
{
    return rollout_is_ready(member)
           || llmgw_group_is_standby(member, member->group);
}


int
rollout_is_up(const rollout_t *rollout, const llmgw_member_t *member)
{
    return member != NULL && rollout_is_in_place(member)
           && strcmp(member->model_version, rollout->to) == 0;
}


void
rollout_drain(rollout_step_t *step, const llmgw_member_t *member)
{
    step->due = ROLLOUT_DRAIN;
    step->held_us = 0;
    step->epoch = member->epoch;
}


static int
rollout_may_report(const rollout_step_t *step, const llmgw_member_t *member,
    uint64_t now_us)
{
    return rollout_is_present(member)
           && member->service == LLMGW_SERVICE_STARTING
           && now_us < step->held_us + ROLLOUT_ORPHAN_US;
}


/*
 * 1: its agent has restarted, and must be waited for.  If it restarts
 * repeatedly, the wait still ends.
 */
static int
rollout_is_unsettled(const rollout_t *rollout, rollout_step_t *step,
    const llmgw_member_t *member, uint64_t now_us)
{
    if (now_us >= step->since_us + rollout->drain_timeout_us
                  + ROLLOUT_ORPHAN_US)
    {
        return 0;
    }

    /* the restarted agent knows of no lease */
    if (rollout_is_present(member) && member->epoch != step->epoch) {
        rollout_drain(step, member);
        return 1;
    }

    return rollout_may_report(step, member, now_us);
}


/* A load counts only if it includes the requests that raced with the drain. */
static void
rollout_look_draining(rollout_t *rollout, rollout_step_t *step,
    const llmgw_member_t *member, const llmgw_member_load_t *load,
    uint64_t now_us)
{
    step->streams = rollout_serves(member) ? load->active_requests : 0;

    if (step->held_us == 0) {
        return;
    }

    if (rollout_is_unsettled(rollout, step, member, now_us)) {
        return;
    }

    if (!rollout_serves(member)
        || drained_is(member, load, step->held_us + ROLLOUT_RACE_US))
    {
        rollout_replace(rollout, step, now_us);

    } else if (now_us >= step->since_us + rollout->drain_timeout_us) {
        step->is_late = 1;
        rollout_replace(rollout, step, now_us);
    }
}


void
rollout_look_at(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us)
{
    const llmgw_member_t       *member;
    const llmgw_member_load_t  *load;

    member = llmgw_roster_find(roster, step->id);
    load = member ? &roster->loads[member - roster->members] : NULL;
    step->is_serving = rollout_serves(member)
                       || (member != NULL
                           && llmgw_group_has_process(member, member->group));

    if (member == NULL || member->epoch != step->epoch) {
        step->renew_us = 0;
    }

    if (step->state == ROLLOUT_DRAINING) {
        rollout_look_draining(rollout, step, member, load, now_us);
    }

    if (step->state == ROLLOUT_SWITCHING) {
        rollout_look_switching(rollout, step, roster, now_us);
    }

    /* until the process is stopped, since it may crash and come back before */
    if (member != NULL
        && (step->state < ROLLOUT_STARTING || step->successor[0] != '\0'
            || step->due == ROLLOUT_START || step->due == ROLLOUT_RESTART))
    {
        step->start_ms = member->replica_start_ms;
    }

    if (step->state == ROLLOUT_REJOINING) {
        rollout_look_rejoining(rollout, step, member, now_us);
    }
}


void
rollout_begin(rollout_t *rollout, uint64_t settle_us, uint64_t now_us)
{
    rollout->settle_us = settle_us;
    rollout->begin_us = now_us + settle_us;
}


void
rollout_look(rollout_t *rollout, const llmgw_roster_t *roster, uint64_t now_us)
{
    size_t  i;

    for (i = 0; i < rollout->nsteps; i++) {
        if (!rollout_has_ended(&rollout->steps[i])) {
            rollout_look_at(rollout, &rollout->steps[i], roster, now_us);
        }
    }

    if (now_us >= rollout->begin_us) {
        rollout_look_waiting(rollout, roster, now_us);
    }

    if (!rollout->is_ending && rollout_is_over(rollout)) {
        rollout->verdict = ROLLOUT_COMPLETE;
    }
}


/* --- actions */

/* 1: the step's lease must be renewed, and no renewal is under way. */
static int
rollout_is_renewal_due(const rollout_step_t *step, uint64_t now_us)
{
    return step->renew_us != 0 && now_us >= step->renew_us
           && !step->is_renewing && step->state < ROLLOUT_RELEASING;
}


static int
rollout_is_due(const rollout_step_t *step)
{
    return step->due != ROLLOUT_NOTHING && step->doing == ROLLOUT_NOTHING
           && (step->due != ROLLOUT_UNDRAIN || !step->is_renewing);
}


/*
 * Renewals of leases come first: there may be more actions than can be begun
 * now.
 */
rollout_action_t
rollout_next(rollout_t *rollout, size_t *i, uint64_t now_us)
{
    rollout_step_t  *step;

    for (*i = 0; *i < rollout->nsteps; (*i)++) {
        step = &rollout->steps[*i];

        if (rollout_is_renewal_due(step, now_us)) {
            step->is_renewing = 1;
            step->renew_us = now_us + ROLLOUT_RENEW_US;
            return ROLLOUT_RENEW;
        }
    }

    for (*i = 0; *i < rollout->nsteps; (*i)++) {
        step = &rollout->steps[*i];

        if (rollout_is_due(step)) {
            step->doing = step->due;
            step->due = ROLLOUT_NOTHING;
            step->is_drained |= step->doing == ROLLOUT_DRAIN;
            return step->doing;
        }
    }

    return ROLLOUT_NOTHING;
}


void
rollout_put_back(rollout_t *rollout, size_t i, rollout_action_t action)
{
    rollout_step_t  *step;

    step = &rollout->steps[i];

    if (action == ROLLOUT_RENEW) {
        step->is_renewing = 0;
        step->renew_us -= ROLLOUT_RENEW_US;

    } else {
        step->due = action;
        step->doing = ROLLOUT_NOTHING;
    }
}


int
rollout_changed(rollout_t *rollout, size_t *i)
{
    for (*i = 0; *i < rollout->nsteps; (*i)++) {
        if (rollout->steps[*i].is_changed) {
            rollout->steps[*i].is_changed = 0;
            return 1;
        }
    }

    return 0;
}


size_t
rollout_count(const rollout_t *rollout, rollout_state_t state)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < rollout->nsteps; i++) {
        n += rollout->steps[i].state == state;
    }

    return n;
}

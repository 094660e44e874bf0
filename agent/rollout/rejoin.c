
/*
 * Checks whether the new process is back, and whether it is of the version that
 * the update wants.
 */

#include <string.h>

#include "proto/members/member.h"
#include "rollout/rollout_inner.h"


/* How far the process of a standby group has come. */
static const char *
rollout_way_point(const llmgw_member_t *member)
{
    switch (member->group_state) {
    case LLMGW_GROUP_INIT:
        return "it is still at \"init\"";
    case LLMGW_GROUP_WAKING:
        return "it is still at \"waking\"";
    default:
        return "the old process still runs";
    }
}


static const char *
rollout_absence(const rollout_step_t *step, const llmgw_member_t *member)
{
    if (member == NULL) {
        return "it is no longer a member";
    }

    if (member->liveness != LLMGW_LIVENESS_ALIVE) {
        return "its agent is gone";
    }

    switch (member->service) {
    case LLMGW_SERVICE_STARTING:
        return llmgw_group_has_process(member, member->group)
               ? rollout_way_point(member)
               : "no replica reports to its agent";
    case LLMGW_SERVICE_STALLED:
        return "its process makes no progress";
    case LLMGW_SERVICE_STOPPED:
        return "it was stopped and not started";
    case LLMGW_SERVICE_DOWN:
        return "its process broke";
    default:
        return "the old process still runs";
    }
}


void
rollout_look_rejoining(rollout_t *rollout, rollout_step_t *step,
    const llmgw_member_t *member, uint64_t now_us)
{
    int  is_new;

    is_new = member != NULL && rollout_is_in_place(member)
             && member->replica_start_ms != step->start_ms;

    if (is_new && strcmp(member->model_version, rollout->to) == 0) {

        if (rollout_is_ready(member)) {
            rollout_enter(step, ROLLOUT_PROBING, ROLLOUT_PROBE, now_us);

        } else {
            rollout_let_in(rollout, step, now_us);
        }

        return;
    }

    if (!is_new) {
        step->wrong_us = 0;

    } else if (step->wrong_us == 0) {
        step->wrong_us = now_us;

    } else if (now_us >= step->wrong_us + ROLLOUT_WRONG_US) {
        rollout_fail(rollout, step, now_us,
                     "it came back with version \"%s\"",
                     member->model_version);
        return;
    }

    if (now_us >= step->since_us + rollout->rejoin_timeout_us) {
        rollout_fail(rollout, step, now_us, "not back after %.3g s: %s",
                     rollout->rejoin_timeout_us / 1e6,
                     rollout_absence(step, member));
    }
}


/*
 * Makes the plan.  A plan that could not be carried out is refused as a whole,
 * before anything is changed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rollout/rollout_inner.h"


int
rollout_is_ready(const llmgw_member_t *member)
{
    return member->liveness == LLMGW_LIVENESS_ALIVE
           && member->service == LLMGW_SERVICE_READY;
}


static int
rollout_is_named(const char *const *ids, size_t n, const char *id)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(ids[i], id) == 0) {
            return 1;
        }
    }

    return 0;
}


static int
rollout_is_wanted(const rollout_spec_t *spec, const llmgw_member_t *member)
{
    return spec->ids != NULL
           ? rollout_is_named(spec->ids, spec->nids, member->id)
           : rollout_is_named(spec->also, spec->nalso, member->id);
}


/* A replica whose agent has left is out of service: it is updated only if it
   is named. */
static int
rollout_is_meant(const rollout_spec_t *spec, const llmgw_member_t *member)
{
    if (member->role != LLMGW_ROLE_REPLICA) {
        return 0;
    }

    return rollout_is_wanted(spec, member)
           || (spec->ids == NULL && member->liveness != LLMGW_LIVENESS_LEFT);
}


/*
 * If an agent is dead, it is unknown whether there is a replica that could be
 * updated.
 */
static int
rollout_is_absent(const rollout_spec_t *spec, const llmgw_member_t *member)
{
    return member->liveness == LLMGW_LIVENESS_DEAD
           && !rollout_is_wanted(spec, member);
}


static int
rollout_has_unknown(const rollout_spec_t *spec, const llmgw_roster_t *roster,
    char *text)
{
    size_t                 i;
    const llmgw_member_t  *member;

    for (i = 0; i < spec->nids; i++) {
        member = llmgw_roster_find(roster, spec->ids[i]);

        if (member == NULL) {
            snprintf(text, ROLLOUT_REASON_BYTES,
                     "there is no member \"%.63s\"", spec->ids[i]);
            return 1;
        }

        if (member->role != LLMGW_ROLE_REPLICA) {
            snprintf(text, ROLLOUT_REASON_BYTES,
                     "member \"%s\" is no replica", member->id);
            return 1;
        }
    }

    return 0;
}


static void
rollout_add(rollout_t *rollout, const rollout_spec_t *spec,
    const llmgw_member_t *member)
{
    rollout_step_t  *step;

    step = &rollout->steps[rollout->nsteps++];
    strcpy(step->id, member->id);
    strcpy(step->from, member->model_version);
    strcpy(step->group, member->group);
    step->is_first = !rollout_is_ready(member);

    if (rollout_is_absent(spec, member)) {
        step->state = ROLLOUT_ABSENT;

    } else if (rollout_is_up(rollout, member)) {
        step->state = ROLLOUT_SKIPPED;
    }
}


/* Adds the steps.  -1: out of memory. */
static int
rollout_add_all(rollout_t *rollout, const rollout_spec_t *spec,
    const llmgw_roster_t *roster)
{
    int                     rc;
    size_t                  i, n;
    const llmgw_member_t  **members;

    members = calloc(roster->n + 1, sizeof(llmgw_member_t *));
    if (members == NULL) {
        return -1;
    }

    for (i = 0, n = 0; i < roster->n; i++) {
        if (rollout_is_meant(spec, &roster->members[i])) {
            members[n++] = &roster->members[i];
        }
    }

    rc = rollout_sort(members, n);

    for (i = 0; rc == 0 && i < n; i++) {
        rollout_add(rollout, spec, members[i]);
    }

    free(members);

    return rc;
}


static rollout_t *
rollout_build(const rollout_spec_t *spec, const llmgw_roster_t *roster)
{
    rollout_t  *rollout;

    rollout = calloc(1, sizeof(rollout_t)
                        + roster->n * sizeof(rollout_step_t));
    if (rollout == NULL) {
        return NULL;
    }

    snprintf(rollout->to, sizeof(rollout->to), "%s", spec->to);
    snprintf(rollout->owner, sizeof(rollout->owner), "%s", spec->owner);
    rollout->has_stop = spec->has_stop;
    rollout->has_start = spec->has_start;
    rollout->drain_timeout_us = spec->drain_timeout_us;
    rollout->rejoin_timeout_us = spec->rejoin_timeout_us;
    rollout->max_unavailable = spec->max_unavailable;

    if (rollout_add_all(rollout, spec, roster) != 0) {
        free(rollout);
        return NULL;
    }

    return rollout;
}


/*
 * An agent that knows of no replica is cut off; its update must not count as
 * complete.
 */
static rollout_refusal_t
rollout_check_any(const rollout_t *rollout, char *text)
{
    size_t  i;

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout->steps[i].state != ROLLOUT_ABSENT) {
            return ROLLOUT_PLANNED;
        }
    }

    snprintf(text, ROLLOUT_REASON_BYTES, "there is no replica");

    return ROLLOUT_UNKNOWN;
}


static rollout_refusal_t
rollout_check_step(const rollout_spec_t *spec, const llmgw_roster_t *roster,
    const llmgw_member_t *member, char *text)
{
    if (rollout_is_ready(member) && member->replica_start_ms == 0) {
        snprintf(text, ROLLOUT_REASON_BYTES,
                 "replica \"%s\" does not report, so its version is not "
                 "known", member->id);
        return ROLLOUT_UNSEEN;
    }

    if (spec->has_start) {
        return ROLLOUT_PLANNED;
    }

    if (!spec->can_restart[member - roster->members]) {
        snprintf(text, ROLLOUT_REASON_BYTES,
                 "replica \"%s\" cannot be restarted: its agent does not run "
                 "it, and there is no --start", member->id);
        return ROLLOUT_NOBODY;
    }

    if (!spec->has_orders) {
        snprintf(text, ROLLOUT_REASON_BYTES,
                 "the agent of replica \"%s\" takes no orders without a "
                 "keyring, and there is no --start", member->id);
        return ROLLOUT_NOBODY;
    }

    return ROLLOUT_PLANNED;
}


/*
 * Checks a member that would be switched: whether its group can be, and whether
 * all of the group is in the plan.
 */
static rollout_refusal_t
rollout_check_group(const rollout_spec_t *spec, const rollout_t *rollout,
    const llmgw_roster_t *roster, const llmgw_member_t *member, char *text)
{
    const llmgw_member_t  *peer;

    peer = rollout_peer(roster, member, NULL);

    if (peer == NULL) {
        return ROLLOUT_PLANNED;
    }

    if (!spec->has_orders) {
        snprintf(text, ROLLOUT_REASON_BYTES, "group \"%s\" of replica \"%s\" "
                 "cannot be switched: agents take no orders without a "
                 "keyring", member->group, member->id);
        return ROLLOUT_NOBODY;
    }

    for ( /* void */ ; peer != NULL;
         peer = rollout_peer(roster, member, peer))
    {
        if (!rollout_is_meant(spec, peer) && !rollout_is_up(rollout, peer)) {
            snprintf(text, ROLLOUT_REASON_BYTES, "replica \"%s\" is of group "
                     "\"%s\", and so is \"%s\": a group is updated as a "
                     "whole", member->id, member->group, peer->id);
            return ROLLOUT_PARTIAL;
        }
    }

    return ROLLOUT_PLANNED;
}


static rollout_refusal_t
rollout_check_steps(const rollout_t *rollout, const rollout_spec_t *spec,
    const llmgw_roster_t *roster, char *text)
{
    size_t                 i;
    rollout_refusal_t      refusal;
    const rollout_step_t  *step;
    const llmgw_member_t  *member;

    for (i = 0; i < rollout->nsteps; i++) {
        step = &rollout->steps[i];

        if (step->state != ROLLOUT_WAITING) {
            continue;
        }

        member = llmgw_roster_find(roster, step->id);
        refusal = rollout_check_step(spec, roster, member, text);

        if (refusal == ROLLOUT_PLANNED) {
            refusal = rollout_check_group(spec, rollout, roster, member, text);
        }

        if (refusal != ROLLOUT_PLANNED) {
            return refusal;
        }
    }

    return ROLLOUT_PLANNED;
}


/*
 * By default max_unavailable replicas may be unavailable, but never all of
 * them.  Replicas that are not READY are updated first, so they count as
 * available for the steps that follow.  A group with several members serves
 * meanwhile.
 */
static rollout_refusal_t
rollout_check_available(rollout_t *rollout, const rollout_spec_t *spec,
    const llmgw_roster_t *roster, char *text)
{
    size_t                 i, routable, back, taken;
    unsigned               least;
    const llmgw_member_t  *member;

    routable = 0;
    back = 0;
    taken = 0;

    for (i = 0; i < roster->n; i++) {
        routable += llmgw_member_is_routable(&roster->members[i]);
    }

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout->steps[i].state != ROLLOUT_WAITING) {
            continue;
        }

        member = llmgw_roster_find(roster, rollout->steps[i].id);

        if (rollout_peer(roster, member, NULL) != NULL) {
            continue;
        }

        if (llmgw_member_is_routable(member)) {
            taken++;

        } else if (rollout->steps[i].is_first) {
            back++;
        }
    }

    least = routable > spec->max_unavailable + 1
            ? routable - spec->max_unavailable : 1;
    rollout->min_available = spec->min_available < 0
                             ? least : (unsigned) spec->min_available;

    if (taken == 0 || routable + back > rollout->min_available) {
        return ROLLOUT_PLANNED;
    }

    snprintf(text, ROLLOUT_REASON_BYTES,
             "%zu replicas are routable and %u must stay routable, so none "
             "may be drained (--min-available)", routable,
             rollout->min_available);

    return ROLLOUT_TOO_FEW;
}


rollout_t *
rollout_plan(const rollout_spec_t *spec, const llmgw_roster_t *roster,
    rollout_refusal_t *refusal, char *text)
{
    rollout_t  *rollout;

    if (rollout_has_unknown(spec, roster, text)) {
        *refusal = ROLLOUT_UNKNOWN;
        return NULL;
    }

    rollout = rollout_build(spec, roster);

    if (rollout == NULL) {
        snprintf(text, ROLLOUT_REASON_BYTES, "out of memory");
        *refusal = ROLLOUT_ENOMEM;
        return NULL;
    }

    *refusal = rollout_check_any(rollout, text);

    if (*refusal == ROLLOUT_PLANNED) {
        *refusal = rollout_check_steps(rollout, spec, roster, text);
    }

    if (*refusal == ROLLOUT_PLANNED) {
        *refusal = rollout_check_available(rollout, spec, roster, text);
    }

    if (*refusal != ROLLOUT_PLANNED) {
        rollout_destroy(rollout);
        return NULL;
    }

    return rollout;
}


void
rollout_destroy(rollout_t *rollout)
{
    free(rollout);
}


/*
 * A planned switch: the active replica of a standby group ends, and another one
 * of the group takes over.
 *
 *     llmgwctl        this agent                  the active one's agent
 *        | group_switch   |                               |
 *        |--------------->| ORDER(SWITCH, group, epoch)   |
 *        |                |------------------------------>| SIGTERM
 *        |                |         ORDER_ACK + record    | it drains: again
 *        |   switching    |<------------------------------|
 *        |<---------------|
 *        |       ...      |   record of another one: active, greater epoch
 *        |     the end    |<----------------------------------------------
 *        |<---------------|
 *
 * The lock service chooses the successor, so nothing is ordered of a standby.
 * What the active one's agent does is in agent/handover.c.
 *
 * The order names the epoch of the active replica, so an order that arrives
 * late, or a command that is given twice, does not end the successor.  If the
 * client disconnects, the operation continues.
 */

#include <string.h>

#include "jobs/job.h"
#include "proto/members/member.h"


/* Gossip takes less than this. */
#define SWITCH_AGAIN_US  100000ULL


static int
switch_has_standby(const llmgw_roster_t *roster, const char *group)
{
    size_t  i;

    for (i = 0; i < roster->n; i++) {
        if (llmgw_group_is_standby(&roster->members[i], group)) {
            return 1;
        }
    }

    return 0;
}


static int
switch_is_known(const llmgw_roster_t *roster, const char *group)
{
    size_t  i;

    for (i = 0; i < roster->n; i++) {
        if (strcmp(roster->members[i].group, group) == 0) {
            return 1;
        }
    }

    return 0;
}


/* The active member; NULL and the refusal. */
static const llmgw_member_t *
switch_check(const llmgw_roster_t *roster, const char *group,
    json_t **refusal)
{
    const llmgw_member_t  *active;

    active = llmgw_group_active(roster->members, roster->n, group);

    if (!switch_is_known(roster, group)) {
        *refusal = job_refusal(group, "not_found",
                               "no member belongs to this group");
        return NULL;
    }

    if (active == NULL) {
        *refusal = job_refusal(group, "not_active",
                               "no member of this group is active");
        return NULL;
    }

    if (!switch_has_standby(roster, group)) {
        *refusal = job_refusal(group, "no_standby",
                               "this group has no standby");
        return NULL;
    }

    return active;
}


void
switch_begin(void *data, command_peer_t *peer, const char *group,
    uint64_t timeout_ms)
{
    json_t                *refusal;
    jobs_t                *jobs = data;
    job_t           *job;
    llmgw_roster_t         roster;
    const llmgw_member_t  *active;

    roster = jobs_roster(jobs);
    active = switch_check(&roster, group, &refusal);

    if (active == NULL) {
        control_send(peer, refusal);
        return;
    }

    job = job_create(jobs, peer, ORDER_SWITCH, active->id,
                           timeout_ms * 1000);

    if (job != NULL) {
        strcpy(job->group, group);
        job->group_epoch = active->group_epoch;
        job_order(job);
    }
}


static uint64_t
switch_ms(const job_t *job)
{
    return (jobs_now_us(job->jobs) - job->began_us) / 1000;
}


static void
switch_say(job_t *job)
{
    uint64_t  now_us;

    now_us = jobs_now_us(job->jobs);

    if (job->said_us != 0 && now_us < job->said_us + JOB_SAY_US) {
        return;
    }

    job->said_us = now_us;
    control_send(job->peer,
                 json_pack("{s:s, s:I, s:s, s:s, s:I}", "event", "switching",
                           "time",
                           jobs_wall_ms(job->jobs),
                           "group", job->group, "from", job->id,
                           "ms", (json_int_t) switch_ms(job)));
}


/*
 * If the target is no longer active, a standby takes over all the same.  If the
 * target knows of no standby, the record that we have may not have reached it
 * yet.
 */
int
switch_settle(job_t *job, order_rc_t rc)
{
    uint64_t  now_us;

    now_us = jobs_now_us(job->jobs);

    if (rc == ORDER_ENOSTANDBY && now_us < job->order_until_us) {
        job->order_again_us = now_us + SWITCH_AGAIN_US;
        return 1;
    }

    return rc == ORDER_ENOTACTIVE;
}


/*
 * Looks at the members' records for another active engine; they count, whatever
 * the order was answered.
 */
void
switch_look(job_t *job)
{
    llmgw_roster_t         roster;
    const llmgw_member_t  *active;

    roster = jobs_roster(job->jobs);
    active = llmgw_group_active(roster.members, roster.n, job->group);

    if (active != NULL && active->group_epoch > job->group_epoch) {
        job_end(job, json_pack("{s:b, s:s, s:s, s:s, s:I, s:I}",
                                     "ok", 1, "group", job->group,
                                     "from", job->id, "to", active->id,
                                     "epoch", (json_int_t) active->group_epoch,
                                     "ms", (json_int_t) switch_ms(job)));

    } else if (job->order_id == 0
               && jobs_now_us(job->jobs) >= job->deadline_us)
    {
        job_fail(job, "timeout", "no standby of its group is active "
                       "yet");

    } else {
        switch_say(job);

        if (job->order_again_us != 0
            && jobs_now_us(job->jobs) >= job->order_again_us)
        {
            job->order_again_us = 0;
            job_order(job);
        }
    }
}


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
 * Who is next is the lock service's to say: nothing is ordered of the standby.
 * By the first SIGTERM the replica refuses what is new, by the second it ends
 * its streams, which go on elsewhere.  A replica that its agent runs is started
 * again, and stands by then.  One that its agent does not run gets the signals
 * by the pidfd of the process that reports, as the kernel names it, and
 * somebody else starts it again.
 *
 * The order names the epoch of the active one.  So one that comes late does not
 * end the successor, and neither does the same command given twice.  When the
 * one who asked is gone, what was ordered goes on.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/job.h"
#include "proto/members/member.h"


/* Gossip is faster than that. */
#define AGENT_SWITCH_AGAIN_US  100000ULL

/* Two SIGTERMs of which the first has not arrived are one.  So the second
   waits until the replica says that it drains; at most as long as it may be
   silent, since another engine may not say it.  That is counted in looks: a
   host that stands still for seconds is not the replica's silence. */
#define AGENT_SWITCH_LOOKS  (LOCAL_STALL_US / AGENT_SWITCH_AGAIN_US)

/* Then the same command, given twice, does not signal again. */
#define AGENT_SWITCH_BEGUN_S   5.0


/* --- this agent, which was asked */

static int
agent_switch_has_standby(const command_view_t *view, const char *group)
{
    size_t  i;

    for (i = 0; i < view->n; i++) {
        if (llmgw_group_is_standby(&view->members[i], group)) {
            return 1;
        }
    }

    return 0;
}


static int
agent_switch_is_known(const command_view_t *view, const char *group)
{
    size_t  i;

    for (i = 0; i < view->n; i++) {
        if (strcmp(view->members[i].group, group) == 0) {
            return 1;
        }
    }

    return 0;
}


/* The active one; NULL and the refusal. */
static const llmgw_member_t *
agent_switch_check(const command_view_t *view, const char *group,
    json_t **refusal)
{
    const llmgw_member_t  *active;

    active = llmgw_group_active(view->members, view->n, group);

    if (!agent_switch_is_known(view, group)) {
        *refusal = agent_job_refusal(group, "not_found",
                                     "no member is of this group");
        return NULL;
    }

    if (active == NULL) {
        *refusal = agent_job_refusal(group, "not_active",
                                     "no member of this group is active");
        return NULL;
    }

    if (!agent_switch_has_standby(view, group)) {
        *refusal = agent_job_refusal(group, "no_standby",
                                     "no member of this group stands by");
        return NULL;
    }

    return active;
}


void
agent_switch_begin(void *data, command_peer_t *peer, const char *group,
    uint64_t timeout_ms)
{
    json_t                *refusal;
    agent_t               *agent = data;
    agent_job_t           *job;
    command_view_t         view;
    const llmgw_member_t  *active;

    agent_show_view(agent, &view);
    active = agent_switch_check(&view, group, &refusal);

    if (active == NULL) {
        control_send(peer, refusal);
        return;
    }

    job = agent_job_create(agent, peer, ORDER_SWITCH, active->id,
                           timeout_ms * 1000);

    if (job != NULL) {
        strcpy(job->group, group);
        job->group_epoch = active->group_epoch;
        agent_job_order(job);
    }
}


static uint64_t
agent_switch_ms(const agent_job_t *job)
{
    return (agent_job_now_us(job) - job->began_us) / 1000;
}


static void
agent_switch_say(agent_job_t *job)
{
    uint64_t  now_us;

    now_us = agent_job_now_us(job);

    if (job->said_us != 0 && now_us < job->said_us + AGENT_JOB_SAY_US) {
        return;
    }

    job->said_us = now_us;
    control_send(job->peer,
                 json_pack("{s:s, s:I, s:s, s:s, s:I}", "event", "switching",
                           "time",
                           (json_int_t) (clock_wall_us(job->agent->clock)
                                         / 1000),
                           "group", job->group, "from", job->id,
                           "ms", (json_int_t) agent_switch_ms(job)));
}


/*
 * Where the target is not active any more, a standby takes over all the same.
 * Where it knows of no standby, it may not have heard yet of the one that we
 * know.
 */
int
agent_switch_settle(agent_job_t *job, order_rc_t rc)
{
    uint64_t  now_us;

    now_us = agent_job_now_us(job);

    if (rc == ORDER_ENOSTANDBY && now_us < job->order_until_us) {
        job->order_again_us = now_us + AGENT_SWITCH_AGAIN_US;
        return 1;
    }

    return rc == ORDER_ENOTACTIVE;
}


/* Whatever became of the order: facts say whether another one is active. */
void
agent_switch_look(agent_job_t *job)
{
    command_view_t         view;
    const llmgw_member_t  *active;

    agent_show_view(job->agent, &view);
    active = llmgw_group_active(view.members, view.n, job->group);

    if (active != NULL && active->group_epoch > job->group_epoch) {
        agent_job_end(job, json_pack("{s:b, s:s, s:s, s:s, s:I, s:I}",
                                     "ok", 1, "group", job->group,
                                     "from", job->id, "to", active->id,
                                     "epoch", (json_int_t) active->group_epoch,
                                     "ms", (json_int_t) agent_switch_ms(job)));

    } else if (job->order_id == 0
               && agent_job_now_us(job) >= job->deadline_us)
    {
        agent_job_fail(job, "timeout", "no standby of its group is active "
                       "yet");

    } else {
        agent_switch_say(job);

        if (job->order_again_us != 0
            && agent_job_now_us(job) >= job->order_again_us)
        {
            job->order_again_us = 0;
            agent_job_order(job);
        }
    }
}


/* --- the active one's agent, which is ordered */

static void
agent_switch_arm(agent_t *agent, double s)
{
    ev_timer_set(&agent->term_again, s, 0.);
    ev_timer_start(agent->loop, &agent->term_again);
}


static void
agent_switch_again(struct ev_loop *loop, ev_timer *timer, int events)
{
    agent_t  *agent = timer->data;

    if (agent->terms == 2) {
        return;
    }

    if (!agent->local.draining
        && ++agent->term_looks < (int) AGENT_SWITCH_LOOKS)
    {
        agent_switch_arm(agent, AGENT_SWITCH_AGAIN_US / 1e6);
        return;
    }

    agent->terms = 2;
    (void) reporter_signal(&agent->watch, SIGTERM);
    agent_switch_arm(agent, AGENT_SWITCH_BEGUN_S);
}


/* The process is the one that the kernel names, and names itself as well: a
   connection may have been handed on by another. */
static order_rc_t
agent_switch_signal(agent_t *agent)
{
    if (ev_is_active(&agent->term_again)) {
        return ORDER_DONE;              /* it has begun */
    }

    if (agent->watch.pid == 0 || agent->reported_pid != agent->watch.pid) {
        return ORDER_ENOPROCESS;
    }

    if (reporter_signal(&agent->watch, SIGTERM) != 0) {
        return errno == ESRCH ? ORDER_ENOTACTIVE    /* it just died */
                              : ORDER_ENOPROCESS;
    }

    agent->terms = 1;
    agent->term_looks = 0;
    agent_switch_arm(agent, AGENT_SWITCH_AGAIN_US / 1e6);

    return ORDER_DONE;
}


static order_rc_t
agent_switch_carry_out(agent_t *agent)
{
    if (agent->is_leaving || agent->has_conflict) {
        return ORDER_ELEAVING;
    }

    if (agent->local.group.is_lock_away) {
        return ORDER_ENOLOCK;
    }

    return agent->child.pid != 0 ? agent_child_renew(agent)
                                 : agent_switch_signal(agent);
}


order_rc_t
agent_switch_end(void *data)
{
    order_rc_t   rc;
    agent_t     *agent = data;

    rc = agent_switch_carry_out(agent);

    log_write(agent->log, rc == ORDER_DONE ? LOG_INFO : LOG_WARN,
              "switch of group \"%s\": %s",
              swim_own(node_swim(agent->node))->facts.group,
              rc == ORDER_DONE ? "the replica is told to end"
                               : order_rc_text(rc));

    return rc;
}


void
agent_switch_reporter_gone(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->term_again);
}


void
agent_switch_init(agent_t *agent)
{
    ev_init(&agent->term_again, agent_switch_again);
    agent->term_again.data = agent;
}


void
agent_switch_done(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->term_again);
}


/*
 * The own replica is active in its standby group, and an order wants another
 * one to take over (jobs/switch.c): it ends, and comes back as a standby.
 *
 * At the first SIGTERM the replica refuses new requests, at the second it ends
 * its streams, which continue at other replicas.  A replica that this agent
 * runs as its child is started again.  One that it does not run gets the
 * signals by the pidfd of the process that reports, as the kernel names it;
 * its own supervisor starts it again.
 */

#include <errno.h>
#include <signal.h>

#include "agent/agent_inner.h"


#define AGENT_HANDOVER_AGAIN_S  0.1

/* Two SIGTERMs of which the first has not arrived are one.  So the second
   waits until the replica says that it drains; at most as long as it may be
   silent, since another engine may not say it.  That is counted in looks: a
   host that stands still for seconds is not the replica's silence. */
#define AGENT_HANDOVER_LOOKS                                                  \
    (LOCAL_STALL_US / (uint64_t) (AGENT_HANDOVER_AGAIN_S * 1e6))

/* Then the same command, given twice, does not signal again. */
#define AGENT_HANDOVER_BEGUN_S  5.0


static void
agent_handover_arm(agent_t *agent, double s)
{
    ev_timer_set(&agent->term_again, s, 0.);
    ev_timer_start(agent->loop, &agent->term_again);
}


static void
agent_handover_again(struct ev_loop *loop, ev_timer *timer, int events)
{
    agent_t  *agent = timer->data;

    if (agent->terms == 2) {
        return;
    }

    if (!agent->local.draining
        && ++agent->term_looks < (int) AGENT_HANDOVER_LOOKS)
    {
        agent_handover_arm(agent, AGENT_HANDOVER_AGAIN_S);
        return;
    }

    agent->terms = 2;
    (void) reporter_signal(&agent->watch, SIGTERM);
    agent_handover_arm(agent, AGENT_HANDOVER_BEGUN_S);
}


/* The process is the one that the kernel names, and names itself as well: a
   connection may have been handed on by another. */
static order_rc_t
agent_handover_signal(agent_t *agent)
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
    agent_handover_arm(agent, AGENT_HANDOVER_AGAIN_S);

    return ORDER_DONE;
}


static order_rc_t
agent_handover_carry_out(agent_t *agent)
{
    if (agent->is_leaving || agent->has_conflict) {
        return ORDER_ELEAVING;
    }

    if (agent->local.group.is_lock_away) {
        return ORDER_ENOLOCK;
    }

    return agent->child.pid != 0 ? agent_child_renew(agent)
                                 : agent_handover_signal(agent);
}


order_rc_t
agent_handover_begin(void *data)
{
    order_rc_t   rc;
    agent_t     *agent = data;

    rc = agent_handover_carry_out(agent);

    log_write(agent->log, rc == ORDER_DONE ? LOG_INFO : LOG_WARN,
              "switch of group \"%s\": %s",
              swim_own(node_swim(agent->node))->facts.group,
              rc == ORDER_DONE ? "the replica was asked to end"
                               : order_rc_text(rc));

    return rc;
}


void
agent_handover_reporter_gone(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->term_again);
}


void
agent_handover_init(agent_t *agent)
{
    ev_init(&agent->term_again, agent_handover_again);
    agent->term_again.data = agent;
}


void
agent_handover_done(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->term_again);
}

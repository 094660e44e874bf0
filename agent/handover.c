
/*
 * Another replica is to take over from the own one, which is active in its
 * standby group, by order (jobs/switch.c).  So the own replica ends, and comes
 * back as a standby.
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

/* A SIGTERM that is sent before the first has arrived has no effect.  So the
   second is sent when the replica reports that it drains; or after the time
   that a replica may be silent, since another engine may not report it.  That
   time is counted in checks: if the host stood still for seconds, the replica
   was not silent. */
#define AGENT_HANDOVER_LOOKS                                                  \
    (LOCAL_STALL_US / (uint64_t) (AGENT_HANDOVER_AGAIN_S * 1e6))

/* A command that is given again within this time does not signal again. */
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


/* Signals the process that reports, if the kernel and the report agree on its
   pid: a connection may have been handed on to another process. */
static order_rc_t
agent_handover_signal(agent_t *agent)
{
    if (ev_is_active(&agent->term_again)) {
        return ORDER_DONE;              /* the handover has begun already */
    }

    if (agent->watch.pid == 0 || agent->reported_pid != agent->watch.pid) {
        return ORDER_ENOPROCESS;
    }

    if (reporter_signal(&agent->watch, SIGTERM) != 0) {
        return errno == ESRCH ? ORDER_ENOTACTIVE    /* the process has just
                                                       died */
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

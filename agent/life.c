
/*
 * The beginning and the end of an agent.
 *
 * Beginning.  An agent that follows one that was killed or upgraded (its socket
 * file is still there) does not know yet whether the replica beside it serves.
 * If it gossiped at once, all members would get STARTING, and gateways would
 * send nothing until the replica has connected again.  So it sends nothing
 * until the replica has reported or a health check has an answer, for
 * AGENT_HOLD_S at most, which is less than it takes to be suspected.  Meanwhile
 * other members keep the last agent's record, and pings wait in the kernel.
 *
 * End.
 *
 *   SIGTERM, leave    all members learn that this one drains.  The child is
 *                     stopped; without a child the replica's streams may
 *                     finish, for --drain-timeout at most.  Then LEFT, for a
 *                     second at most.  A second SIGTERM does not wait.  A
 *                     gateway's agent waits in the same way for the replicas
 *                     that its update has stopped, since no other agent would
 *                     start them.  An agent that is stopped soon after its
 *                     start knows no member, though others may know it by its
 *                     earlier run: it does not leave in its first AGENT_JOIN_US
 *                     before it knows a member.
 *   another's id      its child, if there is one, is stopped.  LEFT is not
 *                     sent: members would take it for the other agent's.
 *   SIGQUIT           ends and sends nothing: the next agent takes over socket
 *                     file, segment and replica.
 */

#include <signal.h>
#include <unistd.h>

#include "agent/agent_inner.h"
#include "net/transport_udp.h"


/*
 * Enough for two of a replica's attempts to connect, or the first health check.
 */
#define AGENT_HOLD_S  0.4

/* A seed that lives answers within some milliseconds; the first retries come
   after 100, 200 and 400 ms. */
#define AGENT_JOIN_US  2000000ULL


void
agent_life_speak(agent_t *agent)
{
    if (!agent->is_held) {
        return;
    }

    agent->is_held = 0;
    ev_timer_stop(agent->loop, &agent->hold);
    transport_udp_hold(agent->transport, 0);
}


static void
agent_life_held(struct ev_loop *loop, ev_timer *hold, int events)
{
    agent_life_speak(hold->data);
}


/*
 * Whether the agent holds its datagrams back.  One that writes a segment pings
 * its members from the first moment on: without datagrams, it would take its
 * own silence for theirs.
 */
static int
agent_life_is_to_hold(const agent_t *agent)
{
    return agent->is_successor && agent->settings->members == NULL
           && agent->settings->role != LLMGW_ROLE_GATEWAY;
}


void
agent_life_begin(agent_t *agent)
{
    if (agent_life_is_to_hold(agent)) {
        agent->is_held = 1;
        transport_udp_hold(agent->transport, 1);

        ev_timer_set(&agent->hold, AGENT_HOLD_S, 0.);
        ev_timer_start(agent->loop, &agent->hold);
    }

    agent->began_us = clock_mono_us(agent->clock);
    agent_child_begin(agent);
    notify_ready(&agent->notify);
}


/* --- the end */

static void
agent_life_hurry(agent_t *agent)
{
    agent->is_hurried = 1;
    agent_child_stop(agent);
}


static void
agent_life_drain_over(struct ev_loop *loop, ev_timer *drain, int events)
{
    agent_t  *agent = drain->data;

    if (jobs_is_updating(&agent->jobs)) {
        log_write(agent->log, LOG_WARN, "leaving during an update: give the "
                  "same command at another gateway to continue it");

    } else if (agent->settings->role != LLMGW_ROLE_GATEWAY
               && agent->settings->command == NULL)
    {
        log_write(agent->log, LOG_WARN,
                  "leaving while the replica has %u requests",
                  agent->local.active_requests);
    }

    agent->is_hurried = 1;
}


void
agent_leave(void *data)
{
    agent_t  *agent = data;

    if (agent->is_leaving) {
        return;
    }

    log_write(agent->log, LOG_INFO, "leaving");

    agent->is_leaving = 1;
    notify_stopping(&agent->notify);
    agent_life_speak(agent);
    jobs_leave(&agent->jobs);

    if (agent->settings->role != LLMGW_ROLE_GATEWAY) {
        node_retire(agent->node);
        agent_child_stop(agent);
    }

    ev_timer_set(&agent->drain, agent->settings->drain_timeout_ms / 1e3, 0.);
    ev_timer_start(agent->loop, &agent->drain);
}


static int
agent_life_is_drained(const agent_t *agent)
{
    if (agent->settings->command != NULL) {
        return agent_child_is_over(agent);
    }

    if (agent->settings->role == LLMGW_ROLE_GATEWAY) {
        return agent->is_hurried || !jobs_is_updating(&agent->jobs);
    }

    return agent->is_hurried || local_is_idle(&agent->local);
}


/*
 * Whether the agent may leave: LEFT reaches only known members.  The table also
 * has the own record.
 */
static int
agent_life_may_part(const agent_t *agent)
{
    return agent->is_hurried || agent->settings->join == NULL
           || swim_table(node_swim(agent->node))->n > 1
           || clock_mono_us(agent->clock) >= agent->began_us + AGENT_JOIN_US;
}


int
agent_life_is_over(agent_t *agent)
{
    if (agent->has_conflict) {
        return agent->settings->command == NULL || agent_child_is_over(agent);
    }

    if (!agent->is_leaving) {
        return 0;
    }

    if (!agent->has_parted && agent_life_is_drained(agent)
        && agent_life_may_part(agent))
    {
        agent->has_parted = 1;
        node_leave(agent->node);
    }

    return agent->has_parted && swim_has_left(node_swim(agent->node));
}


static void
agent_life_terminate(struct ev_loop *loop, ev_signal *signal, int events)
{
    agent_t  *agent = signal->data;

    if (agent->is_leaving) {
        agent_life_hurry(agent);
        return;
    }

    agent_leave(agent);
}


static void
agent_life_quit(struct ev_loop *loop, ev_signal *signal, int events)
{
    agent_t  *agent = signal->data;

    log_write(agent->log, LOG_INFO, "quitting silently");
    _exit(0);
}


/* --- watchers */

static void
agent_life_on(agent_t *agent, ev_signal *watcher, int signal_number,
    void (*callback)(struct ev_loop *loop, ev_signal *signal, int events))
{
    ev_signal_init(watcher, callback, signal_number);
    watcher->data = agent;
    ev_signal_start(agent->loop, watcher);
}


void
agent_life_init(agent_t *agent)
{
    signal(SIGPIPE, SIG_IGN);

    agent_life_on(agent, &agent->on_term, SIGTERM, agent_life_terminate);
    agent_life_on(agent, &agent->on_int, SIGINT, agent_life_terminate);
    agent_life_on(agent, &agent->on_quit, SIGQUIT, agent_life_quit);
    agent_life_on(agent, &agent->on_hup, SIGHUP, agent_seal_reload);

    ev_init(&agent->hold, agent_life_held);
    ev_init(&agent->drain, agent_life_drain_over);
    agent->hold.data = agent;
    agent->drain.data = agent;

    notify_init(&agent->notify, agent->loop);
}


void
agent_life_done(agent_t *agent)
{
    notify_done(&agent->notify);
    ev_timer_stop(agent->loop, &agent->hold);
    ev_timer_stop(agent->loop, &agent->drain);
    ev_signal_stop(agent->loop, &agent->on_term);
    ev_signal_stop(agent->loop, &agent->on_int);
    ev_signal_stop(agent->loop, &agent->on_quit);
    ev_signal_stop(agent->loop, &agent->on_hup);
}

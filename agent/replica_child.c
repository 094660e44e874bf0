
/*
 * The replica as the agent's child (`-- REPLICA COMMAND ...`): what
 * supervise/supervise.h decides is done here.
 *
 * An orphan is a process that reports on this agent's control socket and is
 * itself the process that its report names: an earlier run of this agent
 * started it.  It is also adopted after the first two seconds: a child that
 * cannot work because an orphan has its port gives way to that orphan.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_inner.h"
#include "common/child/words.h"


static uint64_t
agent_child_now_us(const agent_t *agent)
{
    return clock_mono_us(agent->clock);
}


static void
agent_child_arm(agent_t *agent)
{
    uint64_t  next_us, now_us;

    ev_timer_stop(agent->loop, &agent->child_due);
    next_us = supervise_next_us(&agent->supervise);

    if (next_us == UINT64_MAX) {
        return;
    }

    now_us = agent_child_now_us(agent);
    ev_timer_set(&agent->child_due,
                 next_us > now_us ? (next_us - now_us) / 1e6 : 0., 0.);
    ev_timer_start(agent->loop, &agent->child_due);
}


/*
 * The child's environment has its version, id and address, so that a command
 * that is a script does not need them as arguments.
 */
static int
agent_child_spawn(agent_t *agent, char *error)
{
    int     rc;
    char  **words;

    words = words_fill(agent->settings->command, WORDS_VERSION,
                       agent->version);

    if (words == NULL) {
        snprintf(error, CHILD_ERROR_BYTES, "out of memory");
        return -1;
    }

    setenv("LLMGW_ID", agent->settings->id, 1);
    setenv("LLMGW_GRPC", agent->settings->grpc_text, 1);

    if (agent->version[0] != '\0') {
        setenv("LLMGW_VERSION", agent->version, 1);
    }

    rc = child_start(&agent->child, words, error);
    words_destroy(words);

    return rc;
}


/*
 * The next process may be started before the last report of the one that ended
 * on request is read.  A goodbye in it is not the new process's.
 */
static void
agent_child_start(agent_t *agent)
{
    char  error[CHILD_ERROR_BYTES];

    agent->is_former = agent->reporter != NULL;

    if (agent_child_spawn(agent, error) == 0) {
        supervise_started(&agent->supervise, agent_child_now_us(agent));
        log_write(agent->log, LOG_INFO, "started \"%s\", pid %d",
                  agent->settings->command[0], (int) agent->child.pid);
        return;
    }

    supervise_exited(&agent->supervise, agent_child_now_us(agent));
    log_write(agent->log, LOG_ERROR, "%s, retrying in %" PRIu64 " ms",
              error, supervise_pause_us(&agent->supervise) / 1000);
}


static void
agent_child_do(agent_t *agent, supervise_action_t action)
{
    switch (action) {
    case SUPERVISE_START:
        agent_child_start(agent);
        break;

    case SUPERVISE_TERM:
        child_signal(&agent->child, SIGTERM);
        break;

    case SUPERVISE_KILL:
        log_write(agent->log, LOG_WARN, "replica, pid %d, does not end, "
                  "killing it", (int) agent->child.pid);
        child_kill(&agent->child);
        break;

    case SUPERVISE_WAIT:
        break;
    }

    agent_child_arm(agent);
}


static void
agent_child_log_end(agent_t *agent, pid_t pid, const char *how,
    supervise_action_t action)
{
    if (action == SUPERVISE_START) {
        log_write(agent->log, LOG_INFO, "replica, pid %d, ended (%s), "
                  "as requested", (int) pid, how);
        return;
    }

    switch (agent->supervise.state) {
    case SUPERVISE_BACKOFF:
        log_write(agent->log, LOG_WARN, "replica, pid %d, ended (%s), "
                  "starting it again in %" PRIu64 " ms", (int) pid, how,
                  supervise_pause_us(&agent->supervise) / 1000);
        break;

    case SUPERVISE_RESTING:
        log_write(agent->log, LOG_INFO, "replica, pid %d, said goodbye and "
                  "ended (%s), it is not started again", (int) pid, how);
        break;

    default:
        log_write(agent->log, LOG_INFO, "replica, pid %d, ended (%s)",
                  (int) pid, how);
        break;
    }
}


/*
 * The process that reports is not the child that ended: often the child was a
 * shell, and the process that it started lives on.  That process is the child
 * from now on.  A restart that was under way has to end it first, or two would
 * fight for the port.
 */
static supervise_action_t
agent_child_succeed(agent_t *agent, supervise_action_t action)
{
    agent_child_meet(agent);

    return action == SUPERVISE_START && agent->child.pid != 0
           ? supervise_restart(&agent->supervise, agent_child_now_us(agent))
           : action;
}


static void
agent_child_gone(void *data, pid_t pid, const char *how)
{
    agent_t             *agent = data;
    supervise_action_t   action;

    action = supervise_exited(&agent->supervise, agent_child_now_us(agent));
    agent_child_log_end(agent, pid, how, action);

    /* if there is a reporter, the end of its connection is noticed by itself */
    if (agent->reporter == NULL) {
        local_ended(&agent->local);
        agent_replica_changed(agent);

    } else if (agent->watch.pid != pid) {
        action = agent_child_succeed(agent, action);
    }

    agent_child_do(agent, action);
}


static void
agent_child_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    agent_t  *agent = timer->data;

    agent_child_do(agent, supervise_tick(&agent->supervise,
                                         agent_child_now_us(agent)));
}


/*
 * Unless a version was ordered in this run, an adopted child keeps the one
 * that it reports: an earlier run may have been ordered that version.
 */
static void
agent_child_learn_version(agent_t *agent)
{
    if (!agent->is_version_ordered) {
        strcpy(agent->version, agent->local.model_version);
    }
}


void
agent_child_meet(agent_t *agent)
{
    int    pidfd;
    pid_t  pid;

    pid = agent->watch.pid;

    if (agent->settings->command == NULL || pid == 0
        || pid == agent->child.pid || agent->reported_pid != pid)
    {
        return;
    }

    pidfd = reporter_pidfd(&agent->watch);
    if (pidfd == -1) {
        return;
    }

    if (!supervise_adopt(&agent->supervise, agent_child_now_us(agent))) {
        close(pidfd);
        return;
    }

    child_adopt(&agent->child, pid, pidfd);
    agent_child_learn_version(agent);
    log_write(agent->log, LOG_INFO, "adopted the replica that reports, "
              "pid %d", (int) pid);

    if (agent->supervise.is_unwanted) {
        agent_child_stop(agent);
    }

    agent_child_arm(agent);
}


/* The replica said goodbye.  One of a standby group is restarted all the same:
   an operator that stops it wants another one to serve, and this one to stand
   by. */
void
agent_child_parted(agent_t *agent)
{
    if (swim_own(node_swim(agent->node))->facts.group[0] == '\0') {
        supervise_parted(&agent->supervise);
    }
}


static void
agent_child_set_version(agent_t *agent, const char *version)
{
    strcpy(agent->version, version);
    agent->is_version_ordered = 1;
    agent_keep(agent, AGENT_VERSION, version);
}


/* A child that is already being stopped for a restart is not stopped again. */
order_rc_t
agent_child_renew(agent_t *agent)
{
    if (agent->supervise.state == SUPERVISE_ORPHAN) {
        return ORDER_EBUSY;
    }

    agent_child_do(agent, supervise_restart(&agent->supervise,
                                            agent_child_now_us(agent)));

    return ORDER_DONE;
}


order_rc_t
agent_child_restart(void *data, const char *version)
{
    agent_t  *agent = data;

    if (agent->settings->command == NULL) {
        return ORDER_ENOCHILD;
    }

    if (agent->is_leaving || agent->has_conflict) {
        return ORDER_ELEAVING;
    }

    if (agent->supervise.state == SUPERVISE_ORPHAN) {
        return ORDER_EBUSY;
    }

    agent_child_set_version(agent, version);
    log_write(agent->log, LOG_INFO, "restarting the replica as version "
              "\"%s\"", version);

    return agent_child_renew(agent);
}


void
agent_child_stop(agent_t *agent)
{
    if (agent->settings->command != NULL) {
        agent_child_do(agent, supervise_stop(&agent->supervise,
                                             agent_child_now_us(agent)));
    }
}


int
agent_child_is_over(const agent_t *agent)
{
    return agent->supervise.state == SUPERVISE_ENDED && agent->child.pid == 0;
}


void
agent_child_init(agent_t *agent)
{
    child_init(&agent->child, agent->loop, agent_child_gone, agent);
    ev_init(&agent->child_due, agent_child_tick);
    agent->child_due.data = agent;
}


/*
 * Whether an earlier run of this agent may have left a replica.  That run would
 * have left its socket file, too; if the file was removed meanwhile, a process
 * still listens.
 */
static int
agent_child_may_be_there(const agent_t *agent)
{
    return agent->is_successor
           || address_is_served(&agent->settings->grpc_address);
}


void
agent_child_begin(agent_t *agent)
{
    if (agent->settings->command != NULL) {
        strcpy(agent->version, agent->settings->version);
        agent->is_version_ordered = agent->settings->is_version_kept;

        supervise_init(&agent->supervise,
                       agent->settings->drain_timeout_ms * 1000,
                       agent_child_may_be_there(agent),
                       agent_child_now_us(agent));
        agent_child_arm(agent);
    }
}


void
agent_child_done(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->child_due);
    child_done(&agent->child);
}

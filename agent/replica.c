
/* Reports and health of the agent's own replica, and its record in gossip. */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_inner.h"


/* If the stall timer comes late, the agent was slow and reports may be waiting:
   they are read first, and the stall is judged this much later. */
#define AGENT_GRACE_S  0.05


static void
agent_replica_arm(agent_t *agent)
{
    uint64_t  next_us, now_us;

    ev_timer_stop(agent->loop, &agent->stall);
    next_us = local_next_us(&agent->local);

    if (next_us == UINT64_MAX) {
        return;
    }

    now_us = clock_mono_us(agent->clock);
    ev_timer_set(&agent->stall,
                 next_us > now_us ? (next_us - now_us) / 1e6 : AGENT_GRACE_S,
                 0.);
    ev_timer_start(agent->loop, &agent->stall);
}


/*
 * If the replica is DOWN, this was sent to the gateways when this returns.  The
 * load is set first, so that a record which says that the replica refuses new
 * requests comes with the load of that moment.
 */
void
agent_replica_changed(agent_t *agent)
{
    swim_own_t   own;
    const char  *group;

    if (agent->local.reported_us != 0) {
        node_set_load(agent->node, agent->local.active_requests,
                      &agent->local.engine);
    }

    local_own(&agent->local, &own);

    if (own.resume_group == NULL) {
        group = agent->settings->resume_group;
        own.resume_group = group ? group : "";
    }

    node_set_own(agent->node, &own);

    agent_replica_arm(agent);
}


static const command_error_t  agent_replica_none = {
    "not_a_replica", "this agent is a gateway's"
};

static const command_error_t  agent_replica_no_shard = {
    "not_a_shard", "a shard reports, and this agent has not --role shard"
};

static const command_error_t  agent_replica_busy = {
    "busy", "a replica reports already on another connection"
};


/* Keeps objects of the report that are shown unchanged; NULL: none. */
static void
agent_replica_show(agent_t *agent, json_t *pipelines, json_t *callers)
{
    json_decref(agent->pipelines);
    json_decref(agent->callers);
    agent->pipelines = json_incref(pipelines);
    agent->callers = json_incref(callers);
}


/* Does what else a report leads to. */
static void
agent_replica_follow(agent_t *agent, const report_t *report, int is_first)
{
    agent_life_speak(agent);

    if (is_first) {
        agent_child_meet(agent);
    }

    if (report->goodbye && !agent->is_former) {
        agent_child_parted(agent);
    }
}


/*
 * The first connection that reports is the replica's as long as it is open:
 * with two at once the state would change back and forth.
 */
const command_error_t *
agent_replica_report(void *data, command_peer_t *peer, const report_t *report)
{
    int       is_first;
    agent_t  *agent = data;

    if (agent->settings->role == LLMGW_ROLE_GATEWAY) {
        return &agent_replica_none;
    }

    if (report->shard.facts.layers != 0
        && agent->settings->role != LLMGW_ROLE_SHARD)
    {
        return &agent_replica_no_shard;
    }

    if (agent->reporter != NULL && agent->reporter != peer) {
        return &agent_replica_busy;
    }

    if (agent->health != NULL) {
        health_destroy(agent->health);
        agent->health = NULL;
    }

    is_first = (agent->reporter == NULL);
    agent->reporter = peer;
    agent->reported_pid = report->pid;
    peer->is_reporter = 1;

    if (is_first) {
        agent->is_former = 0;
        reporter_watch(&agent->watch, control_socket(peer),
                       control_accepted_ticks(peer), control_take_fd(peer));
    }

    agent_replica_show(agent, report->pipelines, report->callers);
    local_report(&agent->local, report, clock_mono_us(agent->clock));
    agent_replica_changed(agent);
    agent_replica_follow(agent, report, is_first);

    return NULL;
}


void
agent_replica_lost(void *data, command_peer_t *peer)
{
    agent_t  *agent = data;

    assert(peer == agent->reporter);

    agent->reporter = NULL;
    reporter_forget(&agent->watch);
    agent_handover_reporter_gone(agent);
    agent_replica_show(agent, NULL, NULL);
    local_lost(&agent->local);
    agent_drain_replica_gone(agent);
    agent_replica_changed(agent);
}


/* The replica's process is dead, even if its connection is still open. */
static void
agent_replica_died(void *data)
{
    agent_t  *agent = data;

    control_drop(agent->reporter);
    agent_replica_lost(agent, agent->reporter);
}


static void
agent_replica_stalled(struct ev_loop *loop, ev_timer *timer, int events)
{
    uint64_t  next_us, now_us;
    agent_t  *agent = timer->data;

    next_us = local_next_us(&agent->local);
    now_us = clock_mono_us(agent->clock);

    /* reports that wait to be read come before the stall is judged */
    if (next_us != UINT64_MAX && now_us > next_us + AGENT_GRACE_S * 1e6
        && timer->repeat == 0.)
    {
        timer->repeat = AGENT_GRACE_S;
        ev_timer_again(loop, timer);
        return;
    }

    timer->repeat = 0.;
    local_tick(&agent->local, now_us);
    agent_replica_changed(agent);
}


/*
 * Logs why the replica cannot be asked: each fault once, until another fault or
 * an answer.  A refused connection is not logged: it means that the replica
 * does not run, which its state shows.
 */
static void
agent_replica_unfit(agent_t *agent, const char *why)
{
    if (why == NULL || strcmp(why, strerror(ECONNREFUSED)) == 0) {
        agent->unfit[0] = '\0';

    } else if (strcmp(why, agent->unfit) != 0) {
        snprintf(agent->unfit, sizeof(agent->unfit), "%s", why);
        log_write(agent->log, LOG_WARN, "the replica at %s cannot be asked "
                  "for its health: %s", agent->settings->grpc_text, why);
    }
}


static void
agent_replica_verdict(void *data, health_verdict_t verdict, const char *why)
{
    agent_t  *agent = data;

    agent_replica_unfit(agent, why);
    local_health(&agent->local, verdict);
    agent_replica_changed(agent);
    agent_life_speak(agent);
}


void
agent_replica_init(agent_t *agent)
{
    local_init(&agent->local);
    agent->local.shard_us = agent->settings->test_shard_expiry_ms * 1000;
    reporter_init(&agent->watch, agent->loop, agent_replica_died, agent);
    agent_child_init(agent);
    ev_init(&agent->stall, agent_replica_stalled);
    agent->stall.data = agent;
}


int
agent_replica_watch(agent_t *agent, char *error)
{
    if (agent->settings->role == LLMGW_ROLE_GATEWAY) {
        return 0;
    }

    agent->health = health_create(agent->loop,
                                  &agent->settings->grpc_address,
                                  &agent->endpoint.conn, agent_replica_verdict,
                                  agent);
    if (agent->health == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return -1;
    }

    return 0;
}


void
agent_replica_done(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->stall);
    reporter_forget(&agent->watch);
    agent_replica_show(agent, NULL, NULL);
    agent_child_done(agent);

    if (agent->health != NULL) {
        health_destroy(agent->health);
    }
}

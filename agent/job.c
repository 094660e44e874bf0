
/*
 * drain, undrain and switch, as commands: an order, and the wait for its
 * effect.  What is peculiar to a switch is in switch.c.
 *
 *             order given              accepted           its last stream ended
 *     start ---------------> ORDERED ----------> WAITING ----------------> end
 *                               |                   |
 *                               | refused,          | timeout, undrained by
 *                               v unreachable       v somebody, agent dead
 *                              end                 end
 *
 * An agent that restarts before it has answered may or may not have carried
 * the order out.  The order outlasts a restart and can be given twice, so it
 * is given again to the new epoch.
 *
 * Each job is looked at in every event-loop iteration.  It belongs to the
 * connection that asked: when that closes, the job ends, and the drain stays
 * as it was ordered.
 *
 * "Drained" is what the target itself says: a load of zero, reported after its
 * replica began to refuse new requests.  A replica that does not refuse by
 * itself (it does not know Drain, or was started under the drain) gets no more
 * requests once the gateways have heard.  Requests that raced with that have
 * reached it, and are in its load, AGENT_JOB_RACE_US later.
 */

#include <stdlib.h>
#include <string.h>

#include "agent/job.h"
#include "rollout/drained.h"
#include "swim/order/drain.h"


/* By then all gateways have heard and what they sent has arrived: far longer
   than gossip takes, and than it takes to open a connection. */
#define AGENT_JOB_RACE_US    1500000ULL

/* Within this time a restarted agent learns of an operator's drain and its
   replica reports to it; and a replica that was told to undrain says so. */
#define AGENT_JOB_GRACE_US   5000000ULL

/* An agent that restarts and restarts gets the order for so long. */
#define AGENT_JOB_ORDER_US   ORDER_TIMEOUT_US

#define AGENT_JOB_ASK_US      500000ULL
#define AGENT_JOB_TURN_S     0.1

/* Requests of a replica that reports none. */
#define AGENT_JOB_UNKNOWN  -1


uint64_t
agent_job_now_us(const agent_job_t *job)
{
    return clock_mono_us(job->agent->clock);
}


static const member_t *
agent_job_target(const agent_job_t *job)
{
    return table_find(swim_table(node_swim(job->agent->node)), job->id);
}


/* --- the end */

static void
agent_job_destroy(agent_job_t *job)
{
    agent_job_t  **at;

    for (at = &job->agent->jobs; *at != job; at = &(*at)->next) { /* void */ }

    *at = job->next;

    if (job->agent->jobs == NULL) {
        ev_timer_stop(job->agent->loop, &job->agent->jobs_turn);
    }

    if (job->order_id != 0) {
        node_forget_order(job->agent->node, job->order_id);
    }

    free(job);
}


static void
agent_job_gone(void *data)
{
    agent_job_destroy(data);
}


void
agent_job_end(agent_job_t *job, json_t *last)
{
    job->peer->job = NULL;
    control_send(job->peer, last);
    agent_job_destroy(job);
}


json_t *
agent_job_refusal(const char *id, const char *code, const char *text)
{
    return json_pack("{s:b, s:o, s:s, s:s}", "ok", 0, "error",
                     json_sprintf("\"%s\": %s", id, text), "code", code,
                     "id", id);
}


void
agent_job_fail(agent_job_t *job, const char *code, const char *text)
{
    agent_job_end(job, agent_job_refusal(job->id, code, text));
}


/* --- what runs there */

static int
agent_job_has_replica(const llmgw_member_t *facts)
{
    return facts->service != LLMGW_SERVICE_DOWN
           && facts->service != LLMGW_SERVICE_STOPPED;
}


static int64_t
agent_job_active(const member_t *member)
{
    if (!agent_job_has_replica(&member->facts)) {
        return 0;
    }

    return member->load_seq != 0 ? (int64_t) member->load.active_requests
                                 : AGENT_JOB_UNKNOWN;
}


/* A drain of it was accepted then: has its last request ended? */
static int
agent_job_is_drained(const member_t *member, uint64_t accepted_us)
{
    return drained_is(&member->facts, &member->load,
                      member->traits.refuses_new
                      ? 0 : accepted_us + AGENT_JOB_RACE_US);
}


/* Its agent restarted, and no replica has reported to it since. */
static int
agent_job_is_void(agent_job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = agent_job_now_us(job);

    if (member->facts.service != LLMGW_SERVICE_STARTING) {
        job->started_us = now_us;
    }

    return now_us > job->started_us + AGENT_JOB_GRACE_US;
}


static json_t *
agent_job_figure(int64_t active)
{
    return active == AGENT_JOB_UNKNOWN ? json_null() : json_integer(active);
}


/* On each change and once a second, so that its reader sees progress. */
static void
agent_job_say(agent_job_t *job, const member_t *member)
{
    uint64_t  now_us;
    int64_t   active;

    now_us = agent_job_now_us(job);
    active = agent_job_active(member);

    if (active == job->said_active && now_us < job->said_us + AGENT_JOB_SAY_US)
    {
        return;
    }

    job->said_us = now_us;
    job->said_active = active;

    control_send(job->peer,
                 json_pack("{s:s, s:I, s:s, s:o}", "event",
                           job->verb == ORDER_DRAIN ? "draining"
                                                    : "undraining",
                           "time",
                           (json_int_t) (clock_wall_us(job->agent->clock)
                                         / 1000),
                           "id", job->id, "active_requests",
                           agent_job_figure(active)));
}


/* --- waiting */

static void
agent_job_time_out(agent_job_t *job, const member_t *member)
{
    json_t   *text;
    int64_t   active;

    active = agent_job_active(member);

    if (active == AGENT_JOB_UNKNOWN) {
        text = json_sprintf("\"%s\" does not report what still runs; "
                            "it stays drained", job->id);
    } else {
        text = json_sprintf("\"%s\" still has %" JSON_INTEGER_FORMAT
                            " running; it stays drained", job->id,
                            (json_int_t) active);
    }

    agent_job_end(job, json_pack("{s:b, s:o, s:s, s:s, s:o}", "ok", 0,
                                 "error", text, "code", "timeout",
                                 "id", job->id, "active_requests",
                                 agent_job_figure(active)));
}


/* It was drained and is no longer: somebody undrained it, or its agent lost
   the drain in a restart.  For a short while that is normal in a restart. */
static int
agent_job_is_undone(agent_job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = agent_job_now_us(job);

    if (strcmp(member->facts.drain_owner, DRAIN_OPERATOR) == 0) {
        job->drained_us = now_us;
    }

    return now_us > job->drained_us + AGENT_JOB_GRACE_US;
}


static void
agent_job_wait_drained(agent_job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = agent_job_now_us(job);

    if (member->facts.liveness == LLMGW_LIVENESS_LEFT
        || agent_job_is_drained(member, job->accepted_us)
        || agent_job_is_void(job, member))
    {
        agent_job_end(job, json_pack("{s:b, s:s, s:I}", "ok", 1, "id",
                                     job->id, "active_requests",
                                     (json_int_t) 0));

    } else if (member->facts.liveness == LLMGW_LIVENESS_DEAD) {
        agent_job_fail(job, "unreachable", "its agent died meanwhile");

    } else if (agent_job_is_undone(job, member)) {
        agent_job_fail(job, "failed", "it is drained no more");

    } else if (now_us >= job->deadline_us) {
        agent_job_time_out(job, member);

    } else {
        agent_job_say(job, member);
    }
}


static void
agent_job_wait_undrained(agent_job_t *job, const member_t *member)
{
    json_t  *last;

    if (member->facts.draining && member->facts.drain_owner[0] == '\0') {

        if (agent_job_now_us(job) >= job->accepted_us + AGENT_JOB_GRACE_US) {
            agent_job_fail(job, "failed", "its replica refuses new requests "
                           "all the same");
            return;
        }

        agent_job_say(job, member);
        return;
    }

    last = json_pack("{s:b, s:s, s:b}", "ok", 1, "id", job->id, "draining",
                     member->facts.draining);

    if (member->facts.draining) {
        json_object_set_new(last, "drain_owner",
                            json_string(member->facts.drain_owner));
    }

    agent_job_end(job, last);
}


static void
agent_job_look(agent_job_t *job)
{
    uint64_t         now_us;
    const member_t  *member;

    if (job->verb == ORDER_SWITCH) {
        agent_switch_look(job);
        return;
    }

    member = agent_job_target(job);

    if (member == NULL) {
        agent_job_fail(job, "not_found", "it is forgotten meanwhile");
        return;
    }

    if (job->order_id != 0) {
        agent_job_say(job, member);
        return;
    }

    now_us = agent_job_now_us(job);

    if (now_us >= job->asked_us + AGENT_JOB_ASK_US) {
        job->asked_us = now_us;
        node_ask(job->agent->node, job->id);
    }

    if (job->verb == ORDER_DRAIN) {
        agent_job_wait_drained(job, member);

    } else {
        agent_job_wait_undrained(job, member);
    }
}


void
agent_job_turn(agent_t *agent)
{
    agent_job_t  *job, *next;

    for (job = agent->jobs; job != NULL; job = next) {
        next = job->next;
        agent_job_look(job);
    }
}


/* It only wakes the loop. */
static void
agent_job_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}


/* --- the beginning */

static void agent_job_settle(agent_job_t *job, order_rc_t rc);


void
agent_job_order(agent_job_t *job)
{
    order_t     order;
    order_rc_t  rc;

    memset(&order, 0, sizeof(order));
    order.verb = job->verb;
    strcpy(order.target_id, job->id);
    strcpy(order.owner, DRAIN_OPERATOR);
    strcpy(order.group, job->group);
    order.group_epoch = job->group_epoch;

    rc = node_order(job->agent->node, &order);
    job->order_id = order.id;
    job->order_epoch = order.target_epoch;

    if (rc != ORDER_PENDING) {
        agent_job_settle(job, rc);
    }
}


/* The target has a new epoch, which was not asked yet. */
static int
agent_job_has_new_epoch(const agent_job_t *job)
{
    const member_t  *member;

    member = agent_job_target(job);

    return member != NULL && member->facts.epoch != job->order_epoch
           && agent_job_now_us(job) < job->order_until_us;
}


static void
agent_job_settle(agent_job_t *job, order_rc_t rc)
{
    job->order_id = 0;

    if (rc == ORDER_ERESTARTED && agent_job_has_new_epoch(job)) {
        agent_job_order(job);
        return;
    }

    if (job->verb == ORDER_SWITCH && agent_switch_settle(job, rc)) {
        return;
    }

    if (rc != ORDER_DONE) {
        agent_job_fail(job, order_rc_name(rc), order_rc_text(rc));
        return;
    }

    job->accepted_us = agent_job_now_us(job);
    job->drained_us = job->accepted_us;
    job->started_us = job->accepted_us;
}


void
agent_job_ordered(agent_t *agent, uint64_t order_id, order_rc_t rc)
{
    agent_job_t  *job;

    for (job = agent->jobs; job != NULL; job = job->next) {
        if (job->order_id == order_id) {
            agent_job_settle(job, rc);
            return;
        }
    }
}


/* It is the only routable replica. */
static int
agent_job_is_last(const agent_t *agent, const member_t *member)
{
    size_t          i;
    const table_t  *table;

    table = swim_table(node_swim(agent->node));

    for (i = 0; i < table->n; i++) {
        if (table->members[i] != member
            && llmgw_member_is_routable(&table->members[i]->facts))
        {
            return 0;
        }
    }

    return llmgw_member_is_routable(&member->facts);
}


agent_job_t *
agent_job_create(agent_t *agent, command_peer_t *peer, order_verb_t verb,
    const char *id, uint64_t timeout_us)
{
    agent_job_t  *job;

    job = calloc(1, sizeof(agent_job_t));
    if (job == NULL) {
        control_send(peer, agent_job_refusal(id, "failed", "out of memory"));
        return NULL;
    }

    job->agent = agent;
    job->peer = peer;
    job->verb = verb;
    job->said_active = AGENT_JOB_UNKNOWN - 1;
    job->next = agent->jobs;
    strcpy(job->id, id);

    peer->job = job;
    peer->on_gone = agent_job_gone;

    if (agent->jobs == NULL) {
        ev_timer_again(agent->loop, &agent->jobs_turn);
    }

    agent->jobs = job;

    job->began_us = agent_job_now_us(job);
    job->deadline_us = job->began_us + timeout_us;
    job->order_until_us = job->began_us + AGENT_JOB_ORDER_US;

    return job;
}


static void
agent_job_begin(agent_t *agent, command_peer_t *peer, order_verb_t verb,
    const char *id, uint64_t timeout_us)
{
    agent_job_t  *job;

    job = agent_job_create(agent, peer, verb, id, timeout_us);

    if (job != NULL) {
        agent_job_order(job);
    }
}


void
agent_job_drain(void *data, command_peer_t *peer, const char *id,
    uint64_t timeout_ms, int is_forced)
{
    agent_t         *agent = data;
    const member_t  *member;

    member = table_find(swim_table(node_swim(agent->node)), id);

    if (member != NULL && !is_forced && agent_job_is_last(agent, member)) {
        control_send(peer, agent_job_refusal(id, "last_replica", "it is the "
                                             "last that gets work; drained "
                                             "all the same with --force"));
        return;
    }

    agent_job_begin(agent, peer, ORDER_DRAIN, id, timeout_ms * 1000);
}


void
agent_job_undrain(void *data, command_peer_t *peer, const char *id)
{
    agent_job_begin(data, peer, ORDER_UNDRAIN, id, 0);
}


void
agent_job_init(agent_t *agent)
{
    ev_init(&agent->jobs_turn, agent_job_tick);
    agent->jobs_turn.repeat = AGENT_JOB_TURN_S;
}


void
agent_job_done(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->jobs_turn);
}

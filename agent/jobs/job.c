
/*
 * The commands drain, undrain and switch: an order, and the wait for its
 * effect.  What only a switch needs is in switch.c.
 *
 *             order given              accepted           its last stream ended
 *     start ---------------> ORDERED ----------> WAITING ----------------> end
 *                               |                   |
 *                               | refused,          | timeout, undrained by
 *                               v unreachable       v somebody, agent dead
 *                              end                 end
 *
 * An agent that restarts before it has answered may or may not have carried the
 * order out.  The effect of an order outlasts a restart, and an order can be
 * given twice; so it is given again to the new epoch.
 *
 * Each job is checked in every event-loop iteration.  It belongs to the
 * connection that sent the command: when that closes, the job ends, and the
 * drain stays as it was ordered.
 *
 * A replica is drained when its own agent says so: by a load of zero, reported
 * after the replica began to refuse new requests.  A replica that does not
 * refuse by itself (it does not know Drain, or was started under the drain)
 * gets no more requests once the gateways know.  Requests that raced with that
 * have reached it, and are in its load, JOB_RACE_US later.
 */

#include <stdlib.h>
#include <string.h>

#include "jobs/job.h"
#include "rollout/drained.h"
#include "swim/order/drain.h"


/* By then all gateways know of the drain, and the requests that they sent
   before have arrived: this is far longer than gossip takes, and than it takes
   to open a connection. */
#define JOB_RACE_US    1500000ULL

/* Within this time a restarted agent learns of an operator's drain, and its
   replica reports to it; or a replica that was undrained reports that. */
#define JOB_GRACE_US   5000000ULL

/* The order is given to an agent that restarts repeatedly for this long. */
#define JOB_ORDER_US   ORDER_TIMEOUT_US

#define JOB_ASK_US      500000ULL

/* The number of requests if the replica does not report it. */
#define JOB_UNKNOWN  -1


static const member_t *
job_target(const job_t *job)
{
    return jobs_member(job->jobs, job->id);
}


/* --- the end */

static void
job_destroy(job_t *job)
{
    job_t  **at;

    for (at = &job->jobs->list; *at != job; at = &(*at)->next) { /* void */ }

    *at = job->next;

    if (job->order_id != 0) {
        node_forget_order(job->jobs->node, job->order_id);
    }

    free(job);
}


static void
job_gone(void *data)
{
    job_destroy(data);
}


void
job_end(job_t *job, json_t *last)
{
    job->peer->job = NULL;
    control_send(job->peer, last);
    job_destroy(job);
}


json_t *
job_refusal(const char *id, const char *code, const char *text)
{
    return json_pack("{s:b, s:o, s:s, s:s}", "ok", 0, "error",
                     json_sprintf("\"%s\": %s", id, text), "code", code,
                     "id", id);
}


void
job_fail(job_t *job, const char *code, const char *text)
{
    job_end(job, job_refusal(job->id, code, text));
}


/* --- the replica's requests */

static int
job_has_replica(const llmgw_member_t *facts)
{
    return facts->service != LLMGW_SERVICE_DOWN
           && facts->service != LLMGW_SERVICE_STOPPED;
}


static int64_t
job_active(const member_t *member)
{
    if (!job_has_replica(&member->facts)) {
        return 0;
    }

    return member->load_seq != 0 ? (int64_t) member->load.active_requests
                                 : JOB_UNKNOWN;
}


/*
 * Whether the last request of the member has ended, if a drain was accepted at
 * that time.
 */
static int
job_is_drained(const member_t *member, uint64_t accepted_us)
{
    return drained_is(&member->facts, &member->load,
                      member->traits.refuses_new
                      ? 0 : accepted_us + JOB_RACE_US);
}


/* 1: its agent restarted, and no replica has reported to it since. */
static int
job_is_void(job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = jobs_now_us(job->jobs);

    if (member->facts.service != LLMGW_SERVICE_STARTING) {
        job->started_us = now_us;
    }

    return now_us > job->started_us + JOB_GRACE_US;
}


static json_t *
job_figure(int64_t active)
{
    return active == JOB_UNKNOWN ? json_null() : json_integer(active);
}


/*
 * Sends a line on each change and once a second, so that its reader sees
 * progress.
 */
static void
job_say(job_t *job, const member_t *member)
{
    uint64_t  now_us;
    int64_t   active;

    now_us = jobs_now_us(job->jobs);
    active = job_active(member);

    if (active == job->said_active && now_us < job->said_us + JOB_SAY_US)
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
                           jobs_wall_ms(job->jobs),
                           "id", job->id, "active_requests",
                           job_figure(active)));
}


/* --- waiting */

static void
job_time_out(job_t *job, const member_t *member)
{
    json_t   *text;
    int64_t   active;

    active = job_active(member);

    if (active == JOB_UNKNOWN) {
        text = json_sprintf("\"%s\" does not report what still runs; "
                            "it stays drained", job->id);
    } else {
        text = json_sprintf("\"%s\" still has %" JSON_INTEGER_FORMAT
                            " running; it stays drained", job->id,
                            (json_int_t) active);
    }

    job_end(job, json_pack("{s:b, s:o, s:s, s:s, s:o}", "ok", 0,
                                 "error", text, "code", "timeout",
                                 "id", job->id, "active_requests",
                                 job_figure(active)));
}


/* 1: the member was drained and no longer is: somebody undrained it, or its
   agent lost the drain in a restart.  During a restart this may be so for a
   short while. */
static int
job_is_undone(job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = jobs_now_us(job->jobs);

    if (strcmp(member->facts.drain_owner, DRAIN_OPERATOR) == 0) {
        job->drained_us = now_us;
    }

    return now_us > job->drained_us + JOB_GRACE_US;
}


static void
job_wait_drained(job_t *job, const member_t *member)
{
    uint64_t  now_us;

    now_us = jobs_now_us(job->jobs);

    if (member->facts.liveness == LLMGW_LIVENESS_LEFT
        || job_is_drained(member, job->accepted_us)
        || job_is_void(job, member))
    {
        job_end(job, json_pack("{s:b, s:s, s:I}", "ok", 1, "id",
                                     job->id, "active_requests",
                                     (json_int_t) 0));

    } else if (member->facts.liveness == LLMGW_LIVENESS_DEAD) {
        job_fail(job, "unreachable", "its agent died meanwhile");

    } else if (job_is_undone(job, member)) {
        job_fail(job, "failed", "its drain was cancelled");

    } else if (now_us >= job->deadline_us) {
        job_time_out(job, member);

    } else {
        job_say(job, member);
    }
}


static void
job_wait_undrained(job_t *job, const member_t *member)
{
    json_t  *last;

    if (member->facts.draining && member->facts.drain_owner[0] == '\0') {

        if (jobs_now_us(job->jobs) >= job->accepted_us + JOB_GRACE_US) {
            job_fail(job, "failed", "its replica still refuses new requests");
            return;
        }

        job_say(job, member);
        return;
    }

    last = json_pack("{s:b, s:s, s:b}", "ok", 1, "id", job->id, "draining",
                     member->facts.draining);

    if (member->facts.draining) {
        json_object_set_new(last, "drain_owner",
                            json_string(member->facts.drain_owner));
    }

    job_end(job, last);
}


void
job_look(job_t *job)
{
    uint64_t         now_us;
    const member_t  *member;

    if (job->verb == ORDER_SWITCH) {
        switch_look(job);
        return;
    }

    member = job_target(job);

    if (member == NULL) {
        job_fail(job, "not_found", "it is no longer a member");
        return;
    }

    if (job->order_id != 0) {
        job_say(job, member);
        return;
    }

    now_us = jobs_now_us(job->jobs);

    if (now_us >= job->asked_us + JOB_ASK_US) {
        job->asked_us = now_us;
        node_ask(job->jobs->node, job->id);
    }

    if (job->verb == ORDER_DRAIN) {
        job_wait_drained(job, member);

    } else {
        job_wait_undrained(job, member);
    }
}


/* --- the beginning */

void
job_order(job_t *job)
{
    order_t     order;
    order_rc_t  rc;

    memset(&order, 0, sizeof(order));
    order.verb = job->verb;
    strcpy(order.target_id, job->id);
    strcpy(order.owner, DRAIN_OPERATOR);
    strcpy(order.group, job->group);
    order.group_epoch = job->group_epoch;

    rc = node_order(job->jobs->node, &order);
    job->order_id = order.id;
    job->order_epoch = order.target_epoch;

    if (rc != ORDER_PENDING) {
        job_settle(job, rc);
    }
}


/* 1: the target has a new epoch, which has not got the order yet. */
static int
job_has_new_epoch(const job_t *job)
{
    const member_t  *member;

    member = job_target(job);

    return member != NULL && member->facts.epoch != job->order_epoch
           && jobs_now_us(job->jobs) < job->order_until_us;
}


void
job_settle(job_t *job, order_rc_t rc)
{
    job->order_id = 0;

    if (rc == ORDER_ERESTARTED && job_has_new_epoch(job)) {
        job_order(job);
        return;
    }

    if (job->verb == ORDER_SWITCH && switch_settle(job, rc)) {
        return;
    }

    if (rc != ORDER_DONE) {
        job_fail(job, order_rc_name(rc), order_rc_text(rc));
        return;
    }

    job->accepted_us = jobs_now_us(job->jobs);
    job->drained_us = job->accepted_us;
    job->started_us = job->accepted_us;
}


/* 1: the member is the only routable replica. */
static int
job_is_last(const jobs_t *jobs, const member_t *member)
{
    size_t          i;
    const table_t  *table;

    table = jobs_table(jobs);

    for (i = 0; i < table->n; i++) {
        if (table->members[i] != member
            && llmgw_member_is_routable(&table->members[i]->facts))
        {
            return 0;
        }
    }

    return llmgw_member_is_routable(&member->facts);
}


job_t *
job_create(jobs_t *jobs, command_peer_t *peer, order_verb_t verb,
    const char *id, uint64_t timeout_us)
{
    job_t  *job;

    job = calloc(1, sizeof(job_t));
    if (job == NULL) {
        control_send(peer, job_refusal(id, "failed", "out of memory"));
        return NULL;
    }

    job->jobs = jobs;
    job->peer = peer;
    job->verb = verb;
    job->said_active = JOB_UNKNOWN - 1;
    job->next = jobs->list;
    strcpy(job->id, id);

    peer->job = job;
    peer->on_gone = job_gone;

    jobs->list = job;
    jobs_wake(jobs);

    job->began_us = jobs_now_us(job->jobs);
    job->deadline_us = job->began_us + timeout_us;
    job->order_until_us = job->began_us + JOB_ORDER_US;

    return job;
}


static void
job_begin(jobs_t *jobs, command_peer_t *peer, order_verb_t verb,
    const char *id, uint64_t timeout_us)
{
    job_t  *job;

    job = job_create(jobs, peer, verb, id, timeout_us);

    if (job != NULL) {
        job_order(job);
    }
}


void
job_drain(void *data, command_peer_t *peer, const char *id,
    uint64_t timeout_ms, int is_forced)
{
    jobs_t          *jobs = data;
    const member_t  *member;

    member = jobs_member(jobs, id);

    if (member != NULL && !is_forced && job_is_last(jobs, member)) {
        control_send(peer, job_refusal(id, "last_replica", "it is the last "
                                       "routable replica; --force drains it "
                                       "all the same"));
        return;
    }

    job_begin(jobs, peer, ORDER_DRAIN, id, timeout_ms * 1000);
}


void
job_undrain(void *data, command_peer_t *peer, const char *id)
{
    job_begin(data, peer, ORDER_UNDRAIN, id, 0);
}

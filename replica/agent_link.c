
/*
 * The replica's reports to its agent: JSON lines on the control socket.
 *
 * A report is sent when the connection is made, on every change of load or
 * draining (at most one in AGENT_LINK_GAP_S), and after AGENT_LINK_PERIOD_S
 * without one: the agent takes silence on an open connection for a stall.  The
 * link finds changes by itself: it reads the engine's counters in each
 * event-loop iteration, which costs three comparisons.
 *
 *                 connected            refused line, broken, end of file
 *   disconnected -----------> reporting ----------------------------.
 *        ^  | failed                                                |
 *        |  v                                                       |
 *       waiting  a short pause: redial.h <--------------------------'
 *
 * A restarted agent publishes no replica before its replica has reported, so
 * the longest pause between attempts is short.
 *
 * The replica serves whether its agent is there or not; the log has one line
 * when the link is lost and one when it is back.
 */

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/members/members.h"
#include "replica/agent_link.h"


#define AGENT_LINK_GAP_S     0.02
#define AGENT_LINK_PERIOD_S  0.5    /* half of the promised period */


static int
agent_link_has_model(const char *models, size_t bytes, const char *name)
{
    size_t  at;

    for (at = 0; at < bytes; at += strlen(models + at) + 1) {
        if (strcmp(models + at, name) == 0) {
            return 1;
        }
    }

    return 0;
}


/* Leaves out names that the agent could not pass on, since it would refuse the
   report. */
static void
agent_link_report_models(json_t *report, const engine_facts_t *f)
{
    size_t       at, bytes;
    json_t      *models;
    const char  *name;

    models = json_array();

    for (at = 0; at < f->models_bytes; at += bytes) {
        name = f->models + at;
        bytes = strlen(name) + 1;

        if (bytes <= LLMGW_MEMBERS_MODELS_BYTES
            && llmgw_members_list_is_valid(name, bytes)
            && !agent_link_has_model(f->models, at, name))
        {
            json_array_append_new(models, json_string(name));
        }
    }

    if (json_array_size(models) > 0) {
        json_object_set(report, "models", models);
    }

    json_decref(models);
}


static void
agent_link_report_count(json_t *report, const char *name, int64_t count,
    int64_t most)
{
    if (count >= 0) {
        json_object_set_new(report, name,
                            json_integer(count < most ? count : most));
    }
}


/* Figures that an engine does not report are left out. */
static void
agent_link_report_facts(json_t *report, const engine_facts_t *f)
{
    agent_link_report_models(report, f);
    agent_link_report_count(report, "running", f->running,
                            LLMGW_ENGINE_MAX_REQUESTS);
    agent_link_report_count(report, "waiting", f->waiting,
                            LLMGW_ENGINE_MAX_REQUESTS);
    agent_link_report_count(report, "kv_permille", f->kv_permille, 1000);
    agent_link_report_count(report, "kv_free_blocks", f->kv_free_blocks,
                            LLMGW_ENGINE_MAX_BLOCKS);
    agent_link_report_count(report, "hit_permille", f->hit_permille, 1000);

    if (f->resume_group[0] != '\0') {
        json_object_set_new(report, "resume_group",
                            json_string(f->resume_group));
    }

    if (f->detail[0] != '\0') {
        json_object_set_new(report, "detail", json_string(f->detail));
    }
}


/* An engine that is not yet the Active one of its group is reported as
   starting, which members that know nothing of groups understand. */
static void
agent_link_report_state(json_t *report, const engine_t *e)
{
    engine_state_t  state;

    state = engine_is_active(e) ? e->facts.state : ENGINE_STARTING;

    if (state != ENGINE_READY) {
        json_object_set_new(report, "state",
                            json_string(engine_state_name(state)));
    }
}


static void
agent_link_report_group(json_t *report, const engine_group_t *group)
{
    char  lock[17];

    if (group->name[0] == '\0') {
        return;
    }

    json_object_set_new(report, "group", json_string(group->name));
    json_object_set_new(report, "group_state", json_string(
                            llmgw_group_state_name(group->state)));

    if (group->epoch != 0) {
        snprintf(lock, sizeof(lock), "%016llx",
                 (unsigned long long) group->lock);
        json_object_set_new(report, "group_epoch",
                            json_integer((json_int_t) group->epoch));
        json_object_set_new(report, "group_lock", json_string(lock));
    }

    if (group->is_lock_away) {
        json_object_set_new(report, "group_lock_away", json_true());
    }
}


/* NULL: out of memory. */
static json_t *
agent_link_message(const agent_link_t *link, int is_goodbye)
{
    json_t          *report;
    const engine_t  *e;

    e = link->engine;

    report = json_pack("{s:s, s:I, s:i, s:s, s:i, s:i, s:b}",
                       "cmd", "report",
                       "replica_start", (json_int_t) link->start_ms,
                       "pid", (int) getpid(),
                       "model_version", e->facts.model_version,
                       "max_capacity", (int) e->facts.max_capacity,
                       "active_requests", (int) e->stats.active,
                       "draining", engine_is_draining(e));

    if (report == NULL) {
        return NULL;
    }

    agent_link_report_facts(report, &e->facts);
    agent_link_report_state(report, e);
    agent_link_report_group(report, &e->facts.group);

    if (e->kind->report != NULL) {
        e->kind->report(e, report);
    }

    if (is_goodbye) {
        json_object_set_new(report, "goodbye", json_true());
    }

    return report;
}


/* Notes what was reported and when the next report is due. */
static void
agent_link_reported(agent_link_t *link)
{
    link->sent_at = ev_now(link->loop);
    link->sent_active = link->engine->stats.active;
    link->sent_facts = link->engine->facts.generation;
    link->sent_draining = engine_is_draining(link->engine);

    ev_timer_set(&link->report_timer, AGENT_LINK_PERIOD_S, 0);
    ev_timer_start(link->loop, &link->report_timer);
}


static void
agent_link_report(agent_link_t *link, int is_goodbye)
{
    (void) redial_send(&link->agent, agent_link_message(link, is_goodbye), -1);
    agent_link_reported(link);
}


static void
agent_link_on_report_due(struct ev_loop *loop, ev_timer *w, int revents)
{
    agent_link_report(w->data, 0);
}


/* Reports changes; called before each sleep of the loop. */
static void
agent_link_on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
    double         soonest;
    agent_link_t  *link;

    link = w->data;

    if (link->agent.conn == NULL
        || (link->sent_active == link->engine->stats.active
            && link->sent_facts == link->engine->facts.generation
            && link->sent_draining == engine_is_draining(link->engine)))
    {
        return;
    }

    soonest = link->sent_at + AGENT_LINK_GAP_S - ev_now(loop);

    if (soonest > 0
        && soonest >= ev_timer_remaining(loop, &link->report_timer))
    {
        return;
    }

    ev_timer_stop(loop, &link->report_timer);

    if (soonest <= 0) {
        agent_link_report(link, 0);
        return;
    }

    ev_timer_set(&link->report_timer, soonest, 0);
    ev_timer_start(loop, &link->report_timer);
}


static void
agent_link_on_lost(void *data, const char *why)
{
    agent_link_t  *link;

    link = data;
    ev_timer_stop(link->loop, &link->report_timer);
    redial_again(&link->agent, why, "retrying");
}


static void
agent_link_on_message(void *data, const json_t *answer)
{
    const char    *error;
    agent_link_t  *link;

    link = data;

    if (!json_is_true(json_object_get(answer, "ok"))) {
        error = json_string_value(json_object_get(answer, "error"));
        agent_link_on_lost(link, error != NULL ? error : "it talks nonsense");
        return;
    }

    if (!link->is_accepted) {
        link->is_accepted = 1;
        (void) redial_fine(&link->agent);
        log_write(link->log, LOG_INFO, "reporting to agent \"%s\"",
                  link->agent.path);
    }
}


static void
agent_link_on_connected(void *data)
{
    agent_link_t  *link;

    link = data;
    link->is_accepted = 0;

    if (redial_send(&link->agent, agent_link_message(link, 0),
                    link->lifelock.fd) != 0)
    {
        agent_link_on_lost(link, "out of memory");
        return;
    }

    agent_link_reported(link);
}


static uint64_t
agent_link_wall_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_REALTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


void
agent_link_init(agent_link_t *link, struct ev_loop *loop, const log_t *log,
    const engine_t *engine, const char *path)
{
    static const redial_callbacks_t  callbacks = {
        agent_link_on_connected, agent_link_on_message, agent_link_on_lost
    };

    memset(link, 0, sizeof(*link));
    link->loop = loop;
    link->log = log;
    link->engine = engine;
    link->start_ms = agent_link_wall_ms();

    link->agent = (redial_t) {
        .loop = loop, .log = log, .name = "cannot report to agent",
        .path = path, .callbacks = &callbacks, .data = link
    };
    redial_init(&link->agent);

    ev_prepare_init(&link->watch, agent_link_on_turn);
    ev_init(&link->report_timer, agent_link_on_report_due);
    link->watch.data = link;
    link->report_timer.data = link;

    link->lifelock.fd = -1;

    if (path != NULL) {
        lifelock_init(&link->lifelock);
        ev_prepare_start(loop, &link->watch);
        redial_connect(&link->agent);
    }
}


void
agent_link_goodbye(agent_link_t *link)
{
    if (link->agent.conn != NULL) {
        agent_link_report(link, 1);
    }

    redial_finish(&link->agent);
    lifelock_done(&link->lifelock);
    agent_link_done(link);
}


void
agent_link_done(agent_link_t *link)
{
    ev_prepare_stop(link->loop, &link->watch);
    ev_timer_stop(link->loop, &link->report_timer);
    redial_stop(&link->agent);
}


/*
 * The rolling update that this agent drives.
 *
 * rollout/rollout.h decides.  It is given what was published, so that the
 * update acts on nothing that nginx could not know; it is asked what to do;
 * and the results are sent to the connections that follow the update.  There
 * may be any number of them, and the update depends on none.
 *
 * The id of the update is in the own record while it runs, so that other
 * agents refuse a second one.  Two agents may begin before they have heard of
 * each other: both wait AGENT_UPDATE_SETTLE_US before their first step, and
 * the later one (by id, which begins with the time) yields.  Other gateways
 * get the same time to hear that a replica is back before the next is drained.
 *
 * If this agent shuts down, it waits for the steps in progress (agent/life.c).
 * If it crashes, its leases expire after 30 s, its commands run to their end,
 * and a replica that it had stopped is not restarted.  The next update takes
 * over the id that it finds in the drains, so that it owns what is drained
 * already.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/update.h"
#include "rollout/show.h"


/* How exactly timeouts of the update are kept. */
#define AGENT_UPDATE_TICK_S    0.1

/* How often a draining replica is pinged for its load. */
#define AGENT_UPDATE_ASK_US    200000ULL

/* How often those who follow are sent a line at least. */
#define AGENT_UPDATE_SAY_US   1000000ULL

struct agent_follower_s {
    agent_update_t    *update;
    command_peer_t    *peer;
    int                is_content;  /* with any end: it asked for one */
    agent_follower_t  *next;
};


static uint64_t
agent_update_now_us(const agent_update_t *update)
{
    return clock_mono_us(update->agent->clock);
}


static uint64_t
agent_update_wall_ms(const agent_update_t *update)
{
    return clock_wall_us(update->agent->clock) / 1000;
}


void
agent_update_view(const agent_t *agent, rollout_view_t *view)
{
    memset(view, 0, sizeof(rollout_view_t));
    view->members = publish_members(agent->publish, &view->n);
    view->loads = publish_loads(agent->publish);
}


json_t *
agent_update_show(const agent_update_t *update)
{
    rollout_label_t  label;

    label.id = update->id;
    label.began_ms = update->began_ms;
    label.ended_ms = update->ended_ms;
    label.now_us = agent_update_now_us(update);

    return rollout_show(update->rollout, &label);
}


/* --- connections that follow */

/* Takes the reference. */
static void
agent_update_tell(agent_update_t *update, json_t *line)
{
    agent_follower_t  *follower;

    for (follower = update->followers; follower != NULL;
         follower = follower->next)
    {
        control_send(follower->peer, json_incref(line));
    }

    json_decref(line);
}


/* The connection is gone. */
static void
agent_update_unfollow(void *job)
{
    agent_follower_t  **link, *follower = job;

    link = &follower->update->followers;

    while (*link != follower) {
        link = &(*link)->next;
    }

    *link = follower->next;
    free(follower);
}


json_t *
agent_update_follow(agent_update_t *update, command_peer_t *peer,
    int is_attached, int is_content)
{
    agent_follower_t  *follower;

    follower = calloc(1, sizeof(agent_follower_t));
    if (follower == NULL) {
        return NULL;
    }

    follower->update = update;
    follower->peer = peer;
    follower->is_content = is_content;
    follower->next = update->followers;
    update->followers = follower;
    peer->job = follower;
    peer->on_gone = agent_update_unfollow;

    return json_pack("{s:s, s:I, s:b, s:o}", "event", "update", "time",
                     (json_int_t) agent_update_wall_ms(update),
                     "attached", is_attached,
                     "update", agent_update_show(update));
}


/* Sends all the last line; takes the reference. */
static void
agent_update_dismiss(agent_update_t *update, json_t *line)
{
    agent_follower_t  *follower;

    while (update->followers != NULL) {
        follower = update->followers;
        update->followers = follower->next;
        follower->peer->job = NULL;

        control_send(follower->peer,
                     follower->is_content
                     ? json_pack("{s:b, s:O}", "ok", 1, "update",
                                 json_object_get(line, "update"))
                     : json_incref(line));
        free(follower);
    }

    json_decref(line);
}


/* {"event":NAME, "time", "update", "done", "total"}. */
static json_t *
agent_update_event(const agent_update_t *update, const char *name)
{
    return json_pack("{s:s, s:I, s:s, s:I, s:I}", "event", name, "time",
                     (json_int_t) agent_update_wall_ms(update),
                     "update", update->id,
                     "done", (json_int_t) rollout_ndone(update->rollout),
                     "total", (json_int_t) update->rollout->nsteps);
}


static void
agent_update_log_step(const agent_update_t *update, size_t i)
{
    const rollout_step_t  *step;

    step = &update->rollout->steps[i];

    if (step->state == ROLLOUT_UNDOING && step->reason[0] != '\0') {
        log_write(update->agent->log, LOG_WARN,
                  "update %s: replica \"%s\" failed at \"%s\": %s",
                  update->id, step->id, rollout_state_name(step->failed_in),
                  step->reason);
        return;
    }

    log_write(update->agent->log, LOG_INFO, "update %s: replica \"%s\": %s",
              update->id, step->id, rollout_state_name(step->state));
}


static void
agent_update_tell_changes(agent_update_t *update)
{
    size_t   i;
    json_t  *event, *step;

    while (rollout_changed(update->rollout, &i)) {
        event = agent_update_event(update, "step");
        step = rollout_show_step(update->rollout, i,
                                 agent_update_now_us(update));
        json_object_update(event, step);
        json_decref(step);

        agent_update_tell(update, event);
        agent_update_log_step(update, i);
    }
}


static void
agent_update_tell_progress(agent_update_t *update)
{
    json_t    *event;
    uint64_t   now_us;

    now_us = agent_update_now_us(update);

    if (now_us < update->said_us + AGENT_UPDATE_SAY_US) {
        return;
    }

    update->said_us = now_us;
    event = agent_update_event(update, "progress");
    json_object_set_new(event, "steps",
                        rollout_show_active(update->rollout, now_us));
    agent_update_tell(update, event);
}


/* --- the beginning and the end */

agent_update_t *
agent_update_create(agent_t *agent, rollout_t *rollout, const char *id)
{
    size_t           i;
    agent_update_t  *update;

    update = calloc(1, sizeof(agent_update_t)
                       + rollout->nsteps * sizeof(agent_task_t));
    if (update == NULL) {
        rollout_destroy(rollout);
        return NULL;
    }

    update->agent = agent;
    update->rollout = rollout;
    strcpy(update->id, id);

    for (i = 0; i < rollout->nsteps; i++) {
        update->tasks[i].update = update;
        update->tasks[i].step = i;
    }

    return update;
}


/* It only wakes the loop. */
static void
agent_update_tick(struct ev_loop *loop, ev_timer *tick, int events)
{
    agent_update_wake(tick->data);
}


void
agent_update_begin(agent_update_t *update, uint64_t settle_us)
{
    agent_t  *agent;

    agent = update->agent;
    update->is_running = 1;
    update->is_due = 1;
    update->began_ms = agent_update_wall_ms(update);
    update->said_us = agent_update_now_us(update);

    log_write(agent->log, LOG_INFO, "update %s to version \"%s\" begins, "
              "%zu replicas", update->id, update->rollout->to,
              update->rollout->nsteps);

    ev_timer_init(&update->tick, agent_update_tick, AGENT_UPDATE_TICK_S,
                  AGENT_UPDATE_TICK_S);
    update->tick.data = update;
    ev_timer_start(agent->loop, &update->tick);

    node_set_update(agent->node, update->id);
    rollout_begin(update->rollout, settle_us, agent_update_now_us(update));
}


static void
agent_update_end(agent_update_t *update)
{
    char      reason[ROLLOUT_REASON_BYTES];
    agent_t  *agent;

    agent = update->agent;
    update->is_running = 0;
    update->ended_ms = agent_update_wall_ms(update);

    ev_timer_stop(agent->loop, &update->tick);
    node_set_update(agent->node, "");
    agent_update_forget(update);

    rollout_reason(update->rollout, reason);
    log_write(agent->log, reason[0] ? LOG_WARN : LOG_INFO,
              "update %s to version \"%s\" is over, %s%s%s, %zu of %zu done",
              update->id, update->rollout->to,
              rollout_verdict_name(update->rollout->verdict),
              reason[0] ? ": " : "", reason, rollout_ndone(update->rollout),
              update->rollout->nsteps);

    agent_update_dismiss(update, rollout_show_end(update->rollout,
                                                  agent_update_show(update)));
}


void
agent_update_destroy(agent_update_t *update)
{
    if (update->is_running) {
        ev_timer_stop(update->agent->loop, &update->tick);
        agent_update_forget(update);
        agent_update_dismiss(update,
            json_pack("{s:b, s:s, s:s, s:o}", "ok", 0, "code", "leaving",
                      "error", "the agent that drives the update ended",
                      "update", agent_update_show(update)));
    }

    free(update->stop);
    free(update->start);
    rollout_destroy(update->rollout);
    free(update);
}


/* --- each iteration */

void
agent_update_wake(agent_update_t *update)
{
    update->is_due = 1;
}


/* The other is known by now, whichever of the two began first. */
static void
agent_update_yield(agent_update_t *update)
{
    int              order;
    const member_t  *rival;

    rival = agent_update_rival(update->agent);

    if (rival == NULL || update->rollout->is_ending) {
        return;
    }

    order = strcmp(rival->traits.update, update->id);

    if (order < 0
        || (order == 0 && strcmp(rival->facts.id,
                                 update->agent->settings->id) < 0))
    {
        log_write(update->agent->log, LOG_WARN, "update %s yields to %s of "
                  "\"%s\"", update->id, rival->traits.update,
                  rival->facts.id);
        rollout_end(update->rollout, ROLLOUT_YIELDED,
                    agent_update_now_us(update));
    }
}


static void
agent_update_ask(agent_update_t *update)
{
    size_t      i;
    uint64_t    now_us;
    rollout_t  *rollout;

    now_us = agent_update_now_us(update);
    rollout = update->rollout;

    if (now_us < update->asked_us + AGENT_UPDATE_ASK_US) {
        return;
    }

    update->asked_us = now_us;

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout->steps[i].state == ROLLOUT_DRAINING) {
            node_ask(update->agent->node, rollout->steps[i].id);
        }
    }
}


static void
agent_update_look(agent_update_t *update)
{
    rollout_view_t  view;

    agent_update_yield(update);
    agent_update_view(update->agent, &view);

    /* What is done at once leads to the next. */
    do {
        update->is_due = 0;
        rollout_look(update->rollout, &view, agent_update_now_us(update));
        agent_update_tell_changes(update);
        agent_update_act(update);
    } while (update->is_due);

    if (rollout_is_over(update->rollout)) {
        agent_update_end(update);
        return;
    }

    agent_update_ask(update);
    agent_update_tell_progress(update);
}


int
agent_update_is_running(const agent_t *agent)
{
    return agent->update != NULL && agent->update->is_running;
}


void
agent_update_turn(agent_t *agent)
{
    if (agent_update_is_running(agent) && agent->update->is_due) {
        agent_update_look(agent->update);
    }
}


void
agent_update_changed(agent_t *agent)
{
    if (agent->update != NULL) {
        agent_update_wake(agent->update);
    }
}


int
agent_update_ordered(agent_t *agent, uint64_t order_id, order_rc_t rc)
{
    return agent_update_is_running(agent)
           && agent_update_settle(agent->update, order_id, rc);
}


void
agent_update_stop(agent_t *agent)
{
    if (agent_update_is_running(agent)) {
        rollout_end(agent->update->rollout, ROLLOUT_ABORTED,
                    agent_update_now_us(agent->update));
        agent_update_wake(agent->update);
    }
}


void
agent_update_done(agent_t *agent)
{
    if (agent->update != NULL) {
        agent_update_destroy(agent->update);
        agent->update = NULL;
    }
}


json_t *
agent_update_status(void *data)
{
    agent_t  *agent = data;

    return agent->update ? agent_update_show(agent->update) : json_null();
}

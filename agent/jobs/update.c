
/*
 * The rolling update that this agent drives.
 *
 * rollout/rollout.h decides.  It gets the published members, so that the update
 * acts on nothing that nginx could not know; it returns what to do; and the
 * results are sent to the connections that follow the update.  There may be any
 * number of these connections, and the update depends on none.
 *
 * The id of the update is in the own record while it runs, so that other agents
 * refuse a second one.  Two agents may begin before they know of each other:
 * both wait UPDATE_SETTLE_US before their first step, and the later one (by id,
 * which begins with the time) yields.  Other gateways get the same time to
 * learn that a replica is back before the next one is drained.
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

#include "jobs/update.h"
#include "rollout/rollout_json.h"


/* How often a draining replica is pinged, so that its load is known. */
#define UPDATE_ASK_US    200000ULL

/* A follower gets a line at least this often. */
#define UPDATE_SAY_US   1000000ULL

struct update_follower_s {
    update_t           *update;
    command_peer_t     *peer;
    int                 is_content;     /* an abort: its last line is valid in
                                           any case */
    update_follower_t  *next;
};


json_t *
update_show(const update_t *update)
{
    rollout_label_t  label;

    label.id = update->id;
    label.began_ms = update->began_ms;
    label.ended_ms = update->ended_ms;
    label.now_us = jobs_now_us(update->jobs);

    return rollout_show(update->rollout, &label);
}


/* --- connections that follow */

/* Sends a line to all followers, and releases it. */
static void
update_report(update_t *update, json_t *line)
{
    update_follower_t  *follower;

    for (follower = update->followers; follower != NULL;
         follower = follower->next)
    {
        control_send(follower->peer, json_incref(line));
    }

    json_decref(line);
}


/* Removes a follower whose connection is gone. */
static void
update_unfollow(void *job)
{
    update_follower_t  **link, *follower = job;

    link = &follower->update->followers;

    while (*link != follower) {
        link = &(*link)->next;
    }

    *link = follower->next;
    free(follower);
}


json_t *
update_follow(update_t *update, command_peer_t *peer,
    int is_attached, int is_content)
{
    update_follower_t  *follower;

    follower = calloc(1, sizeof(update_follower_t));
    if (follower == NULL) {
        return NULL;
    }

    follower->update = update;
    follower->peer = peer;
    follower->is_content = is_content;
    follower->next = update->followers;
    update->followers = follower;
    peer->job = follower;
    peer->on_gone = update_unfollow;

    return json_pack("{s:s, s:I, s:b, s:o}", "event", "update", "time",
                     jobs_wall_ms(update->jobs),
                     "attached", is_attached,
                     "update", update_show(update));
}


/* Sends all followers their last line, and releases it. */
static void
update_dismiss(update_t *update, json_t *line)
{
    update_follower_t  *follower;

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


/* Makes {"event":NAME, "time", "update", "done", "total"}. */
static json_t *
update_event(const update_t *update, const char *name)
{
    return json_pack("{s:s, s:I, s:s, s:I, s:I}", "event", name, "time",
                     jobs_wall_ms(update->jobs),
                     "update", update->id,
                     "done", (json_int_t) rollout_ndone(update->rollout),
                     "total", (json_int_t) update->rollout->nsteps);
}


static void
update_log_step(const update_t *update, size_t i)
{
    const rollout_step_t  *step;

    step = &update->rollout->steps[i];

    if (step->state == ROLLOUT_UNDOING && step->reason[0] != '\0') {
        log_write(update->jobs->log, LOG_WARN,
                  "update %s: replica \"%s\" failed at \"%s\": %s",
                  update->id, step->id, rollout_state_name(step->failed_in),
                  step->reason);
        return;
    }

    log_write(update->jobs->log, LOG_INFO, "update %s: replica \"%s\": %s",
              update->id, step->id, rollout_state_name(step->state));
}


static void
update_report_changes(update_t *update)
{
    size_t   i;
    json_t  *event, *step;

    while (rollout_changed(update->rollout, &i)) {
        event = update_event(update, "step");
        step = rollout_show_step(update->rollout, i,
                                 jobs_now_us(update->jobs));
        json_object_update(event, step);
        json_decref(step);

        update_report(update, event);
        update_log_step(update, i);
    }
}


static void
update_report_progress(update_t *update)
{
    json_t    *event;
    uint64_t   now_us;

    now_us = jobs_now_us(update->jobs);

    if (now_us < update->said_us + UPDATE_SAY_US) {
        return;
    }

    update->said_us = now_us;
    event = update_event(update, "progress");
    json_object_set_new(event, "steps",
                        rollout_show_active(update->rollout, now_us));
    update_report(update, event);
}


/* --- the beginning and the end */

void
update_destroy(update_t *update)
{
    if (update->is_running) {
        update_forget(update);
        update_dismiss(update,
            json_pack("{s:b, s:s, s:s, s:o}", "ok", 0, "code", "leaving",
                      "error", "the agent that drives the update has ended",
                      "update", update_show(update)));
    }

    free(update->stop);
    free(update->start);
    rollout_destroy(update->rollout);
    free(update);
}


/* -1: out of memory. */
static int
update_copy(char **copy, const char *text)
{
    *copy = text != NULL ? strdup(text) : NULL;

    return text != NULL && *copy == NULL ? -1 : 0;
}


static update_t *
update_create(jobs_t *jobs, const command_update_t *request,
    rollout_t *rollout, const char *id)
{
    size_t     i;
    update_t  *update;

    update = calloc(1, sizeof(update_t)
                       + rollout->nsteps * sizeof(update_task_t));
    if (update == NULL) {
        rollout_destroy(rollout);
        return NULL;
    }

    update->jobs = jobs;
    update->rollout = rollout;
    strcpy(update->id, id);

    for (i = 0; i < rollout->nsteps; i++) {
        update->tasks[i].update = update;
        update->tasks[i].step = i;
    }

    if (update_copy(&update->stop, request->stop) != 0
        || update_copy(&update->start, request->start) != 0)
    {
        update_destroy(update);
        return NULL;
    }

    return update;
}


int
update_launch(jobs_t *jobs, const command_update_t *request,
    rollout_t *rollout, const char *id, uint64_t settle_us)
{
    update_t  *update;

    update = update_create(jobs, request, rollout, id);

    if (update == NULL) {
        return -1;
    }

    if (jobs->update != NULL) {
        update_destroy(jobs->update);
    }

    jobs->update = update;
    update->is_running = 1;
    update->is_due = 1;
    update->began_ms = jobs_wall_ms(jobs);
    update->said_us = jobs_now_us(jobs);

    log_write(jobs->log, LOG_INFO, "update %s to version \"%s\" begins, "
              "%zu replicas", id, rollout->to, rollout->nsteps);

    jobs_wake(jobs);
    node_set_update(jobs->node, id);
    rollout_begin(rollout, settle_us, jobs_now_us(jobs));

    return 0;
}


static void
update_end(update_t *update)
{
    char      reason[ROLLOUT_REASON_BYTES];
    jobs_t   *jobs;

    jobs = update->jobs;
    update->is_running = 0;
    update->ended_ms = jobs_wall_ms(jobs);

    node_set_update(jobs->node, "");
    update_forget(update);

    rollout_reason(update->rollout, reason);
    log_write(jobs->log, reason[0] ? LOG_WARN : LOG_INFO,
              "update %s to version \"%s\" is over, %s%s%s, %zu of %zu done",
              update->id, update->rollout->to,
              rollout_verdict_name(update->rollout->verdict),
              reason[0] ? ": " : "", reason, rollout_ndone(update->rollout),
              update->rollout->nsteps);

    update_dismiss(update,
                   rollout_show_end(update->rollout, update_show(update)));
}


/* --- each iteration */

/*
 * Yields to another update.  By now, each of two agents knows of the other's
 * update, whichever began first.
 */
static void
update_yield(update_t *update)
{
    int              order;
    const member_t  *rival;

    rival = update_rival(update->jobs);

    if (rival == NULL || update->rollout->is_ending) {
        return;
    }

    order = strcmp(rival->traits.update, update->id);

    if (order < 0
        || (order == 0 && strcmp(rival->facts.id,
                                 update->jobs->id) < 0))
    {
        log_write(update->jobs->log, LOG_WARN, "update %s yields to %s of "
                  "\"%s\"", update->id, rival->traits.update,
                  rival->facts.id);
        rollout_end(update->rollout, ROLLOUT_YIELDED,
                    jobs_now_us(update->jobs));
    }
}


static void
update_ask(update_t *update)
{
    size_t      i;
    uint64_t    now_us;
    rollout_t  *rollout;

    now_us = jobs_now_us(update->jobs);
    rollout = update->rollout;

    if (now_us < update->asked_us + UPDATE_ASK_US) {
        return;
    }

    update->asked_us = now_us;

    for (i = 0; i < rollout->nsteps; i++) {
        if (rollout->steps[i].state == ROLLOUT_DRAINING) {
            node_ask(update->jobs->node, rollout->steps[i].id);
        }
    }
}


void
update_proceed(update_t *update)
{
    llmgw_roster_t  roster;

    update_yield(update);
    roster = jobs_roster(update->jobs);

    /* an action that is done at once may lead to the next one */
    do {
        update->is_due = 0;
        rollout_look(update->rollout, &roster, jobs_now_us(update->jobs));
        update_report_changes(update);
        update_act(update);
    } while (update->is_due);

    if (rollout_is_over(update->rollout)) {
        update_end(update);
        return;
    }

    update_ask(update);
    update_report_progress(update);
}


void
update_stop(update_t *update)
{
    rollout_end(update->rollout, ROLLOUT_ABORTED, jobs_now_us(update->jobs));
    update->is_due = 1;
}

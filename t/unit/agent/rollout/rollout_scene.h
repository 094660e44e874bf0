
/*
 * A cluster that does what a rolling update asks for; its pool is r1, r2, ...
 * "done" changes the members as the action would, and reports the result.
 */

#ifndef ROLLOUT_SCENE_H
#define ROLLOUT_SCENE_H

#include <stdio.h>
#include <string.h>

#include "rollout/rollout.h"


#define S          1000000ULL
#define BEGIN      (1000 * S)
#define DRAIN_US   (60 * S)
#define REJOIN_US  (30 * S)

#define SCENE_MAX  8

typedef struct {
    size_t               n;
    llmgw_member_t       members[SCENE_MAX];
    llmgw_member_load_t  loads[SCENE_MAX];
    uint8_t              can_restart[SCENE_MAX];
    rollout_spec_t       spec;
    llmgw_roster_t       roster;
    rollout_t           *rollout;
    rollout_refusal_t    refusal;
    char                 text[ROLLOUT_REASON_BYTES];
    uint64_t             settle_us;
    uint64_t             now_us;
} scene_t;

#define assert_state(s, i, expected)                                          \
    assert_string_equal(rollout_state_name((s)->rollout->steps[i].state),     \
                        rollout_state_name(expected))


static void
scene_open(scene_t *s, size_t n)
{
    size_t           i;
    llmgw_member_t  *member;

    memset(s, 0, sizeof(scene_t));
    s->n = n;
    s->now_us = BEGIN;

    for (i = 0; i < n; i++) {
        member = &s->members[i];
        snprintf(member->id, sizeof(member->id), "r%zu", i + 1);
        strcpy(member->model_version, "v1");
        member->service = LLMGW_SERVICE_READY;
        member->replica_start_ms = 1000 + i;
        member->epoch = 1;
        s->can_restart[i] = 1;
    }

    s->roster.members = s->members;
    s->roster.loads = s->loads;
    s->spec.can_restart = s->can_restart;
    s->roster.n = n;

    s->spec.to = "v2";
    s->spec.owner = "update:one";
    s->spec.has_orders = 1;
    s->spec.drain_timeout_us = DRAIN_US;
    s->spec.rejoin_timeout_us = REJOIN_US;
    s->spec.max_unavailable = 1;
    s->spec.min_available = -1;
}


static void
scene_close(scene_t *s)
{
    rollout_destroy(s->rollout);
}


static inline void
scene_look(scene_t *s)
{
    rollout_look(s->rollout, &s->roster, s->now_us);
}


/* Makes a plan, and checks that it is accepted and has begun. */
static inline void
scene_plan(scene_t *s)
{
    s->rollout = rollout_plan(&s->spec, &s->roster, &s->refusal, s->text);
    assert_non_null(s->rollout);
    rollout_begin(s->rollout, s->settle_us, s->now_us);
    scene_look(s);
}


static inline void
scene_refused(scene_t *s, rollout_refusal_t refusal, const char *word)
{
    s->rollout = rollout_plan(&s->spec, &s->roster, &s->refusal, s->text);
    assert_null(s->rollout);
    assert_int_equal(s->refusal, refusal);
    assert_non_null(strstr(s->text, word));
}


/* The next action that is not a renewal; renewals are done at once. */
static inline rollout_action_t
scene_next(scene_t *s, size_t *step)
{
    rollout_action_t  action;

    while ((action = rollout_next(s->rollout, step, s->now_us))
           == ROLLOUT_RENEW)
    {
        rollout_result(s->rollout, *step, ROLLOUT_RENEW, NULL, s->now_us);
    }

    return action;
}


/* Checks that this is the only next action; returns its step. */
static inline size_t
take(scene_t *s, rollout_action_t action)
{
    size_t  step;

    assert_int_equal(scene_next(s, &step), action);

    return step;
}


static inline void
scene_expect(scene_t *s, rollout_action_t action, size_t step)
{
    assert_int_equal(take(s, action), step);
}


/* Checks that no action is asked for now. */
static inline void
scene_quiet(scene_t *s)
{
    size_t  step;

    scene_look(s);
    assert_int_equal(scene_next(s, &step), ROLLOUT_NOTHING);
}


static inline llmgw_member_t *
scene_member(scene_t *s, size_t step)
{
    return (llmgw_member_t *) llmgw_roster_find(&s->roster,
                                           s->rollout->steps[step].id);
}


static inline void
scene_result(scene_t *s, size_t step, const char *error)
{
    rollout_result(s->rollout, step, s->rollout->steps[step].doing, error,
                   s->now_us);
    scene_look(s);
}


/* Reports that the action was done; the members show a drain or undrain. */
static inline void
scene_done(scene_t *s, size_t step)
{
    llmgw_member_t  *member;

    member = scene_member(s, step);

    if (s->rollout->steps[step].doing == ROLLOUT_DRAIN) {
        member->draining = 1;
        strcpy(member->drain_owner, s->spec.owner);
    }

    scene_result(s, step, NULL);
}


#define scene_hold  scene_done


static inline void
scene_release(scene_t *s, size_t step)
{
    llmgw_member_t  *member;

    member = scene_member(s, step);
    member->draining = 0;
    member->drain_owner[0] = '\0';
    scene_result(s, step, NULL);
}


/* The i-th member publishes a fresh report. */
static inline void
scene_load(scene_t *s, size_t i, uint32_t active)
{
    s->now_us += 2 * ROLLOUT_RACE_US;
    s->loads[i].active_requests = active;
    s->loads[i].reported_ms = s->now_us / 1000;
    scene_look(s);
}


/* The i-th member has a new process. */
static inline void
scene_back(scene_t *s, size_t i, const char *version)
{
    s->members[i].service = LLMGW_SERVICE_READY;
    s->members[i].liveness = LLMGW_LIVENESS_ALIVE;
    s->members[i].replica_start_ms += 100;
    strcpy(s->members[i].model_version, version);
    s->now_us += S;
    scene_look(s);
}


static inline void
scene_drained(scene_t *s, size_t step)
{
    scene_expect(s, ROLLOUT_DRAIN, step);
    scene_done(s, step);
    scene_load(s, scene_member(s, step) - s->members, 0);
}


static inline void
scene_rejoin(scene_t *s, size_t step)
{
    scene_expect(s, ROLLOUT_RESTART, step);
    scene_done(s, step);
    scene_back(s, scene_member(s, step) - s->members, "v2");
    scene_expect(s, ROLLOUT_PROBE, step);
    scene_done(s, step);
    scene_expect(s, ROLLOUT_UNDRAIN, step);
    scene_release(s, step);
    assert_state(s, step, ROLLOUT_DONE);
}


/* Does all actions of one step, in order. */
static inline void
scene_step(scene_t *s, size_t step)
{
    scene_drained(s, step);
    scene_rejoin(s, step);
}


/* The same for a member whose process does not run. */
static inline void
scene_step_down(scene_t *s, size_t step)
{
    scene_expect(s, ROLLOUT_DRAIN, step);
    scene_done(s, step);
    scene_rejoin(s, step);
}

#endif /* ROLLOUT_SCENE_H */

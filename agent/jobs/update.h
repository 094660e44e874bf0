
/*
 * Private to this room: the rolling update that this agent drives, or drove
 * last.  The state machine that decides is rollout/rollout.h: it gets members,
 * time and results, and returns actions.  It is driven here:
 *
 *   update_request.c    may it begin?  And its plan
 *   update.c            gives it the members, reports what it does
 *   update_act.c        does what it asks for
 */

#ifndef UPDATE_H
#define UPDATE_H

#include "jobs/jobs_inner.h"
#include "rollout/rollout.h"
#include "rollout/runner.h"
#include "rollout/trial.h"


typedef struct update_follower_s  update_follower_t;

/* What is under way for a step: an order, a command or a probe, and at the same
   time perhaps the renewal of its lease. */
typedef struct {
    update_t  *update;
    size_t     step;
    uint64_t   order_id;        /* 0: no order is under way */
    uint64_t   renewal_id;
    runner_t  *runner;          /* NULL: none */
    trial_t   *trial;
} update_task_t;

struct update_s {
    jobs_t             *jobs;
    char                id[LLMGW_MEMBERS_NAME_BYTES];
    rollout_t          *rollout;
    char               *stop;       /* shell commands; NULL: none */
    char               *start;
    int                 is_running;
    int                 is_due;     /* to be checked before the loop sleeps */
    json_int_t          began_ms;   /* wall clock */
    json_int_t          ended_ms;
    uint64_t            said_us;    /* when progress was sent last */
    uint64_t            asked_us;   /* when replicas were last asked how far
                                       they are */
    update_follower_t  *followers;
    update_task_t       tasks[];    /* one for each step */
};


/* update_request.c */

/* For the control socket; data is the jobs_t. */
json_t *update_start(void *data, command_peer_t *peer,
    const command_update_t *request);
json_t *update_abort(void *data, command_peer_t *peer);
json_t *update_status(void *data);

/* The present member, other than us, whose update began first; NULL: no other
   member drives an update. */
const member_t *update_rival(const jobs_t *jobs);


/* update.c */

/*
 * Begins the update, in place of the last one.  Takes over the rollout.  -1:
 * out of memory: the rollout is released, and the last update stays.
 */
int update_launch(jobs_t *jobs, const command_update_t *request,
    rollout_t *rollout, const char *id, uint64_t settle_us);
void update_destroy(update_t *update);

/* To be called in each iteration in which the update is due. */
void update_proceed(update_t *update);

/*
 * Begins no further step; the update runs until the steps that have begun have
 * ended.
 */
void update_stop(update_t *update);

/*
 * From now on its lines go to peer, too; the returned answer is the first of
 * them.  is_content: its last line is valid, however the update ended.
 */
json_t *update_follow(update_t *update, command_peer_t *peer,
    int is_attached, int is_content);

json_t *update_show(const update_t *update);


/* update_act.c */

/* Carries out the rollout's actions. */
void update_act(update_t *update);

/* Forgets everything under way; no result comes. */
void update_forget(update_t *update);

/* 1: the order was this update's. */
int update_settle(update_t *update, uint64_t order_id, order_rc_t rc);

#endif /* UPDATE_H */

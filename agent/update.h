
/*
 * Private to update*.c: the rolling update that this agent drives, or drove
 * last.
 *
 *   update.c            begins, looks, tells, ends; its followers
 *   update_request.c    may it begin?
 *   update_act.c        does what rollout/rollout.h asks for
 */

#ifndef AGENT_UPDATE_H
#define AGENT_UPDATE_H

#include "agent/agent_inner.h"
#include "rollout/rollout.h"
#include "rollout/runner.h"
#include "rollout/trial.h"


typedef struct agent_follower_s  agent_follower_t;

/* What is being done for a step. */
typedef struct {
    agent_update_t  *update;
    size_t           step;
    uint64_t         order_id;      /* 0: none is under way */
    uint64_t         renewal_id;
    runner_t        *runner;        /* NULL: none */
    trial_t         *trial;
} agent_task_t;

struct agent_update_s {
    agent_t           *agent;
    char               id[LLMGW_MEMBERS_NAME_BYTES];
    rollout_t         *rollout;
    char              *stop;        /* commands; NULL: none */
    char              *start;
    int                is_running;
    int                is_due;      /* for a look */
    uint64_t           began_ms;    /* wall clock */
    uint64_t           ended_ms;
    uint64_t           said_us;     /* progress */
    uint64_t           asked_us;    /* how far drains are */
    ev_timer           tick;
    agent_follower_t  *followers;
    agent_task_t       tasks[];     /* one a step */
};


/* agent_update.c */

/* What was published last; can_restart is not filled in. */
void agent_update_view(const agent_t *agent, rollout_view_t *view);

/* Takes the rollout over.  NULL: out of memory, it is released. */
agent_update_t *agent_update_create(agent_t *agent, rollout_t *rollout,
    const char *id);
void agent_update_destroy(agent_update_t *update);

void agent_update_begin(agent_update_t *update, uint64_t settle_us);

/*
 * Its lines go to peer, too; the answer is the first of them.  is_content:
 * its last line is valid, however the update ended.
 */
json_t *agent_update_follow(agent_update_t *update, command_peer_t *peer,
    int is_attached, int is_content);

json_t *agent_update_show(const agent_update_t *update);

/* Has the update looked at before the loop sleeps. */
void agent_update_wake(agent_update_t *update);


/* agent_update_request.c */

/* The present member, other than us, that drives the first of all other
   updates; NULL: nobody does. */
const member_t *agent_update_rival(const agent_t *agent);


/* agent_update_act.c */

/* Does what the rollout wants done. */
void agent_update_act(agent_update_t *update);

/* Forgets all that is under way; no result comes. */
void agent_update_forget(agent_update_t *update);

/* 1: the order was this update's. */
int agent_update_settle(agent_update_t *update, uint64_t order_id,
    order_rc_t rc);

#endif /* AGENT_UPDATE_H */

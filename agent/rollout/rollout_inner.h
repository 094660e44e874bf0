
/* Private to plan.c, rollout.c, turn.c, rejoin.c and group.c. */

#ifndef ROLLOUT_INNER_H
#define ROLLOUT_INNER_H

#include "rollout/rollout.h"


/* plan.c */

int rollout_is_ready(const llmgw_member_t *member);


/* group.c */

typedef enum {
    ROLLOUT_BY_DRAIN = 0,   /* like replicas without a group */
    ROLLOUT_AT_ONCE,        /* the member does not serve */
    ROLLOUT_BY_SWITCH,      /* its group has a successor */
    ROLLOUT_NOT_NOW
} rollout_way_t;

/* Brings members from the order of ids into the order of the plan.  -1: out of
   memory. */
int rollout_sort(const llmgw_member_t **members, size_t n);

/* The next present member of the same group after `after` (NULL: the first);
   NULL: no more. */
const llmgw_member_t *rollout_peer(const llmgw_roster_t *roster,
    const llmgw_member_t *member, const llmgw_member_t *after);

/* How the step is to begin; ROLLOUT_NOT_NOW: *why says why not. */
rollout_way_t rollout_way(const rollout_t *rollout,
    const rollout_step_t *step, const llmgw_roster_t *roster,
    const llmgw_member_t *member, const char **why);

void rollout_look_switching(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us);


/* rollout.c */

/* 1: the step has begun, so its replica does not count as routable. */
int rollout_is_active(const rollout_step_t *step);

void rollout_enter(rollout_step_t *step, rollout_state_t state,
    rollout_action_t due, uint64_t now_us);

void rollout_fail(rollout_t *rollout, rollout_step_t *step, uint64_t now_us,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Lets the replica's present agent drain it. */
void rollout_drain(rollout_step_t *step, const llmgw_member_t *member);

/* 1: the member serves, or is ready to. */
int rollout_is_in_place(const llmgw_member_t *member);

/* The new process serves, or is a standby: ends the step's wait for it. */
void rollout_let_in(rollout_t *rollout, rollout_step_t *step,
    uint64_t now_us);

/* Begins to replace the process by one of the new version. */
void rollout_replace(rollout_t *rollout, rollout_step_t *step,
    uint64_t now_us);

/* 1: the member's agent can be reached; NULL means no such member. */
int rollout_is_present(const llmgw_member_t *member);

/* 1: the member serves, or is a standby, with the new version. */
int rollout_is_up(const rollout_t *rollout, const llmgw_member_t *member);

void rollout_look_at(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us);


/* rejoin.c */

void rollout_look_rejoining(rollout_t *rollout, rollout_step_t *step,
    const llmgw_member_t *member, uint64_t now_us);


/* turn.c: begins the steps that may begin. */
void rollout_look_waiting(rollout_t *rollout, const llmgw_roster_t *roster,
    uint64_t now_us);

#endif /* ROLLOUT_INNER_H */


/* Private to plan.c, rollout.c and turn.c. */

#ifndef ROLLOUT_INNER_H
#define ROLLOUT_INNER_H

#include "rollout/rollout.h"


/* rollout.c */

/* It has begun, so its replica does not count as routable. */
int rollout_is_active(const rollout_step_t *step);

void rollout_enter(rollout_step_t *step, rollout_state_t state,
    rollout_action_t due, uint64_t now_us);

void rollout_fail(rollout_t *rollout, rollout_step_t *step, uint64_t now_us,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The present agent of the replica is to drain it. */
void rollout_drain(rollout_step_t *step, const llmgw_member_t *member);

/* Its agent can be reached; NULL: no such member. */
int rollout_is_present(const llmgw_member_t *member);

/* It serves, in the new version. */
int rollout_is_up(const rollout_t *rollout, const llmgw_member_t *member);

void rollout_look_at(rollout_t *rollout, rollout_step_t *step,
    const rollout_view_t *view, uint64_t now_us);


/* turn.c: begins what may begin. */
void rollout_look_waiting(rollout_t *rollout, const rollout_view_t *view,
    uint64_t now_us);

#endif /* ROLLOUT_INNER_H */

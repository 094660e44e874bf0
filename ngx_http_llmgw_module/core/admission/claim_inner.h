
/*
 * The parts of a claim's decision: claim.c decides, claim_wait.c keeps claims
 * in the queue.
 */

#ifndef LLMGW_CLAIM_INNER_H
#define LLMGW_CLAIM_INNER_H

#include "core/admission/admission.h"


typedef struct {
    const llmgw_admission_self_t  *self;
    const llmgw_admission_view_t  *view;
    llmgw_claim_t                 *claim;
    llmgw_lease_t                 *lease;
    llmgw_pick_key_t               key;
    llmgw_admission_answer_t      *answer;
    int                            enters;  /* entered only to ask */
} ask_t;


llmgw_queue_place_t claim_place(const ask_t *ask);

/* Exclusions that were dropped once during a call stay dropped. */
void claim_forget(ask_t *ask, llmgw_forget_t forget);

/*
 * With a flow only a claim in the queue can find out whether it is the head; a
 * claim that did not stay leaves again without a trace.
 */
void claim_enter(ask_t *ask);
void claim_turn_back(ask_t *ask);

/* Joins the queue or stays in it, or returns why it does not. */
llmgw_admission_rc_t claim_wait(ask_t *ask, llmgw_pick_rc_t rc);

/* 1: no replica is there, and the claim may wait for one: claim_hold(). */
int claim_is_held(ask_t *ask);
llmgw_admission_rc_t claim_hold(ask_t *ask);

/*
 * The claim waits, and is not the head.  Returns WAITS; or NONE: no replica is
 * there, and the time for which the claim may be held is over.
 */
llmgw_admission_rc_t claim_stay_behind(ask_t *ask);

/*
 * rc: EXCLUDED or NONE, no replica is left.  The claim waits if a standby may
 * be active soon, or any replica be there.  Otherwise rc is returned; also if
 * the claim may start over with replicas that failed it, which comes first: one
 * of them may serve it now.
 */
llmgw_admission_rc_t claim_wait_replica(ask_t *ask, llmgw_admission_rc_t rc);

#endif /* LLMGW_CLAIM_INNER_H */


/* Waiting claims; admission.h has the reasons to wait. */

#include "core/admission/claim_inner.h"


llmgw_queue_place_t
claim_place(const ask_t *ask)
{
    llmgw_queue_place_t  place;

    place.ticket = ask->claim->ticket;
    place.tenant = ask->claim->tenant;
    place.deadline_ms = ask->claim->deadline_ms;
    place.priority = ask->claim->priority;
    place.row = ask->self->row;
    place.process = ask->self->process;
    place.is_urgent = ask->claim->is_urgent;
    place.is_counted = !ask->claim->is_urgent && !ask->claim->was_granted;

    return place;
}


void
claim_forget(ask_t *ask, llmgw_forget_t forget)
{
    if (ask->answer->forget != LLMGW_FORGET_ALL) {
        ask->answer->forget = forget;
    }
}


void
claim_enter(ask_t *ask)
{
    llmgw_queue_place_t  place;

    place = claim_place(ask);
    ask->claim->entry = llmgw_queue_push(&ask->self->shared->queue, &place, 0);
    ask->enters = (ask->claim->entry != LLMGW_QUEUE_NONE);
}


void
claim_turn_back(ask_t *ask)
{
    if (ask->enters && ask->claim->entry != LLMGW_QUEUE_NONE) {
        llmgw_queue_remove(&ask->self->shared->queue, ask->claim->entry);
        ask->claim->entry = LLMGW_QUEUE_NONE;
    }

    ask->enters = 0;
}


/*
 * A claim that has entered stays, if it does not count or the queue has a
 * place.
 */

static void
claim_stay(ask_t *ask)
{
    uint32_t              shed;
    llmgw_queue_t        *queue;
    llmgw_queue_place_t   place;

    place = claim_place(ask);
    queue = &ask->self->shared->queue;
    shed = LLMGW_QUEUE_NONE;

    if (place.is_counted
        && !llmgw_queue_stay(queue, ask->claim->entry, ask->view->queue_size,
                             &shed))
    {
        claim_turn_back(ask);
        return;
    }

    ask->enters = 0;

    if (shed != LLMGW_QUEUE_NONE) {
        ask->answer->shed.row = queue->entries[shed].row;
        ask->answer->shed.process = queue->entries[shed].process;
        ask->answer->shed.is_new = 1;
    }
}


static void
claim_join(ask_t *ask)
{
    llmgw_claim_t        *claim;
    llmgw_queue_place_t   place;

    claim = ask->claim;

    if (ask->view->queue_size == 0 || claim->no_wait
        || ask->self->row == LLMGW_NO_ROW)
    {
        claim_turn_back(ask);
        return;
    }

    if (ask->enters) {
        claim_stay(ask);

    } else {
        place = claim_place(ask);
        claim->entry = llmgw_queue_push(&ask->self->shared->queue, &place,
                                        ask->view->queue_size);
    }

    ask->answer->has_joined = (claim->entry != LLMGW_QUEUE_NONE);
}


/*
 * 1: the claim is skipped, as others can have the capacity that it cannot use.
 */

static int
claim_is_skipped(const ask_t *ask, llmgw_pick_rc_t rc)
{
    llmgw_queue_t        *queue;
    const llmgw_claim_t  *claim;

    claim = ask->claim;
    queue = &ask->self->shared->queue;

    if (rc == LLMGW_PICK_PUSHED
        && (claim->is_last || ask->key.nexcluded == 0))
    {
        llmgw_queue_rest(queue, claim->entry, claim->pushed->until_ms,
                         ask->key.now_ms);
        return 1;
    }

    return (rc == LLMGW_PICK_SKIPPABLE || rc == LLMGW_PICK_PUSHED)
           && (claim->is_last || claim->resumes || claim->serving != NULL
               || claim->only != 0 || claim->pushed != NULL)
           && llmgw_queue_skip(queue, claim->entry);
}


llmgw_admission_rc_t
claim_wait(ask_t *ask, llmgw_pick_rc_t rc)
{
    int             is_skipped;
    llmgw_queue_t  *queue;
    llmgw_claim_t  *claim;

    claim = ask->claim;
    queue = &ask->self->shared->queue;

    if (rc != LLMGW_PICK_NONE) {
        claim->hold_end_ms = 0;
    }

    if (claim->entry != LLMGW_QUEUE_NONE && !ask->enters) {
        llmgw_queue_ungrant(queue, claim->entry);

    } else {
        claim_join(ask);
    }

    if (claim->entry == LLMGW_QUEUE_NONE) {
        claim->hold_end_ms = 0;

        if (rc == LLMGW_PICK_SKIPPABLE || rc == LLMGW_PICK_PUSHED) {
            return LLMGW_ADMISSION_SKIPPABLE;
        }

        return ask->self->shared->waits_for == LLMGW_WAITS_CIRCUIT
               && ask->view->queue_size == 0
               ? LLMGW_ADMISSION_OPEN : LLMGW_ADMISSION_FULL;
    }

    if (ask->answer->has_joined) {
        claim->joined_ms = ask->key.now_ms;
    }

    is_skipped = claim_is_skipped(ask, rc);

    claim->saw_full = 0;
    claim_forget(ask, claim->is_last && (rc == LLMGW_PICK_FULL || is_skipped)
                      ? LLMGW_FORGET_BUT_FAILED : LLMGW_FORGET_ALL);

    return LLMGW_ADMISSION_WAITS;
}


int
claim_is_held(ask_t *ask)
{
    llmgw_claim_t  *claim;

    claim = ask->claim;

    if (!ask->view->is_empty || ask->view->hold_ms == 0
        || ask->view->queue_size == 0 || claim->no_wait
        || ask->self->row == LLMGW_NO_ROW)
    {
        claim->hold_end_ms = 0;
        return 0;
    }

    if (claim->hold_end_ms == 0) {
        claim->hold_end_ms = ask->key.now_ms + ask->view->hold_ms;
    }

    return ask->key.now_ms < claim->hold_end_ms;
}


llmgw_admission_rc_t
claim_hold(ask_t *ask)
{
    llmgw_admission_rc_t  rc;

    ask->self->shared->waits_for = LLMGW_WAITS_REPLICA;

    rc = claim_wait(ask, LLMGW_PICK_NONE);
    ask->claim->is_held = (rc == LLMGW_ADMISSION_WAITS);

    return rc;
}


llmgw_admission_rc_t
claim_stay_behind(ask_t *ask)
{
    ask->claim->is_held = (claim_is_held(ask) != 0);

    return ask->claim->is_held || ask->claim->hold_end_ms == 0
           ? LLMGW_ADMISSION_WAITS : LLMGW_ADMISSION_NONE;
}


/* Replicas that drain are excluded, but count as no failure. */

static llmgw_admission_rc_t
claim_wait_for_view(ask_t *ask)
{
    if (ask->view->hold_ms == 0 || ask->key.nexcluded == 0
        || ask->claim->saw_full)
    {
        return LLMGW_ADMISSION_EXCLUDED;
    }

    ask->self->shared->waits_for = LLMGW_WAITS_REPLICA;

    return claim_wait(ask, LLMGW_PICK_SKIPPABLE) == LLMGW_ADMISSION_WAITS
           ? LLMGW_ADMISSION_WAITS : LLMGW_ADMISSION_EXCLUDED;
}


llmgw_admission_rc_t
claim_wait_replica(ask_t *ask, llmgw_admission_rc_t rc)
{
    llmgw_pick_rc_t  waits;

    if (ask->view->queue_size == 0
        || ask->claim->no_wait || ask->self->row == LLMGW_NO_ROW
        || (rc == LLMGW_ADMISSION_EXCLUDED && ask->claim->may_restart))
    {
        return rc;
    }

    waits = llmgw_pick_waits(&ask->view->pick, &ask->key);

    if (waits != LLMGW_PICK_NONE) {
        ask->self->shared->waits_for = LLMGW_WAITS_STANDBY;
        return claim_wait(ask, waits);
    }

    if (rc == LLMGW_ADMISSION_EXCLUDED) {
        return claim_wait_for_view(ask);
    }

    return claim_is_held(ask) ? claim_hold(ask) : rc;
}

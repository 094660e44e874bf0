
/* Claims: lease, place in the queue, or refusal.  admission.h says which. */

#include "core/admission/lease.h"


typedef struct {
    const llmgw_admission_self_t  *self;
    const llmgw_admission_view_t  *view;
    llmgw_claim_t                 *claim;
    llmgw_lease_t                 *lease;
    llmgw_pick_key_t               key;
    llmgw_admission_answer_t      *answer;
    int                            enters;  /* in the queue, only to ask */
} ask_t;


llmgw_pick_key_t
llmgw_claim_key(const llmgw_claim_t *claim, uint64_t now_ms, uint64_t random)
{
    llmgw_pick_key_t  key;

    key.hash = claim->hash;
    key.excluded = claim->excluded;
    key.nexcluded = claim->nexcluded;
    key.pushed = claim->pushed;
    key.now_ms = now_ms;
    key.random = random;
    key.resumes = claim->resumes;
    key.resume_group = claim->resume_group;
    key.spares_unproven = claim->spares_unproven;
    key.serving = claim->serving;

    return key;
}


static llmgw_queue_place_t
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


/* The entry may be gone, if this process was taken for dead. */

static int
claim_has_entry(const llmgw_admission_self_t *self,
    const llmgw_claim_t *claim)
{
    return claim->entry != LLMGW_QUEUE_NONE
           && llmgw_queue_is_of(&self->shared->queue, claim->entry,
                                claim->ticket, self->row);
}


/* What a call has once dropped stays dropped. */

static void
claim_forget(ask_t *ask, llmgw_forget_t forget)
{
    if (ask->answer->forget != LLMGW_FORGET_ALL) {
        ask->answer->forget = forget;
    }
}


/* With a flow nobody can tell who is the head without being in the queue. */

static void
claim_enter(ask_t *ask)
{
    llmgw_queue_place_t  place;

    place = claim_place(ask);
    ask->claim->entry = llmgw_queue_push(&ask->self->shared->queue, &place, 0);
    ask->enters = (ask->claim->entry != LLMGW_QUEUE_NONE);
}


/* It only asked: it was never there. */

static void
claim_turn_back(ask_t *ask)
{
    if (ask->enters && ask->claim->entry != LLMGW_QUEUE_NONE) {
        llmgw_queue_remove(&ask->self->shared->queue, ask->claim->entry);
        ask->claim->entry = LLMGW_QUEUE_NONE;
    }

    ask->enters = 0;
}


/* One that entered stays, if it need not count or the queue has a place. */

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


/* Skips the claim where others can have what it cannot. */

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
               || claim->pushed != NULL)
           && llmgw_queue_skip(queue, claim->entry);
}


/* Joins the queue or stays in it, or returns the reason why not. */

static llmgw_admission_rc_t
claim_wait(ask_t *ask, llmgw_pick_rc_t rc)
{
    int             is_skipped;
    llmgw_queue_t  *queue;
    llmgw_claim_t  *claim;

    claim = ask->claim;
    queue = &ask->self->shared->queue;

    if (claim->entry != LLMGW_QUEUE_NONE && !ask->enters) {
        llmgw_queue_ungrant(queue, claim->entry);

    } else {
        claim_join(ask);
    }

    if (claim->entry == LLMGW_QUEUE_NONE) {

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


/*
 * Every circuit is open: one attempt at a time may test whether that still
 * holds.
 */

static int
claim_may_force(const ask_t *ask)
{
    const llmgw_pick_peer_t  *peer;

    peer = &ask->view->pick.peers[ask->answer->picked.peer];

    return llmgw_peer_has_capacity(peer, ask->key.now_ms)
           && llmgw_breaker_may_force(peer->breaker,
                                      ask->view->pick.breaker_conf,
                                      ask->key.now_ms);
}


static llmgw_admission_rc_t
claim_lease(ask_t *ask, int is_forced)
{
    if (!llmgw_lease_begin(ask->self, ask->view, ask->answer->picked.peer,
                           is_forced, ask->key.now_ms, ask->lease,
                           &ask->answer->change))
    {
        return LLMGW_ADMISSION_STALE;
    }

    if (ask->claim->entry != LLMGW_QUEUE_NONE) {
        llmgw_queue_serve(&ask->self->shared->queue, ask->claim->entry);

        ask->claim->entry = LLMGW_QUEUE_NONE;
        ask->claim->was_granted |= !ask->enters;
        ask->answer->has_left = !ask->enters;
    }

    /* there may be capacity for one more */
    llmgw_queue_wake(ask->self->shared, ask->key.now_ms, &ask->answer->wake);

    return LLMGW_ADMISSION_LEASED;
}


/*
 * No replica is left, EXCLUDED or NONE: the claim waits where a standby may be
 * active soon.  First it starts over with those that failed it, as it does
 * without standbys: the active one may serve it now.
 */

static llmgw_admission_rc_t
claim_wait_standby(ask_t *ask, llmgw_admission_rc_t rc)
{
    llmgw_pick_rc_t  waits;

    if (ask->view->pick.nstandbys == 0 || ask->view->queue_size == 0
        || ask->claim->no_wait || ask->self->row == LLMGW_NO_ROW
        || (rc == LLMGW_ADMISSION_EXCLUDED && ask->claim->may_restart))
    {
        return rc;
    }

    waits = llmgw_pick_waits(&ask->view->pick, &ask->key);

    if (waits == LLMGW_PICK_NONE) {
        return rc;
    }

    ask->self->shared->waits_for = LLMGW_WAITS_STANDBY;

    return claim_wait(ask, waits);
}


static llmgw_admission_rc_t
claim_pick(ask_t *ask)
{
    llmgw_pick_rc_t  rc;

    rc = llmgw_pick(&ask->view->pick, &ask->key, &ask->answer->picked);

    switch (rc) {

    case LLMGW_PICK_OK:
        return claim_lease(ask, 0);

    case LLMGW_PICK_EXCLUDED:
        return claim_wait_standby(ask, LLMGW_ADMISSION_EXCLUDED);

    case LLMGW_PICK_NONE:
        return claim_wait_standby(ask, LLMGW_ADMISSION_NONE);

    case LLMGW_PICK_OPEN:
        if (claim_may_force(ask)) {
            return claim_lease(ask, 1);
        }
        break;

    default:
        break;
    }

    ask->self->shared->waits_for = rc == LLMGW_PICK_OPEN ? LLMGW_WAITS_CIRCUIT
                                                         : LLMGW_WAITS_ROOM;

    return claim_wait(ask, rc);
}


/*
 * 1: the claim has paused, or need not, since it would not be leased a replica
 * that has just failed it.
 */

static int
claim_has_paused(const ask_t *ask)
{
    llmgw_picked_t    picked;
    llmgw_pick_key_t  key;

    if (ask->claim->has_paused || ask->claim->no_wait
        || ask->view->pick.nstandbys != 0
        || (ask->claim->entry != LLMGW_QUEUE_NONE && !ask->enters))
    {
        return 1;
    }

    key = ask->key;
    key.nexcluded = 0;

    return llmgw_pick(&ask->view->pick, &key, &picked) != LLMGW_PICK_OK;
}


/* 1: the claim drops its exclusions and is judged again. */

static int
claim_starts_over(ask_t *ask, llmgw_admission_rc_t rc)
{
    llmgw_claim_t  *claim;

    claim = ask->claim;

    if (!llmgw_claim_pauses(claim, rc) || !claim_has_paused(ask)) {
        return 0;
    }

    claim->may_restart = 0;
    claim->has_paused = 0;
    claim->saw_full = 0;
    claim_forget(ask, LLMGW_FORGET_ALL);
    ask->key.nexcluded = 0;

    return 1;
}


/* 1: another one is to go before, or the fleet is too full for it. */

static int
claim_must_wait(const ask_t *ask)
{
    llmgw_queue_t        *queue;
    llmgw_queue_place_t   place;

    queue = &ask->self->shared->queue;

    if (queue->length == 0) {
        return 0;
    }

    if (ask->claim->entry == LLMGW_QUEUE_NONE) {
        place = claim_place(ask);
        return llmgw_queue_must_wait(queue, &place);
    }

    if (llmgw_queue_head(queue, ask->key.now_ms) != ask->claim->entry) {
        return 1;
    }

    if (!llmgw_queue_is_held(queue, ask->claim->entry, ask->view->saturation))
    {
        return 0;
    }

    ask->self->shared->waits_for = LLMGW_WAITS_ROOM;

    return 1;
}


/*
 * What a claim waits for whose replicas have all said that they are full:
 * while it waits none of them is excluded.
 */

static llmgw_pick_rc_t
claim_waits_for(ask_t *ask)
{
    llmgw_picked_t  picked;

    ask->key.nexcluded = 0;

    return llmgw_pick(&ask->view->pick, &ask->key, &picked)
           == LLMGW_PICK_PUSHED ? LLMGW_PICK_PUSHED : LLMGW_PICK_FULL;
}


static llmgw_admission_rc_t
claim_ask(ask_t *ask)
{
    llmgw_queue_t         *queue;
    llmgw_claim_t         *claim;
    llmgw_admission_rc_t   rc;

    claim = ask->claim;
    queue = &ask->self->shared->queue;

    if (claim->entry != LLMGW_QUEUE_NONE && !ask->enters) {

        if (claim_must_wait(ask)) {
            if (queue->has_flow) {
                /* it came, and may be told again */
                llmgw_queue_ungrant(queue, claim->entry);
            }

            return LLMGW_ADMISSION_WAITS;
        }

    } else if (claim->to_queue || claim_must_wait(ask)) {
        claim->to_queue = 0;
        return claim_wait(ask, LLMGW_PICK_FULL);
    }

    rc = claim_pick(ask);

    if (rc == LLMGW_ADMISSION_EXCLUDED && claim->saw_full
        && (ask->view->queue_size != 0 || !claim->may_restart))
    {
        /*
         * full replicas are not tried again at once: the claim waits for them
         */
        claim->saw_full = 0;
        return claim_wait(ask, claim_waits_for(ask));
    }

    return rc;
}


/* 1: it was, and is out of the queue now. */

static int
claim_is_shed(ask_t *ask)
{
    llmgw_queue_t  *queue;
    llmgw_claim_t  *claim;

    claim = ask->claim;
    queue = &ask->self->shared->queue;

    if (claim->entry == LLMGW_QUEUE_NONE
        || !queue->entries[claim->entry].is_shed)
    {
        return 0;
    }

    llmgw_queue_remove(queue, claim->entry);
    claim->entry = LLMGW_QUEUE_NONE;
    ask->answer->has_left = 1;

    return 1;
}


/* One that was turned back enters again: it may still be the head. */

static void
claim_ask_all(ask_t *ask)
{
    do {
        if (ask->self->shared->queue.has_flow
            && ask->claim->entry == LLMGW_QUEUE_NONE
            && ask->self->row != LLMGW_NO_ROW)
        {
            claim_enter(ask);
        }

        ask->answer->rc = claim_ask(ask);
    } while (claim_starts_over(ask, ask->answer->rc));

    claim_turn_back(ask);
}


void
llmgw_admission_claim(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, llmgw_claim_t *claim,
    llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer)
{
    ask_t  ask = { self, view, claim, lease, { 0 }, answer, 0 };

    *answer = (llmgw_admission_answer_t) { .wake = LLMGW_WAKE_NOBODY,
                                           .shed = LLMGW_WAKE_NOBODY };
    ask.key = llmgw_claim_key(claim, now_ms, random);

    llmgw_admission_begin(self->shared);

    if (claim->ticket == 0) {
        claim->ticket = llmgw_queue_ticket(&self->shared->queue);
        llmgw_hedge_note_request(&self->shared->hedge,
                                 view->hedge_budget_permille);
    }

    if (claim->entry != LLMGW_QUEUE_NONE && !claim_has_entry(self, claim)) {
        claim->entry = LLMGW_QUEUE_NONE;
        claim->was_granted = 1;
        answer->has_left = 1;
    }

    if (claim_is_shed(&ask)) {
        answer->rc = LLMGW_ADMISSION_SHED;

    } else {
        claim_ask_all(&ask);
    }

    llmgw_admission_commit(self->shared);
}


void
llmgw_admission_leave(const llmgw_admission_self_t *self,
    llmgw_claim_t *claim, uint64_t now_ms, llmgw_wake_t *wake)
{
    uint32_t        head;
    llmgw_queue_t  *queue;

    *wake = LLMGW_WAKE_NOBODY;

    if (claim_has_entry(self, claim)) {
        queue = &self->shared->queue;

        llmgw_admission_begin(self->shared);

        head = llmgw_queue_head(queue, now_ms);
        llmgw_queue_remove(queue, claim->entry);

        if (head == claim->entry) {
            llmgw_queue_wake(self->shared, now_ms, wake);
        }

        llmgw_admission_commit(self->shared);
    }

    claim->entry = LLMGW_QUEUE_NONE;
}

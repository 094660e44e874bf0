
/* Claims: lease, place in the queue, or refusal.  admission.h has the rules. */

#include "core/admission/claim_inner.h"
#include "core/admission/lease.h"


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
    key.only = claim->only;

    return key;
}


/*
 * 1: the claim's entry is still there; it is gone if this process was taken for
 * dead.
 */

static int
claim_has_entry(const llmgw_admission_self_t *self,
    const llmgw_claim_t *claim)
{
    return claim->entry != LLMGW_QUEUE_NONE
           && llmgw_queue_is_of(&self->shared->queue, claim->entry,
                                claim->ticket, self->row);
}


/*
 * Every circuit is open: one attempt at a time may test whether the replicas
 * still fail.
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

    ask->claim->hold_end_ms = 0;

    /* there may be capacity for one more */
    llmgw_queue_wake(ask->self->shared, ask->key.now_ms, &ask->answer->wake);

    return LLMGW_ADMISSION_LEASED;
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
        return claim_wait_replica(ask, LLMGW_ADMISSION_EXCLUDED);

    case LLMGW_PICK_NONE:
        return claim_wait_replica(ask, LLMGW_ADMISSION_NONE);

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


/* 1: another claim comes first, or the fleet is too full for this one. */

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
 * The reason why a claim waits.  While it waits because all its replicas were
 * full, none of them is excluded.
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
                /* the wake-up has arrived; allow another one */
                llmgw_queue_ungrant(queue, claim->entry);
            }

            return claim_stay_behind(ask);
        }

    } else if (claim->to_queue || claim_must_wait(ask)) {
        claim->to_queue = 0;
        return claim_is_held(ask) ? claim_hold(ask)
                                  : claim_wait(ask, LLMGW_PICK_FULL);
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


/* 1: the claim was shed, and is out of the queue now. */

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


/* A claim that was refused enters the queue again: it may still be the head. */

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
    claim->is_held = 0;

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
    claim->is_held = 0;
}


/*
 * Leases: places held at replicas, a second one for a hedge, and what follows
 * when a place is given back.
 *
 * A place counts in the slot's total and in this process's share of it, and
 * holds a ticket of the slot's breaker.  It ends once, with a verdict.
 */

#include "core/admission/lease.h"


int
llmgw_lease_begin(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, uint32_t peer, int is_forced,
    uint64_t now_ms, llmgw_lease_t *lease, llmgw_breaker_change_t *change)
{
    llmgw_slot_t   *slot;
    llmgw_place_t   place;

    place = view->places[peer];

    if (place.slot >= self->shared->nslots) {
        return 0;
    }

    slot = llmgw_slot(self->shared, place.slot);

    if (slot->generation != place.generation) {
        return 0;
    }

    if (self->row != LLMGW_NO_ROW) {
        slot->counts.in_flight++;
        (*llmgw_share(self->shared, place.slot, self->row))++;
    }

    lease->place = place;
    lease->is_held = 1;
    lease->is_judged = 0;

    *change = is_forced
              ? llmgw_breaker_force(&slot->breaker, view->pick.breaker_conf,
                                    now_ms, &lease->ticket)
              : llmgw_breaker_begin(&slot->breaker, view->pick.breaker_conf,
                                    now_ms, &lease->ticket);

    return 1;
}


void
llmgw_admission_second(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, const llmgw_claim_t *claim,
    int is_budgeted, llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer)
{
    llmgw_admission_t  *shared;
    llmgw_pick_key_t    key;

    shared = self->shared;
    key = llmgw_claim_key(claim, now_ms, random);

    *answer = (llmgw_admission_answer_t) { .rc = LLMGW_ADMISSION_FULL,
                                           .wake = LLMGW_WAKE_NOBODY };

    if (shared->queue.length != 0
        || (shared->queue.has_flow && view->saturation >= 1)
        || (is_budgeted
            && !llmgw_hedge_may_hedge(&shared->hedge,
                                      view->hedge_budget_permille))
        || llmgw_hedge_is_saturated(&view->pick, now_ms)
        || llmgw_pick(&view->pick, &key, &answer->picked) != LLMGW_PICK_OK)
    {
        return;
    }

    llmgw_admission_begin(shared);

    answer->rc = LLMGW_ADMISSION_STALE;

    if (llmgw_lease_begin(self, view, answer->picked.peer, 0, now_ms, lease,
                          &answer->change))
    {
        answer->rc = LLMGW_ADMISSION_LEASED;

        if (is_budgeted) {
            llmgw_hedge_note_hedge(&shared->hedge);
        }
    }

    llmgw_admission_commit(shared);
}


/* The slot in which the lease counts; NULL: the slot is another replica's. */

static llmgw_slot_t *
lease_slot(const llmgw_admission_self_t *self, const llmgw_lease_t *lease)
{
    llmgw_slot_t  *slot;

    slot = llmgw_slot(self->shared, lease->place.slot);

    return slot->generation == lease->place.generation ? slot : NULL;
}


static void
lease_judge(llmgw_slot_t *slot, const llmgw_breaker_conf_t *conf,
    llmgw_lease_t *lease, llmgw_verdict_t verdict, uint64_t now_ms,
    llmgw_admission_end_t *end)
{
    if (lease->is_judged) {
        return;
    }

    lease->is_judged = 1;
    end->change = llmgw_breaker_end(&slot->breaker, conf, lease->ticket,
                                    verdict, now_ms);

    if (end->change != LLMGW_BREAKER_UNCHANGED) {
        end->counts = llmgw_breaker_counts(&slot->breaker, conf, now_ms);
    }
}


void
llmgw_admission_prove(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease, uint64_t now_ms,
    llmgw_admission_end_t *end)
{
    int            is_probe;
    llmgw_slot_t  *slot;

    *end = (llmgw_admission_end_t) { .wake = LLMGW_WAKE_NOBODY };
    slot = lease_slot(self, lease);

    if (slot == NULL || !lease->is_held) {
        return;
    }

    is_probe = llmgw_breaker_is_probe(lease->ticket);

    if (!is_probe && !llmgw_full_is_known(&slot->full)) {
        return;
    }

    llmgw_admission_begin(self->shared);

    if (is_probe) {
        lease_judge(slot, conf, lease, LLMGW_VERDICT_SUCCESS, now_ms, end);
    }

    if (llmgw_full_stands(&slot->full, now_ms)) {
        llmgw_queue_recall(&self->shared->queue, now_ms);
        llmgw_queue_wake(self->shared, now_ms, &end->wake);
    }

    llmgw_full_serves(&slot->full);

    llmgw_admission_commit(self->shared);
}


static void
lease_give_back(const llmgw_admission_self_t *self, llmgw_slot_t *slot,
    const llmgw_lease_t *lease, uint64_t now_ms)
{
    uint32_t  *share;

    if (self->row == LLMGW_NO_ROW) {
        return;
    }

    share = llmgw_share(self->shared, lease->place.slot, self->row);

    if (*share == 0) {
        return;
    }

    llmgw_high_water_note(&slot->high, slot->counts.in_flight, now_ms);

    slot->counts.in_flight--;
    (*share)--;
}


void
llmgw_admission_end(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease,
    llmgw_verdict_t verdict, uint64_t now_ms, llmgw_admission_end_t *end)
{
    llmgw_slot_t  *slot;

    *end = (llmgw_admission_end_t) { .wake = LLMGW_WAKE_NOBODY };

    if (!lease->is_held) {
        return;
    }

    lease->is_held = 0;
    slot = lease_slot(self, lease);

    if (slot == NULL) {
        return;
    }

    llmgw_admission_begin(self->shared);

    lease_give_back(self, slot, lease, now_ms);
    lease_judge(slot, conf, lease, verdict, now_ms, end);

    /* in the same step, or a newcomer would overtake the skipped claims */
    llmgw_queue_recall(&self->shared->queue, now_ms);
    llmgw_queue_wake(self->shared, now_ms, &end->wake);

    llmgw_admission_commit(self->shared);
}


void
llmgw_admission_full(const llmgw_admission_self_t *self, llmgw_place_t place,
    uint32_t load, uint64_t now_ms)
{
    llmgw_slot_t  *slot;

    slot = llmgw_slot(self->shared, place.slot);

    if (slot->generation == place.generation) {
        llmgw_full_refused(&slot->full, load, now_ms);
    }
}


void
llmgw_admission_reports(const llmgw_admission_self_t *self,
    llmgw_place_t place, uint32_t load)
{
    llmgw_slot_t  *slot;

    slot = llmgw_slot(self->shared, place.slot);

    if (slot->generation == place.generation) {
        llmgw_full_reports(&slot->full, load);
    }
}


void
llmgw_queue_wake(llmgw_admission_t *shared, uint64_t now_ms,
    llmgw_wake_t *wake)
{
    uint32_t              head;
    llmgw_queue_entry_t  *entry;

    head = llmgw_queue_head(&shared->queue, now_ms);

    if (head == LLMGW_QUEUE_NONE) {
        *wake = LLMGW_WAKE_NOBODY;
        return;
    }

    entry = &shared->queue.entries[head];

    wake->row = entry->row;
    wake->process = entry->process;
    wake->is_new = (entry->granted_ms == 0);

    if (wake->is_new) {
        llmgw_queue_grant(&shared->queue, head, now_ms);
    }
}


uint32_t
llmgw_admission_turn(const llmgw_admission_self_t *self, uint64_t now_ms,
    uint64_t *ticket, llmgw_wake_t *wake)
{
    uint32_t        head;
    llmgw_queue_t  *queue;

    *wake = LLMGW_WAKE_NOBODY;
    queue = &self->shared->queue;

    llmgw_admission_begin(self->shared);

    head = llmgw_queue_shed_of(queue, self->row);

    if (head == LLMGW_QUEUE_NONE) {
        head = llmgw_queue_head(queue, now_ms);
    }

    if (head != LLMGW_QUEUE_NONE && queue->entries[head].row != self->row) {
        llmgw_queue_wake(self->shared, now_ms, wake);
        head = LLMGW_QUEUE_NONE;
    }

    llmgw_admission_commit(self->shared);

    if (head != LLMGW_QUEUE_NONE) {
        *ticket = queue->entries[head].ticket;
    }

    return head;
}


void
llmgw_admission_drop(const llmgw_admission_self_t *self, uint32_t entry,
    uint64_t ticket)
{
    if (!llmgw_queue_is_of(&self->shared->queue, entry, ticket, self->row)) {
        return;
    }

    llmgw_admission_begin(self->shared);
    llmgw_queue_remove(&self->shared->queue, entry);
    llmgw_admission_commit(self->shared);
}


void
llmgw_admission_look(const llmgw_admission_self_t *self, uint64_t now_ms)
{
    llmgw_admission_begin(self->shared);
    llmgw_queue_thaw_row(&self->shared->queue, self->row, now_ms);
    llmgw_queue_recall(&self->shared->queue, now_ms);
    llmgw_admission_commit(self->shared);
}

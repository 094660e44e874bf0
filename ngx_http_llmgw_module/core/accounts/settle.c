
/* Slots, and how requests are settled.  accounts.h has the rules. */

#include <string.h>

#include "core/accounts/accounts_inner.h"


static void slot_end(const llmgw_usage_slot_t *slot,
    const llmgw_accounts_end_t *end, const llmgw_moment_t *now,
    llmgw_usage_t *record);


void
accounts_use_slot(llmgw_accounts_t *accounts, uint32_t slot)
{
    if (slot == accounts->words.slots) {
        accounts->words.slots++;

    } else {
        accounts->words.free_slot = accounts->slots[slot].next;
    }
}


/*
 * A change of its own: the record of that slot no longer waits to be written.
 */
static void
slot_release(llmgw_accounts_t *accounts, uint32_t i, int is_lost)
{
    llmgw_usage_slot_t  *slot = &accounts->slots[i];

    accounts_begin(accounts, slot->account, i, NULL);

    accounts->accounts[slot->account].settled--;
    accounts->words.settled--;
    accounts->words.lost += is_lost;

    __atomic_store_n(&slot->state, LLMGW_USAGE_FREE, __ATOMIC_RELAXED);
    slot->next = accounts->words.free_slot;
    accounts->words.free_slot = i;

    accounts_commit(accounts);
}


uint32_t
accounts_free_slot(llmgw_accounts_t *accounts)
{
    uint32_t  i, left;

    if (accounts->words.free_slot != LLMGW_NO_USAGE_SLOT) {
        return accounts->words.free_slot;
    }

    if (accounts->words.slots < accounts->n) {
        return accounts->words.slots;
    }

    for (left = LOOK_AT_MOST; accounts->words.settled > 0 && left > 0; left--) {
        i = accounts->words.slot_hand % accounts->n;
        accounts->words.slot_hand = i + 1;

        if (accounts->slots[i].state == LLMGW_USAGE_SETTLED) {
            slot_release(accounts, i, 1);
            return i;
        }
    }

    return LLMGW_NO_USAGE_SLOT;
}


/* Charges the account for that slot's request. */
static void
account_charge(llmgw_account_t *account, const llmgw_usage_slot_t *slot,
    const llmgw_usage_t *record, const llmgw_moment_t *now)
{
    uint32_t  i;
    uint64_t  used;

    used = record->prompt + record->completion;

    level_fill(&account->tokens, account->limits.tpm, now->ms);
    level_take(&account->tokens, account->limits.tpm,
               (int64_t) used - (int64_t) slot->taken);
    account_roll(account, now);

    for (i = 0; i < LLMGW_NPERIODS; i++) {
        account->own.used[i] += used;
    }

    account->running--;
    account->settled++;
    account->reserved -= slot->reserved;
    account->totals.requests++;
    account->totals.prompt += record->prompt;
    account->totals.completion += record->completion;
    account->totals.cached += record->cached;
    account->totals.reasoning += record->reasoning;
    account->totals.wasted += record->wasted;
}


static int
slot_is(const llmgw_usage_slot_t *slot, llmgw_usage_state_t state,
    llmgw_process_t owner)
{
    return slot->state == state && slot->owner.pid == owner.pid
           && slot->owner.started == owner.started;
}


int
llmgw_accounts_settle(llmgw_accounts_t *accounts, uint32_t i,
    llmgw_process_t self, const llmgw_accounts_end_t *end,
    const llmgw_moment_t *now, llmgw_usage_t *record)
{
    llmgw_account_t      next;
    llmgw_usage_slot_t  *slot = &accounts->slots[i];

    if (!slot_is(slot, LLMGW_USAGE_RUNNING, self)) {
        return 0;
    }

    *record = slot->usage;
    record->n = accounts->words.next_n;
    slot_end(slot, end, now, record);

    next = accounts->accounts[slot->account];
    account_charge(&next, slot, record, now);

    accounts_begin(accounts, slot->account, i, NULL);

    accounts->accounts[slot->account] = next;
    slot->usage = *record;
    __atomic_store_n(&slot->state, LLMGW_USAGE_SETTLED, __ATOMIC_RELAXED);
    accounts->words.next_n++;
    accounts->words.running--;
    accounts->words.settled++;

    accounts_commit(accounts);

    if (end->settled_by == LLMGW_SETTLED_BY_ENGINE) {
        llmgw_estimate_learn(&accounts->estimates, record->model, slot->bytes,
                             record->prompt, record->completion);
    }

    return 1;
}


/* Peers may report any number; sums stay far below 64 bits. */
static uint64_t
slot_number(uint64_t number, uint64_t unknown)
{
    number = number == LLMGW_USAGE_UNKNOWN ? unknown : number;

    return number > LLMGW_LIMIT_MAX ? LLMGW_LIMIT_MAX : number;
}


static void
slot_end(const llmgw_usage_slot_t *slot, const llmgw_accounts_end_t *end,
    const llmgw_moment_t *now, llmgw_usage_t *record)
{
    record->ended_ms = now->unix_ms;
    record->took_ms = now->ms - slot->began_ms;
    record->prompt = slot_number(end->prompt, slot->usage.prompt);
    record->completion = slot_number(end->completion, slot->delivered);
    record->wasted = slot_number(end->wasted, slot->wasted);
    record->cached = slot_number(end->cached, 0);
    record->reasoning = slot_number(end->reasoning, 0);
    record->settled_by = end->settled_by;
    llmgw_usage_text(record->outcome, sizeof(record->outcome), end->outcome,
                     strlen(end->outcome));
}


int
llmgw_accounts_settle_dead(llmgw_accounts_t *accounts, uint32_t i,
    llmgw_process_t dead, const llmgw_moment_t *now, llmgw_usage_t *record)
{
    llmgw_accounts_end_t       end = {
        .prompt = LLMGW_USAGE_UNKNOWN,
        .completion = LLMGW_USAGE_UNKNOWN,
        .wasted = LLMGW_USAGE_UNKNOWN,
        .outcome = "worker_died",
        .settled_by = LLMGW_SETTLED_BY_WORKER_DIED
    };
    const llmgw_usage_slot_t  *slot = &accounts->slots[i];

    if (slot->usage.replicas[0] == '\0' && slot->delivered == 0) {
        end.prompt = 0;
    }

    return llmgw_accounts_settle(accounts, i, dead, &end, now, record)
           || llmgw_accounts_unwritten(accounts, i, dead, record);
}


int
llmgw_accounts_unwritten(const llmgw_accounts_t *accounts, uint32_t i,
    llmgw_process_t owner, llmgw_usage_t *record)
{
    const llmgw_usage_slot_t  *slot = &accounts->slots[i];

    if (!slot_is(slot, LLMGW_USAGE_SETTLED, owner)) {
        return 0;
    }

    *record = slot->usage;

    return 1;
}


void
llmgw_accounts_written(llmgw_accounts_t *accounts, uint32_t i, uint64_t n)
{
    const llmgw_usage_slot_t  *slot = &accounts->slots[i];

    if (slot->state == LLMGW_USAGE_SETTLED && slot->usage.n == n) {
        slot_release(accounts, i, 0);
    }
}


uint32_t
llmgw_accounts_next_slot(const llmgw_accounts_t *accounts, uint32_t from,
    llmgw_usage_state_t *state, llmgw_process_t *owner)
{
    uint32_t                   used;
    const llmgw_usage_slot_t  *slot;

    used = __atomic_load_n(&accounts->words.slots, __ATOMIC_RELAXED);

    for ( /* void */ ; from < used; from++) {
        slot = &accounts->slots[from];
        *state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);

        if (*state != LLMGW_USAGE_FREE) {
            owner->pid = __atomic_load_n(&slot->owner.pid, __ATOMIC_RELAXED);
            owner->started = __atomic_load_n(&slot->owner.started,
                                             __ATOMIC_RELAXED);
            return from;
        }
    }

    return LLMGW_NO_USAGE_SLOT;
}

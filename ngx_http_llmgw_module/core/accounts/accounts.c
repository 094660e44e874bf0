
/*
 * Accounts in their memory: changes, names, display.  accounts.h has the rules.
 */

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/accounts/accounts_inner.h"


static uint32_t *accounts_link(llmgw_accounts_t *accounts, const char *name,
    size_t len);
static int accounts_give_up_one(llmgw_accounts_t *accounts,
    const llmgw_moment_t *now);


static uint32_t
accounts_nbuckets(uint32_t n)
{
    uint32_t  nbuckets;

    for (nbuckets = 8; nbuckets < n; nbuckets *= 2) {
        /* void */
    }

    return nbuckets;
}


size_t
llmgw_accounts_bytes(uint32_t n)
{
    return sizeof(llmgw_accounts_t)
           + (size_t) n * (sizeof(llmgw_account_t)
                           + sizeof(llmgw_usage_slot_t))
           + (size_t) accounts_nbuckets(n) * sizeof(uint32_t);
}


uint32_t
llmgw_accounts_fit(size_t bytes)
{
    size_t  n;

    if (bytes < llmgw_accounts_bytes(1)) {
        return 0;
    }

    /* at most two buckets, of four bytes, for each */

    n = (bytes - sizeof(llmgw_accounts_t) - 8 * sizeof(uint32_t))
        / (sizeof(llmgw_account_t) + sizeof(llmgw_usage_slot_t)
           + 2 * sizeof(uint32_t));

    return n < 1 ? 1 : n > INT32_MAX ? INT32_MAX : (uint32_t) n;
}


llmgw_accounts_t *
llmgw_accounts_init(void *memory, uint32_t n,
    const char *birth)
{
    uint32_t           i;
    llmgw_accounts_t  *accounts = memory;

    accounts->n = n;
    accounts->nbuckets = accounts_nbuckets(n);
    accounts->accounts = (llmgw_account_t *) (accounts + 1);
    accounts->slots = (llmgw_usage_slot_t *) (accounts->accounts + n);
    accounts->buckets = (uint32_t *) (accounts->slots + n);

    for (i = 0; i < accounts->nbuckets; i++) {
        accounts->buckets[i] = LLMGW_NO_ACCOUNT;
    }

    accounts->words.next_n = 1;
    accounts->words.free_account = LLMGW_NO_ACCOUNT;
    accounts->words.free_slot = LLMGW_NO_USAGE_SLOT;
    llmgw_usage_text(accounts->birth, sizeof(accounts->birth), birth,
                     strlen(birth));

    return accounts;
}


void
accounts_begin(llmgw_accounts_t *accounts, uint32_t account, uint32_t slot,
    uint32_t *link)
{
    llmgw_accounts_undo_t  *undo = &accounts->undo;

    undo->account = account;
    undo->slot = slot;
    undo->link = link;
    undo->words = accounts->words;

    if (account != LLMGW_NO_ACCOUNT) {
        undo->account_copy = accounts->accounts[account];
    }

    if (slot != LLMGW_NO_USAGE_SLOT) {
        undo->slot_copy = accounts->slots[slot];
    }

    if (link != NULL) {
        undo->linked = *link;
    }

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&accounts->dirty, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}


void
accounts_commit(llmgw_accounts_t *accounts)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&accounts->dirty, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}


int
llmgw_accounts_mend(llmgw_accounts_t *accounts)
{
    const llmgw_accounts_undo_t  *undo = &accounts->undo;

    if (!__atomic_load_n(&accounts->dirty, __ATOMIC_RELAXED)) {
        return 0;
    }

    accounts->words = undo->words;

    if (undo->account != LLMGW_NO_ACCOUNT) {
        accounts->accounts[undo->account] = undo->account_copy;
    }

    if (undo->slot != LLMGW_NO_USAGE_SLOT) {
        accounts->slots[undo->slot] = undo->slot_copy;
    }

    if (undo->link != NULL) {
        *undo->link = undo->linked;
    }

    accounts_commit(accounts);

    return 1;
}


/* The link to that account, or the link at its list's end. */
static uint32_t *
accounts_link(llmgw_accounts_t *accounts, const char *name, size_t len)
{
    uint32_t         *link;
    llmgw_account_t  *account;

    link = &accounts->buckets[XXH3_64bits(name, len)
                              & (accounts->nbuckets - 1)];

    while (*link != LLMGW_NO_ACCOUNT) {
        account = &accounts->accounts[*link];

        if (account->name[len] == '\0' && memcmp(account->name, name, len) == 0)
        {
            break;
        }

        link = &account->next;
    }

    return link;
}


static int
accounts_is_name(llmgw_accounts_text_t name)
{
    return name.len > 0 && name.len < LLMGW_KEY_NAME_BYTES;
}


static uint32_t
accounts_find(llmgw_accounts_t *accounts, llmgw_accounts_text_t name)
{
    return accounts_is_name(name)
           ? *accounts_link(accounts, name.text, name.len) : LLMGW_NO_ACCOUNT;
}


uint32_t
accounts_attach(llmgw_accounts_t *accounts, llmgw_accounts_text_t name,
    const llmgw_moment_t *now)
{
    uint32_t          i, *link;
    llmgw_account_t  *account;

    i = accounts_find(accounts, name);

    if (i != LLMGW_NO_ACCOUNT || !accounts_is_name(name)) {
        return i;
    }

    if (accounts->words.free_account == LLMGW_NO_ACCOUNT
        && accounts->words.accounts == accounts->n)
    {
        if (!accounts_give_up_one(accounts, now)) {
            return LLMGW_NO_ACCOUNT;
        }
    }

    link = accounts_link(accounts, name.text, name.len);
    i = accounts->words.free_account;
    i = i != LLMGW_NO_ACCOUNT ? i : accounts->words.accounts;
    account = &accounts->accounts[i];

    accounts_begin(accounts, i, LLMGW_NO_USAGE_SLOT, link);

    if (i == accounts->words.accounts) {
        accounts->words.accounts++;

    } else {
        accounts->words.free_account = account->next;
    }

    *account = (llmgw_account_t) { .next = LLMGW_NO_ACCOUNT };
    memcpy(account->name, name.text, name.len);
    account->requests.filled_ms = account->tokens.filled_ms = now->ms;
    *link = i;

    accounts_commit(accounts);

    return i;
}


/* 1: the bucket is as full as that of an account added now. */
static int
level_is_full(llmgw_level_t level, uint64_t limit, uint64_t now_ms)
{
    level_fill(&level, limit, now_ms);

    return level.level >= (int64_t) limit * LEVEL_UNIT;
}


static int
account_is_idle(const llmgw_account_t *account, const llmgw_moment_t *now)
{
    llmgw_account_t  copy;

    if (account->running + account->settled > 0
        || !level_is_full(account->requests, account->limits.rpm, now->ms)
        || !level_is_full(account->tokens, account->limits.tpm, now->ms))
    {
        return 0;
    }

    copy = *account;
    account_roll(&copy, now);

    return account->limits.budget == 0
           || copy.own.used[account->limits.period]
              + copy.base.used[account->limits.period] == 0;
}


static void
totals_add(llmgw_account_totals_t *sum, const llmgw_account_totals_t *totals)
{
    sum->requests += totals->requests;
    sum->refused += totals->refused;
    sum->prompt += totals->prompt;
    sum->completion += totals->completion;
    sum->cached += totals->cached;
    sum->reasoning += totals->reasoning;
    sum->wasted += totals->wasted;
}


/*
 * To be called when all are used.  0: it has looked at some, and none of them
 * can be given up.
 */
static int
accounts_give_up_one(llmgw_accounts_t *accounts, const llmgw_moment_t *now)
{
    uint32_t          i, left, *link;
    llmgw_account_t  *account;

    for (left = LOOK_AT_MOST; left > 0; left--) {
        i = accounts->words.account_hand % accounts->n;
        accounts->words.account_hand = i + 1;
        account = &accounts->accounts[i];

        if (account_is_idle(account, now)) {
            break;
        }
    }

    if (left == 0) {
        return 0;
    }

    link = accounts_link(accounts, account->name, strlen(account->name));

    accounts_begin(accounts, i, LLMGW_NO_USAGE_SLOT, link);

    *link = account->next;
    totals_add(&accounts->words.gone, &account->totals);
    memset(account->name, 0, sizeof(account->name));
    account->next = accounts->words.free_account;
    accounts->words.free_account = i;

    accounts_commit(accounts);

    return 1;
}


void
account_roll(llmgw_account_t *account, const llmgw_moment_t *now)
{
    uint32_t      i;
    llmgw_sums_t  own, base;

    llmgw_sums_roll(&account->own, now->unix_ms);

    own = account->own;
    base = account->base;

    for (i = 0; i < LLMGW_NPERIODS; i++) {
        own.used[i] = base.used[i] = 0;
    }

    llmgw_sums_add(&account->own, &base);
    llmgw_sums_add(&account->base, &own);
}


int
llmgw_accounts_base(llmgw_accounts_t *accounts, llmgw_accounts_text_t name,
    const llmgw_sums_t *base, const llmgw_moment_t *now)
{
    uint32_t         i;
    llmgw_sums_t     sums;
    llmgw_account_t  next;

    sums = *base;
    llmgw_sums_roll(&sums, now->unix_ms);

    if (sums.used[LLMGW_PERIOD_MONTH] == 0
        && sums.used[LLMGW_PERIOD_DAY] == 0
        && accounts_find(accounts, name) == LLMGW_NO_ACCOUNT)
    {
        return 0;
    }

    i = accounts_attach(accounts, name, now);

    if (i == LLMGW_NO_ACCOUNT) {
        return -1;
    }

    next = accounts->accounts[i];
    next.base = *base;
    account_roll(&next, now);

    accounts_begin(accounts, i, LLMGW_NO_USAGE_SLOT, NULL);
    accounts->accounts[i] = next;
    accounts_commit(accounts);

    return 0;
}


int
llmgw_accounts_look(const llmgw_accounts_t *accounts, uint32_t i,
    const llmgw_moment_t *now, llmgw_account_look_t *look)
{
    llmgw_account_t  account;

    if (i >= accounts->words.accounts) {
        return -1;
    }

    account = accounts->accounts[i];

    if (account.name[0] == '\0') {
        return 0;
    }

    level_fill(&account.requests, account.limits.rpm, now->ms);
    level_fill(&account.tokens, account.limits.tpm, now->ms);
    account_roll(&account, now);

    memcpy(look->name, account.name, sizeof(look->name));
    look->streams = account.running;
    look->reserved = account.reserved;
    look->limits = account.limits;
    look->requests = level_rate(&account.requests, account.limits.rpm);
    look->tokens = level_rate(&account.tokens, account.limits.tpm);
    look->sums = account.own;
    llmgw_sums_add(&look->sums, &account.base);
    look->n = accounts->words.next_n - 1;
    look->totals = account.totals;

    return 1;
}


/* Admission of a request by its account.  accounts.h has the rules. */

#include <string.h>

#include "core/accounts/accounts_inner.h"
#include "proto/date.h"


/* It is unknown when one of an account's streams will end. */
#define STREAMS_RETRY_MS  1000

typedef struct {
    uint64_t            prompt;
    uint64_t            reserved;       /* reserved with the answer's tokens */
    llmgw_admittance_t  admittance;
    uint64_t            retry_ms;
} take_t;


static void account_limit(llmgw_account_t *account,
    const llmgw_accounts_ask_t *ask);
static void take_judge(take_t *take, const llmgw_account_t *account,
    const llmgw_moment_t *now);
static void take_slot(llmgw_usage_slot_t *slot, uint32_t account,
    const llmgw_accounts_ask_t *ask, const take_t *take,
    const llmgw_moment_t *now);


/*
 * By the model's name as the record has it, as the request's name may be
 * longer.
 */
static void
take_estimate(take_t *take, const llmgw_estimates_t *estimates,
    const llmgw_accounts_ask_t *ask, uint64_t tpm)
{
    char      model[LLMGW_USAGE_MODEL_BYTES];
    uint64_t  answer;

    llmgw_usage_text(model, sizeof(model), ask->model.text, ask->model.len);

    take->prompt = llmgw_estimate_prompt(estimates, model, ask->bytes);
    answer = llmgw_estimate_answer(estimates, model);

    if (ask->max_tokens > 0 && ask->max_tokens < answer) {
        answer = ask->max_tokens;
    }

    if (tpm > 0 && tpm / 4 < answer) {
        answer = tpm / 4;
    }

    if (take->prompt > LLMGW_LIMIT_MAX) {
        take->prompt = LLMGW_LIMIT_MAX;
    }

    take->reserved = take->prompt + answer;
}


void
llmgw_accounts_take(llmgw_accounts_t *accounts,
    const llmgw_accounts_ask_t *ask, const llmgw_moment_t *now,
    llmgw_accounts_answer_t *answer)
{
    take_t           take;
    uint32_t         i, slot;
    llmgw_account_t  next;

    memset(answer, 0, sizeof(*answer));
    answer->slot = LLMGW_NO_USAGE_SLOT;
    answer->admittance = LLMGW_ACCOUNTS_FULL;
    answer->retry_ms = STREAMS_RETRY_MS;

    i = accounts_attach(accounts, ask->name, now);
    slot = i == LLMGW_NO_ACCOUNT ? LLMGW_NO_USAGE_SLOT
                                 : accounts_free_slot(accounts);

    if (slot == LLMGW_NO_USAGE_SLOT) {
        return;
    }

    next = accounts->accounts[i];
    level_fill(&next.requests, next.limits.rpm, now->ms);
    level_fill(&next.tokens, next.limits.tpm, now->ms);
    account_limit(&next, ask);
    account_roll(&next, now);

    take_estimate(&take, &accounts->estimates, ask, next.limits.tpm);
    take_judge(&take, &next, now);

    if (take.admittance == LLMGW_ADMITTED) {
        level_take(&next.requests, next.limits.rpm, 1);
        level_take(&next.tokens, next.limits.tpm, (int64_t) take.reserved);
        next.reserved += take.reserved;
        next.running++;

    } else {
        next.totals.refused++;
        slot = LLMGW_NO_USAGE_SLOT;
    }

    accounts_begin(accounts, i, slot, NULL);

    accounts->accounts[i] = next;

    if (slot != LLMGW_NO_USAGE_SLOT) {
        accounts_use_slot(accounts, slot);
        take_slot(&accounts->slots[slot], i, ask, &take, now);
        accounts->slots[slot].taken = next.limits.tpm > 0 ? take.reserved : 0;
        accounts->words.running++;
    }

    accounts_commit(accounts);

    answer->slot = slot;
    answer->admittance = take.admittance;
    answer->retry_ms = take.retry_ms;
    answer->requests = level_rate(&next.requests, next.limits.rpm);
    answer->tokens = level_rate(&next.tokens, next.limits.tpm);
}


/*
 * Usage under another limit counts under the new one, but causes no debt there.
 */
static void
level_limit(llmgw_level_t *level, uint64_t before, uint64_t limit)
{
    int64_t  used;

    if (before == limit) {
        return;
    }

    if (before == 0) {
        level->level = (int64_t) limit * LEVEL_UNIT;

    } else if (limit == 0) {
        level->level = 0;

    } else if (level->level > 0) {
        used = (int64_t) before * LEVEL_UNIT - level->level;
        level->level = (int64_t) limit * LEVEL_UNIT - used;
        level->level = level->level < 0 ? 0 : level->level;
    }
}


/*
 * Fills the account by its old limits, then gives it those of the request if
 * they are newer.
 */
static void
account_limit(llmgw_account_t *account, const llmgw_accounts_ask_t *ask)
{
    if (ask->version < account->version) {
        return;
    }

    level_limit(&account->requests, account->limits.rpm, ask->limits.rpm);
    level_limit(&account->tokens, account->limits.tpm, ask->limits.tpm);
    account->limits = ask->limits;
    account->version = ask->version;
}


/* 0: the level is high enough now. */
static uint64_t
level_wait_ms(const llmgw_level_t *level, uint64_t limit, uint64_t n)
{
    int64_t  wanted;

    if (limit == 0) {
        return 0;
    }

    wanted = (int64_t) (n < limit ? n : limit) * LEVEL_UNIT - level->level;

    return wanted <= 0 ? 0 : ((uint64_t) wanted + limit - 1) / limit;
}


static void
take_refuse(take_t *take, llmgw_admittance_t admittance, uint64_t retry_ms)
{
    if (retry_ms > take->retry_ms) {
        take->admittance = admittance;
        take->retry_ms = retry_ms;
    }
}


static void
take_judge(take_t *take, const llmgw_account_t *account,
    const llmgw_moment_t *now)
{
    const llmgw_limits_t  *limits = &account->limits;

    take->admittance = LLMGW_ADMITTED;
    take->retry_ms = 0;

    if (limits->budget > 0
        && account->own.used[limits->period]
           + account->base.used[limits->period] + account->reserved
           >= limits->budget)
    {
        take_refuse(take, LLMGW_OVER_BUDGET,
                    llmgw_period_end_ms(limits->period, now->unix_ms)
                    - now->unix_ms);
        return;
    }

    take_refuse(take, LLMGW_OVER_REQUESTS,
                level_wait_ms(&account->requests, limits->rpm, 1));
    take_refuse(take, LLMGW_OVER_TOKENS,
                level_wait_ms(&account->tokens, limits->tpm, take->reserved));

    if (limits->streams > 0 && account->running >= limits->streams) {
        take_refuse(take, LLMGW_OVER_STREAMS, STREAMS_RETRY_MS);
    }
}


#define take_text(field, from)                                                \
    llmgw_usage_text(field, sizeof(field), (from).text, (from).len)

static void
take_slot(llmgw_usage_slot_t *slot, uint32_t account,
    const llmgw_accounts_ask_t *ask, const take_t *take,
    const llmgw_moment_t *now)
{
    slot->account = account;
    slot->owner = ask->owner;
    slot->began_ms = now->ms;
    slot->bytes = ask->bytes;
    slot->reserved = take->reserved;
    slot->delivered = 0;
    slot->wasted = 0;

    /* no text of an earlier request may show after a shorter one */

    memset(&slot->usage, 0, sizeof(slot->usage));
    slot->usage.prompt = take->prompt;

    take_text(slot->usage.key, ask->name);
    take_text(slot->usage.tenant, ask->tenant);
    take_text(slot->usage.slo_class, ask->slo_class);
    take_text(slot->usage.model, ask->model);
    take_text(slot->usage.request_id, ask->request_id);

    __atomic_store_n(&slot->state, LLMGW_USAGE_RUNNING, __ATOMIC_RELEASE);
}

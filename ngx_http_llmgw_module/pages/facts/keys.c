
/*
 * Keys: each zone of llmgw_keys, and the accounts that it has.
 *
 * The first 1,000 places of a zone have their names here.  Accounts in further
 * places are summed as one account, "other", together with those that the zone
 * has given up; so the sum over all never falls.  An account named "other" is a
 * part of this sum.
 */

#include "pages/facts/snapshot.h"


#define NGX_HTTP_LLMGW_KEY_NAMES   1000

/* How many accounts are read while the lock is held: some ten microseconds. */
#define NGX_HTTP_LLMGW_KEY_BATCH   32


#define NGX_HTTP_LLMGW_KEY_METRICS(X)                                         \
    X(usage_lost, COUNTER, ONE, "Usage records that were given up")           \
    X(usage_waiting, GAUGE, ONE, "Usage records that are not written yet")

#define NGX_HTTP_LLMGW_ACCOUNT_METRICS(X)                                     \
    X(key_requests, COUNTER, ONE, "Requests of a key that have ended")        \
    X(key_refused, COUNTER, ONE, "Requests that a limit of the key refused")  \
    X(key_prompt_tokens, COUNTER, ONE, "Tokens of the key's prompts")         \
    X(key_completion_tokens, COUNTER, ONE, "Tokens of the key's answers")     \
    X(key_cached_tokens, COUNTER, ONE,                                        \
      "Tokens of the key's prompts that engines had in their caches")         \
    X(key_reasoning_tokens, COUNTER, ONE,                                     \
      "Tokens of the key's answers that were reasoning")                      \
    X(key_wasted_tokens, COUNTER, ONE,                                        \
      "Tokens for the key that were received and thrown away")                \
    X(key_streams, GAUGE, ONE, "Requests of the key in flight")               \
    X(key_budget_tokens, GAUGE, ONE, "Tokens that the key may use a period")  \
    X(key_budget_used_tokens, GAUGE, ONE,                                     \
      "Tokens that the key has used in this period")

enum { M_auth_failures, NGX_HTTP_LLMGW_KEY_METRICS(METRIC_INDEX) };
enum { NGX_HTTP_LLMGW_ACCOUNT_METRICS(METRIC_INDEX) };


static const char *
ngx_http_llmgw_keys_failure(unsigned i)
{
    static const char  *names[NGX_HTTP_LLMGW_KEY_NFAILURES] = {
        [NGX_HTTP_LLMGW_KEY_MISSING] = "missing",
        [NGX_HTTP_LLMGW_KEY_MALFORMED] = "malformed",
        [NGX_HTTP_LLMGW_KEY_UNKNOWN] = "unknown",
        [NGX_HTTP_LLMGW_KEY_EXPIRED] = "expired",
        [NGX_HTTP_LLMGW_KEY_CONFLICT] = "conflict"
    };

    return names[i];
}


static const ngx_http_llmgw_metric_t  ngx_http_llmgw_keys_metrics[] = {
    METRIC_LABELLED(auth_failures, COUNTER, ONE, ALL,
                    "Requests without a valid key",
                    { "reason", NGX_HTTP_LLMGW_KEY_NFAILURES,
                      ngx_http_llmgw_keys_failure })
    NGX_HTTP_LLMGW_KEY_METRICS(METRIC_ROW)
};

static const ngx_http_llmgw_metric_t  ngx_http_llmgw_account_metrics[] = {
    NGX_HTTP_LLMGW_ACCOUNT_METRICS(METRIC_ROW)
};


static void
ngx_http_llmgw_account_add(llmgw_account_look_t *other,
    const llmgw_account_totals_t *totals, uint32_t streams)
{
    other->streams += streams;
    other->totals.requests += totals->requests;
    other->totals.refused += totals->refused;
    other->totals.prompt += totals->prompt;
    other->totals.completion += totals->completion;
    other->totals.cached += totals->cached;
    other->totals.reasoning += totals->reasoning;
    other->totals.wasted += totals->wasted;
}


/* Accounts that were added since n was read are left to the next page. */

static void
ngx_http_llmgw_account_batch(ngx_http_llmgw_key_facts_t *facts,
    const llmgw_accounts_t *accounts, uint32_t from, uint32_t n,
    const llmgw_moment_t *now)
{
    uint32_t               i, end;
    llmgw_account_look_t  *look, *other;

    other = &facts->accounts[0];
    end = ngx_min(from + NGX_HTTP_LLMGW_KEY_BATCH, n);

    for (i = from; i < end; i++) {
        look = &facts->accounts[facts->naccounts];

        if (llmgw_accounts_look(accounts, i, now, look) != 1) {
            continue;
        }

        if (i < NGX_HTTP_LLMGW_KEY_NAMES
            && ngx_strcmp(look->name, other->name) != 0)
        {
            facts->naccounts++;

        } else {
            ngx_http_llmgw_account_add(other, &look->totals, look->streams);
        }
    }
}


/* Allocates nothing under the lock. */

ngx_http_llmgw_key_facts_t *
ngx_http_llmgw_snapshot_keys(ngx_http_llmgw_keys_t *keys, ngx_pool_t *memory)
{
    uint32_t                     from, n;
    ngx_uint_t                   i;
    llmgw_moment_t               now;
    llmgw_accounts_t            *accounts;
    ngx_http_llmgw_key_facts_t  *facts;

    n = ngx_http_llmgw_keys_lock(keys)->words.accounts;
    ngx_http_llmgw_keys_unlock(keys);

    facts = ngx_pcalloc(memory, sizeof(ngx_http_llmgw_key_facts_t));
    if (facts == NULL) {
        return NULL;
    }

    /* "other", those that have names, and one that is being looked at */

    facts->accounts = ngx_palloc(memory,
                                 (ngx_min(n, NGX_HTTP_LLMGW_KEY_NAMES) + 2)
                                 * sizeof(llmgw_account_look_t));
    if (facts->accounts == NULL) {
        return NULL;
    }

    facts->keys = keys;
    facts->naccounts = 1;
    ngx_memzero(&facts->accounts[0], sizeof(llmgw_account_look_t));
    ngx_memcpy(facts->accounts[0].name, "other", sizeof("other"));

    for (i = 0; i < NGX_HTTP_LLMGW_KEY_NFAILURES; i++) {
        facts->failures[i] = ngx_http_llmgw_keys_shared(keys)->failures[i];
    }

    ngx_http_llmgw_keys_now(&now);
    from = 0;

    do {
        accounts = ngx_http_llmgw_keys_lock(keys);
        ngx_http_llmgw_account_batch(facts, accounts, from, n, &now);
        facts->words = accounts->words;
        ngx_http_llmgw_keys_unlock(keys);

        from += NGX_HTTP_LLMGW_KEY_BATCH;
    } while (from < n);

    ngx_http_llmgw_account_add(&facts->accounts[0], &facts->words.gone, 0);

    return facts;
}


#define METRICS  ngx_http_llmgw_keys_metrics

static ngx_int_t
ngx_http_llmgw_keys_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    const ngx_http_llmgw_key_facts_t  *facts;

    facts = snapshot->keys;

    if (i == 1) {
        return NGX_DONE;
    }

    if (!w->item(w, &facts->keys->zone_name, NGX_HTTP_LLMGW_ON_BOTH)) {
        return NGX_OK;
    }

    STATUS("zone", STRING(&facts->keys->zone_name));
    STATUS("file", STRING(&facts->keys->path));
    STATUS("streams", NUMBER(facts->words.running));

    OBJECT("usage");
    FACT("waiting", usage_waiting, NUMBER(facts->words.settled));
    FACT("lost", usage_lost, NUMBER(facts->words.lost));
    END_OBJECT;

    FACT("auth_failures", auth_failures, COUNTS(facts->failures));

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_keys = {
    SCOPE("keys", NULL, ngx_http_llmgw_keys_walk)
};


#undef METRICS
#define METRICS  ngx_http_llmgw_account_metrics

static void
ngx_http_llmgw_account_rate(ngx_http_llmgw_writer_t *w, const char *key,
    const llmgw_rate_t *rate)
{
    if (rate->limit == 0) {
        NOTHING(key);
        return;
    }

    OBJECT(key);
    STATUS("limit", NUMBER(rate->limit));
    STATUS("remaining", NUMBER(rate->remaining));
    STATUS("reset_ms", NUMBER(rate->reset_ms));
    END_OBJECT;
}


static void
ngx_http_llmgw_account_budget(ngx_http_llmgw_writer_t *w,
    const llmgw_account_look_t *look)
{
    llmgw_period_t  period;

    period = look->limits.period;

    if (look->limits.budget == 0) {
        NOTHING("budget");
        return;
    }

    OBJECT("budget");
    STATUS("period", TEXT(period == LLMGW_PERIOD_DAY ? "day" : "month"));
    FACT("tokens", key_budget_tokens, NUMBER(look->limits.budget));
    FACT("used", key_budget_used_tokens, NUMBER(look->sums.used[period]));
    STATUS("reserved", NUMBER(look->reserved));
    END_OBJECT;
}


static ngx_int_t
ngx_http_llmgw_account_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    ngx_str_t                      name;
    const llmgw_account_look_t    *look;
    const llmgw_account_totals_t  *totals;

    if (i == snapshot->keys->naccounts) {
        return NGX_DONE;
    }

    look = &snapshot->keys->accounts[i];
    totals = &look->totals;
    name.data = (u_char *) look->name;
    name.len = ngx_strlen(look->name);

    if (!w->item(w, &name, NGX_HTTP_LLMGW_ON_BOTH)) {
        return NGX_OK;
    }

    STATUS("name", STRING(&name));
    FACT("requests", key_requests, NUMBER(totals->requests));
    FACT("refused", key_refused, NUMBER(totals->refused));
    FACT("prompt_tokens", key_prompt_tokens, NUMBER(totals->prompt));
    FACT("completion_tokens", key_completion_tokens,
         NUMBER(totals->completion));
    FACT("cached_tokens", key_cached_tokens, NUMBER(totals->cached));
    FACT("reasoning_tokens", key_reasoning_tokens, NUMBER(totals->reasoning));
    FACT("wasted_tokens", key_wasted_tokens, NUMBER(totals->wasted));
    FACT("streams", key_streams, NUMBER(look->streams));
    STATUS("max_streams", SETTING(look->limits.streams));
    ngx_http_llmgw_account_rate(w, "rpm", &look->requests);
    ngx_http_llmgw_account_rate(w, "tpm", &look->tokens);
    ngx_http_llmgw_account_budget(w, look);

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_account = {
    SCOPE("accounts", "key", ngx_http_llmgw_account_walk)
};


/*
 * What a request takes from its caller's account, and how it is settled: once,
 * at whichever of its ends comes first.
 */

#include "http/outcome.h"
#include "keys/keys.h"


/* No client is asked to wait for longer than a day. */
#define NGX_HTTP_LLMGW_ACCOUNT_WAIT_MS  (24 * 3600 * 1000)


static llmgw_accounts_text_t ngx_http_llmgw_account_text(
    const ngx_str_t *text);
static void ngx_http_llmgw_account_refuses(
    const llmgw_accounts_answer_t *answer, llmgw_end_t *end);


ngx_int_t
ngx_http_llmgw_caller_enter(ngx_http_llmgw_caller_t *caller,
    const ngx_http_llmgw_charge_t *charge, llmgw_end_t *end)
{
    llmgw_moment_t         now;
    llmgw_usage_slot_t    *slot;
    llmgw_accounts_t      *accounts;
    llmgw_accounts_ask_t   ask;

    ngx_memzero(&ask, sizeof(llmgw_accounts_ask_t));

    ask.name = ngx_http_llmgw_account_text(&caller->name);
    ask.limits = caller->account->limits;
    ask.version = caller->set->version;
    ask.owner = caller->keys->self;
    ask.bytes = charge->bytes;
    ask.max_tokens = charge->max_tokens;
    ask.tenant = ngx_http_llmgw_account_text(&charge->tenant);
    ask.slo_class = ngx_http_llmgw_account_text(&charge->class);
    ask.model = ngx_http_llmgw_account_text(&charge->model);
    ask.request_id = ngx_http_llmgw_account_text(&charge->request_id);

    llmgw_limits_divide(&ask.limits, caller->keys->gateways);
    ngx_http_llmgw_keys_now(&now);

    accounts = ngx_http_llmgw_keys_lock(caller->keys);
    llmgw_accounts_take(accounts, &ask, &now, &caller->answer);
    ngx_http_llmgw_keys_unlock(caller->keys);

    caller->has_answer = caller->answer.admittance != LLMGW_ACCOUNTS_FULL;

    if (caller->answer.admittance != LLMGW_ADMITTED) {
        ngx_http_llmgw_account_refuses(&caller->answer, end);
        return NGX_DECLINED;
    }

    caller->slot = caller->answer.slot;

    if (charge->served.len) {
        slot = ngx_http_llmgw_caller_slot(caller);
        llmgw_usage_text(slot->usage.served, sizeof(slot->usage.served),
                         charge->served.data, charge->served.len);
    }

    return NGX_OK;
}


static llmgw_accounts_text_t
ngx_http_llmgw_account_text(const ngx_str_t *text)
{
    llmgw_accounts_text_t  out;

    out.text = (char *) text->data;
    out.len = text->len;

    return out;
}


static void
ngx_http_llmgw_account_refuses(const llmgw_accounts_answer_t *answer,
    llmgw_end_t *end)
{
    ngx_memzero(end, sizeof(llmgw_end_t));

    switch (answer->admittance) {

    case LLMGW_ACCOUNTS_FULL:
        end->outcome = LLMGW_OUTCOME_ACCOUNTS_FULL;
        break;

    case LLMGW_OVER_BUDGET:
        end->outcome = LLMGW_OUTCOME_QUOTA;
        end->pushback_ms = -1;
        break;

    default:
        end->outcome = LLMGW_OUTCOME_RATE_LIMIT;
        end->pushback_ms = ngx_min(answer->retry_ms,
                                   NGX_HTTP_LLMGW_ACCOUNT_WAIT_MS);
        end->text = answer->admittance == LLMGW_OVER_REQUESTS
                    ? "this key has used its requests of a minute"
                    : answer->admittance == LLMGW_OVER_TOKENS
                      ? "this key has used its tokens of a minute"
                      : "this key has as many requests in flight as it may";
        end->text_len = ngx_strlen(end->text);
        break;
    }
}


void
ngx_http_llmgw_caller_leave(ngx_http_llmgw_caller_t *caller,
    const llmgw_accounts_end_t *end)
{
    int                rc;
    uint32_t           slot;
    llmgw_usage_t      record;
    llmgw_moment_t     now;
    llmgw_accounts_t  *accounts;

    slot = caller->slot;

    if (slot == LLMGW_NO_USAGE_SLOT) {
        return;
    }

    caller->slot = LLMGW_NO_USAGE_SLOT;
    ngx_http_llmgw_keys_now(&now);

    accounts = ngx_http_llmgw_keys_lock(caller->keys);
    rc = llmgw_accounts_settle(accounts, slot, caller->keys->self, end, &now,
                               &record);
    ngx_http_llmgw_keys_unlock(caller->keys);

    if (rc) {
        ngx_http_llmgw_usage_write_record(caller->keys, slot, &record);
    }
}


/* The caller's slot; NULL: it has none. */

llmgw_usage_slot_t *
ngx_http_llmgw_caller_slot(const ngx_http_llmgw_caller_t *caller)
{
    return caller && caller->slot != LLMGW_NO_USAGE_SLOT
           ? &ngx_http_llmgw_keys_shared(caller->keys)
                  ->accounts->slots[caller->slot]
           : NULL;
}

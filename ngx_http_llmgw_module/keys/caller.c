
/*
 * The caller of a request, and the answer to one without a valid key.
 *
 * The handler runs after nginx's access phase: "allow", "deny" and
 * "auth_request" have let the request pass by then, and none of them, not even
 * "satisfy any", takes the place of a key.  Nothing of the body was read.
 *
 * Keys are in force where a module's content handler answers: one of ours or
 * another's, such as a pass.  Files, "return" and our pages are not concerned
 * (pages/access.h), nor are subrequests, whose main request was checked
 * already.
 *
 * Requests without a valid key are counted, and one line a second says how many
 * they were.
 */

#include "common/os/process.h"
#include "http/header.h"
#include "http/record.h"
#include "keys/keys.h"


/* The least time between two lines of the log. */
#define NGX_HTTP_LLMGW_KEYS_TICK_MS  1000


static ngx_int_t ngx_http_llmgw_keys_handler(ngx_http_request_t *r);
static ngx_http_llmgw_caller_t *ngx_http_llmgw_caller_create(
    ngx_http_request_t *r, ngx_http_llmgw_keys_t *keys);
static void ngx_http_llmgw_caller_cleanup(void *data);
static ngx_int_t ngx_http_llmgw_caller_identify(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller, ngx_http_llmgw_key_failure_t *failure);
static ngx_int_t ngx_http_llmgw_caller_by_name(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller,
    const ngx_http_llmgw_identity_conf_t *identity);
static ngx_int_t ngx_http_llmgw_caller_word(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *word);
static void ngx_http_llmgw_caller_is(ngx_http_llmgw_caller_t *caller,
    const llmgw_key_account_t *account);
static ngx_str_t ngx_http_llmgw_caller_text(const llmgw_key_text_t *text);
static ngx_int_t ngx_http_llmgw_caller_refuse(ngx_http_request_t *r,
    const llmgw_end_t *end);
static ngx_int_t ngx_http_llmgw_caller_enter_pass(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller);
static ngx_int_t ngx_http_llmgw_keys_begin(ngx_http_llmgw_keys_t *keys,
    ngx_cycle_t *cycle);
static void ngx_http_llmgw_keys_tick(ngx_event_t *ev);
static void ngx_http_llmgw_keys_tell(ngx_http_llmgw_keys_t *keys);


ngx_int_t
ngx_http_llmgw_keys_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    /* the handler that is added last runs first */

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llmgw_keys_handler;

    return ngx_http_llmgw_keys_headers_init(cf);
}


static ngx_int_t
ngx_http_llmgw_keys_handler(ngx_http_request_t *r)
{
    llmgw_end_t                    end;
    ngx_http_llmgw_keys_t         *keys;
    ngx_http_llmgw_caller_t       *caller;
    ngx_http_llmgw_loc_conf_t     *llcf;
    ngx_http_llmgw_key_failure_t   failure;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    keys = llcf->keys;

    if (keys == NULL || r != r->main || r->content_handler == NULL
        || llcf->page)
    {
        return NGX_DECLINED;
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        ngx_http_llmgw_credential_hide(r);
        return NGX_DECLINED;        /* a browser asks this without a key */
    }

    caller = ngx_http_llmgw_caller(r);

    if (caller && caller->keys == keys) {
        return NGX_DECLINED;        /* the request was redirected to here */
    }

    if (keys->self.pid != ngx_pid
        && ngx_http_llmgw_keys_begin(keys, (ngx_cycle_t *) ngx_cycle)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    caller = ngx_http_llmgw_caller_create(r, keys);
    if (caller == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_llmgw_caller_identify(r, caller, &failure) == NGX_OK) {
        ngx_http_llmgw_credential_hide(r);

        return llcf->protocol ? NGX_DECLINED
                              : ngx_http_llmgw_caller_enter_pass(r, caller);
    }

    ngx_http_llmgw_keys_failed(keys, failure);
    ngx_http_llmgw_credential_hide(r);

    ngx_memzero(&end, sizeof(llmgw_end_t));
    end.outcome = LLMGW_OUTCOME_INVALID_KEY;

    return ngx_http_llmgw_caller_refuse(r, &end);
}


static ngx_http_llmgw_caller_t *
ngx_http_llmgw_caller_create(ngx_http_request_t *r,
    ngx_http_llmgw_keys_t *keys)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_llmgw_caller_t  *caller;

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_llmgw_caller_t));
    if (cln == NULL) {
        return NULL;
    }

    caller = cln->data;
    ngx_memzero(caller, sizeof(ngx_http_llmgw_caller_t));

    caller->request = r;
    caller->keys = keys;
    caller->set = keys->set;
    caller->set->refs++;
    caller->slot = LLMGW_NO_USAGE_SLOT;
    cln->handler = ngx_http_llmgw_caller_cleanup;

    return caller;
}


/*
 * The last handler of a request.  If it still has a slot it was a native pass,
 * which is between client and replica: its status is all that is known of it.
 */

static void
ngx_http_llmgw_caller_cleanup(void *data)
{
    ngx_http_llmgw_caller_t  *caller = data;
    ngx_http_request_t       *r;
    llmgw_accounts_end_t      end;

    r = caller->request;
    ngx_memzero(&end, sizeof(llmgw_accounts_end_t));

    end.settled_by = LLMGW_SETTLED_BY_COUNT;
    end.outcome = r->connection->error || r->headers_out.status == 0
                  || r->headers_out.status == NGX_HTTP_CLIENT_CLOSED_REQUEST
                  ? llmgw_outcome_name(LLMGW_OUTCOME_GONE)
                  : r->headers_out.status < NGX_HTTP_BAD_REQUEST
                    ? llmgw_outcome_name(LLMGW_OUTCOME_SERVED)
                    : llmgw_outcome_name(LLMGW_OUTCOME_REFUSED);

    ngx_http_llmgw_caller_leave(caller, &end);
    ngx_http_llmgw_key_set_release(caller->set);
}


/* The newest caller: an earlier location may have had other keys. */

ngx_http_llmgw_caller_t *
ngx_http_llmgw_caller(ngx_http_request_t *r)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_llmgw_caller_t  *caller;

    for (cln = r->main->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llmgw_caller_cleanup) {
            caller = cln->data;
            return caller->account ? caller : NULL;
        }
    }

    return NULL;
}


/*
 * Identifies the caller by llmgw_identity, if that has a name, or else by a
 * key.
 */

static ngx_int_t
ngx_http_llmgw_caller_identify(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller, ngx_http_llmgw_key_failure_t *failure)
{
    const llmgw_key_t               *key;
    ngx_http_llmgw_loc_conf_t       *llcf;
    ngx_http_llmgw_identity_conf_t  *identity;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    identity = llcf->identity;

    if (identity
        && ngx_http_llmgw_caller_word(r, identity->name, &caller->name)
           != NGX_OK)
    {
        *failure = NGX_HTTP_LLMGW_KEY_MALFORMED;
        return NGX_DECLINED;
    }

    if (caller->name.len) {
        *failure = NGX_HTTP_LLMGW_KEY_UNKNOWN;
        return ngx_http_llmgw_caller_by_name(r, caller, identity);
    }

    if (ngx_http_llmgw_credential(r, caller->set, &key, failure) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_caller_is(caller,
                             &caller->set->keys->accounts[key->account]);
    caller->name = ngx_http_llmgw_caller_text(&caller->account->name);

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_caller_by_name(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller,
    const ngx_http_llmgw_identity_conf_t *identity)
{
    ngx_str_t                   class, tenant;
    llmgw_moment_t              now;
    const llmgw_key_account_t  *account;

    ngx_http_llmgw_keys_now(&now);

    account = llmgw_usage_name_is_valid(caller->name.data, caller->name.len)
              ? llmgw_keys_identity(caller->set->keys,
                                    (char *) caller->name.data,
                                    caller->name.len, now.unix_ms)
              : NULL;

    if (account == NULL
        || ngx_http_llmgw_caller_word(r, identity->models, &caller->models)
           != NGX_OK
        || ngx_http_llmgw_caller_word(r, identity->class, &class) != NGX_OK
        || ngx_http_llmgw_caller_word(r, identity->tenant, &tenant) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_caller_is(caller, account);

    caller->class = class.len ? class : caller->class;
    caller->tenant = tenant.len ? tenant : caller->tenant;

    return NGX_OK;
}


/* Empty if there is no value. */

static ngx_int_t
ngx_http_llmgw_caller_word(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *word)
{
    ngx_str_null(word);

    return value ? ngx_http_complex_value(r, value, word) : NGX_OK;
}


static void
ngx_http_llmgw_caller_is(ngx_http_llmgw_caller_t *caller,
    const llmgw_key_account_t *account)
{
    caller->account = account;
    caller->class = ngx_http_llmgw_caller_text(&account->slo_class);
    caller->tenant = ngx_http_llmgw_caller_text(&account->tenant);
}


static ngx_str_t
ngx_http_llmgw_caller_text(const llmgw_key_text_t *text)
{
    ngx_str_t  str;

    str.data = (u_char *) text->text;
    str.len = text->len;

    return str;
}


ngx_uint_t
ngx_http_llmgw_caller_may(const ngx_http_llmgw_caller_t *caller,
    const ngx_str_t *model)
{
    llmgw_key_text_t  list;

    if (caller == NULL) {
        return 1;
    }

    list.text = (char *) caller->models.data;
    list.len = caller->models.len;

    return llmgw_key_allows(caller->account, (char *) model->data, model->len)
           && (list.len == 0
               || llmgw_key_list_has(list, (char *) model->data, model->len));
}


/* Answers in the protocol of the location, or of a pass's client. */

static ngx_int_t
ngx_http_llmgw_caller_refuse(ngx_http_request_t *r, const llmgw_end_t *end)
{
    ngx_int_t                         rc;
    ngx_http_llmgw_loc_conf_t        *llcf;
    ngx_http_llmgw_main_conf_t       *lmcf;
    const ngx_http_llmgw_protocol_t  *protocol;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);
    protocol = llcf->protocol;

    if (protocol == NULL) {
        protocol = ngx_http_llmgw_header_is_grpc(r->headers_in.content_type)
                   ? lmcf->rooms->grpc : lmcf->rooms->openai;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc == NGX_OK) {
        rc = protocol->answer(r, end);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}


/*
 * For a request that is passed on as it is: limits of requests and streams can
 * be kept there; a caller with other limits, or with a list of models, is
 * refused.
 */

static ngx_int_t
ngx_http_llmgw_caller_enter_pass(ngx_http_request_t *r,
    ngx_http_llmgw_caller_t *caller)
{
    llmgw_end_t                  end;
    ngx_http_llmgw_charge_t      charge;
    const llmgw_key_account_t   *account;

    account = caller->account;

    ngx_memzero(&end, sizeof(llmgw_end_t));
    ngx_memzero(&charge, sizeof(ngx_http_llmgw_charge_t));

    if (account->models.text || caller->models.len || account->limits.tpm
        || account->limits.budget)
    {
        end.outcome = LLMGW_OUTCOME_KEY_FORBIDS;
        return ngx_http_llmgw_caller_refuse(r, &end);
    }

    charge.request_id = ngx_http_llmgw_record_own_id(r);
    charge.class = caller->class;
    charge.tenant = caller->tenant;

    if (ngx_http_llmgw_caller_enter(caller, &charge, &end) != NGX_OK) {
        return ngx_http_llmgw_caller_refuse(r, &end);
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_llmgw_keys_worker(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_http_llmgw_keys_t  **keys;

    keys = lmcf->keys.elts;

    for (i = 0; i < lmcf->keys.nelts; i++) {
        if (ngx_http_llmgw_keys_begin(keys[i], cycle) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llmgw_keys_worker_done(ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_uint_t               i;
    ngx_http_llmgw_keys_t  **keys;

    keys = lmcf->keys.elts;

    for (i = 0; i < lmcf->keys.nelts; i++) {
        if (keys[i]->self.pid) {
            ngx_http_llmgw_usage_end(keys[i]);
            ngx_http_llmgw_books_end(keys[i]);
        }
    }
}


/*
 * A single process that reloads runs no init_process: its first request begins.
 */

static ngx_int_t
ngx_http_llmgw_keys_begin(ngx_http_llmgw_keys_t *keys, ngx_cycle_t *cycle)
{
    if (ngx_http_llmgw_key_watch_begin(keys, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    keys->self.pid = ngx_pid;
    keys->self.started = process_start_ticks(ngx_pid);

    keys->tick.handler = ngx_http_llmgw_keys_tick;
    keys->tick.data = keys;
    keys->tick.log = cycle->log;
    keys->tick.cancelable = 1;
    ngx_add_timer(&keys->tick, NGX_HTTP_LLMGW_KEYS_TICK_MS);

    return NGX_OK;
}


static void
ngx_http_llmgw_keys_tick(ngx_event_t *ev)
{
    ngx_http_llmgw_keys_t  *keys;

    keys = ev->data;

    ngx_http_llmgw_keys_tell(keys);
    ngx_http_llmgw_key_watch_look(keys);
    ngx_http_llmgw_usage_sweep(keys);
    ngx_http_llmgw_books_tick(keys);

    ngx_add_timer(ev, NGX_HTTP_LLMGW_KEYS_TICK_MS);
}


void
ngx_http_llmgw_keys_failed(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_key_failure_t failure)
{
    keys->failures[failure]++;
    (void) ngx_atomic_fetch_add(
               &ngx_http_llmgw_keys_shared(keys)->failures[failure], 1);
}


static void
ngx_http_llmgw_keys_tell(ngx_http_llmgw_keys_t *keys)
{
    ngx_uint_t  *n;

    n = keys->failures;

    if (n[NGX_HTTP_LLMGW_KEY_MISSING] + n[NGX_HTTP_LLMGW_KEY_MALFORMED]
        + n[NGX_HTTP_LLMGW_KEY_UNKNOWN] + n[NGX_HTTP_LLMGW_KEY_EXPIRED]
        + n[NGX_HTTP_LLMGW_KEY_CONFLICT] == 0)
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, keys->tick.log, 0,
                  "llmgw: zone \"%V\": requests refused in the last second "
                  "for their key: %ui had none, %ui a malformed one, %ui an "
                  "unknown one, %ui one that has expired, %ui two",
                  &keys->zone_name, n[NGX_HTTP_LLMGW_KEY_MISSING],
                  n[NGX_HTTP_LLMGW_KEY_MALFORMED],
                  n[NGX_HTTP_LLMGW_KEY_UNKNOWN],
                  n[NGX_HTTP_LLMGW_KEY_EXPIRED],
                  n[NGX_HTTP_LLMGW_KEY_CONFLICT]);

    ngx_memzero(keys->failures, sizeof(keys->failures));
}

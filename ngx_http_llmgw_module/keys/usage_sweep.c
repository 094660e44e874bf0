
/*
 * Slots that no running request will end: requests and records of workers that
 * died, and this worker's records that could not be written.
 *
 * A walk looks at all used slots without the lock.  A dead process's slot is
 * settled under the lock (core/accounts/accounts.h), so that a slot that has
 * got another owner meanwhile is left alone; then its record is written.  A
 * long walk continues in later iterations of the event loop.
 *
 * Once a second one worker walks for all; each worker walks for itself while
 * any record is not written.  The last walk of a worker is at its end, where
 * its own slots are like those of a dead process: nginx that is stopped within
 * a request leaves none.
 */

#include "common/os/process.h"
#include "keys/keys.h"


#define NGX_HTTP_LLMGW_SWEEP_MS      1000

/* Slots per iteration: each takes some 10 us if it is settled and written. */
#define NGX_HTTP_LLMGW_SWEEP_SLOTS   2048
#define NGX_HTTP_LLMGW_SWEEP_ENDED   32
#define NGX_HTTP_LLMGW_SWEEP_REST_MS 1

/* If there are more processes than this, some are looked up more than once. */
#define NGX_HTTP_LLMGW_SWEEP_OWNERS  64


typedef struct {
    llmgw_process_t         process;
    ngx_uint_t              is_dead;
} ngx_http_llmgw_sweep_owner_t;


typedef struct {
    ngx_http_llmgw_keys_t        *keys;
    ngx_event_t                   event;        /* continues the walk */
    uint32_t                      from;         /* the next slot to look at */
    ngx_uint_t                    judges;       /* it looks at other processes'
                                                   slots, too */
    ngx_uint_t                    is_last;      /* the last walk of this
                                                   worker */
    ngx_uint_t                    is_stuck;     /* the log cannot be written */
    ngx_uint_t                    nowners;      /* processes looked up so far */
    ngx_http_llmgw_sweep_owner_t  owners[NGX_HTTP_LLMGW_SWEEP_OWNERS];
} ngx_http_llmgw_sweep_walk_t;


static ngx_uint_t ngx_http_llmgw_sweep_claim(ngx_http_llmgw_keys_t *keys,
    ngx_uint_t goes_on);
static void ngx_http_llmgw_sweep_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_llmgw_sweep_step(ngx_http_llmgw_sweep_walk_t *walk);
static ngx_uint_t ngx_http_llmgw_sweep_slot(ngx_http_llmgw_sweep_walk_t *walk,
    uint32_t slot, llmgw_usage_state_t state, llmgw_process_t owner);
static ngx_uint_t ngx_http_llmgw_sweep_is_dead(
    ngx_http_llmgw_sweep_walk_t *walk, llmgw_process_t owner);


void
ngx_http_llmgw_usage_sweep(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_sweep_walk_t  walk, *rest;

    ngx_memzero(&walk, sizeof(ngx_http_llmgw_sweep_walk_t));
    walk.keys = keys;
    walk.judges = ngx_http_llmgw_sweep_claim(keys, 0);

    if (!walk.judges
        && ngx_http_llmgw_keys_shared(keys)->accounts->words.settled == 0)
    {
        return;
    }

    if (ngx_http_llmgw_sweep_step(&walk) == NGX_OK) {
        return;
    }

    rest = ngx_alloc(sizeof(ngx_http_llmgw_sweep_walk_t), ngx_cycle->log);
    if (rest == NULL) {
        return;                         /* the next second starts a new walk */
    }

    *rest = walk;
    rest->event.handler = ngx_http_llmgw_sweep_handler;
    rest->event.data = rest;
    rest->event.log = ngx_cycle->log;
    rest->event.cancelable = 1;
    ngx_add_timer(&rest->event, NGX_HTTP_LLMGW_SWEEP_REST_MS);
}


void
ngx_http_llmgw_usage_end(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_sweep_walk_t  walk;

    ngx_memzero(&walk, sizeof(ngx_http_llmgw_sweep_walk_t));
    walk.keys = keys;
    walk.judges = 1;
    walk.is_last = 1;

    while (ngx_http_llmgw_sweep_step(&walk) == NGX_AGAIN) {
        /* void */
    }
}


/* 1: no other worker did within the last second, or this walk continues. */

static ngx_uint_t
ngx_http_llmgw_sweep_claim(ngx_http_llmgw_keys_t *keys, ngx_uint_t goes_on)
{
    ngx_uint_t                     may;
    ngx_http_llmgw_keys_shared_t  *shared;

    (void) ngx_http_llmgw_keys_lock(keys);
    shared = ngx_http_llmgw_keys_shared(keys);

    may = goes_on || (ngx_msec_int_t) (ngx_current_msec - shared->swept_ms)
                     >= NGX_HTTP_LLMGW_SWEEP_MS;

    if (may) {
        shared->swept_ms = ngx_current_msec;
    }

    ngx_http_llmgw_keys_unlock(keys);

    return may;
}


static void
ngx_http_llmgw_sweep_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_sweep_walk_t  *walk = ev->data;

    if (walk->judges) {
        (void) ngx_http_llmgw_sweep_claim(walk->keys, 1);
    }

    if (ngx_http_llmgw_sweep_step(walk) == NGX_AGAIN) {
        ngx_add_timer(ev, NGX_HTTP_LLMGW_SWEEP_REST_MS);
        return;
    }

    ngx_free(walk);
}


static ngx_int_t
ngx_http_llmgw_sweep_step(ngx_http_llmgw_sweep_walk_t *walk)
{
    uint32_t              slot;
    ngx_uint_t            looked, ended;
    llmgw_process_t       owner;
    llmgw_accounts_t     *accounts;
    llmgw_usage_state_t   state;

    accounts = ngx_http_llmgw_keys_shared(walk->keys)->accounts;

    for (looked = 0, ended = 0;
         looked < NGX_HTTP_LLMGW_SWEEP_SLOTS
         && ended < NGX_HTTP_LLMGW_SWEEP_ENDED;
         looked++)
    {
        slot = llmgw_accounts_next_slot(accounts, walk->from, &state, &owner);

        if (slot == LLMGW_NO_USAGE_SLOT) {
            return NGX_OK;
        }

        walk->from = slot + 1;
        ended += ngx_http_llmgw_sweep_slot(walk, slot, state, owner);
    }

    return NGX_AGAIN;
}


/* 1: the slot was settled, or its record is returned once more. */

static ngx_uint_t
ngx_http_llmgw_sweep_slot(ngx_http_llmgw_sweep_walk_t *walk, uint32_t slot,
    llmgw_usage_state_t state, llmgw_process_t owner)
{
    int                          rc;
    ngx_uint_t                   is_own;
    llmgw_usage_t                record;
    llmgw_moment_t               now;
    llmgw_accounts_t            *accounts;
    ngx_http_llmgw_usage_log_t  *log;

    is_own = owner.pid == walk->keys->self.pid
             && owner.started == walk->keys->self.started && !walk->is_last;

    if (state == LLMGW_USAGE_SETTLED ? walk->is_stuck : is_own) {
        return 0;
    }

    if (!is_own && !ngx_http_llmgw_sweep_is_dead(walk, owner)) {
        return 0;
    }

    ngx_http_llmgw_keys_now(&now);

    accounts = ngx_http_llmgw_keys_lock(walk->keys);
    rc = is_own ? llmgw_accounts_unwritten(accounts, slot, owner, &record)
                : llmgw_accounts_settle_dead(accounts, slot, owner, &now,
                                             &record);
    ngx_http_llmgw_keys_unlock(walk->keys);

    if (rc && !walk->is_stuck) {
        ngx_http_llmgw_usage_write_record(walk->keys, slot, &record);
        log = walk->keys->main->usage_log;
        walk->is_stuck = log && log->failed;
    }

    return rc;
}


static ngx_uint_t
ngx_http_llmgw_sweep_is_dead(ngx_http_llmgw_sweep_walk_t *walk,
    llmgw_process_t owner)
{
    ngx_uint_t                     i;
    ngx_http_llmgw_sweep_owner_t  *known;

    if (!walk->judges) {
        return 0;
    }

    if (walk->is_last && owner.pid == walk->keys->self.pid) {
        return 1;
    }

    for (i = 0; i < ngx_min(walk->nowners, NGX_HTTP_LLMGW_SWEEP_OWNERS); i++) {
        known = &walk->owners[i];

        if (known->process.pid == owner.pid
            && known->process.started == owner.started)
        {
            return known->is_dead;
        }
    }

    known = &walk->owners[walk->nowners++ % NGX_HTTP_LLMGW_SWEEP_OWNERS];
    known->process = owner;
    known->is_dead = process_is_dead(owner.pid, owner.started);

    return known->is_dead;
}


/*
 * The replicas that a claim avoids: excluded ones, which failed it or had no
 * capacity, until it waits in the queue or has a token; and, until a time that
 * they gave, replicas that asked it to come later, whether exclusions were
 * dropped or not.
 *
 * They are kept as replicas, since indexes change with the table.  A replica
 * that was restarted since is neither excluded nor to be asked later.
 */

#include "attempt/claim.h"
#include "fleet/replica.h"


typedef struct {
    ngx_http_llmgw_replica_t     *replica;
    uint64_t                      start_ms;     /* start of its process */
    ngx_msec_t                    pushed_ms;    /* with is_pushed: not before */
    unsigned                      failed:1;     /* it has failed the claim's
                                                   stream */
    unsigned                      is_pushed:1;  /* asked the claim to come
                                                   later */
    unsigned                      is_dropped:1; /* no longer excluded */
} ngx_http_llmgw_excluded_t;


static uint32_t ngx_http_llmgw_excluded_but(
    const ngx_http_llmgw_claim_t *claim);
static void ngx_http_llmgw_excluded_tidy(ngx_http_llmgw_claim_t *claim);
static ngx_http_llmgw_excluded_t *ngx_http_llmgw_excluded_add(
    ngx_http_llmgw_claim_t *claim, ngx_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);


void
ngx_http_llmgw_excluded_set(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_asked_t *asked)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_replica_t   *replica;
    ngx_http_llmgw_excluded_t  *one;

    asked->pushed.peers = asked->later;
    asked->pushed.npeers = 0;
    asked->pushed.until_ms = UINT64_MAX;
    claim->ask.excluded = asked->excluded;
    claim->ask.nexcluded = 0;
    claim->ask.pushed = NULL;
    claim->ask.only = ngx_http_llmgw_excluded_but(claim);

    if (claim->excluded == NULL) {
        return;
    }

    ngx_http_llmgw_excluded_tidy(claim);

    one = claim->excluded->elts;

    for (i = 0; i < claim->excluded->nelts; i++, one++) {
        replica = one->replica;

        if (replica->index == -1
            || replica->member.replica_start_ms != one->start_ms)
        {
            continue;
        }

        if (!one->is_dropped) {
            asked->excluded[claim->ask.nexcluded++] = replica->index;
        }

        if (one->is_pushed) {
            asked->later[asked->pushed.npeers++] = replica->index;
            asked->pushed.until_ms = ngx_min(asked->pushed.until_ms,
                                            one->pushed_ms);
        }
    }

    if (asked->pushed.npeers) {
        claim->ask.pushed = &asked->pushed;
    }
}


/*
 * claim->only as llmgw_pick_key_t has it; a replica that is gone gets a number
 * that no peer has.
 */

static uint32_t
ngx_http_llmgw_excluded_but(const ngx_http_llmgw_claim_t *claim)
{
    const ngx_http_llmgw_replica_t  *only;

    only = claim->only;

    return only == NULL ? 0
           : only->index == -1
             || only->member.replica_start_ms != claim->only_start_ms
           ? UINT32_MAX : (uint32_t) only->index + 1;
}


/* Removes entries that are neither excluded nor to be asked later. */

static void
ngx_http_llmgw_excluded_tidy(ngx_http_llmgw_claim_t *claim)
{
    ngx_uint_t                  i, n;
    ngx_http_llmgw_excluded_t  *excluded;

    n = 0;
    excluded = claim->excluded->elts;

    for (i = 0; i < claim->excluded->nelts; i++) {

        if (excluded[i].is_pushed
            && (ngx_msec_int_t) (excluded[i].pushed_ms - ngx_current_msec)
               <= 0)
        {
            excluded[i].is_pushed = 0;
        }

        if (excluded[i].is_dropped && !excluded[i].is_pushed) {
            excluded[i].replica->holders--;
            continue;
        }

        excluded[n++] = excluded[i];
    }

    claim->excluded->nelts = n;
}


void
ngx_http_llmgw_claim_exclude(ngx_http_llmgw_claim_t *claim, ngx_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    (void) ngx_http_llmgw_excluded_add(claim, pool, replica, failed);
}


static ngx_http_llmgw_excluded_t *
ngx_http_llmgw_excluded_add(ngx_http_llmgw_claim_t *claim, ngx_pool_t *pool,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    ngx_http_llmgw_excluded_t  *excluded;

    if (claim->excluded == NULL) {
        claim->excluded = ngx_array_create(pool, 4,
                                           sizeof(ngx_http_llmgw_excluded_t));
    }

    if (claim->excluded == NULL
        || claim->excluded->nelts >= NGX_HTTP_LLMGW_MAX_EXCLUDED)
    {
        return NULL;
    }

    excluded = ngx_array_push(claim->excluded);
    if (excluded) {
        ngx_memzero(excluded, sizeof(ngx_http_llmgw_excluded_t));
        excluded->replica = replica;
        excluded->start_ms = replica->member.replica_start_ms;
        excluded->failed = (failed != 0);
        replica->holders++;
    }

    return excluded;
}


void
ngx_http_llmgw_claim_only(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica)
{
    claim->only = replica;
    claim->only_start_ms = replica->member.replica_start_ms;
    replica->holders++;
}


void
ngx_http_llmgw_claim_push_back(ngx_http_llmgw_claim_t *claim,
    ngx_pool_t *pool, ngx_http_llmgw_replica_t *replica, int64_t said_ms,
    ngx_uint_t failed)
{
    ngx_http_llmgw_excluded_t  *excluded;

    claim->refusals++;
    excluded = ngx_http_llmgw_excluded_add(claim, pool, replica, failed);

    if (excluded) {
        excluded->is_pushed = 1;
        excluded->pushed_ms = ngx_current_msec
                              + llmgw_full_pushback_ms(said_ms,
                                                       claim->refusals);
    }
}


void
ngx_http_llmgw_claim_clear_excluded(ngx_http_llmgw_claim_t *claim)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_excluded_t  *excluded;

    if (claim->only) {
        claim->only->holders--;
        claim->only = NULL;
    }

    if (claim->excluded == NULL) {
        return;
    }

    excluded = claim->excluded->elts;

    for (i = 0; i < claim->excluded->nelts; i++) {
        excluded[i].replica->holders--;
    }

    claim->excluded->nelts = 0;
}


void
ngx_http_llmgw_excluded_drop(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t but_failed)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_excluded_t  *excluded;

    if (claim->excluded == NULL) {
        return;
    }

    excluded = claim->excluded->elts;

    for (i = 0; i < claim->excluded->nelts; i++) {
        if (!but_failed || !excluded[i].failed) {
            excluded[i].is_dropped = 1;
        }
    }

    ngx_http_llmgw_excluded_tidy(claim);
}


/*
 * Admits a request, and settles its counts when it leaves.
 *
 * The rules are those of core/admission/rules.h; here they get the bucket, the
 * tenant's requests in flight, and the fleet's capacity.  All of these are the
 * upstream's, whichever of its models a request names.  The rule is applied and
 * the request counted in one step under the lock of the upstream's zone: so no
 * more requests are admitted than allowed, however many workers admit at once.
 *
 * A prompt costs a token for every four bytes of its text, rounded up.  When
 * the engine has reported the number of tokens, the bucket is settled by that;
 * a request that reached no replica has cost nothing.
 */

#include "admit/admit.h"
#include "fleet/replica.h"
#include "fleet/table.h"


#define NGX_HTTP_LLMGW_TOKEN_BYTES      4

/* no client has to wait for longer than a day */
#define NGX_HTTP_LLMGW_PUSHBACK_MAX_MS  (24 * 3600 * 1000)


static ngx_int_t ngx_http_llmgw_enter_ask(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, int64_t tokens, llmgw_end_t *end);
static ngx_uint_t ngx_http_llmgw_enter_is_limited(
    const ngx_http_llmgw_identity_t *identity);
static int64_t ngx_http_llmgw_enter_capacity(
    ngx_http_llmgw_upstream_t *upstream);
static int64_t ngx_http_llmgw_enter_capacity_of(ngx_http_llmgw_pool_t *pool);
static llmgw_rule_code_t ngx_http_llmgw_enter_ask_locked(
    ngx_http_llmgw_pool_t *pool, ngx_http_llmgw_identity_t *identity,
    int64_t capacity, int64_t tokens);
static void ngx_http_llmgw_enter_count(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity);
static void ngx_http_llmgw_enter_refuse(ngx_http_llmgw_pool_t *pool,
    llmgw_rule_code_t code, int64_t tokens, llmgw_end_t *end);
static void ngx_http_llmgw_leave_settle(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, ngx_int_t used);
static ngx_uint_t ngx_http_llmgw_leave_is_good(
    const ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_leave_t *leave);


ngx_int_t
ngx_http_llmgw_enter(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_claim_t *claim, llmgw_end_t *end)
{
    int64_t    tokens;
    ngx_int_t  rc;

    tokens = (identity->said.text_bytes + NGX_HTTP_LLMGW_TOKEN_BYTES - 1)
             / NGX_HTTP_LLMGW_TOKEN_BYTES;

    rc = ngx_http_llmgw_enter_ask(pool, identity, tokens, end);

    if (claim->traced) {
        ngx_http_llmgw_log_entry(pool->conf->log, claim->traced, tokens,
                                 rc == NGX_OK ? LLMGW_OUTCOME_SERVED
                                              : end->outcome);
    }

    return rc;
}


static ngx_int_t
ngx_http_llmgw_enter_ask(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, int64_t tokens, llmgw_end_t *end)
{
    int64_t            capacity;
    llmgw_rule_code_t  code;

    if (!pool->conf->admits) {
        ngx_http_llmgw_enter_count(pool, identity);
        return NGX_OK;
    }

    capacity = ngx_http_llmgw_enter_is_limited(identity)
               ? ngx_http_llmgw_enter_capacity(pool->upstream) : -1;

    ngx_http_llmgw_zone_lock(pool->upstream->zone);

    code = ngx_http_llmgw_enter_ask_locked(pool, identity, capacity, tokens);

    if (code == LLMGW_RULE_ADMITTED) {
        ngx_http_llmgw_enter_count(pool, identity);

    } else {
        ngx_http_llmgw_enter_refuse(pool, code, tokens, end);
    }

    ngx_http_llmgw_zone_unlock(pool->upstream->zone);

    return code == LLMGW_RULE_ADMITTED ? NGX_OK : NGX_DECLINED;
}


/* 1: its tenant has a budget, and the request may be shed for that. */

static ngx_uint_t
ngx_http_llmgw_enter_is_limited(const ngx_http_llmgw_identity_t *identity)
{
    return identity->budget && identity->priority < 0;
}


/*
 * The sum of the routable replicas' capacities; -1: one of them has no limit,
 * so shares have none either.
 */

static int64_t
ngx_http_llmgw_enter_capacity(ngx_http_llmgw_upstream_t *upstream)
{
    int64_t     capacity, sum;
    ngx_uint_t  i;

    ngx_http_llmgw_upstream_look(upstream);

    for (i = 0, sum = 0; i < upstream->conf->npools; i++) {

        if (upstream->pools[i] == NULL) {
            continue;
        }

        capacity = ngx_http_llmgw_enter_capacity_of(upstream->pools[i]);

        if (capacity == -1) {
            return -1;
        }

        sum += capacity;
    }

    return sum;
}


static int64_t
ngx_http_llmgw_enter_capacity_of(ngx_http_llmgw_pool_t *pool)
{
    int64_t                    capacity;
    ngx_uint_t                 i;
    ngx_http_llmgw_table_t    *table;
    ngx_http_llmgw_replica_t  *replica;

    table = pool->table;
    capacity = 0;

    for (i = 0; i < table->n; i++) {
        replica = table->replicas[i];

        if (!ngx_http_llmgw_replica_is_routable(replica)) {
            continue;
        }

        if (table->peers[i].max_capacity) {
            capacity += table->peers[i].max_capacity;
            continue;
        }

        if (!pool->unbudgeted) {
            pool->unbudgeted = 1;
            ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                          "llmgw: upstream \"%V\": replica \"%V\" has no "
                          "capacity, llmgw_tenant_budget has no effect",
                          &pool->conf->name, &replica->node.str);
        }

        return -1;
    }

    return capacity;
}


static llmgw_rule_code_t
ngx_http_llmgw_enter_ask_locked(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, int64_t capacity, int64_t tokens)
{
    llmgw_rule_t          rule;
    llmgw_cohorts_t      *cohorts;
    llmgw_tenant_t        tenant;
    llmgw_rule_code_t     code;
    llmgw_rule_request_t  request;

    cohorts = pool->upstream->zone->shared->cohorts;

    ngx_memzero(&rule, sizeof(llmgw_rule_t));
    ngx_memzero(&request, sizeof(llmgw_rule_request_t));

    rule.kind = pool->conf->rules->rule;
    rule.bucket = &cohorts->bucket;
    rule.capacity = capacity;

    request.priority = identity->priority;
    request.tokens = tokens;
    request.now_us = (int64_t) ngx_current_msec * 1000;

    if (ngx_http_llmgw_enter_is_limited(identity) && capacity != -1) {
        (void) llmgw_tenant_init(&tenant, identity->budget->fraction);
        tenant.in_flight = llmgw_cohorts_in_flight(cohorts,
                                                   identity->tenant_cohort);
        request.tenant = &tenant;
    }

    code = llmgw_rule_admit(&rule, &request);

    if (code == LLMGW_RULE_ADMITTED && rule.kind == LLMGW_RULE_TOKEN_BUCKET) {
        identity->tokens = tokens;
        identity->has_paid = 1;
    }

    return code;
}


static void
ngx_http_llmgw_enter_count(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity)
{
    if (identity->tenant_cohort) {
        ngx_http_llmgw_cohorts_began(pool->upstream->zone,
                                     identity->tenant_cohort);
        identity->in_flight = 1;
    }
}


/* Sets when the client may try again, if that is known. */

static void
ngx_http_llmgw_enter_refuse(ngx_http_llmgw_pool_t *pool,
    llmgw_rule_code_t code, int64_t tokens, llmgw_end_t *end)
{
    int64_t           ms;
    llmgw_cohorts_t  *cohorts;

    cohorts = pool->upstream->zone->shared->cohorts;

    ngx_memzero(end, sizeof(llmgw_end_t));

    switch (code) {

    case LLMGW_RULE_TENANT_BUDGET:
        end->outcome = LLMGW_OUTCOME_TENANT_BUDGET;
        break;

    case LLMGW_RULE_NO_TOKENS:
        ms = llmgw_bucket_wait_ms(&cohorts->bucket, (double) tokens);

        end->outcome = LLMGW_OUTCOME_TOKEN_BUCKET;
        end->pushback_ms = ngx_min(ms, NGX_HTTP_LLMGW_PUSHBACK_MAX_MS);
        break;

    default:
        end->outcome = LLMGW_OUTCOME_REJECT_ALL;
        break;
    }
}


void
ngx_http_llmgw_leave(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, const ngx_http_llmgw_leave_t *leave)
{
    ngx_uint_t  is_good;

    if (!identity->is_known) {
        return;
    }

    identity->is_known = 0;
    is_good = ngx_http_llmgw_leave_is_good(identity, leave);

    if (identity->in_flight) {
        identity->in_flight = 0;
        ngx_http_llmgw_cohorts_left(pool->upstream->zone,
                                    identity->tenant_cohort);
    }

    if (identity->has_paid && leave->prompt_tokens != -1) {
        ngx_http_llmgw_leave_settle(pool, identity, leave->prompt_tokens);
    }

    if (identity->class_cohort) {
        llmgw_cohort_ended(identity->class_cohort, leave->outcome, is_good);
    }

    if (identity->tenant_cohort) {
        llmgw_cohort_ended(identity->tenant_cohort, leave->outcome, is_good);
    }
}


static void
ngx_http_llmgw_leave_settle(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity, ngx_int_t used)
{
    ngx_http_llmgw_zone_lock(pool->upstream->zone);

    llmgw_bucket_settle(&pool->upstream->zone->shared->cohorts->bucket,
                        (double) identity->tokens, (double) used,
                        (int64_t) ngx_current_msec * 1000);

    ngx_http_llmgw_zone_unlock(pool->upstream->zone);
}


/* A target that is not set counts as met. */

static ngx_uint_t
ngx_http_llmgw_leave_is_good(const ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_leave_t *leave)
{
    if (leave->outcome != LLMGW_OUTCOME_SERVED || !leave->has_times
        || (identity->ttft && leave->first_token_ms > identity->ttft))
    {
        return 0;
    }

    return identity->itl == 0 || leave->tokens < 2
           || leave->tokens_ms <= identity->itl * (leave->tokens - 1);
}

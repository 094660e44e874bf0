
/*
 * A claim: a request wants a replica for a key, and gets a lease (lease.c).
 *
 * core/admission/ decides, in one step for all workers.  Here the facts are
 * collected, the zone is locked, and the decision is carried out: the replica
 * of a lease, the list of waiting claims (queue.c), the wake-up of another
 * worker, the log.
 */

#include "attempt/claim.h"
#include "attempt/queue.h"
#include "fleet/replica.h"
#include "fleet/table.h"


static void ngx_http_llmgw_claim_ask(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_admission_answer_t *answer);
static void ngx_http_llmgw_claim_view(ngx_http_llmgw_claim_t *claim,
    uint64_t chance, llmgw_model_set_t *serving,
    llmgw_admission_view_t *view);
static void ngx_http_llmgw_claim_rank(ngx_http_llmgw_claim_t *claim,
    uint64_t chance, llmgw_pick_pool_t *pick);
static void ngx_http_llmgw_claim_fleet(ngx_http_llmgw_pool_t *pool,
    const llmgw_pick_pool_t *pick, ngx_http_llmgw_fleet_t *fleet);
static void ngx_http_llmgw_claim_trace(ngx_http_llmgw_claim_t *claim,
    const llmgw_admission_answer_t *answer, ngx_uint_t is_hedge);
static void ngx_http_llmgw_claim_apply(ngx_http_llmgw_claim_t *claim,
    uint32_t entry, llmgw_admission_answer_t *answer);
static void ngx_http_llmgw_claim_count_held(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t was_held);
static ngx_uint_t ngx_http_llmgw_claim_again(ngx_http_llmgw_claim_t *claim,
    llmgw_admission_answer_t *answer);
static void ngx_http_llmgw_claim_leased(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_lease_t *lease, llmgw_admission_answer_t *answer);
static void ngx_http_llmgw_claim_log_full(ngx_http_llmgw_pool_t *pool);


void
ngx_http_llmgw_claim_init(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, ngx_pool_t *memory, uint64_t hash)
{
    claim->pool = pool;
    claim->ask.hash = hash;
    claim->ask.entry = LLMGW_QUEUE_NONE;
    claim->ask.priority = LLMGW_CLASS_DEFAULT;

    if (ngx_http_llmgw_log_takes(pool->conf)) {
        claim->traced = ngx_pcalloc(memory, sizeof(ngx_http_llmgw_traced_t));
    }

    if (claim->traced) {
        claim->traced->model = pool->model;
    }
}


void
ngx_http_llmgw_claim_model(ngx_http_llmgw_claim_t *claim, ngx_str_t *name)
{
    llmgw_serves_t  serves;

    serves = ngx_http_llmgw_pool_serves(claim->pool, name);

    claim->model = (serves == LLMGW_SERVES_SOME
                    || serves == LLMGW_SERVES_MAYBE)
                   ? llmgw_models_hash((char *) name->data, name->len) : 0;
    claim->base = claim->pool->base;
}


llmgw_admission_rc_t
ngx_http_llmgw_claim(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route)
{
    ngx_http_llmgw_pool_t     *pool;
    llmgw_admission_answer_t   answer;

    pool = claim->pool;

    ngx_http_llmgw_pool_look(pool);

    if (pool->table->nusable == 0 && ngx_http_llmgw_table_is_behind(pool)) {
        ngx_http_llmgw_table_finish(pool);
    }

    do {
        ngx_http_llmgw_claim_ask(claim, lease, &answer);
    } while (ngx_http_llmgw_claim_again(claim, &answer));

    if (answer.rc == LLMGW_ADMISSION_LEASED) {
        ngx_http_llmgw_claim_leased(pool, lease, &answer);
        *route = answer.picked.route;

    } else if (answer.rc == LLMGW_ADMISSION_FULL) {
        ngx_http_llmgw_claim_log_full(pool);
    }

    if (claim->traced) {
        ngx_http_llmgw_claim_trace(claim, &answer, 0);
    }

    return answer.rc;
}


static void
ngx_http_llmgw_claim_ask(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_admission_answer_t *answer)
{
    uint32_t                 entry;
    uint64_t                 chance;
    ngx_uint_t               was_held;
    llmgw_model_set_t        serving;
    ngx_http_llmgw_zone_t   *zone;
    ngx_http_llmgw_asked_t   asked;
    llmgw_admission_view_t   view;

    zone = claim->pool->zone;
    entry = claim->ask.entry;
    was_held = claim->ask.is_held;
    chance = ((uint64_t) ngx_random() << 32) ^ (uint64_t) ngx_random();

    ngx_http_llmgw_excluded_set(claim, &asked);
    ngx_http_llmgw_claim_view(claim, chance, &serving, &view);

    ngx_http_llmgw_zone_lock(zone);

    if (claim->traced) {
        ngx_http_llmgw_log_look(claim->pool->conf->log, &view.pick);
    }

    llmgw_admission_claim(&zone->self, &view, &claim->ask, &lease->held,
                          ngx_current_msec, chance, answer);

    ngx_http_llmgw_zone_unlock(zone);

    ngx_http_llmgw_claim_apply(claim, entry, answer);
    ngx_http_llmgw_claim_count_held(claim, was_held);
}


/* The numbers of lists change, so `serving` is computed each time. */

static void
ngx_http_llmgw_claim_view(ngx_http_llmgw_claim_t *claim, uint64_t chance,
    llmgw_model_set_t *serving, llmgw_admission_view_t *view)
{
    int                     is_known;
    llmgw_pick_key_t        key;
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;
    claim->ask.serving = NULL;

    if (llmgw_models_restrict(&pool->upstream->models.known, pool->base,
                              claim->base, claim->model, serving))
    {
        claim->ask.serving = serving;
    }

    ngx_http_llmgw_table_peers(pool, &view->pick);

    view->places = pool->table->places;
    view->queue_size = pool->conf->queue_size;
    view->hold_ms = ngx_http_llmgw_table_hold_ms(pool);
    view->is_empty = ngx_http_llmgw_table_is_empty(pool) != 0;
    view->hedge_budget_permille = pool->conf->hedge_budget;
    view->saturation = ngx_http_llmgw_table_saturation(pool, &is_known);

    if (!is_known) {
        ngx_http_llmgw_metrics_saturation_unknown(pool->zone);
    }

    if (claim->traced) {
        key = llmgw_claim_key(&claim->ask, ngx_current_msec, chance);
        ngx_http_llmgw_log_prepare(pool->conf->log, &view->pick, &key);
    }

    if (pool->choice) {
        ngx_http_llmgw_claim_rank(claim, chance, &view->pick);
    }
}


/* Ranks candidates again for each call, by the current facts. */

static void
ngx_http_llmgw_claim_rank(ngx_http_llmgw_claim_t *claim, uint64_t chance,
    llmgw_pick_pool_t *pick)
{
    llmgw_pick_key_t         key;
    ngx_http_llmgw_pool_t   *pool;
    ngx_http_llmgw_fleet_t   fleet;

    pool = claim->pool;
    key = llmgw_claim_key(&claim->ask, ngx_current_msec, chance);

    ngx_http_llmgw_pool_look_at_loads(pool);
    ngx_http_llmgw_claim_fleet(pool, pick, &fleet);

    pick->ranked = ngx_http_llmgw_choice_rank(pool->choice, &fleet, &key,
                                              claim->blocks, claim->nblocks);
}


static void
ngx_http_llmgw_claim_fleet(ngx_http_llmgw_pool_t *pool,
    const llmgw_pick_pool_t *pick, ngx_http_llmgw_fleet_t *fleet)
{
    fleet->pick = *pick;
    fleet->facts = pool->table->facts;
    fleet->places = pool->table->places;
    fleet->owners = pool->table->owners;
    fleet->clock_ms = ngx_http_llmgw_pool_clock_ms(pool);
}


/* 1: the request is in the sample of the decision log. */

static void
ngx_http_llmgw_claim_trace(ngx_http_llmgw_claim_t *claim,
    const llmgw_admission_answer_t *answer, ngx_uint_t is_hedge)
{
    llmgw_pick_pool_t          pick;
    ngx_http_llmgw_pool_t     *pool;
    ngx_http_llmgw_fleet_t     fleet;
    ngx_http_llmgw_decided_t   decided;

    pool = claim->pool;

    ngx_memzero(&decided, sizeof(ngx_http_llmgw_decided_t));

    if (pool->choice) {
        decided.choice = pool->choice;
        decided.fleet = &pool->choice->fleet;

    } else {
        ngx_http_llmgw_table_peers(pool, &pick);
        ngx_http_llmgw_claim_fleet(pool, &pick, &fleet);
        decided.fleet = &fleet;
    }

    decided.traced = claim->traced;
    decided.nodes = pool->table->nodes;
    decided.answer = answer;
    decided.nblocks = claim->nblocks;
    decided.is_hedge = is_hedge;

    ngx_http_llmgw_log_decided(pool->conf->log, &decided);
}


/* entry: the claim's in the queue, before core was asked */

static void
ngx_http_llmgw_claim_apply(ngx_http_llmgw_claim_t *claim, uint32_t entry,
    llmgw_admission_answer_t *answer)
{
    if (answer->forget != LLMGW_FORGET_NOTHING) {
        ngx_http_llmgw_excluded_drop(claim,
                                answer->forget == LLMGW_FORGET_BUT_FAILED);
    }

    if (answer->has_left) {
        ngx_http_llmgw_queue_left(claim, entry);
    }

    if (answer->has_left && answer->rc == LLMGW_ADMISSION_LEASED) {
        ngx_http_llmgw_metrics_time(claim->pool->zone,
                            NGX_HTTP_LLMGW_HISTOGRAM_queue_wait_seconds,
                            ngx_current_msec - claim->ask.joined_ms);
    }

    if (answer->has_joined) {
        ngx_http_llmgw_queue_joined(claim);
    }

    ngx_http_llmgw_queue_tell(claim->pool, &answer->wake);
    ngx_http_llmgw_queue_tell(claim->pool, &answer->shed);
}


static void
ngx_http_llmgw_claim_count_held(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t was_held)
{
    int                        change;
    ngx_http_llmgw_pool_t     *pool;
    ngx_http_llmgw_waiting_t  *waiting;

    change = (int) claim->ask.is_held - (int) was_held;

    if (change == 0) {
        return;
    }

    pool = claim->pool;
    waiting = pool->waiting;
    waiting->nheld += change;

    ngx_http_llmgw_metrics_held(pool->zone, change);

    if (change > 0 && waiting->nheld == 1) {
        ngx_log_error(NGX_LOG_NOTICE, pool->worker->log, 0,
                      "llmgw: upstream \"%V\": no replica is there, requests "
                      "are held for %M ms", &pool->conf->name,
                      pool->conf->queue_hold);
    }
}


/* 1: the pool has changed: ask core again. */

static ngx_uint_t
ngx_http_llmgw_claim_again(ngx_http_llmgw_claim_t *claim,
    llmgw_admission_answer_t *answer)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = claim->pool;

    if (answer->rc == LLMGW_ADMISSION_STALE) {
        ngx_http_llmgw_replica_stamp(
            pool->table->replicas[answer->picked.peer]);
        return 1;
    }

    if ((answer->rc == LLMGW_ADMISSION_NONE
         || (answer->rc == LLMGW_ADMISSION_EXCLUDED
             && (claim->ask.resumes || claim->model
                 || claim->ask.may_restart)))
        && ngx_http_llmgw_table_is_behind(pool))
    {
        /* replicas that could serve are in the next table */
        ngx_http_llmgw_table_finish(pool);
        return 1;
    }

    return 0;
}


static void
ngx_http_llmgw_claim_leased(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_lease_t *lease, llmgw_admission_answer_t *answer)
{
    lease->replica = pool->table->replicas[answer->picked.peer];

    if (pool->choice) {
        ngx_http_llmgw_choice_note(pool->choice, &answer->picked);
    }

    ngx_http_llmgw_lease_began(lease, answer->change);
}


ngx_uint_t
ngx_http_llmgw_claim_second(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *first, ngx_uint_t budget,
    ngx_http_llmgw_lease_t *lease)
{
    uint64_t                   chance;
    llmgw_model_set_t          serving;
    ngx_http_llmgw_pool_t     *pool;
    ngx_http_llmgw_asked_t     asked;
    llmgw_admission_view_t     view;
    llmgw_admission_answer_t   answer;

    if (first->index == -1) {
        return 0;
    }

    pool = claim->pool;

    do {
        ngx_http_llmgw_excluded_set(claim, &asked);
        asked.excluded[claim->ask.nexcluded++] = first->index;
        chance = ngx_random();
        ngx_http_llmgw_claim_view(claim, chance, &serving, &view);
        view.pick.nstandbys = 0;        /* a hedge never goes to a LAST peer */

        ngx_http_llmgw_zone_lock(pool->zone);

        if (claim->traced) {
            ngx_http_llmgw_log_look(pool->conf->log, &view.pick);
        }

        llmgw_admission_second(&pool->zone->self, &view, &claim->ask,
                               budget != 0, &lease->held, ngx_current_msec,
                               chance, &answer);

        ngx_http_llmgw_zone_unlock(pool->zone);

    } while (answer.rc == LLMGW_ADMISSION_STALE
             && ngx_http_llmgw_claim_again(claim, &answer));

    if (answer.rc != LLMGW_ADMISSION_LEASED) {
        return 0;
    }

    ngx_http_llmgw_claim_leased(pool, lease, &answer);

    if (claim->traced) {
        ngx_http_llmgw_claim_trace(claim, &answer, 1);
    }

    return 1;
}


/* Once a second at most, which is enough for operators to notice. */

static void
ngx_http_llmgw_claim_log_full(ngx_http_llmgw_pool_t *pool)
{
    if (pool->waiting->full_logged == ngx_time()) {
        return;
    }

    pool->waiting->full_logged = ngx_time();

    ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                  "llmgw: upstream \"%V\": %s, %uD wait, refusing requests",
                  &pool->conf->name,
                  ngx_http_llmgw_table_is_empty(pool)
                  ? "no replica is there and the queue is full"
                  : "replicas and queue are full",
                  pool->zone->self.shared->queue.length);
}


/*
 * 1: a ttl applies.  A stream with tokens out has none: its client is reading.
 */

static ngx_uint_t
ngx_http_llmgw_claim_has_ttl(ngx_http_llmgw_claim_t *claim)
{
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = claim->pool->conf;

    return conf->queue_ttl && conf->queue_ttl < conf->queue_timeout
           && !claim->ask.is_urgent;
}


ngx_msec_t
ngx_http_llmgw_claim_patience(ngx_http_llmgw_claim_t *claim)
{
    return ngx_http_llmgw_claim_has_ttl(claim)
           ? claim->pool->conf->queue_ttl : claim->pool->conf->queue_timeout;
}


llmgw_outcome_t
ngx_http_llmgw_claim_expires(ngx_http_llmgw_claim_t *claim)
{
    if (claim->ask.is_held) {
        return LLMGW_OUTCOME_NO_REPLICAS;
    }

    if (claim->pool->zone->self.shared->waits_for == LLMGW_WAITS_CIRCUIT) {
        return LLMGW_OUTCOME_CIRCUITS_OPEN;
    }

    return ngx_http_llmgw_claim_has_ttl(claim) ? LLMGW_OUTCOME_QUEUE_TTL
                                               : LLMGW_OUTCOME_QUEUE_TIMEOUT;
}


void
ngx_http_llmgw_claim_leave(ngx_http_llmgw_claim_t *claim)
{
    uint32_t                entry;
    ngx_uint_t              was_held;
    llmgw_wake_t            wake;
    ngx_http_llmgw_zone_t  *zone;

    entry = claim->ask.entry;
    was_held = claim->ask.is_held;

    if (entry == LLMGW_QUEUE_NONE) {
        return;
    }

    zone = claim->pool->zone;

    ngx_http_llmgw_zone_lock(zone);
    llmgw_admission_leave(&zone->self, &claim->ask, ngx_current_msec, &wake);
    ngx_http_llmgw_zone_unlock(zone);

    ngx_http_llmgw_queue_left(claim, entry);
    ngx_http_llmgw_queue_tell(claim->pool, &wake);
    ngx_http_llmgw_claim_count_held(claim, was_held);
}


void
ngx_http_llmgw_claim_move(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, ngx_str_t *name)
{
    ngx_http_llmgw_claim_leave(claim);
    ngx_http_llmgw_claim_clear_excluded(claim);

    claim->pool = pool;
    ngx_http_llmgw_claim_model(claim, name);

    if (claim->traced) {
        claim->traced->model = pool->model;
    }
}


/* Uses the resume group that the replica has now. */

void
ngx_http_llmgw_claim_resume_as(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica)
{
    const llmgw_models_t  *known;

    claim->ask.resumes = 1;
    claim->ask.resume_group = replica->resume_group;

    if (claim->base == 0 && replica->models) {
        known = &claim->pool->upstream->models.known;
        claim->base = known->lists[replica->models]->base;
    }
}

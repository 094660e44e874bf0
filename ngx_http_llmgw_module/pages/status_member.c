
/* llmgw_status: a replica, a gateway, and a group with standbys. */

#include "core/quantile.h"
#include "pages/status.h"


static json_t *ngx_http_llmgw_status_lock(uint64_t lock);
static json_t *ngx_http_llmgw_status_listed(ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_group(const llmgw_member_t *member);
static json_t *ngx_http_llmgw_status_slot(ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_breaker(
    ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_first_token(ngx_http_llmgw_slot_t *slot);
static json_t *ngx_http_llmgw_status_reported(
    ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_models(ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_engine(ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_figure(const llmgw_engine_load_t *engine,
    ngx_uint_t bit, ngx_uint_t value);
static json_t *ngx_http_llmgw_status_facts(ngx_http_llmgw_replica_t *replica);
static double ngx_http_llmgw_status_share(ngx_http_llmgw_replica_t *replica);


ngx_int_t
ngx_http_llmgw_status_standby(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json)
{
    const llmgw_takeover_t          *takeover;
    const ngx_http_llmgw_standby_t  *standby;

    if (i == snapshot->nstandbys) {
        return NGX_DONE;
    }

    standby = &snapshot->standbys[i];
    takeover = &standby->takeover;

    *json = json_pack("{s:s, s:s?, s:I, s:o, s:I, s:I, s:b, s:I, s:o, s:o}",
                      "name", standby->name,
                      "active", standby->active[0] ? standby->active : NULL,
                      "epoch", (json_int_t) standby->group.epoch,
                      "lock", ngx_http_llmgw_status_lock(standby->group.lock),
                      "standby", (json_int_t) standby->group.nstandbys,
                      "waking", (json_int_t) standby->group.nwaking,
                      "conflict", (int) standby->group.is_conflict,
                      "takeovers", (json_int_t) takeover->count,
                      "active_ms", takeover->count
                      ? json_integer((json_int_t) takeover->active_ms)
                      : json_null(),
                      "first_token_ms", takeover->has_first_token
                      ? json_integer((json_int_t) takeover->first_token_ms)
                      : json_null());

    return NGX_OK;
}


/* As lock services and their tools write it; null: none. */

static json_t *
ngx_http_llmgw_status_lock(uint64_t lock)
{
    char  hex[2 * sizeof(uint64_t) + 1];

    (void) ngx_sprintf((u_char *) hex, "%016xL%Z", lock);

    return lock ? json_string(hex) : json_null();
}


ngx_int_t
ngx_http_llmgw_status_gateway(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json)
{
    const char            *cause;
    llmgw_liveness_t       state;
    const llmgw_member_t  *member;

    if (i == snapshot->ngateways) {
        return NGX_DONE;
    }

    member = &snapshot->gateways[i];
    state = ngx_http_llmgw_replica_shown(member, &cause);

    *json = json_pack("{s:s, s:s, s:s, s:s?}",
                      "id", member->id,
                      "address", member->address,
                      "state", llmgw_liveness_name(state),
                      "cause", cause);

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_status_replica(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_uint_t i, json_t **json)
{
    if (i == snapshot->n) {
        return NGX_DONE;
    }

    *json = ngx_http_llmgw_status_listed(snapshot->replicas[i]);

    return NGX_OK;
}


static json_t *
ngx_http_llmgw_status_listed(ngx_http_llmgw_replica_t *replica)
{
    json_t            *json;
    const char        *cause;
    llmgw_member_t    *m;
    llmgw_liveness_t   state;

    m = &replica->member;
    state = ngx_http_llmgw_replica_shown(m, &cause);

    json = json_pack("{s:s%, s:s, s:s, s:s?, s:s, s:b, s:s?, s:b, s:s, s:s, "
                     "s:o, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:f}",
                     "id", replica->node.str.data, replica->node.str.len,
                     "address", m->grpc,
                     "state", llmgw_liveness_name(state),
                     "cause", cause,
                     "service", llmgw_service_name(m->service),
                     "draining", (int) m->draining,
                     "drain_owner", m->drain_owner[0] ? m->drain_owner : NULL,
                     "routable",
                     (int) ngx_http_llmgw_replica_is_routable(replica),
                     "model_version", m->model_version,
                     "resume_group", m->resume_group,
                     "group", ngx_http_llmgw_status_group(m),
                     "models", ngx_http_llmgw_status_models(replica),
                     "models_cut", (json_int_t) m->models_cut,
                     "engine", ngx_http_llmgw_status_engine(replica),
                     "facts", ngx_http_llmgw_status_facts(replica),
                     "replica_start_ms", (json_int_t) m->replica_start_ms,
                     "weight", (json_int_t) m->weight,
                     "max_capacity", (json_int_t) m->max_capacity,
                     "reported", ngx_http_llmgw_status_reported(replica),
                     "share", ngx_http_llmgw_status_share(replica));

    if (json) {
        (void) json_object_update_new(json,
                                      ngx_http_llmgw_status_slot(replica));
    }

    return json;
}


/* Its standby group; null: it is of none. */

static json_t *
ngx_http_llmgw_status_group(const llmgw_member_t *member)
{
    if (member->group_state == LLMGW_GROUP_NONE) {
        return json_null();
    }

    return json_pack("{s:s, s:s, s:I, s:o}",
                     "name", member->group,
                     "state", llmgw_group_state_name(member->group_state),
                     "epoch", (json_int_t) member->group_epoch,
                     "lock", ngx_http_llmgw_status_lock(member->group_lock));
}


/* What all workers have counted; a replica without a slot is not routed. */

static json_t *
ngx_http_llmgw_status_slot(ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = replica->slot;

    if (slot == NULL) {
        return json_pack("{s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:n, s:n}",
                         "in_flight", 0, "tokens", 0, "attempts", 0,
                         "failures", 0, "rates", "tokens", 0, "attempts", 0,
                         "first_token", "breaker");
    }

    return json_pack("{s:I, s:I, s:I, s:I, s:{s:f, s:f}, s:o, s:o}",
                     "in_flight", (json_int_t) slot->admission.counts.in_flight,
                     "tokens", (json_int_t) slot->tokens,
                     "attempts", (json_int_t) slot->attempts,
                     "failures", (json_int_t) slot->failures,
                     "rates",
                     "tokens", slot->tokens_rate,
                     "attempts", slot->attempts_rate,
                     "first_token", ngx_http_llmgw_status_first_token(slot),
                     "breaker", ngx_http_llmgw_status_breaker(replica));
}


static json_t *
ngx_http_llmgw_status_first_token(ngx_http_llmgw_slot_t *slot)
{
    uint64_t  weights[NGX_HTTP_LLMGW_NFIRST_TOKEN];

    ngx_memzero(weights, sizeof(weights));
    ngx_http_llmgw_recent_add(weights, slot);

    return ngx_http_llmgw_status_quantiles(weights);
}


json_t *
ngx_http_llmgw_status_quantiles(const uint64_t *weights)
{
    double             p50, p99;
    const ngx_msec_t  *bounds;

    bounds = ngx_http_llmgw_metrics_bounds(
                 NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds);
    p50 = llmgw_quantile(bounds, weights, 500);
    p99 = llmgw_quantile(bounds, weights, 990);

    return p50 < 0 ? json_null()
                   : json_pack("{s:f, s:f}", "p50_ms", p50, "p99_ms", p99);
}


static json_t *
ngx_http_llmgw_status_breaker(ngx_http_llmgw_replica_t *replica)
{
    uint64_t                 retry_ms;
    json_int_t               wait_ms;
    llmgw_breaker_t         *breaker;
    llmgw_breaker_conf_t    *conf;
    llmgw_breaker_state_t    state;
    llmgw_breaker_counts_t   counts;

    breaker = &replica->slot->admission.breaker;
    conf = &replica->pool->conf->breaker;

    if (!conf->enabled) {
        return json_null();
    }

    ngx_http_llmgw_zone_lock(replica->pool->zone);

    state = llmgw_breaker_state(breaker, conf);
    counts = llmgw_breaker_counts(breaker, conf, ngx_current_msec);
    retry_ms = llmgw_breaker_retry_ms(breaker, conf);

    ngx_http_llmgw_zone_unlock(replica->pool->zone);

    wait_ms = (json_int_t) (retry_ms - ngx_current_msec);

    return json_pack("{s:s, s:I, s:I, s:o}",
                     "state", llmgw_breaker_state_name(state),
                     "failures", (json_int_t) counts.failed,
                     "requests", (json_int_t) counts.total,
                     "probe_in_ms", state == LLMGW_BREAKER_OPEN
                     ? json_integer(ngx_max(wait_ms, 0)) : json_null());
}


/* The load that the replica reports; null: none yet, or a static server. */

static json_t *
ngx_http_llmgw_status_reported(ngx_http_llmgw_replica_t *replica)
{
    const llmgw_member_load_t  *load;

    load = ngx_http_llmgw_replica_load(replica);

    return load ? json_integer(load->active_requests) : json_null();
}


/* The names that it reports; the first is its base model. */

static json_t *
ngx_http_llmgw_status_models(ngx_http_llmgw_replica_t *replica)
{
    size_t               at;
    json_t              *names;
    llmgw_model_list_t  *list;

    names = json_array();
    list = replica->pool->models.known.lists[replica->models];

    for (at = 0; list && at < list->bytes; at += ngx_strlen(list->names + at)
                                                 + 1)
    {
        (void) json_array_append_new(names, json_string(list->names + at));
    }

    return names;
}


static json_t *
ngx_http_llmgw_status_engine(ngx_http_llmgw_replica_t *replica)
{
    const llmgw_engine_load_t  *engine;
    const llmgw_member_load_t  *load;

    load = ngx_http_llmgw_replica_load(replica);

    if (load == NULL
        || (load->engine.told & (LLMGW_ENGINE_RUNNING|LLMGW_ENGINE_WAITING
                                 |LLMGW_ENGINE_KV)) == 0)
    {
        return json_null();
    }

    engine = &load->engine;

    return json_pack("{s:o, s:o, s:o}",
                     "running",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_RUNNING,
                                                  engine->running),
                     "waiting",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_WAITING,
                                                  engine->waiting),
                     "kv_permille",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_KV,
                                                  engine->kv_permille));
}


static json_t *
ngx_http_llmgw_status_figure(const llmgw_engine_load_t *engine,
    ngx_uint_t bit, ngx_uint_t value)
{
    return (engine->told & bit) ? json_integer((json_int_t) value)
                                : json_null();
}


/* What policies read of it, and how old that is. */

static json_t *
ngx_http_llmgw_status_facts(ngx_http_llmgw_replica_t *replica)
{
    uint64_t                    now;
    const llmgw_member_load_t  *load;
    const llmgw_engine_load_t  *engine;

    load = ngx_http_llmgw_replica_load(replica);

    if (load == NULL) {
        return json_null();
    }

    now = ngx_http_llmgw_monotonic_ms();
    engine = &load->engine;

    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
                     "age_ms", (json_int_t) (now - ngx_min(now,
                                                           load->reported_ms)),
                     "active", (json_int_t) load->active_requests,
                     "running",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_RUNNING,
                                                  engine->running),
                     "waiting",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_WAITING,
                                                  engine->waiting),
                     "kv_permille",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_KV,
                                                  engine->kv_permille),
                     "kv_free_blocks",
                     ngx_http_llmgw_status_figure(engine,
                                                  LLMGW_ENGINE_FREE_BLOCKS,
                                                  engine->kv_free_blocks),
                     "hit_permille",
                     ngx_http_llmgw_status_figure(engine, LLMGW_ENGINE_HITS,
                                                  engine->hit_permille));
}


static double
ngx_http_llmgw_status_share(ngx_http_llmgw_replica_t *replica)
{
    return replica->index == -1
           ? 0 : llmgw_ring_share_ppm(replica->pool->table->ring,
                                      replica->index) / 1000000.0;
}

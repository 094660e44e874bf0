
/*
 * Replicas.  A slot whose replica is no longer listed has counters, but no
 * gauges; the counts of slots that were given up are summed as replica "".
 */

#include "pages/facts/snapshot.h"


#define NGX_HTTP_LLMGW_REPLICA_METRICS(X)                                     \
    X(tokens, COUNTER, ONE, "Tokens sent to clients, each once")              \
    X(attempts, COUNTER, ONE, "Attempts begun")                               \
    X(attempt_failures, COUNTER, ONE, "Attempts that failed")                 \
    X(model_denials, COUNTER, ONE,                                            \
      "Attempts whose engine does not know a model that it reports")          \
    X(in_flight, GAUGE, ONE, "Attempts in flight at the replica")             \
    X(replica_state, GAUGE, ONE, "0 ALIVE, 1 SUSPECT, 2 DEAD, 3 LEFT")        \
    X(replica_routable, GAUGE, ONE,                                           \
      "1: the replica is ALIVE, READY and not draining")                      \
    X(replica_draining, GAUGE, ONE, "1: the replica is draining")             \
    X(replica_max_capacity, GAUGE, ONE,                                       \
      "Concurrent streams that it takes, 0: no limit")                        \
    X(breaker_state, GAUGE, ONE, "0 closed, 1 open, 2 half open")             \
    X(engine_running, GAUGE, FRACTION,                                        \
      "Requests that the replica's engine runs")                              \
    X(engine_waiting, GAUGE, FRACTION,                                        \
      "Requests that wait in the replica's engine")                           \
    X(engine_kv_usage, GAUGE, PERMILLE,                                       \
      "Share of the KV cache of the replica's engine that is in use, 0 to 1") \
    X(engine_kv_free_blocks, GAUGE, FRACTION,                                 \
      "Free blocks of the KV cache of the replica's engine")                  \
    X(engine_hit_ratio, GAUGE, PERMILLE,                                      \
      "Share of its prompts that the replica's engine found in its KV cache") \
    X(replica_queue_depth, GAUGE, FRACTION,                                   \
      "Requests that wait in the replica's engine, as policies take it")      \
    X(replica_batch, GAUGE, FRACTION,                                         \
      "Requests that the replica's engine runs, as policies take it")         \
    X(replica_kv_utilization, GAUGE, PERMILLE,                                \
      "Share of the engine's KV cache in use, as policies take it, 0 to 1")   \
    X(replica_facts_age_seconds, GAUGE, MS,                                   \
      "Age of what the replica reported")                                     \
    X(replica_group_state, GAUGE, FRACTION,                                   \
      "Of its standby group: 1 init, 2 standby, 3 waking, 4 active")

enum {
    NGX_HTTP_LLMGW_REPLICA_METRICS(METRIC_INDEX)
    M_replica_info
};

#define METRICS  ngx_http_llmgw_replica_metrics

static const ngx_http_llmgw_metric_t  METRICS[] = {
    NGX_HTTP_LLMGW_REPLICA_METRICS(METRIC_ROW)
    METRIC_LABELLED(replica_info, GAUGE, ONE, SHARED,
                    "Always 1: the replica's base model", { "model" })
};

#define KNOWN(bit, value)                                                     \
    (known & (bit) ? (uint64_t) (value) : NGX_HTTP_LLMGW_ABSENT)


static void
ngx_http_llmgw_replica_member(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_replica_t *replica)
{
    const char        *cause;
    llmgw_member_t    *m;
    llmgw_liveness_t   state;

    m = &replica->member;
    state = ngx_http_llmgw_replica_shown(m, &cause);

    STATUS("id", STRING(&replica->node.str));
    STATUS("address", TEXT(m->grpc));
    FACT("state", replica_state, WORD(state, llmgw_liveness_name(state)));
    STATUS("cause", TEXT(cause));
    STATUS("service", TEXT(llmgw_service_name(m->service)));
    FACT("draining", replica_draining, FLAG(m->draining));
    STATUS("drain_owner", TEXT(m->drain_owner[0] ? m->drain_owner : NULL));
    FACT("routable", replica_routable,
         FLAG(ngx_http_llmgw_replica_is_routable(replica)));
    STATUS("model_version", TEXT(m->model_version));
    STATUS("resume_group", TEXT(m->resume_group));

    if (m->group_state == LLMGW_GROUP_NONE) {
        NOTHING("group");
        return;
    }

    OBJECT("group");
    STATUS("name", TEXT(m->group));
    FACT("state", replica_group_state,
         WORD(m->group_state, llmgw_group_state_name(m->group_state)));
    STATUS("epoch", NUMBER(m->group_epoch));
    ngx_http_llmgw_snapshot_lock(w, m->group_lock);
    END_OBJECT;
}


/* The names that it reports; the first is its base model. */

static void
ngx_http_llmgw_replica_models(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_replica_t *replica)
{
    size_t                     at;
    const llmgw_model_list_t  *list;

    list = replica->pool->upstream->models.known.lists[replica->models];

    if (list) {
        METRIC(replica_info, TEXT(list->names));
    }

    LIST("models");

    for (at = 0; list && at < list->bytes; at += ngx_strlen(list->names + at)
                                                 + 1)
    {
        STATUS(NULL, TEXT(list->names + at));
    }

    END_LIST;
    STATUS("models_cut", NUMBER(replica->member.models_cut));
}


/* What the replica reports about its engine, as in the report. */

static void
ngx_http_llmgw_replica_load_facts(ngx_http_llmgw_writer_t *w,
    const llmgw_member_load_t *load, uint64_t now_ms)
{
    uint64_t                    running, waiting, kv_permille;
    ngx_uint_t                  known;
    const llmgw_engine_load_t  *engine;

    if (load == NULL) {
        NOTHING("engine");
        NOTHING("facts");
        return;
    }

    engine = &load->engine;
    known = engine->reported;

    running = KNOWN(LLMGW_ENGINE_RUNNING, engine->running);
    waiting = KNOWN(LLMGW_ENGINE_WAITING, engine->waiting);
    kv_permille = KNOWN(LLMGW_ENGINE_KV, engine->kv_permille);

    if (known & (LLMGW_ENGINE_RUNNING|LLMGW_ENGINE_WAITING|LLMGW_ENGINE_KV)) {
        OBJECT("engine");
        STATUS("running", NUMBER(running));
        STATUS("waiting", NUMBER(waiting));
        STATUS("kv_permille", NUMBER(kv_permille));
        END_OBJECT;

    } else {
        NOTHING("engine");
    }

    OBJECT("facts");
    FACT("age_ms", replica_facts_age_seconds,
         NUMBER(now_ms - ngx_min(now_ms, load->reported_ms)));
    STATUS("active", NUMBER(load->active_requests));
    FACT("running", engine_running, NUMBER(running));
    FACT("waiting", engine_waiting, NUMBER(waiting));
    FACT("kv_permille", engine_kv_usage, NUMBER(kv_permille));
    FACT("kv_free_blocks", engine_kv_free_blocks,
         NUMBER(KNOWN(LLMGW_ENGINE_FREE_BLOCKS, engine->kv_free_blocks)));
    FACT("hit_permille", engine_hit_ratio,
         NUMBER(KNOWN(LLMGW_ENGINE_HITS, engine->hit_permille)));
    END_OBJECT;
}


/*
 * The same as policies use it: carried on since the report, and only for a
 * while (core/policy/facts.h).
 */

static void
ngx_http_llmgw_replica_taken(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_replica_t *replica, uint64_t now_ms)
{
    ngx_uint_t         known;
    llmgw_candidate_t  taken;

    if (w->is_status) {
        return;
    }

    known = llmgw_facts_known(&replica->facts, now_ms);
    llmgw_facts_carry(&replica->facts, known,
                      replica->slot->admission.counts.in_flight, &taken);

    METRIC(replica_queue_depth,
           NUMBER(KNOWN(LLMGW_FACT_WAITING, taken.queue_depth)));
    METRIC(replica_batch,
           NUMBER(KNOWN(LLMGW_FACT_RUNNING, taken.batch_size)));
    METRIC(replica_kv_utilization,
           REAL(known & LLMGW_FACT_KV ? taken.kv_utilization : NAN));
}


static void
ngx_http_llmgw_replica_breaker(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_replica_t *replica)
{
    uint64_t                 now, retry;
    llmgw_breaker_t         *breaker;
    llmgw_breaker_conf_t    *conf;
    llmgw_breaker_state_t    state;
    llmgw_breaker_counts_t   counts;

    breaker = &replica->slot->admission.breaker;
    conf = &replica->pool->conf->breaker;

    METRIC(breaker_state, NUMBER(llmgw_breaker_state(breaker, conf)));

    if (!w->is_status || !conf->enabled) {
        NOTHING("breaker");
        return;
    }

    now = ngx_current_msec;

    ngx_http_llmgw_zone_lock(replica->pool->zone);

    state = llmgw_breaker_state(breaker, conf);
    counts = llmgw_breaker_counts(breaker, conf, now);
    retry = llmgw_breaker_retry_ms(breaker, conf);

    ngx_http_llmgw_zone_unlock(replica->pool->zone);

    OBJECT("breaker");
    STATUS("state", TEXT(llmgw_breaker_state_name(state)));
    STATUS("failures", NUMBER(counts.failed));
    STATUS("requests", NUMBER(counts.total));
    STATUS("probe_in_ms", NUMBER(state == LLMGW_BREAKER_OPEN
                                 ? retry - ngx_min(retry, now)
                                 : NGX_HTTP_LLMGW_ABSENT));
    END_OBJECT;
}


/* What all workers have counted; a replica without a slot is not routed. */

static void
ngx_http_llmgw_replica_slot(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_replica_t *replica, uint64_t now_ms)
{
    uint64_t                      first_token[NGX_HTTP_LLMGW_NFIRST_TOKEN];
    const ngx_http_llmgw_slot_t  *slot;

    static const ngx_http_llmgw_slot_t  none;

    slot = replica->slot ? replica->slot : &none;

    FACT("in_flight", in_flight, NUMBER(slot->admission.counts.in_flight));
    FACT("tokens", tokens, NUMBER(slot->tokens));
    FACT("attempts", attempts, NUMBER(slot->attempts));
    FACT("failures", attempt_failures, NUMBER(slot->failures));
    METRIC(model_denials, NUMBER(slot->denials));

    OBJECT("rates");
    STATUS("tokens", REAL(slot->tokens_rate));
    STATUS("attempts", REAL(slot->attempts_rate));
    END_OBJECT;

    if (w->is_status) {
        ngx_memzero(first_token, sizeof(first_token));
        ngx_http_llmgw_recent_add(first_token, slot);
        ngx_http_llmgw_snapshot_quantiles(w, first_token);
    }

    if (replica->slot == NULL) {
        NOTHING("breaker");
        return;
    }

    ngx_http_llmgw_replica_taken(w, replica, now_ms);
    ngx_http_llmgw_replica_breaker(w, replica);
}


static ngx_int_t
ngx_http_llmgw_replica_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    unsigned                      pages;
    const ngx_http_llmgw_gone_t  *gone;
    const llmgw_member_load_t    *load;
    ngx_http_llmgw_replica_t     *replica;

    if (i == snapshot->n + snapshot->ngone) {
        return NGX_DONE;
    }

    if (i >= snapshot->n) {
        gone = &snapshot->gone[i - snapshot->n];

        if (w->item(w, &gone->id, NGX_HTTP_LLMGW_ON_METRICS)) {
            METRIC(tokens, NUMBER(gone->tokens));
            METRIC(attempts, NUMBER(gone->attempts));
            METRIC(attempt_failures, NUMBER(gone->failures));
            METRIC(model_denials, NUMBER(gone->denials));
        }

        return NGX_OK;
    }

    replica = snapshot->replicas[i];
    pages = NGX_HTTP_LLMGW_ON_STATUS
            | (snapshot->counted[i] ? NGX_HTTP_LLMGW_ON_METRICS : 0);

    if (!w->item(w, &replica->node.str, pages)) {
        return NGX_OK;
    }

    load = ngx_http_llmgw_replica_load(replica);

    ngx_http_llmgw_replica_member(w, replica);
    ngx_http_llmgw_replica_models(w, replica);
    ngx_http_llmgw_replica_load_facts(w, load, snapshot->now_ms);

    STATUS("replica_start_ms", NUMBER(replica->member.replica_start_ms));
    STATUS("weight", NUMBER(replica->member.weight));
    FACT("max_capacity", replica_max_capacity,
         NUMBER(replica->member.max_capacity));
    STATUS("reported", NUMBER(load ? load->active_requests
                                   : NGX_HTTP_LLMGW_ABSENT));
    STATUS("share", REAL(replica->index == -1 ? 0
                         : llmgw_ring_share_ppm(replica->pool->table->ring,
                                                replica->index) / 1000000.0));
    ngx_http_llmgw_replica_slot(w, replica, snapshot->now_ms);

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_replica = {
    SCOPE("replicas", "replica", ngx_http_llmgw_replica_walk)
};

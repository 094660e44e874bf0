
/*
 * The kind `shard`: a serve.h with libev around it.
 *
 * notified   the plugin has events; ev_async merges notifications
 * tick       ends what has waited too long
 *
 * For the agent and at SIGTERM, sessions are treated like the runs of other
 * kinds: they are counted as active, a draining replica accepts no new ones,
 * and a stopping one ends them.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/os/mono.h"
#include "proto/members/shards.h"
#include "replica/engine/engine.h"
#include "replica/shard/serve/kind.h"
#include "replica/shard/serve/kind_inner.h"


#define KIND_TICK_S  0.2


/* --- around the serve */

void
kind_enter(kind_t *k)
{
    struct timespec  wall;

    clock_gettime(CLOCK_REALTIME, &wall);

    serve_at(k->serve, mono_ms(), (uint64_t) wall.tv_sec);
    serve_drain(k->serve, engine_is_draining(k->engine));
}


void
kind_leave(kind_t *k)
{
    core_load_t  load;

    k->plugin->load(k->core, &load);
    k->engine->facts.waiting = load.waiting;
    k->engine->facts.running = serve_sessions(k->serve);
    k->engine->stats.active = (int32_t) serve_sessions(k->serve);
    k->engine->progress = load.steps;
}


static void
kind_on_notified(struct ev_loop *loop, ev_async *w, int revents)
{
    kind_t  *k;

    k = w->data;
    kind_enter(k);
    serve_notified(k->serve);
    kind_leave(k);
}


static void
kind_on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
    kind_t  *k;

    k = w->data;
    kind_enter(k);
    serve_tick(k->serve);
    kind_leave(k);
}


/* Called in the core's thread: ev_async_send() is the one libev function that
   other threads may call. */
static void
kind_notify(void *data)
{
    kind_t  *k;

    k = data;
    ev_async_send(k->engine->loop, &k->notified);
}


/* --- callbacks of the serve */

static void
kind_log_loaded(const kind_t *k)
{
    char                 weights[2 * SHARD_WEIGHTS_BYTES + 1];
    const log_t         *log;
    const core_facts_t  *f;

    f = serve_facts(k->serve);
    log = k->engine->log;
    llmgw_weights_id_write(f->weights_id, weights);

    log_write(log, LOG_INFO, "layers %u-%u of %u of \"%s\" are loaded after "
              "%u ms: %llu bytes with %lld sessions of %u tokens, weights id "
              "%s, numerics id \"%s\"", f->first_layer, f->last_layer,
              f->layers, f->model, f->load_ms,
              (unsigned long long) f->bytes,
              (long long) k->options->sessions, f->context, weights,
              f->numerics);

    if (f->is_stepwise) {
        log_write(log, LOG_WARN, "with this model on this processor only "
                  "one row in a call is exact, which is slow: quantized "
                  "weights and heads of a multiple of 32 values are faster");
    }
}


static void
kind_on_loaded(void *data, int is_loaded)
{
    kind_t  *k;

    k = data;
    k->is_loaded = is_loaded;
    k->engine->facts.state = ENGINE_READY;
    engine_publish(k->engine);

    if (is_loaded) {
        kind_log_loaded(k);

    } else {
        log_write(k->engine->log, LOG_INFO, "the slice is unloaded, nobody has "
                  "used it for a while");
    }
}


static void
kind_on_broken(void *data, const char *error)
{
    kind_t  *k;

    k = data;
    log_write(k->engine->log, LOG_ERROR, "%s", error);
    engine_fail(k->engine);
}


static void
kind_on_lost(void *data, const char *caller, shard_reason_t reason,
    const char *text)
{
    kind_t  *k;

    k = data;
    log_write(k->engine->log, LOG_WARN, "a session of \"%s\" ends, %s: %s",
              caller, shard_reason_name(reason), text);
}


/* --- reports */

static void
kind_report(const engine_t *engine, json_t *report)
{
    char                 weights[2 * SHARD_WEIGHTS_BYTES + 1];
    json_t              *shard;
    const kind_t        *k;
    const core_facts_t  *f;

    k = engine->data;
    f = serve_facts(k->serve);

    if (f == NULL) {
        return;
    }

    llmgw_weights_id_write(f->weights_id, weights);
    shard = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:b}",
                      "model", f->model,
                      "weights", weights,
                      "numerics", f->numerics,
                      "first", (int) f->first_layer,
                      "last", (int) f->last_layer,
                      "layers", (int) f->layers,
                      "memory", (json_int_t) f->bytes,
                      "loaded", k->is_loaded);

    if (shard != NULL && k->options->zone != NULL) {
        json_object_set_new(shard, "zone", json_string(k->options->zone));
    }

    json_object_set_new(report, "shard", shard);
    json_object_set_new(report, "callers",
                        callers_report(serve_callers(k->serve)));
}


static void
kind_stop(engine_t *engine, const char *text)
{
    kind_t  *k;

    k = engine->data;
    kind_enter(k);
    serve_stop(k->serve, text);
    kind_leave(k);
}


/* --- the kind */

static void
kind_close(engine_t *engine)
{
    kind_t  *k;

    k = engine->data;

    if (k->serve != NULL) {
        serve_destroy(k->serve);
    }

    ev_async_stop(engine->loop, &k->notified);
    ev_timer_stop(engine->loop, &k->tick);

    shard_key_close(k->key);
    tls_endpoint_close(&k->tls);
    loader_close(&k->loader);
    free(k);
    engine->data = NULL;
}


static int
kind_open_tls(kind_t *k)
{
    char  error[SHARD_TLS_ERROR_BYTES];

    if (shard_tls_open(&k->tls, &k->options->tls, k->engine->log, error)
        != 0)
    {
        log_write(k->engine->log, LOG_ERROR, "%s", error);
        return -1;
    }

    return 0;
}


static int
kind_open_key(kind_t *k)
{
    char  error[SHARD_KEY_ERROR_BYTES];

    if (k->options->key_file == NULL) {
        return 0;
    }

    k->key = shard_key_open(k->options->key_file, error);

    if (k->key == NULL) {
        log_write(k->engine->log, LOG_ERROR, "--shard-key: %s", error);
        return -1;
    }

    return 0;
}


static int
kind_open_core(kind_t *k, const engine_options_t *options)
{
    char            error[CORE_ERROR_BYTES];
    core_options_t  core;

    if (k->loader.shards == NULL) {
        log_write(k->engine->log, LOG_ERROR, "the plugin computes no shards");
        return -1;
    }

    memset(&core, 0, sizeof(core));
    core.file = k->options->slice;
    core.cpu = options->cpu;
    core.sequences = (uint32_t) k->options->sessions;
    core.context = (uint32_t) options->context_tokens;
    core.threads = (uint32_t) options->threads;
    core.is_fp16 = k->options->is_fp16;
    core.is_standby = 1;
    core.notify = kind_notify;
    core.data = k;

    k->plugin = k->loader.shards;
    k->core = k->plugin->open(&core, error);

    if (k->core == NULL) {
        log_write(k->engine->log, LOG_ERROR, "%s", error);
        return -1;
    }

    return 0;
}


static int
kind_open_serve(kind_t *k)
{
    serve_options_t  options;
    serve_calls_t    calls = {
        kind_on_loaded, kind_on_broken, kind_on_lost, k
    };

    memset(&options, 0, sizeof(options));
    options.id = k->engine->log->id;
    options.key = k->key;
    options.dtype = k->options->is_fp16 ? TENSOR_FP16 : TENSOR_FP32;
    options.sessions = (uint32_t) k->options->sessions;
    options.max_memory = k->options->max_memory;
    options.idle_ms = k->options->idle_ms;
    options.load_timeout_ms = k->options->load_timeout_ms;

    k->serve = serve_create(k->plugin, k->core, &options, &calls);

    if (k->serve == NULL) {
        log_write(k->engine->log, LOG_ERROR, "out of memory");
        k->plugin->close(k->core);
        return -1;
    }

    k->engine->facts.max_capacity = (int32_t) k->options->sessions;

    return 0;
}


static int
kind_open(engine_t *engine, const engine_options_t *options)
{
    kind_t  *k;

    k = calloc(1, sizeof(kind_t));

    if (k == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    k->engine = engine;
    k->options = options->shards;
    engine->data = k;
    engine->facts.state = ENGINE_STARTING;
    ev_async_init(&k->notified, kind_on_notified);
    k->notified.data = k;
    ev_async_start(engine->loop, &k->notified);
    ev_timer_init(&k->tick, kind_on_tick, KIND_TICK_S, KIND_TICK_S);
    k->tick.data = k;
    ev_timer_start(engine->loop, &k->tick);

    if (kind_open_tls(k) != 0
        || kind_open_key(k) != 0
        || loader_open(&k->loader, engine->log) != 0
        || kind_open_core(k, options) != 0
        || kind_open_serve(k) != 0)
    {
        kind_close(engine);
        return -1;
    }

    return 0;
}


const engine_kind_t  shard_kind = {
    .name = "shard",
    .stream = &forward_stream,
    .open = kind_open,
    .close = kind_close,
    .stop = kind_stop,
    .report = kind_report
};


/*
 * The kind of engine `llama`: each run is a sequence of the plugin.
 *
 *   start:  request -> job -> submit()                  (job.c, turn.c)
 *   notify: for each run: take() -> hold -> messages    (hold.c, answer.c)
 *   full:   the run takes no more events; the plugin pauses its sequence when
 *           CORE_EVENTS_MAX wait; resume() continues
 *   cancel: release(), the sequence's place is free at the plugin's next step
 *
 * The plugin calls llama_notify(), which is an ev_async: that merges many calls
 * into one, so all runs are looked at.  There are at most as many as places.
 *
 * The model is read from --model, or from memory that a weights service has:
 *
 *   weights_open() --on_ready--> plugin's wake() --> READY
 *                                                    or, standing by: ASLEEP
 *   weights_sleep() <-- ASLEEP, unmapped: the plugin has freed the model
 *   llama_wake(): weights_wake() --on_awake--> plugin's wake() --> READY
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/members/members.h"
#include "replica/engine/engine_weights.h"
#include "replica/engine/llama/llama.h"
#include "replica/engine/llama/llama_inner.h"
#include "replica/engine/llama/parts.h"


#define LLAMA_CAPACITY         8
#define LLAMA_CAPACITY_REMOTE  64       /* sessions of a shard by default */
#define LLAMA_PROGRESS_S       2.0

/* --- the engine's state */

/* Reports the model's name.  0, or -1: gateways could not route by it. */
static int
llama_name_model(engine_t *engine, const char *name, size_t n)
{
    snprintf(engine->facts.models, ENGINE_MODELS_BYTES, "%.*s", (int) n, name);
    engine->facts.models_bytes = n + 1;

    if (n < LLMGW_MEMBERS_MODELS_BYTES
        && llmgw_members_list_is_valid(engine->facts.models, n + 1))
    {
        return 0;
    }

    log_write(engine->log, LOG_ERROR, "\"%.80s\" cannot be a model's name: "
              "see --model-name", name);

    return -1;
}


/* The name in the options, or the file's.  A head has its name in the file,
   which is known once it is loaded. */
static int
llama_name_early(llama_t *l, const engine_options_t *options)
{
    char        *dot;
    const char  *name, *slash;

    name = options->model_name;

    if (name != NULL) {
        return llama_name_model(l->engine, name, strlen(name));
    }

    if (l->remote.head != NULL) {
        return 0;
    }

    slash = strrchr(options->model, '/');
    name = slash != NULL ? slash + 1 : options->model;
    dot = strrchr(name, '.');

    return llama_name_model(l->engine, name, dot != NULL
                            ? (size_t) (dot - name) : strlen(name));
}


static int
llama_name_late(llama_t *l)
{
    const char  *name;

    name = l->facts.model;

    return l->engine->facts.models_bytes > 0
           ? 0 : llama_name_model(l->engine, name, strlen(name));
}


static void
llama_log_ready(const llama_t *l)
{
    const log_t         *log;
    const core_facts_t  *f;

    f = &l->facts;
    log = l->engine->log;

    log_write(log, LOG_INFO, "model \"%s\" (\"%s\") is loaded after %u ms: "
              "%s, code for \"%s\", %d sequences of %u tokens",
              l->engine->facts.models, f->name, f->start_ms, f->library,
              f->cpu, l->engine->facts.max_capacity, f->context);

    if (f->is_stepwise) {
        log_write(log, LOG_WARN, "with this model on this processor only "
                  "one token in a call is exact, which is slow: quantized "
                  "weights and heads of a multiple of 32 values are faster, "
                  "so is --exact off");
    }

    log_write(log, f->is_exact ? LOG_INFO : LOG_WARN, "streams of group "
              "\"%s\" continue here %s", f->numerics, f->is_exact
              ? "as if nothing had happened"
              : "after the tokens delivered, but perhaps with another text "
                "than they would have had");
}


static void
llama_become(llama_t *l, engine_state_t state)
{
    l->engine->facts.state = state;
    engine_publish(l->engine);
}


void
llama_remote_changed(engine_t *engine)
{
    llama_t  *l;

    l = engine->data;
    llama_become(l, l->remote.head == NULL || l->remote.is_ready(l->remote.data)
                    ? ENGINE_READY : ENGINE_STARTING);
}


static void
llama_on_asleep(void *data)
{
    llama_become(data, ENGINE_ASLEEP);
}


/* The core is READY. */
static void
llama_on_ready(llama_t *l)
{
    llama_remote_t  *r;

    r = &l->remote;

    if (r->head != NULL
        && r->on_loaded(r->data, l->plugin, l->core, &l->facts) != 0)
    {
        engine_fail(l->engine);
        return;
    }

    llama_remote_changed(l->engine);
}


/* The core is asleep or ready for the first time. */
static void
llama_on_loaded(llama_t *l)
{
    if (llama_name_late(l) != 0) {
        engine_fail(l->engine);
        return;
    }

    snprintf(l->engine->facts.resume_group, ENGINE_GROUP_BYTES, "%s",
             l->facts.numerics);
    llama_log_ready(l);

    if (l->state == CORE_READY) {
        llama_on_ready(l);

    } else if (l->engine->weights != NULL) {
        weights_sleep(l->engine->weights);

    } else {
        llama_on_asleep(l);
    }
}


static void
llama_on_state(llama_t *l)
{
    core_state_t  state;

    state = l->plugin->state(l->core, &l->facts);

    if (state == l->state) {
        return;
    }

    l->state = state;

    switch (state) {

    case CORE_BROKEN:
        log_write(l->engine->log, LOG_ERROR, "%s", l->facts.error);
        engine_fail(l->engine);
        break;

    case CORE_ASLEEP:
        llama_on_loaded(l);
        break;

    case CORE_READY:

        if (!l->is_woken) {
            llama_on_loaded(l);
            break;
        }

        log_write(l->engine->log, LOG_INFO, "model \"%s\" is awake after "
                  "%u ms", l->engine->facts.models, l->facts.load_ms);
        llama_become(l, ENGINE_READY);
        break;

    default:
        break;
    }
}


static void
llama_on_load(llama_t *l)
{
    core_load_t  load;

    l->plugin->load(l->core, &load);
    l->engine->facts.running = load.running;
    l->engine->facts.waiting = load.waiting;
    l->fallbacks = load.fallbacks;

    if (l->remote.head == NULL) {
        l->engine->facts.kv_permille = (int32_t) load.kv_permille;
    }
}


void *
llama_remote_data(const engine_t *engine, uint64_t *fallbacks)
{
    const llama_t  *l;

    l = engine->data;
    *fallbacks = l->fallbacks;

    return l->remote.data;
}


static void
llama_on_notified(struct ev_loop *loop, ev_async *w, int revents)
{
    run_t    *run, *next;
    llama_t  *l;

    l = w->data;

    if (l->state != CORE_READY && l->state != CORE_BROKEN) {
        llama_on_state(l);
    }

    if (l->remote.head != NULL && l->state == CORE_READY) {
        l->remote.on_steps(l->remote.data);
    }

    for (run = l->engine->runs; run != NULL; run = next) {
        next = run->next;
        turn_pump(run);
    }

    llama_on_load(l);
}


/*
 * Sends a sign of progress to runs without messages: silence is not standstill,
 * but may be a long prompt, text that is held, or a shard, for which the flow
 * has its own limits.
 */
static void
llama_on_progress(struct ev_loop *loop, ev_timer *w, int revents)
{
    int           has_moved;
    run_t        *run, *next;
    llama_t      *l;
    core_load_t   load;

    l = w->data;
    l->plugin->load(l->core, &load);
    has_moved = (load.steps != l->steps || load.away > 0);
    l->engine->progress += (uint64_t) has_moved;
    l->steps = load.steps;
    llama_on_load(l);

    for (run = l->engine->runs; run != NULL; run = next) {
        next = run->next;
        turn_progress(run, has_moved);
    }
}


/* Called in the core's thread: ev_async_send() is the one libev function that
   other threads may call. */
static void
llama_notify(void *data)
{
    llama_t  *l;

    l = data;
    ev_async_send(l->engine->loop, &l->notified);
}


/* --- the kind */

void
llama_close(engine_t *engine)
{
    llama_t  *l;

    l = engine->data;

    if (l->core != NULL) {
        l->plugin->close(l->core);
    }

    engine_weights_close(engine);

    ev_async_stop(engine->loop, &l->notified);
    ev_timer_stop(engine->loop, &l->progress);

    loader_close(&l->loader);
    free(l);
    engine->data = NULL;
}


/* The capacity if the options have none: a stream without its layers costs
   little. */
static int32_t
llama_capacity(const llama_remote_t *remote)
{
    return remote->head != NULL && remote->fallback == NULL
           ? LLAMA_CAPACITY_REMOTE : LLAMA_CAPACITY;
}


static int
llama_open_core(llama_t *l, const engine_options_t *options)
{
    char            error[CORE_ERROR_BYTES];
    engine_t       *engine;
    core_options_t  core;

    engine = l->engine;
    engine->facts.max_capacity = options->max_capacity > 0
                                 ? options->max_capacity
                                 : llama_capacity(&l->remote);

    memset(&core, 0, sizeof(core));
    core.file = l->remote.head != NULL ? l->remote.head : options->model;
    core.cpu = options->cpu;
    core.sequences = (uint32_t) engine->facts.max_capacity;
    core.context = (uint32_t) options->context_tokens;
    core.threads = (uint32_t) options->threads;
    core.is_exact = options->is_exact;
    core.is_deferred = (options->weights.sockets != NULL);
    core.is_standby = options->is_standby;
    core.is_unmapped = options->weights.is_unmapped;
    core.is_head = (l->remote.head != NULL);
    core.is_fp16 = l->remote.is_fp16;
    core.fallback = l->remote.fallback;
    core.notify = llama_notify;
    core.data = l;

    l->plugin = l->loader.plugin;
    l->core = l->plugin->open(&core, error);

    if (l->core == NULL) {
        log_write(engine->log, LOG_ERROR, "%s", error);
        return -1;
    }

    return 0;
}


static int
llama_go_on(llama_t *l, const char *const *files, size_t n)
{
    if (l->plugin->wake(l->core, files, n) != 0) {
        log_write(l->engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    return 0;
}


/* The weights services have the files: the plugin continues with them. */
static void
llama_on_weights(void *data)
{
    size_t       i, n;
    llama_t     *l;
    weights_t   *weights;
    const char  *files[WEIGHTS_DEVICES_MAX];

    l = data;
    weights = l->engine->weights;
    n = weights_devices(weights);

    for (i = 0; i < n; i++) {
        files[i] = weights_path(weights, i);
    }

    if (llama_go_on(l, files, n) != 0) {
        engine_fail(l->engine);
    }
}


static void
llama_on_weights_failed(void *data)
{
    engine_fail(((llama_t *) data)->engine);
}


static int
llama_open_weights(llama_t *l, const engine_options_t *options)
{
    char                 **files;
    size_t                 n;
    weights_options_t      weights;
    weights_callbacks_t    callbacks = {
        .on_ready = llama_on_weights,
        .on_asleep = llama_on_asleep,
        .on_awake = llama_on_weights,
        .on_failed = llama_on_weights_failed
    };

    if (options->weights.sockets == NULL) {
        return 0;
    }

    files = parts_list(options->model, &n);

    if (files == NULL) {
        log_write(l->engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    weights = options->weights;
    weights.format = "GGUF";
    l->engine->weights = weights_open(l->engine->loop, l->engine->log,
                                      &weights, (const char *const *) files,
                                      0, &callbacks, l);
    parts_free(files, n);

    return l->engine->weights != NULL && !l->engine->is_broken ? 0 : -1;
}


static int
llama_open(engine_t *engine, const engine_options_t *options)
{
    llama_remote_t  none;

    memset(&none, 0, sizeof(none));

    if (options->model == NULL) {
        log_write(engine->log, LOG_ERROR, "the engine \"llama\" needs --model "
                  "FILE.gguf");
        return -1;
    }

    return llama_open_remote(engine, options, &none);
}


int
llama_open_remote(engine_t *engine, const engine_options_t *options,
    const llama_remote_t *remote)
{
    llama_t  *l;

    l = calloc(1, sizeof(llama_t));

    if (l == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    l->engine = engine;
    l->remote = *remote;
    engine->data = l;
    engine->facts.state = ENGINE_STARTING;
    ev_async_init(&l->notified, llama_on_notified);
    l->notified.data = l;
    ev_async_start(engine->loop, &l->notified);
    ev_timer_init(&l->progress, llama_on_progress, LLAMA_PROGRESS_S,
                  LLAMA_PROGRESS_S);
    l->progress.data = l;
    ev_timer_start(engine->loop, &l->progress);

    if (llama_name_early(l, options) != 0
        || loader_open(&l->loader, engine->log) != 0
        || llama_open_core(l, options) != 0
        || llama_open_weights(l, options) != 0)
    {
        llama_close(engine);
        return -1;
    }

    return 0;
}


static int
llama_wake(engine_t *engine)
{
    llama_t  *l;

    l = engine->data;
    l->is_woken = 1;
    llama_become(l, ENGINE_STARTING);

    if (engine->weights != NULL) {
        weights_wake(engine->weights);
        return 0;
    }

    return llama_go_on(l, NULL, 0);
}


const engine_kind_t  llama_kind = {
    .name = "llama",
    .run_bytes = sizeof(llama_run_t),
    .open = llama_open,
    .wake = llama_wake,
    .close = llama_close,
    .judge = turn_judge,
    .start = turn_start,
    .cancel = turn_cancel,
    .resume = turn_pump
};

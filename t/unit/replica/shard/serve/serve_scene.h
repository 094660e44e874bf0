
/*
 * A shard in memory: a plugin that computes when the test tells it to, clients
 * whose wire is an array, and a clock that the test sets.
 *
 * The plugin's arithmetic is "plus one", so that a result shows of which row
 * it was made.
 */

#ifndef SERVE_SCENE_H
#define SERVE_SCENE_H

#include <stdlib.h>
#include <string.h>

#include "replica/shard/serve/serve.h"


#define SCENE_PLACES   64
#define SCENE_STEPS    64
#define SCENE_REPLIES  256
#define SCENE_WIDTH    16
#define SCENE_CONTEXT  100

typedef struct {
    shard_step_t  *step;
    int            is_told;         /* 1: it has begun; 2: and that was told */
    int            is_done;
} scene_step_t;

/* The plugin's side. */
struct core_s {
    core_state_t  state;
    core_facts_t  facts;
    uint32_t      places;
    uint32_t      last[SCENE_PLACES];
    int           is_taken[SCENE_PLACES];
    scene_step_t  steps[SCENE_STEPS];       /* that it has, the oldest first */
    size_t        nsteps;
    int           wakes;
    int           is_closed;
};

typedef struct {
    session_t                 *session;
    Llmgateway__Shard__Reply  *replies[SCENE_REPLIES];
    size_t                     nreplies;
    size_t                     seen;        /* that the test has read */
    size_t                     queued;
    int                        is_reading;
    int                        is_broken;   /* its stream takes nothing */
    int                        is_finished;
    int                        is_reset;
    llmgw_grpc_status_t        status;
    char                       reason[64];
    char                       text[SERVE_TEXT_BYTES];
} scene_client_t;

typedef struct {
    core_t    core;
    serve_t  *serve;
    uint64_t  now_ms;
    uint64_t  unix_s;
    int       is_loaded;
    int       loads;
    int       lost;
    char      error[SERVE_TEXT_BYTES];
} scene_t;


/* --- the plugin */

static inline core_state_t
scene_plugin_state(core_t *core, core_facts_t *facts)
{
    *facts = core->facts;

    return core->state;
}


static inline void
scene_plugin_close(core_t *core)
{
    core->is_closed = 1;
}


static inline int
scene_plugin_wake(core_t *core)
{
    if (core->state != CORE_ASLEEP) {
        return -1;
    }

    core->state = CORE_LOADING;
    core->wakes++;

    return 0;
}


static inline int
scene_plugin_sleep(core_t *core)
{
    if (core->state != CORE_READY || core->nsteps > 0) {
        return -1;
    }

    core->state = CORE_ASLEEP;

    return 0;
}


static inline int
scene_plugin_begin(core_t *core, uint32_t last_layer)
{
    uint32_t  i;

    for (i = 0; core->state == CORE_READY && i < core->places; i++) {
        if (!core->is_taken[i]) {
            core->is_taken[i] = 1;
            core->last[i] = last_layer;
            return (int) i;
        }
    }

    return -1;
}


static inline void
scene_plugin_end(core_t *core, uint32_t place)
{
    size_t  i;

    if (!core->is_taken[place] || core->state == CORE_BROKEN) {
        abort();                        /* given back twice, or too late */
    }

    core->is_taken[place] = 0;

    for (i = 0; i < core->nsteps; i++) {
        if (core->steps[i].step->place == place && !core->steps[i].is_done) {
            core->steps[i].step->status = SHARD_STEP_CANCELLED;
            core->steps[i].is_done = 1;
        }
    }
}


static inline void
scene_plugin_submit(core_t *core, shard_step_t *step)
{
    if (core->nsteps == SCENE_STEPS || !core->is_taken[step->place]) {
        abort();
    }

    memset(&core->steps[core->nsteps], 0, sizeof(core->steps[0]));
    core->steps[core->nsteps++].step = step;
}


static inline int
scene_plugin_take(core_t *core, shard_event_t *event)
{
    size_t         i;
    scene_step_t  *s;

    for (i = 0; i < core->nsteps; i++) {
        s = &core->steps[i];
        event->step = s->step;

        if (s->is_done) {
            event->kind = SHARD_EVENT_DONE;
            memmove(s, s + 1, (--core->nsteps - i) * sizeof(*s));
            return 0;
        }

        if (s->is_told == 1) {
            s->is_told = 2;
            event->kind = SHARD_EVENT_STARTED;
            return 0;
        }
    }

    return -1;
}


static inline void
scene_plugin_load(core_t *core, core_load_t *load)
{
    memset(load, 0, sizeof(*load));
    load->waiting = (uint32_t) core->nsteps;
}


static const shard_plugin_t  scene_plugin = {
    .abi = SHARD_ABI,
    .close = scene_plugin_close,
    .state = scene_plugin_state,
    .load = scene_plugin_load,
    .wake = scene_plugin_wake,
    .sleep = scene_plugin_sleep,
    .begin = scene_plugin_begin,
    .end = scene_plugin_end,
    .submit = scene_plugin_submit,
    .take = scene_plugin_take
};


/* --- the shard's callbacks */

static inline void
scene_on_loaded(void *data, int is_loaded)
{
    scene_t  *s = data;

    s->is_loaded = is_loaded;
    s->loads += is_loaded;
}


static inline void
scene_on_broken(void *data, const char *error)
{
    strncpy(((scene_t *) data)->error, error, SERVE_TEXT_BYTES - 1);
}


static inline void
scene_on_lost(void *data, const char *caller, shard_reason_t reason,
    const char *text)
{
    ((scene_t *) data)->lost++;
}


/* --- a client */

static inline int
scene_send(void *data, const Llmgateway__Shard__Reply *reply)
{
    size_t           len;
    uint8_t         *bytes;
    scene_client_t  *c = data;

    if (c->is_finished) {
        abort();                        /* after its last message */
    }

    if (c->is_broken) {
        return -1;
    }

    len = llmgateway__shard__reply__get_packed_size(reply);

    if (len > SHARD_MESSAGE_BYTES) {
        abort();
    }

    bytes = malloc(len + 1);
    llmgateway__shard__reply__pack(reply, bytes);

    if (c->nreplies < SCENE_REPLIES) {
        c->replies[c->nreplies++] = llmgateway__shard__reply__unpack(NULL, len,
                                                                     bytes);
    }

    free(bytes);
    c->queued += c->is_reading ? 0 : len;

    return 0;
}


static inline size_t
scene_queued(void *data)
{
    return ((scene_client_t *) data)->queued;
}


static inline void
scene_finish(void *data, llmgw_grpc_status_t status, const char *reason,
    const char *text)
{
    scene_client_t  *c = data;

    if (c->is_finished) {
        abort();
    }

    c->is_finished = 1;
    c->status = status;
    strncpy(c->reason, reason, sizeof(c->reason) - 1);
    strncpy(c->text, text, sizeof(c->text) - 1);
}


static inline void
scene_reset(void *data)
{
    ((scene_client_t *) data)->is_reset = 1;
}


static const session_calls_t  scene_calls = {
    scene_send, scene_queued, scene_finish, scene_reset
};


/* --- the scene */

static inline void
scene_at(scene_t *s, uint64_t now_ms)
{
    s->now_ms = now_ms;
    serve_at(s->serve, now_ms, s->unix_s);
}


static inline void
scene_tick(scene_t *s, uint64_t later_ms)
{
    scene_at(s, s->now_ms + later_ms);
    serve_tick(s->serve);
}


/* Layers 4-7 of 8, asleep. */
static inline void
scene_init(scene_t *s, const serve_options_t *options)
{
    core_facts_t  *f;
    serve_calls_t   calls = {
        scene_on_loaded, scene_on_broken, scene_on_lost, s
    };

    memset(s, 0, sizeof(*s));
    f = &s->core.facts;
    strcpy(f->model, "m");
    strcpy(f->numerics, "n1");
    memset(f->weights_id, 7, sizeof(f->weights_id));
    f->first_layer = 4;
    f->last_layer = 7;
    f->layers = 8;
    f->width = SCENE_WIDTH;
    f->vocabulary = 40;
    f->context = SCENE_CONTEXT;
    f->bytes = 1000000;

    s->core.places = options->sessions;
    s->unix_s = 1700000000;
    s->serve = serve_create(&scene_plugin, &s->core, options, &calls);
    scene_at(s, 5000);
}


static inline void
scene_become(scene_t *s, core_state_t state)
{
    s->core.state = state;
    serve_notified(s->serve);
}


static inline void
scene_ready(scene_t *s)
{
    scene_become(s, CORE_ASLEEP);
    scene_become(s, CORE_READY);
}


static inline void
scene_done(scene_t *s)
{
    serve_destroy(s->serve);
}


/* The plugin begins to compute all steps that it has. */
static inline void
scene_start(scene_t *s)
{
    size_t  i;

    for (i = 0; i < s->core.nsteps; i++) {
        s->core.steps[i].is_told |= 1;
    }

    serve_notified(s->serve);
}


/* The plugin ends all steps: with plus one, or an error. */
static inline void
scene_compute(scene_t *s, shard_status_t status)
{
    float         *to;
    size_t         i, k, n;
    const float   *from;
    shard_step_t  *step;

    scene_start(s);

    for (i = 0; i < s->core.nsteps; i++) {
        step = s->core.steps[i].step;
        step->status = status;
        s->core.steps[i].is_done = 1;
        to = step->out;
        from = step->in;
        n = step->logits_rows > 0 ? step->logits_rows * 40
                                  : step->rows * SCENE_WIDTH;

        for (k = 0; to != NULL && k < n; k++) {
            to[k] = from[step->logits_rows > 0 ? k % SCENE_WIDTH : k] + 1;
        }
    }

    serve_notified(s->serve);
}


static inline void
client_open(scene_t *s, scene_client_t *c)
{
    memset(c, 0, sizeof(*c));
    c->is_reading = 1;
    c->session = session_create(s->serve, &scene_calls, c);
}


static inline void
client_close(scene_client_t *c)
{
    size_t  i;

    session_destroy(c->session);

    for (i = 0; i < c->nreplies; i++) {
        llmgateway__shard__reply__free_unpacked(c->replies[i], NULL);
    }
}


static inline void
client_say(scene_client_t *c, const Llmgateway__Shard__Request *request)
{
    size_t    len;
    uint8_t  *bytes;

    len = llmgateway__shard__request__get_packed_size(request);
    bytes = malloc(len + 1);
    llmgateway__shard__request__pack(request, bytes);
    session_message(c->session, bytes, len);
    free(bytes);
}


static const uint8_t  scene_weights[SHARD_WEIGHTS_BYTES] = {
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7
};

/* An Open that the shard of scene_init() accepts, with logits. */
static inline Llmgateway__Shard__Open
client_request(void)
{
    Llmgateway__Shard__Open  open = LLMGATEWAY__SHARD__OPEN__INIT;

    open.session = 9;
    open.model = "m";
    open.weights_id.data = (uint8_t *) scene_weights;
    open.weights_id.len = sizeof(scene_weights);
    open.first_layer = 4;
    open.last_layer = 7;
    open.numerics_id = "n1";
    open.caller = "orch";

    return open;
}


static inline void
client_ask(scene_client_t *c, const Llmgateway__Shard__Open *open)
{
    Llmgateway__Shard__Request  request = LLMGATEWAY__SHARD__REQUEST__INIT;

    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_OPEN;
    request.open = (Llmgateway__Shard__Open *) open;
    client_say(c, &request);
}


static inline void
client_chunk(scene_client_t *c, const Llmgateway__Shard__Step *step)
{
    Llmgateway__Shard__Request  request = LLMGATEWAY__SHARD__REQUEST__INIT;

    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_STEP;
    request.step = (Llmgateway__Shard__Step *) step;
    client_say(c, &request);
}


/* Rows whose values are their position. */
static inline void
client_step(scene_client_t *c, uint32_t position, uint32_t rows,
    uint32_t logits_rows)
{
    float     values[(SHARD_ROWS_MAX + 1) * SCENE_WIDTH];
    uint32_t  i;

    Llmgateway__Shard__Step  step = LLMGATEWAY__SHARD__STEP__INIT;

    for (i = 0; i < rows * SCENE_WIDTH; i++) {
        values[i] = (float) (position + i / SCENE_WIDTH);
    }

    step.session = 9;
    step.position = position;
    step.rows = rows;
    step.logits_rows = logits_rows;
    step.chunks = 1;
    step.data.data = (uint8_t *) values;
    step.data.len = rows * SCENE_WIDTH * sizeof(float);
    client_chunk(c, &step);
}


/* The next message that the client got; NULL: none. */
static inline const Llmgateway__Shard__Reply *
client_next(scene_client_t *c)
{
    return c->seen < c->nreplies ? c->replies[c->seen++] : NULL;
}

#endif /* SERVE_SCENE_H */

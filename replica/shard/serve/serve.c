
/*
 * The slice and its sessions; serve.h has the drawing.
 *
 * The plugin has one notification for a new state and for events.  What follows
 * from a state is done here at once: loading, for the first time or for an
 * Open; opening the sessions that waited for it; unloading.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/serve/serve_inner.h"


/* A session's callbacks may end it, but never free it, so the list stays
   valid. */
static void
serve_each(serve_t *v, session_state_t state, void (*visit)(session_t *s))
{
    session_t  *s;

    for (s = v->all; s != NULL; s = s->next) {
        if (s->state == state) {
            visit(s);
        }
    }
}


/* --- the slice */

static void
serve_refuse_held(session_t *s)
{
    session_refuse(s, 0, SHARD_FAILED, "the slice cannot be loaded");
}


static void
serve_refuse_open(session_t *s)
{
    session_refuse(s, 0, SHARD_FAILED, "the slice is gone");
}


static void
serve_break(serve_t *v, const char *error)
{
    v->state = CORE_BROKEN;
    serve_each(v, SESSION_HELD, serve_refuse_held);
    serve_each(v, SESSION_OPEN, serve_refuse_open);
    v->calls.on_broken(v->calls.data, error);
}


/* Whether the slice, whose facts are known, fits into the memory that it may
   take. */
static int
serve_fits(serve_t *v)
{
    char  error[SERVE_TEXT_BYTES];

    if (v->options.max_memory == 0
        || v->facts.bytes <= v->options.max_memory)
    {
        return 1;
    }

    snprintf(error, sizeof(error), "the slice needs %llu bytes with %u "
             "sessions of %u tokens, --shard-max-memory is %llu",
             (unsigned long long) v->facts.bytes, v->options.sessions,
             v->facts.context, (unsigned long long) v->options.max_memory);
    serve_break(v, error);

    return 0;
}


static void
serve_on_asleep(serve_t *v)
{
    v->has_facts = 1;

    if ((!v->was_loaded || v->sessions > 0) && serve_fits(v)) {
        (void) v->plugin->wake(v->core);
    }
}


static void
serve_on_loaded(serve_t *v)
{
    v->was_loaded = 1;
    v->used_ms = v->now_ms;
    v->calls.on_loaded(v->calls.data, 1);
    serve_each(v, SESSION_HELD, session_begin);
}


/* Gets the plugin's state, and does what follows from a new one. */
static void
serve_look(serve_t *v)
{
    core_state_t  before;

    before = v->state;

    if (before == CORE_BROKEN) {
        return;
    }

    v->state = v->plugin->state(v->core, &v->facts);

    switch (v->state) {

    case CORE_ASLEEP:
        serve_on_asleep(v);
        break;

    case CORE_READY:
        if (before != CORE_READY) {
            serve_on_loaded(v);
        }

        break;

    case CORE_BROKEN:
        serve_break(v, v->facts.error);
        break;

    default:
        break;
    }
}


void
serve_want(serve_t *v)
{
    if (v->state == CORE_ASLEEP) {
        serve_look(v);
    }
}


static void
serve_unload(serve_t *v)
{
    if (v->plugin->sleep(v->core) != 0) {
        return;
    }

    v->calls.on_loaded(v->calls.data, 0);
    serve_look(v);
}


/* --- events */

static void
serve_take(serve_t *v, const shard_event_t *event)
{
    step_t  *step;

    step = event->step->data;

    if (event->kind == SHARD_EVENT_STARTED) {
        if (step->session != NULL) {
            session_started(step->session, step);
        }

        return;
    }

    step_returned(step);

    if (step->session != NULL) {
        session_done(step->session, step);

    } else {
        step_free(step);
    }
}


void
serve_notified(serve_t *v)
{
    shard_event_t  event;

    while (v->plugin->take(v->core, &event) == 0) {
        serve_take(v, &event);
    }

    serve_look(v);
}


void
serve_tick(serve_t *v)
{
    session_t  *s;

    for (s = v->all; s != NULL; s = s->next) {
        session_tick(s);
    }

    if (v->state == CORE_READY && v->sessions == 0
        && v->options.idle_ms != 0
        && v->now_ms - v->used_ms >= v->options.idle_ms)
    {
        serve_unload(v);
    }
}


/* --- the shard's life */

serve_t *
serve_create(const shard_plugin_t *plugin, core_t *core,
    const serve_options_t *options, const serve_calls_t *calls)
{
    serve_t  *v;

    v = calloc(1, sizeof(serve_t));

    if (v != NULL) {
        v->plugin = plugin;
        v->core = core;
        v->options = *options;
        v->calls = *calls;
    }

    return v;
}


void
serve_destroy(serve_t *v)
{
    step_t  *step;

    v->plugin->close(v->core);

    while ((step = v->in_hand) != NULL) {
        step_returned(step);
        step_free(step);
    }

    free(v);
}


void
serve_at(serve_t *v, uint64_t now_ms, uint64_t unix_s)
{
    v->now_ms = now_ms;
    v->unix_s = unix_s;
}


void
serve_drain(serve_t *v, int is_draining)
{
    v->is_draining = is_draining;
}


void
serve_stop(serve_t *v, const char *text)
{
    session_t  *s;

    v->is_draining = 1;

    for (s = v->all; s != NULL; s = s->next) {
        if (s->state != SESSION_ENDED) {
            session_refuse(s, 0, SHARD_DRAINING, text);
        }
    }
}


const core_facts_t *
serve_facts(const serve_t *v)
{
    return v->has_facts ? &v->facts : NULL;
}


uint32_t
serve_sessions(const serve_t *v)
{
    return v->sessions;
}


const callers_t *
serve_callers(const serve_t *v)
{
    return &v->callers;
}


uint64_t
serve_tensor_bytes(const serve_t *v)
{
    return v->tensor_bytes;
}


shard_reason_t
serve_why(char text[SERVE_TEXT_BYTES], shard_reason_t reason,
    const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(text, SERVE_TEXT_BYTES, format, args);
    va_end(args);

    return reason;
}

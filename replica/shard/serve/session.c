
/*
 * One session: its client's messages, the plugin's events for its steps, and
 * its end.  serve.h has the drawing.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/serve/serve_inner.h"


/* --- the end */

/* Frees the session's steps, except those that the plugin has, which come back
   by serve_notified(). */
static void
session_drop_steps(session_t *s)
{
    step_t  *step;

    while ((step = s->steps) != NULL) {
        step_shift(step);

        if (step->state != STEP_COMPUTING) {
            step_free(step);
        }
    }
}


/* Releases all that the session holds; only the first call does. */
static void
session_release(session_t *s)
{
    serve_t  *v;

    v = s->serve;

    if (s->state == SESSION_OPEN && v->state != CORE_BROKEN) {
        v->plugin->end(v->core, s->place);
    }

    session_drop_steps(s);

    if (s->state == SESSION_HELD || s->state == SESSION_OPEN) {
        v->sessions--;
        v->used_ms = v->now_ms;
        caller_closed(s->caller);
    }

    s->caller = NULL;

    s->state = SESSION_ENDED;
    s->active_ms = v->now_ms;
}


static void
session_finish(session_t *s, llmgw_grpc_status_t status, const char *reason,
    const char *text)
{
    session_release(s);
    s->calls->finish(s->data, status, reason, text);
}


void
session_refuse(session_t *s, uint32_t position, shard_reason_t reason,
    const char *text)
{
    serve_t  *v;

    Llmgateway__Shard__Reply    reply = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Refused  refused = LLMGATEWAY__SHARD__REFUSED__INIT;

    v = s->serve;
    (s->caller != NULL ? s->caller : &v->callers.others)->refused[reason]++;

    if (s->state == SESSION_OPEN && reason != SHARD_DRAINING) {
        v->calls.on_lost(v->calls.data, s->open->open->caller, reason, text);
    }

    refused.session = s->open != NULL ? s->open->open->session : 0;
    refused.position = position;
    refused.reason = (char *) shard_reason_name(reason);
    refused.text = (char *) text;
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_REFUSED;
    reply.refused = &refused;
    (void) s->calls->send(s->data, &reply);     /* the trailer has the reason,
                                                   too */

    session_finish(s, shard_reason_status(reason), shard_reason_name(reason),
                   text);
}


/* --- opening */

static void
session_send_opened(session_t *s)
{
    const core_facts_t  *f;

    Llmgateway__Shard__Reply   reply = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Opened  opened = LLMGATEWAY__SHARD__OPENED__INIT;

    f = &s->serve->facts;
    opened.session = s->open->open->session;
    opened.context = f->context;
    opened.max_rows = SHARD_ROWS_MAX;
    opened.width = f->width;
    opened.vocabulary = s->has_logits ? f->vocabulary : 0;
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_OPENED;
    reply.opened = &opened;

    if (s->calls->send(s->data, &reply) != 0) {
        session_refuse(s, 0, SHARD_OUT_OF_MEMORY, "out of memory");
    }
}


void
session_begin(session_t *s)
{
    int                              place;
    char                             text[SERVE_TEXT_BYTES];
    serve_t                         *v;
    shard_reason_t                   reason;
    const Llmgateway__Shard__Open   *open;

    v = s->serve;
    open = s->open->open;
    reason = open_judge(v, open, text);

    if (reason != SHARD_OK) {
        session_refuse(s, 0, reason, text);
        return;
    }

    place = v->plugin->begin(v->core, open->last_layer);

    if (place < 0) {
        session_refuse(s, 0, SHARD_FAILED, "the slice has no place for it");
        return;
    }

    s->state = SESSION_OPEN;
    s->place = (uint32_t) place;
    s->has_logits = (open->last_layer + 1 == v->facts.layers);
    s->active_ms = v->now_ms;
    session_send_opened(s);
}


/* Opens the session; the request is its own from now on. */
static void
session_open(session_t *s, Llmgateway__Shard__Request *request)
{
    char             text[SERVE_TEXT_BYTES];
    serve_t         *v;
    shard_reason_t   reason;

    v = s->serve;
    s->open = request;
    reason = open_judge_caller(v, request->open, text);

    if (reason == SHARD_OK) {
        s->caller = callers_find(&v->callers, request->open->caller);
        reason = open_judge(v, request->open, text);
    }

    if (reason != SHARD_OK) {
        session_refuse(s, 0, reason, text);
        return;
    }

    if (v->sessions == v->options.sessions) {
        session_refuse(s, 0, SHARD_FULL, "this shard has as many sessions as "
                       "it serves");
        return;
    }

    v->sessions++;
    caller_opened(s->caller);
    s->state = SESSION_HELD;
    s->born_ms = v->now_ms;

    if (v->state == CORE_READY) {
        session_begin(s);

    } else {
        serve_want(v);
    }
}


int
session_is_open(const session_t *s)
{
    return s->state == SESSION_HELD || s->state == SESSION_OPEN;
}


/* --- steps */

static int
session_is_computing(const session_t *s)
{
    return s->steps != NULL && s->steps->state == STEP_COMPUTING;
}


/* Whether the session has no whole step: after the client's end, none will
   come. */
static int
session_is_through(const session_t *s)
{
    return s->steps == NULL || s->steps->state == STEP_FILLING;
}


/* Gives whole steps to the plugin as long as the client reads. */
static void
session_pump(session_t *s)
{
    step_t  *step;

    for (step = s->steps; step != NULL; step = step->next) {

        if (step->state == STEP_COMPUTING) {
            continue;
        }

        if (step->state == STEP_FILLING
            || s->calls->queued(s->data) > SERVE_QUEUE_BYTES)
        {
            return;
        }

        step_submit(step);
    }
}


static void
session_step(session_t *s, const Llmgateway__Shard__Step *chunk)
{
    char             text[SERVE_TEXT_BYTES];
    step_t          *whole;
    shard_reason_t   reason;

    reason = step_take(s, chunk, &whole, text);

    if (reason != SHARD_OK) {
        session_refuse(s, chunk->position, reason, text);
        return;
    }

    if (whole != NULL) {
        session_pump(s);
    }
}


void
session_started(session_t *s, const step_t *step)
{
    Llmgateway__Shard__Reply    reply = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Started  started = LLMGATEWAY__SHARD__STARTED__INIT;

    s->active_ms = s->serve->now_ms;
    started.session = s->open->open->session;
    started.position = step->core.position;
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_STARTED;
    reply.started = &started;

    if (s->calls->send(s->data, &reply) != 0) {
        session_refuse(s, step->core.position, SHARD_OUT_OF_MEMORY,
                       "out of memory");
    }
}


/* Sends a result in chunks; a step without logits that ends with the last layer
   has a result without data. */
static int
session_send_result(session_t *s, const step_t *step)
{
    uint64_t        bytes;
    const serve_t  *v;

    Llmgateway__Shard__Reply   reply = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Result  result = LLMGATEWAY__SHARD__RESULT__INIT;

    v = s->serve;
    result.session = s->open->open->session;
    result.position = step->core.position;
    result.is_logits = s->has_logits;
    result.rows = s->has_logits ? step->core.logits_rows : step->core.rows;
    bytes = s->has_logits
            ? tensor_bytes(result.rows, v->facts.vocabulary, TENSOR_FP32)
            : step->in_bytes;
    result.chunks = tensor_chunks(bytes);
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_RESULT;
    reply.result = &result;

    do {
        if (bytes > 0) {
            result.data.data = (uint8_t *) step->core.out
                               + (size_t) result.chunk * SHARD_CHUNK_BYTES;
            result.data.len = tensor_chunk_bytes(bytes, result.chunk);
        }

        if (s->calls->send(s->data, &reply) != 0) {
            return -1;
        }
    } while (++result.chunk < result.chunks);

    return 0;
}


void
session_done(session_t *s, step_t *step)
{
    char             text[SERVE_TEXT_BYTES];
    uint32_t         position, rows;
    shard_reason_t   reason;

    position = step->core.position;
    reason = step_fault(step);

    if (reason != SHARD_OK) {
        step_explain(step, text);

    } else if (session_send_result(s, step) != 0) {
        reason = SHARD_OUT_OF_MEMORY;
        strcpy(text, "out of memory");
    }

    rows = step->core.rows;
    step_shift(step);
    step_free(step);

    if (reason != SHARD_OK) {
        session_refuse(s, position, reason, text);
        return;
    }

    s->caller->rows += rows;

    s->active_ms = s->serve->now_ms;

    if (s->is_closing && session_is_through(s)) {
        session_finish(s, LLMGW_GRPC_OK, "", "");
        return;
    }

    session_pump(s);
}


/* --- messages */

/* Handles a message; any but an Open needs a session. */
static void
session_take(session_t *s, const Llmgateway__Shard__Request *request,
    uint64_t number)
{
    if (s->open == NULL || s->open->open->session != number
        || (s->state == SESSION_HELD && request->kind_case
            == LLMGATEWAY__SHARD__REQUEST__KIND_STEP))
    {
        session_refuse(s, 0, SHARD_UNKNOWN_SESSION, "no such session is open "
                       "in this stream");
        return;
    }

    s->active_ms = s->serve->now_ms;

    if (request->kind_case == LLMGATEWAY__SHARD__REQUEST__KIND_STEP) {
        session_step(s, request->step);

    } else {
        session_finish(s, LLMGW_GRPC_OK, "", "");
    }
}


void
session_message(session_t *s, const uint8_t *data, size_t len)
{
    Llmgateway__Shard__Request  *request;

    if (s->state == SESSION_ENDED) {
        return;
    }

    request = llmgateway__shard__request__unpack(NULL, len, data);

    if (request == NULL) {
        session_finish(s, LLMGW_GRPC_INVALID_ARGUMENT, "", "malformed message");
        return;
    }

    switch (request->kind_case) {

    case LLMGATEWAY__SHARD__REQUEST__KIND_OPEN:

        if (s->open == NULL) {
            session_open(s, request);
            return;
        }

        session_finish(s, LLMGW_GRPC_INVALID_ARGUMENT, "", "a second Open");
        break;

    case LLMGATEWAY__SHARD__REQUEST__KIND_STEP:
        session_take(s, request, request->step->session);
        break;

    case LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE:
        session_take(s, request, request->close->session);
        break;

    default:
        session_finish(s, LLMGW_GRPC_INVALID_ARGUMENT, "",
                       "a message of no known kind");
    }

    llmgateway__shard__request__free_unpacked(request, NULL);
}


void
session_closing(session_t *s, llmgw_grpc_status_t status, const char *text)
{
    if (s->state == SESSION_ENDED) {
        return;
    }

    if (status == LLMGW_GRPC_RESOURCE_EXHAUSTED) {
        session_refuse(s, s->position, SHARD_TENSOR_TOO_LARGE, text);

    } else if (status != LLMGW_GRPC_OK) {
        session_finish(s, status, "", text);

    } else if (session_is_through(s)) {
        session_finish(s, LLMGW_GRPC_OK, "", "");

    } else {
        s->is_closing = 1;
    }
}


void
session_drained(session_t *s)
{
    if (s->state == SESSION_OPEN) {
        s->active_ms = s->serve->now_ms;
        session_pump(s);
    }
}


/* --- time */

void
session_tick(session_t *s)
{
    uint64_t  age, idle;

    age = s->serve->now_ms - s->born_ms;
    idle = s->serve->now_ms - s->active_ms;

    switch (s->state) {

    case SESSION_NEW:
        if (age >= SHARD_IDLE_MS) {
            session_refuse(s, 0, SHARD_SESSION_EXPIRED, "no Open came");
        }

        break;

    case SESSION_HELD:
        if (age >= s->serve->options.load_timeout_ms) {
            session_refuse(s, 0, SHARD_LOADING, "the slice is not loaded yet");
        }

        break;

    case SESSION_OPEN:
        if (age >= SHARD_SESSION_MS) {
            session_refuse(s, 0, SHARD_SESSION_EXPIRED, "the session is too "
                           "old");

        } else if (idle >= SHARD_IDLE_MS && !session_is_computing(s)) {
            session_refuse(s, 0, SHARD_SESSION_EXPIRED, "the session was idle");
        }

        break;

    case SESSION_ENDED:
        if (idle >= SERVE_LINGER_MS) {
            s->calls->reset(s->data);
        }
    }
}


/* --- the stream's life */

session_t *
session_create(serve_t *v, const session_calls_t *calls, void *data)
{
    session_t  *s;

    if (v->streams == SERVE_STREAMS_MAX) {
        return NULL;
    }

    s = calloc(1, sizeof(session_t));

    if (s == NULL) {
        return NULL;
    }

    v->streams++;

    s->serve = v;
    s->calls = calls;
    s->data = data;
    s->born_ms = v->now_ms;
    s->active_ms = v->now_ms;
    s->next = v->all;
    s->link = &v->all;

    if (s->next != NULL) {
        s->next->link = &s->next;
    }

    v->all = s;

    return s;
}


void
session_destroy(session_t *s)
{
    session_release(s);
    s->serve->streams--;
    *s->link = s->next;

    if (s->next != NULL) {
        s->next->link = s->link;
    }

    if (s->open != NULL) {
        llmgateway__shard__request__free_unpacked(s->open, NULL);
    }

    free(s);
}

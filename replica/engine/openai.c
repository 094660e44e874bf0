
/*
 * Drives an engine behind HTTP: passes requests, answers and events between a
 * run (run.h), the engine's dialect (dialect/dialect.h), which knows their
 * meaning, and a connection (http.h).
 *
 *   start ---> ASKED ----------> ANSWERING ------------------> ended
 *                ^     head          |  ^      DONE, FAILED
 *                |                   |  |
 *                '-------------------'  '- full: paused; drained: resumed
 *                  ASK: another request
 *
 *   from each state: cancel, a broken connection, nothing for too long
 *
 * A run has one request at the engine, and its connection.  Both are closed in
 * the iteration in which the run ends, whatever ends it: that stops the
 * engine's generation.
 *
 * A stream ends with its own connection, and not because the engine is STALLED
 * or accepts no other request: it may still finish the stream.
 *
 * A stream without text may be in a long prefill, in a tool call that a parser
 * holds back, or in the engine's queue.  While the engine makes progress, each
 * such stream gets a sign of life (openai_on_pulse), which restarts the
 * gateway's timers.  This has a limit (idle_ms), since the engine may have lost
 * the request.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/http/sse.h"
#include "common/os/mono.h"
#include "replica/engine/connect.h"
#include "replica/engine/openai.h"
#include "replica/engine/run.h"
#include "replica/engine/scrape.h"


#define OPENAI_SIGN_MS  1000    /* of silence, then a sign of life */
#define OPENAI_STEP_MS  10000   /* to render a prompt, or a few ids */

/* Least time between two looks at the engine's models after it has denied
   one. */
#define OPENAI_MODELS_MS  1000

/* Limit of the client's part of a request's id. */
#define OPENAI_ID_BYTES     200

typedef struct {
    engine_t       *engine;
    http_client_t  *http;
    scrape_t        scrape;
    ev_timer        pulse;
    uint64_t        pulse_ms;       /* when the last pulse was */
    uint64_t        models_ms;      /* when its models were asked for out of
                                       turn */
    uint64_t        idle_ms;        /* limit of a stream without bytes */
    uint32_t        salt;           /* part of ids, different in each process */
    uint32_t        asked;          /* number of requests */
} openai_t;

typedef struct {
    run_t            run;           /* must be first */
    dialect_call_t  *call;
    http_request_t  *http;          /* NULL: none under way */
    sse_t            sse;
    dialect_do_t     then;          /* what follows the last event; MORE: out of
                                       memory for its messages */
    int              reads_events;
    int              is_generated;  /* the answer's bytes are generated ones */
    int              is_paused;
    int64_t          retry_ms;      /* the last answer's Retry-After, or -1 */
    uint64_t         bytes_ms;      /* when the last bytes came */
    uint64_t         sent_ms;       /* when the last message was sent */
} openai_run_t;


static void openai_ask(openai_run_t *r);


/* --- the end */

/* Frees all that the run has at the engine. */
static void
openai_cancel(run_t *run)
{
    openai_run_t  *r;

    r = (openai_run_t *) run;

    if (r->http != NULL) {
        http_cancel(r->http);
        r->http = NULL;
    }

    sse_done(&r->sse);
    dialect_call_destroy(r->call);
    r->call = NULL;
}


static void
openai_fail(openai_run_t *r, llmgw_grpc_status_t status, const char *why)
{
    openai_cancel(&r->run);
    run_finish(&r->run, ENGINE_FAILED, status, why);
}


/*
 * The engine denies a model that it may have listed: asks for its models at
 * once, or at the next look if this was done a moment ago.
 */
static void
openai_look_at_models(openai_t *o)
{
    uint64_t  now_ms;

    now_ms = mono_ms();
    o->scrape.once_ms = 0;

    if (now_ms - o->models_ms >= OPENAI_MODELS_MS) {
        o->models_ms = now_ms;
        scrape_now(&o->scrape);
    }
}


/* The call has failed: ends the run with the dialect's status and text. */
static void
openai_give_up(openai_run_t *r)
{
    char                 why[DIALECT_WHY_BYTES], ms[32];
    llmgw_grpc_field_t   pushback = { "grpc-retry-pushback-ms", ms };
    llmgw_grpc_status_t  status;

    if (dialect_call_denies_model(r->call)) {
        openai_look_at_models(r->run.engine->data);
    }

    status = (llmgw_grpc_status_t) dialect_call_status(r->call);
    snprintf(why, sizeof(why), "%s", dialect_call_why(r->call));
    snprintf(ms, sizeof(ms), "%lld", (long long) r->retry_ms);

    openai_cancel(&r->run);
    run_finish_with(&r->run, ENGINE_FAILED, status, why, &pushback,
                    status == LLMGW_GRPC_RESOURCE_EXHAUSTED
                    && r->retry_ms >= 0);
}


/* --- the dialect's next step */

/* Sends the call's messages.  0, or -1: out of memory. */
static int
openai_send(openai_run_t *r)
{
    const Llmgateway__GenerateResponse  *message;

    while ((message = dialect_take(r->call)) != NULL) {

        if (run_send(&r->run, message) != 0) {
            return -1;
        }

        r->sent_ms = mono_ms();
    }

    return 0;
}


/* The run may have ended when it returns. */
static void
openai_do(openai_run_t *r, dialect_do_t what)
{
    if (openai_send(r) != 0) {
        openai_fail(r, LLMGW_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }

    switch (what) {

    case DIALECT_MORE:
        return;

    case DIALECT_ASK:
        openai_ask(r);
        return;

    case DIALECT_DONE:
        if (r->http != NULL) {
            http_leave(r->http);
            r->http = NULL;
        }

        openai_cancel(&r->run);
        run_finish(&r->run, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
        return;

    default:
        openai_give_up(r);
    }
}


/* --- an answer */

static void
openai_on_head(http_request_t *request, unsigned status,
    const char *content_type, int is_sent)
{
    dialect_do_t   what;
    openai_run_t  *r;

    r = http_data(request);
    r->bytes_ms = mono_ms();
    r->retry_ms = http_retry_ms(request);

    if (is_sent) {
        dialect_sent(r->call);
    }

    dialect_open(r->call, !http_has_length(request));
    r->is_generated = status == 200 && !dialect_http(r->call)->is_step;
    what = dialect_head(r->call, status, content_type);
    r->reads_events = dialect_reads_events(r->call);
    openai_do(r, what);
}


static int
openai_on_event(void *arg, const char *data, size_t len, int is_error)
{
    openai_run_t  *r;

    r = arg;
    r->then = dialect_event(r->call, data, len);

    return r->then != DIALECT_MORE || openai_send(r) != 0;
}


/* Handles the result of feeding the parser, or of its end. */
static void
openai_fed(openai_run_t *r, sse_rc_t rc)
{
    if (rc == SSE_DONE) {
        return;
    }

    if (rc == SSE_ELIMIT) {
        openai_fail(r, LLMGW_GRPC_INTERNAL, "an event of the engine is larger "
                    "than 8 MB");
        return;
    }

    if (rc == SSE_STOPPED && r->then != DIALECT_MORE) {
        openai_do(r, r->then);
        return;
    }

    openai_fail(r, LLMGW_GRPC_RESOURCE_EXHAUSTED, "out of memory");
}


static void
openai_on_bytes(http_request_t *request, const char *bytes, size_t len)
{
    openai_t      *o;
    openai_run_t  *r;

    r = http_data(request);
    o = r->run.engine->data;
    r->bytes_ms = mono_ms();

    if (r->is_generated) {
        scrape_bytes(&o->scrape, r->bytes_ms);
    }

    if (r->reads_events) {
        openai_fed(r, sse_feed(&r->sse, bytes, len));
    } else {
        openai_do(r, dialect_bytes(r->call, bytes, len));
    }

    if (r->http == request && run_is_full(&r->run)) {
        r->is_paused = 1;
        http_pause(request);
    }
}


static void
openai_on_complete(openai_run_t *r)
{
    if (r->reads_events) {
        openai_fed(r, sse_end(&r->sse));
    }

    /* Unless the last event has ended the run, or asked for another answer. */

    if (r->call == NULL || r->http != NULL) {
        return;
    }

    openai_do(r, dialect_end(r->call));

    if (r->call != NULL && r->http == NULL) {
        openai_fail(r, LLMGW_GRPC_UNAVAILABLE, "engine's answer ended early");
    }
}


static void
openai_on_end(http_request_t *request, http_end_t end, const char *why)
{
    char           text[HTTP_WHY_BYTES + 16];
    openai_t      *o;
    openai_run_t  *r;

    r = http_data(request);
    o = r->run.engine->data;
    r->http = NULL;

    if (end == HTTP_COMPLETE) {
        openai_on_complete(r);
        return;
    }

    snprintf(text, sizeof(text), "engine: %s", why);
    openai_fail(r, end == HTTP_UNFIT ? LLMGW_GRPC_INTERNAL
                                     : LLMGW_GRPC_UNAVAILABLE, text);
    scrape_now(&o->scrape);
}


/* --- a request */

/*
 * Makes a unique id for each request: engines refuse, or mix up, two requests
 * with the same id.  The client's part stays readable in the engine's log.
 */
static void
openai_id(openai_t *o, const char *client, char *id, size_t bytes)
{
    size_t  len;

    for (len = 0; client[len] > ' ' && client[len] <= '~'; len++) {
        if (len == OPENAI_ID_BYTES) {
            break;
        }
    }

    snprintf(id, bytes, "%.*s%s%08x%08x", (int) len, client,
             len > 0 ? "-" : "", o->salt, o->asked++);
}


static void
openai_ask(openai_run_t *r)
{
    char                                id[OPENAI_ID_BYTES + 32];
    openai_t                           *o;
    http_call_t                         call = { 0 };
    const dialect_http_t               *http;
    const Llmgateway__GenerateRequest  *request;

    static const http_callbacks_t  callbacks = {
        openai_on_head, openai_on_bytes, openai_on_end
    };

    o = r->run.engine->data;

    if (r->http != NULL) {
        http_cancel(r->http);
    }

    sse_done(&r->sse);
    sse_init(&r->sse, openai_on_event, r);

    http = dialect_http(r->call);
    request = r->run.request;
    openai_id(o, request != NULL ? request->request_id : "", id, sizeof(id));

    call.callbacks = &callbacks;
    call.data = r;
    call.path = http->path;
    call.type = http->type;
    call.method = http->method;
    call.body = http->body;
    call.body_bytes = http->body_bytes;
    call.id = id;
    call.is_stream = http->is_stream;
    call.timeout_ms = http->is_step ? OPENAI_STEP_MS : 0;
    r->http = http_start(o->http, &call);

    if (r->http == NULL) {
        openai_fail(r, LLMGW_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    } else if (!dialect_needs_request(r->call)) {
        run_drop_request(&r->run);
    }
}


static void
openai_start(run_t *run)
{
    openai_t      *o;
    openai_run_t  *r;

    r = (openai_run_t *) run;
    o = run->engine->data;
    sse_init(&r->sse, openai_on_event, r);
    r->sent_ms = mono_ms();
    r->bytes_ms = r->sent_ms;
    r->call = dialect_call_create(o->scrape.dialect, &o->scrape.facts,
                                  run->request);

    if (r->call == NULL) {
        run_finish(run, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                   "out of memory");
        return;
    }

    openai_do(r, dialect_start(r->call));
}


static void
openai_resume(run_t *run)
{
    openai_run_t  *r;

    r = (openai_run_t *) run;
    r->is_paused = 0;
    r->bytes_ms = mono_ms();

    if (r->http != NULL) {
        http_resume(r->http);
    }
}


/* --- all runs */

/* The run may have ended when it returns. */
static void
openai_look(openai_t *o, openai_run_t *r, uint64_t now_ms)
{
    char  why[64];

    Llmgateway__GenerateResponse  progress =
        LLMGATEWAY__GENERATE_RESPONSE__INIT;

    if (now_ms - r->bytes_ms >= o->idle_ms) {
        snprintf(why, sizeof(why), "engine sent nothing for %llu s",
                 (unsigned long long) (now_ms - r->bytes_ms) / 1000);
        openai_fail(r, LLMGW_GRPC_UNAVAILABLE, why);
        return;
    }

    progress.progress = 1;

    if (now_ms - r->sent_ms >= OPENAI_SIGN_MS
        && health_is_alive(&o->scrape.health, o->pulse_ms, now_ms)
        && run_send(&r->run, &progress) == 0)
    {
        r->sent_ms = now_ms;
    }
}


/* A late pulse shows that this process stood still, and has input that is not
   read yet. */
static void
openai_on_pulse(struct ev_loop *loop, ev_timer *w, int revents)
{
    int            is_late;
    run_t         *run, *next;
    openai_t      *o;
    uint32_t       waiting;
    uint64_t       now_ms;
    openai_run_t  *r;

    o = w->data;
    now_ms = mono_ms();
    is_late = now_ms - o->pulse_ms > 2 * HEALTH_LOOK_MS;
    waiting = 0;

    for (run = o->engine->runs; run != NULL; run = next) {
        next = run->next;
        r = (openai_run_t *) run;

        if (r->is_paused) {
            continue;
        }

        waiting++;

        if (!is_late) {
            openai_look(o, r, now_ms);
        }
    }

    o->pulse_ms = now_ms;
    scrape_look(&o->scrape, waiting, now_ms);
}


/* --- the kind */

static int
openai_open(engine_t *engine, const engine_options_t *options)
{
    openai_t  *o;

    o = calloc(1, sizeof(openai_t));

    if (o == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    o->engine = engine;
    o->http = connect_create(engine, options);

    if (o->http == NULL) {
        free(o);
        return -1;
    }

    /* Without random numbers ids differ by their count only. */

    (void) !getrandom(&o->salt, sizeof(o->salt), GRND_NONBLOCK);
    engine->data = o;

    o->scrape.engine = engine;
    o->scrape.answer.client = o->http;
    o->scrape.dialect = dialect_find(options->kind);
    scrape_init(&o->scrape, options);

    o->idle_ms = options->stream_idle_timeout_ms;
    o->pulse_ms = mono_ms();
    ev_timer_init(&o->pulse, openai_on_pulse, HEALTH_LOOK_MS / 1000.0,
                  HEALTH_LOOK_MS / 1000.0);
    o->pulse.data = o;
    ev_timer_start(engine->loop, &o->pulse);

    return 0;
}


static void
openai_close(engine_t *engine)
{
    openai_t  *o;

    o = engine->data;
    ev_timer_stop(engine->loop, &o->pulse);
    scrape_done(&o->scrape);
    http_destroy(o->http);
    free(o);
}


void
openai_move(engine_t *engine, const char *url)
{
    openai_t  *o;

    o = engine->data;
    http_point(o->http, url, NULL);
}


void
openai_look_now(engine_t *engine)
{
    openai_t  *o;

    o = engine->data;
    scrape_now(&o->scrape);
}


const engine_kind_t  openai_kind = {
    .name = "openai",
    .run_bytes = sizeof(openai_run_t),
    .open = openai_open,
    .close = openai_close,
    .start = openai_start,
    .cancel = openai_cancel,
    .resume = openai_resume
};

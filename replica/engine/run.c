
/*
 * Admitted generations, whatever engine runs them.
 *
 *                     the kind: run_finish()
 *   run_begin() ------------------------------------.
 *    | counted        deadline, run_end_all():       > ENDED --> run_destroy()
 *    |                kind->cancel(), then the same -'   freed
 *    '--------------------------------------------------> run_destroy():
 *                     the stream is gone                  kind->cancel()
 *
 * A run is counted as active from run_begin() to the first of these ends, and
 * in the engine's list for just as long.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grpc/conn.h"
#include "replica/engine/run.h"


#define RUN_TEXT_BYTES  256


static const llmgw_grpc_field_t  run_draining_mark[] = {
    { "llmgw-draining", "1" }
};


/* --- an engine's state */

int
engine_is_draining(const engine_t *engine)
{
    return engine->is_draining || engine->is_stopping
           || engine->facts.is_leaving;
}


int
engine_is_active(const engine_t *engine)
{
    const engine_group_t  *group;

    group = &engine->facts.group;

    return group->name[0] == '\0' || group->state == LLMGW_GROUP_ACTIVE;
}


void
engine_publish(engine_t *engine)
{
    engine->facts.generation++;
}


void
engine_fail(void *data)
{
    engine_t  *engine;

    engine = data;
    engine->is_broken = 1;
    engine->facts.state = ENGINE_DOWN;
    engine_publish(engine);
    ev_break(engine->loop, EVBREAK_ALL);
}


const char *
engine_state_name(engine_state_t state)
{
    static const char *const  names[] = {
        [ENGINE_READY] = "READY",
        [ENGINE_STARTING] = "STARTING",
        [ENGINE_STALLED] = "STALLED",
        [ENGINE_DOWN] = "DOWN",
        [ENGINE_ASLEEP] = "STARTING"
    };

    return names[state];
}


/* --- the end */

static void
run_unlink(run_t *run, engine_end_t end)
{
    engine_t  *engine;

    engine = run->engine;
    run->engine = NULL;

    *run->link = run->next;

    if (run->next != NULL) {
        run->next->link = run->link;
    }

    ev_timer_stop(engine->loop, &run->deadline);
    engine->stats.active--;
    engine->full -= run->is_full;

    switch (end) {

    case ENGINE_FINISHED:
        engine->stats.finished++;
        break;

    case ENGINE_CANCELLED:
        engine->stats.cancelled++;
        break;

    default:
        engine->stats.failed++;
    }
}


/* Outside of the session's callbacks writing has to be started. */
static void
run_wake(const run_t *run)
{
    grpc_conn_wake(llmgw_grpc_session_data(
                       llmgw_grpc_stream_session(run->stream)));
}


void
run_finish_with(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text, const llmgw_grpc_field_t *trailers, size_t n)
{
    run_unlink(run, end);
    run_drop_request(run);
    (void) llmgw_grpc_finish(run->stream, status, text, trailers, n);
    run_wake(run);
}


void
run_finish(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text)
{
    run_finish_with(run, end, status, text, NULL, 0);
}


void
run_end_all(engine_t *engine, const char *text, int is_draining)
{
    run_t  *run;

    while ((run = engine->runs) != NULL) {
        engine->kind->cancel(run);
        run_finish_with(run, ENGINE_FAILED, LLMGW_GRPC_UNAVAILABLE, text,
                        run_draining_mark, is_draining ? 1 : 0);
    }

    if (engine->kind->stop != NULL) {
        engine->kind->stop(engine, text);
    }
}


static void
run_on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
    run_t  *run;

    run = w->data;
    run->engine->kind->cancel(run);
    run_finish(run, ENGINE_CANCELLED, LLMGW_GRPC_DEADLINE_EXCEEDED,
               "deadline exceeded");
}


void
run_destroy(run_t *run)
{
    if (run->engine != NULL) {
        run->engine->kind->cancel(run);
        run_unlink(run, ENGINE_CANCELLED);
    }

    run_drop_request(run);
    free(run);
}


/* --- the beginning */

/* Whether another run may begin: OK, or a status and the reason. */
static llmgw_grpc_status_t
run_admit(engine_t *engine, const Llmgateway__GenerateRequest *request,
    char *text)
{
    llmgw_grpc_status_t  status;

    if (engine->kind->judge != NULL) {
        status = engine->kind->judge(engine, request, text, RUN_TEXT_BYTES);

        if (status != LLMGW_GRPC_OK) {
            return status;
        }
    }

    if (engine->facts.state != ENGINE_READY) {
        snprintf(text, RUN_TEXT_BYTES, "engine is %s",
                 engine_state_name(engine->facts.state));
        return LLMGW_GRPC_UNAVAILABLE;
    }

    if (engine->facts.max_capacity > 0
        && engine->stats.active >= engine->facts.max_capacity)
    {
        snprintf(text, RUN_TEXT_BYTES, "replica is full");
        return LLMGW_GRPC_RESOURCE_EXHAUSTED;
    }

    return LLMGW_GRPC_OK;
}


static void
run_link(run_t *run, engine_t *engine, llmgw_grpc_stream_t *stream)
{
    uint64_t  timeout_ms;

    run->engine = engine;
    run->stream = stream;
    run->next = engine->runs;
    run->link = &engine->runs;

    if (run->next != NULL) {
        run->next->link = &run->next;
    }

    engine->runs = run;
    engine->stats.active++;
    engine->stats.started++;

    ev_init(&run->deadline, run_on_deadline);
    run->deadline.data = run;
    timeout_ms = llmgw_grpc_stream_timeout_ms(stream);

    if (timeout_ms > 0) {
        ev_timer_set(&run->deadline, (double) timeout_ms / 1000, 0);
        ev_timer_start(engine->loop, &run->deadline);
    }
}


run_t *
run_begin(engine_t *engine, llmgw_grpc_stream_t *stream,
    Llmgateway__GenerateRequest *request)
{
    char                  text[RUN_TEXT_BYTES];
    run_t                *run;
    llmgw_grpc_status_t   status;

    if (engine_is_draining(engine)) {
        (void) llmgw_grpc_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                 "replica is draining", run_draining_mark, 1);
        return NULL;
    }

    status = run_admit(engine, request, text);

    if (status != LLMGW_GRPC_OK) {
        (void) llmgw_grpc_finish(stream, status, text, NULL, 0);
        return NULL;
    }

    run = calloc(1, engine->kind->run_bytes);

    if (run == NULL) {
        (void) llmgw_grpc_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                                 "out of memory", NULL, 0);
        return NULL;
    }

    run_link(run, engine, stream);
    run->request = request;
    engine->kind->start(run);

    return run;
}


void
run_drop_request(run_t *run)
{
    llmgateway__generate_request__free_unpacked(run->request, NULL);
    run->request = NULL;
}


/* --- messages */

/* Number of tokens in a message: of its ids; without ids one if there is text;
   otherwise the number in a piece that is passed on. */
static int64_t
run_count(const Llmgateway__GenerateResponse *response)
{
    if (response->n_token_ids > 0) {
        return (int64_t) response->n_token_ids;
    }

    return response->token.len > 0 ? 1 : response->raw_tokens;
}


int
run_send(run_t *run, const Llmgateway__GenerateResponse *response)
{
    int64_t   tokens;
    uint8_t  *out;

    out = llmgw_grpc_send_reserve(run->stream,
              llmgateway__generate_response__get_packed_size(response));

    if (out == NULL) {
        return -1;
    }

    (void) llmgateway__generate_response__pack(response, out);

    tokens = run_count(response);
    run->sent += tokens;
    run->engine->stats.tokens += tokens;
    run->engine->progress++;

    if (run->engine->on_message != NULL) {
        run->engine->on_message(run->engine);
    }

    run_wake(run);

    return 0;
}


static void
run_set_full(run_t *run, int is_full)
{
    run->engine->full += is_full - run->is_full;
    run->is_full = is_full;
}


int
run_is_full(run_t *run)
{
    run_set_full(run,
                 llmgw_grpc_stream_queued(run->stream) > RUN_QUEUE_BYTES);

    return run->is_full;
}


void
run_drained(run_t *run)
{
    if (run->engine != NULL && run->is_full) {
        run_set_full(run, 0);
        run->engine->kind->resume(run);
    }
}


llmgw_grpc_status_t
run_judge_tokens(const Llmgateway__GenerateRequest *request, char *text,
    size_t bytes)
{
    if (request->max_tokens < 1) {
        snprintf(text, bytes, "max_tokens is %d, not at least 1",
                 request->max_tokens);
        return LLMGW_GRPC_INVALID_ARGUMENT;
    }

    if (request->tokens_already_generated < 0
        || request->tokens_already_generated >= request->max_tokens)
    {
        snprintf(text, bytes, "tokens_already_generated is %d, not from 0 to "
                 "%d", request->tokens_already_generated,
                 request->max_tokens - 1);
        return LLMGW_GRPC_INVALID_ARGUMENT;
    }

    return LLMGW_GRPC_OK;
}

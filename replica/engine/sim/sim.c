
/*
 * Running generations.
 *
 * All of them hang in one heap, keyed by what comes first: the next token or
 * the client's deadline.  One libev timer stands for the earliest.  It fires
 * a moment late on purpose (GENERATE_SLACK_US), so that streams of nearly the
 * same rhythm share an event-loop iteration, and their tokens a write.
 *
 *                          queue over its limit
 *   admitted --> RUNNING ------------------------> PAUSED
 *                 |   ^ <------------------------- drained
 *       the fault |   |
 *       "stall"   v   | retime
 *                STALLED
 *
 *   from each state: final token, deadline, fault, cancel, end_all --> ended
 *
 * A paused or stalled generation stays in the heap by its deadline, or at
 * DUE_NEVER: so the heap is also the list of all.
 *
 * A turn's work is bounded (GENERATE_TURN_TOKENS, and GENERATE_BATCH_TOKENS a
 * stream): without a delay between tokens every stream is always due, and
 * sockets have to be served too.
 */

#include <string.h>
#include <time.h>

#include "common/sim_token.h"
#include "replica/engine/sim/sim.h"
#include "llmgateway.pb-c.h"


#define GENERATE_SLACK_US      200
#define GENERATE_TURN_TOKENS   4096
#define GENERATE_BATCH_TOKENS  64


static const llmgw_grpc_field_t  generate_draining_mark[] = {
    { "llmgw-draining", "1" }
};


static uint64_t
generate_now_us(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static void
generate_arm(generate_t *g, uint64_t now_us)
{
    double       after_s;
    due_item_t  *first;

    first = due_first(&g->heap);
    ev_timer_stop(g->loop, &g->timer);

    if (first == NULL || first->at_us == DUE_NEVER) {
        return;
    }

    after_s = 0;

    if (first->at_us > now_us) {
        after_s = (double) (first->at_us - now_us + GENERATE_SLACK_US) / 1e6;
    }

    ev_timer_set(&g->timer, after_s, 0);
    ev_timer_start(g->loop, &g->timer);
}


static uint64_t
generate_due_us(const generation_t *gen)
{
    const engine_t  *engine;

    engine = gen->owner->engine;

    if (gen->is_paused || engine->faults.stall) {
        return DUE_NEVER;
    }

    return gen->before_us + engine_delay_us(engine, gen->sent == 0);
}


static uint64_t
generate_key_us(const generation_t *gen)
{
    uint64_t  due_us;

    due_us = generate_due_us(gen);

    return due_us < gen->deadline_us ? due_us : gen->deadline_us;
}


/* Outside of the session's callbacks the writing has to be started. */
static void
generate_wake(const generation_t *gen)
{
    grpc_conn_wake(llmgw_grpc_session_data(
                       llmgw_grpc_stream_session(gen->stream)));
}


static void
generate_release(generation_t *gen, engine_end_t end)
{
    generate_t  *g;

    g = gen->owner;
    due_remove(&g->heap, &gen->due);
    engine_release(g->engine, end);
    gen->owner = NULL;
}


static void
generate_finish(generation_t *gen, engine_end_t end,
    llmgw_grpc_status_t status, const char *message,
    const llmgw_grpc_field_t *trailers, size_t ntrailers)
{
    generate_release(gen, end);
    (void) llmgw_grpc_finish(gen->stream, status, message, trailers, ntrailers);
    generate_wake(gen);
}


/* 0, or -1: no memory for a token, which ends the stream. */
static int
generate_token(generation_t *gen, int is_final)
{
    char                           token[SIM_TOKEN_BYTES];
    size_t                         len, token_len;
    uint8_t                       *out;
    Llmgateway__GenerateResponse   response;

    token_len = sim_token(gen->prompt_hash, gen->next, token);

    llmgateway__generate_response__init(&response);
    response.token.data = (uint8_t *) token;
    response.token.len = token_len;
    response.is_final = is_final;

    len = llmgateway__generate_response__get_packed_size(&response);
    out = llmgw_grpc_send_reserve(gen->stream, len);

    if (out == NULL) {
        return -1;
    }

    (void) llmgateway__generate_response__pack(&response, out);

    gen->next++;
    gen->sent++;
    gen->owner->engine->stats.tokens++;

    return 0;
}


/* Gives out the token that is due.  0, or -1: the generation has ended. */
static int
generate_step(generation_t *gen, uint64_t now_us)
{
    int        is_final;
    uint64_t   due_us;
    engine_t  *engine;

    engine = gen->owner->engine;

    if (engine_dies(engine, gen->sent)) {
        generate_finish(gen, ENGINE_FAILED, LLMGW_GRPC_OK, NULL, NULL, 0);
        return -1;
    }

    is_final = (gen->next == gen->max_tokens - 1);
    due_us = generate_due_us(gen);

    if (generate_token(gen, is_final) != 0) {
        generate_finish(gen, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                        "out of memory", NULL, 0);
        return -1;
    }

    if (is_final) {
        generate_finish(gen, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL, NULL, 0);
        return -1;
    }

    if (engine_dies(engine, gen->sent)) {
        generate_finish(gen, ENGINE_FAILED, LLMGW_GRPC_OK, NULL, NULL, 0);
        return -1;
    }

    gen->before_us = engine_pace_us(due_us, now_us, engine_delay_us(engine, 0));

    return 0;
}


/* Gives out what a stream owes by now.  Returns the number of tokens. */
static int
generate_run(generation_t *gen, uint64_t now_us)
{
    int          n;
    generate_t  *g;

    if (now_us >= gen->deadline_us) {
        generate_finish(gen, ENGINE_CANCELLED, LLMGW_GRPC_DEADLINE_EXCEEDED,
                        "deadline exceeded", NULL, 0);
        return 0;
    }

    g = gen->owner;
    n = 0;

    do {
        if (generate_step(gen, now_us) != 0) {
            return n + 1;
        }

        n++;

        if (llmgw_grpc_stream_queued(gen->stream) > GENERATE_QUEUE_BYTES) {
            gen->is_paused = 1;
            break;
        }

    } while (n < GENERATE_BATCH_TOKENS && generate_due_us(gen) <= now_us);

    generate_wake(gen);
    due_move(&g->heap, &gen->due, generate_key_us(gen));

    return n;
}


static void
generate_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    int          budget;
    uint64_t     now_us;
    generate_t  *g;
    due_item_t  *first;

    g = w->data;
    now_us = generate_now_us();

    for (budget = GENERATE_TURN_TOKENS; budget > 0; /* void */) {
        first = due_first(&g->heap);

        if (first == NULL || first->at_us > now_us) {
            break;
        }

        budget -= 1 + generate_run((generation_t *) first, now_us);
    }

    generate_arm(g, now_us);
}


void
generate_init(generate_t *g, struct ev_loop *loop, engine_t *engine)
{
    memset(g, 0, sizeof(*g));
    g->loop = loop;
    g->engine = engine;
    ev_init(&g->timer, generate_on_timer);
    g->timer.data = g;
}


void
generate_done(generate_t *g)
{
    ev_timer_stop(g->loop, &g->timer);
    due_done(&g->heap);
}


int
generate_start(generate_t *g, generation_t *gen, llmgw_grpc_stream_t *stream,
    const generate_request_t *request)
{
    uint64_t  now_us;

    now_us = generate_now_us();

    gen->stream = stream;
    gen->prompt_hash = request->prompt_hash;
    gen->next = request->next;
    gen->max_tokens = request->max_tokens;
    gen->sent = 0;
    gen->is_paused = 0;
    gen->before_us = now_us;
    gen->deadline_us = DUE_NEVER;

    if (request->timeout_ms > 0
        && request->timeout_ms < (DUE_NEVER - now_us) / 1000)
    {
        gen->deadline_us = now_us + request->timeout_ms * 1000;
    }

    gen->owner = g;
    gen->due.at_us = generate_key_us(gen);

    if (due_push(&g->heap, &gen->due) != 0) {
        gen->owner = NULL;
        return -1;
    }

    generate_arm(g, now_us);

    return 0;
}


void
generate_cancel(generation_t *gen)
{
    if (gen->owner != NULL) {
        generate_release(gen, ENGINE_CANCELLED);
    }
}


void
generate_resume(generation_t *gen)
{
    uint64_t     now_us;
    generate_t  *g;

    g = gen->owner;

    if (g == NULL || !gen->is_paused) {
        return;
    }

    now_us = generate_now_us();
    gen->is_paused = 0;
    due_move(&g->heap, &gen->due, generate_key_us(gen));
    generate_arm(g, now_us);
}


void
generate_retime(generate_t *g)
{
    size_t       i;
    due_heap_t   heap;
    due_item_t  *item;

    /*
     * Every key may have changed at once: the same array is filled again from
     * its beginning, an item read before its place is written.
     */

    heap = g->heap;
    g->heap.n = 0;

    for (i = 0; i < heap.n; i++) {
        item = heap.items[i];
        item->at_us = generate_key_us((generation_t *) item);
        (void) due_push(&g->heap, item);
    }

    generate_arm(g, generate_now_us());
}


void
generate_end_all(generate_t *g)
{
    due_item_t  *item;

    while ((item = due_first(&g->heap)) != NULL) {
        generate_finish((generation_t *) item, ENGINE_FAILED,
                        LLMGW_GRPC_UNAVAILABLE, "replica is stopping",
                        generate_draining_mark, 1);
    }
}

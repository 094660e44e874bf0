
/*
 * The simulated engine.
 *
 * All generations are in one heap, by the time of their next token.  One libev
 * timer is set to the earliest.  It fires a moment late on purpose
 * (SIM_SLACK_US), so that streams of nearly the same rhythm share an event-loop
 * iteration, and their tokens a write.
 *
 *                          queue over its limit
 *   started  --> RUNNING ------------------------> PAUSED
 *                 |   ^ <------------------------- drained
 *       the fault |   |
 *       "stall"   |   | other faults,
 *       or "gate" v   | or a later gate
 *                 HELD
 *
 *   from each state: final token, fault, cancel --> ended
 *
 * A paused or held generation stays in the heap at DUE_NEVER: so the heap is
 * also the list of all.
 *
 * The work of an iteration is bounded (SIM_TURN_TOKENS, and SIM_BATCH_TOKENS
 * for each stream): without a delay between tokens every stream is always due,
 * and sockets have to be served too.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/os/mono.h"
#include "common/sim_token.h"
#include "replica/engine/engine_weights.h"
#include "replica/engine/sim/due.h"
#include "replica/engine/sim/sim.h"


#define SIM_SLACK_US      200
#define SIM_TURN_TOKENS   4096
#define SIM_BATCH_TOKENS  64


typedef struct {
    engine_t        *engine;
    faults_t         faults;
    ev_timer         timer;
    due_heap_t       heap;              /* every running generation */
    unsigned short   random[3];         /* of erand48() */
} sim_t;

typedef struct {
    run_t       run;                    /* must be first */
    due_item_t  due;
    uint64_t    prompt_hash;
    uint64_t    before_us;              /* the token before, or the start */
    int32_t     next;                   /* index of the next token */
    int32_t     max_tokens;
    int         is_paused;              /* the client does not read */
} sim_run_t;


static sim_run_t *
sim_run_of(due_item_t *item)
{
    return (sim_run_t *) ((char *) item - offsetof(sim_run_t, due));
}


static void
sim_arm(sim_t *sim, uint64_t now_us)
{
    double       after_s;
    due_item_t  *first;

    first = due_first(&sim->heap);
    ev_timer_stop(sim->engine->loop, &sim->timer);

    if (first == NULL || first->at_us == DUE_NEVER) {
        return;
    }

    after_s = 0;

    if (first->at_us > now_us) {
        after_s = (double) (first->at_us - now_us + SIM_SLACK_US) / 1e6;
    }

    ev_timer_set(&sim->timer, after_s, 0);
    ev_timer_start(sim->engine->loop, &sim->timer);
}


static uint64_t
sim_due_us(const sim_t *sim, const sim_run_t *r)
{
    if (r->is_paused || faults_hold(&sim->faults, r->next)) {
        return DUE_NEVER;
    }

    return r->before_us + faults_delay_us(&sim->faults, r->run.sent == 0);
}


static void
sim_finish(sim_t *sim, sim_run_t *r, engine_end_t end,
    llmgw_grpc_status_t status, const char *text)
{
    due_remove(&sim->heap, &r->due);
    run_finish(&r->run, end, status, text);
}


/* Sends a token.  0, or -1: out of memory. */
static int
sim_token_send(sim_run_t *r, int is_final)
{
    char                          token[SIM_TOKEN_BYTES];
    Llmgateway__GenerateResponse  response;

    llmgateway__generate_response__init(&response);
    response.token.data = (uint8_t *) token;
    response.token.len = sim_token(r->prompt_hash, r->next, token);
    response.is_final = is_final;

    if (run_send(&r->run, &response) != 0) {
        return -1;
    }

    r->next++;

    return 0;
}


/* Sends the token that is due.  0, or -1: the generation has ended. */
static int
sim_step(sim_t *sim, sim_run_t *r, uint64_t now_us)
{
    int       is_final;
    uint64_t  due_us;

    if (faults_kill(&sim->faults, r->run.sent)) {
        sim_finish(sim, r, ENGINE_FAILED, LLMGW_GRPC_OK, NULL);
        return -1;
    }

    is_final = (r->next == r->max_tokens - 1);
    due_us = sim_due_us(sim, r);

    if (sim_token_send(r, is_final) != 0) {
        sim_finish(sim, r, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                   "out of memory");
        return -1;
    }

    if (is_final) {
        sim_finish(sim, r, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
        return -1;
    }

    if (faults_kill(&sim->faults, r->run.sent)) {
        sim_finish(sim, r, ENGINE_FAILED, LLMGW_GRPC_OK, NULL);
        return -1;
    }

    r->before_us = faults_pace_us(due_us, now_us,
                                  faults_delay_us(&sim->faults, 0));

    return 0;
}


/* Sends the tokens of a stream that are due by now.  Returns their number. */
static int
sim_run(sim_t *sim, sim_run_t *r, uint64_t now_us)
{
    int  n;

    n = 0;

    do {
        if (sim_step(sim, r, now_us) != 0) {
            return n + 1;
        }

        n++;
        r->is_paused = run_is_full(&r->run);

    } while (n < SIM_BATCH_TOKENS && sim_due_us(sim, r) <= now_us);

    due_move(&sim->heap, &r->due, sim_due_us(sim, r));

    return n;
}


static void
sim_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    int          budget;
    sim_t       *sim;
    uint64_t     now_us;
    due_item_t  *first;

    sim = w->data;
    now_us = mono_us();

    for (budget = SIM_TURN_TOKENS; budget > 0; /* void */) {
        first = due_first(&sim->heap);

        if (first == NULL || first->at_us > now_us) {
            break;
        }

        budget -= 1 + sim_run(sim, sim_run_of(first), now_us);
    }

    sim_arm(sim, now_us);
}


/* --- the kind */

static void
sim_close(engine_t *engine)
{
    sim_t  *sim;

    sim = engine->data;
    engine_weights_close(engine);
    ev_timer_stop(engine->loop, &sim->timer);
    due_done(&sim->heap);
    free(sim);
}


static int
sim_open(engine_t *engine, const engine_options_t *o)
{
    sim_t                *sim;
    const sim_options_t  *own;

    own = o->own;
    sim = calloc(1, sizeof(sim_t));

    if (sim == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    if (getrandom(sim->random, sizeof(sim->random), 0) < 0) {
        log_write(engine->log, LOG_ERROR, "no random numbers");
        free(sim);
        return -1;
    }

    sim->engine = engine;
    sim->faults.reject_all = own->is_reject_all;
    sim->faults.error_rate = own->error_rate;
    sim->faults.token_delay_ms = (int32_t) own->token_delay_ms;
    sim->faults.first_token_delay_ms = (int32_t) own->first_token_delay_ms;
    sim->faults.gate = FAULTS_NO_GATE;
    ev_init(&sim->timer, sim_on_timer);
    sim->timer.data = sim;

    engine->data = sim;
    engine->facts.max_capacity =
        o->max_capacity == ENGINE_CAPACITY_AUTO ? 0 : o->max_capacity;

    if (engine_weights_open(engine, o) != 0) {
        sim_close(engine);
        return -1;
    }

    return 0;
}


static int
sim_wake(engine_t *engine)
{
    engine_weights_wake(engine);

    return 0;
}


static llmgw_grpc_status_t
sim_judge(engine_t *engine, const Llmgateway__GenerateRequest *request,
    char *text, size_t bytes)
{
    sim_t                *sim;
    llmgw_grpc_status_t   status;

    sim = engine->data;

    status = run_judge_tokens(request, text, bytes);

    if (status != LLMGW_GRPC_OK) {
        return status;
    }

    if (faults_reject(&sim->faults, erand48(sim->random))) {
        engine->stats.failed++;
        snprintf(text, bytes, "request rejected by a fault");
        return LLMGW_GRPC_UNAVAILABLE;
    }

    return LLMGW_GRPC_OK;
}


static void
sim_start(run_t *run)
{
    sim_t      *sim;
    uint64_t    now_us;
    sim_run_t  *r;

    r = (sim_run_t *) run;
    sim = run->engine->data;
    now_us = mono_us();

    r->prompt_hash = sim_token_hash(run->request->prompt.data,
                                    run->request->prompt.len);
    r->next = run->request->tokens_already_generated;
    r->max_tokens = run->request->max_tokens;
    r->before_us = now_us;
    r->due.at_us = sim_due_us(sim, r);
    run_drop_request(run);

    if (due_push(&sim->heap, &r->due) != 0) {
        run_finish(run, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                   "out of memory");
        return;
    }

    sim_arm(sim, now_us);
}


static void
sim_cancel(run_t *run)
{
    sim_t  *sim;

    sim = run->engine->data;
    due_remove(&sim->heap, &((sim_run_t *) run)->due);
}


static void
sim_resume(run_t *run)
{
    sim_t      *sim;
    sim_run_t  *r;

    r = (sim_run_t *) run;
    sim = run->engine->data;

    r->is_paused = 0;
    due_move(&sim->heap, &r->due, sim_due_us(sim, r));
    sim_arm(sim, mono_us());
}


const engine_kind_t  sim_kind = {
    .name = "sim",
    .run_bytes = sizeof(sim_run_t),
    .open = sim_open,
    .wake = sim_wake,
    .close = sim_close,
    .judge = sim_judge,
    .start = sim_start,
    .cancel = sim_cancel,
    .resume = sim_resume
};


/* --- faults */

const faults_t *
sim_faults(const engine_t *engine)
{
    return &((sim_t *) engine->data)->faults;
}


void
sim_set_faults(engine_t *engine, const faults_t *faults)
{
    sim_t       *sim;
    size_t       i;
    due_heap_t   heap;
    due_item_t  *item;

    /*
     * Each key may have changed: the heap is built again in the same array,
     * where an item is read before its place is written.
     */

    sim = engine->data;
    sim->faults = *faults;
    heap = sim->heap;
    sim->heap.n = 0;

    for (i = 0; i < heap.n; i++) {
        item = heap.items[i];
        item->at_us = sim_due_us(sim, sim_run_of(item));
        (void) due_push(&sim->heap, item);
    }

    sim_arm(sim, mono_us());
}

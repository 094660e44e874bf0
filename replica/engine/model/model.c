
/*
 * The engine `model`.
 *
 * The machine of sim/model has no clock; here it gets the system's.  A request
 * arrives in it at the time of its call.  One timer is set to what is due next:
 * an event of the machine, or a token to be sent.  A timer that fires late does
 * not make the machine late, since events are processed with their own times.
 *
 * The machine reports a step's tokens when the step begins; they wait in a list
 * for its end.  A token's text depends only on prompt and index, like the
 * simulated engine's, so a stream continues at any replica byte by byte; what
 * was delivered before is prefilled as a part of the prompt.
 *
 *     made      by the machine, since it last began with this request
 *     promised  in the list, or already ready
 *     ready     their time has come
 *     next      sent; less than ready while the client does not read
 *
 * A preempted request is computed again by the machine while its client waits:
 * tokens that were sent are not sent again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/mono.h"
#include "common/sim_token.h"
#include "replica/engine/engine_weights.h"
#include "replica/engine/hits.h"
#include "replica/engine/model/model.h"
#include "replica/engine/model/delivery.h"
#include "replica/engine/model/prompt.h"
#include "replica/engine/model/settings.h"
#include "sim/model/replica.h"


#define MODEL_ERROR_BYTES  256
#define MODEL_TURN_EVENTS  4096     /* events before sockets are served again */

typedef struct {
    engine_t           *engine;
    model_config_t      config;
    model_replica_t    *replica;
    model_deliveries_t  deliveries;
    hits_t              hits;
    ev_timer            timer;
    int                 is_short;   /* memory ran out within a hook */
} model_engine_t;

typedef struct {
    run_t              run;         /* must be first */
    model_request_t    request;
    uint64_t          *hashes;
    uint64_t           prompt_hash;
    int32_t            begin;       /* tokens delivered before */
    int32_t            max_tokens;
    int32_t            made, promised, ready, next;     /* from begin on */
    int                is_refused;
} model_run_t;


/* --- tokens */

/* The machine does not know the run any more. */
static void
model_run_forget(model_engine_t *m, model_run_t *r)
{
    if (r->request.state != MODEL_REQUEST_AWAY) {
        model_replica_remove(m->replica, &r->request);
    }

    model_delivery_drop(&m->deliveries, r);
    free(r->hashes);
    r->hashes = NULL;
}


static void
model_run_fail(model_engine_t *m, model_run_t *r, const char *text)
{
    model_run_forget(m, r);
    run_finish(&r->run, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED, text);
}


/* Sends a token.  0, or -1: out of memory. */
static int
model_token_send(model_run_t *r, int is_final)
{
    char                          token[SIM_TOKEN_BYTES];
    Llmgateway__GenerateResponse  response;

    llmgateway__generate_response__init(&response);
    response.token.data = (uint8_t *) token;
    response.token.len = sim_token(r->prompt_hash, r->begin + r->next, token);
    response.is_final = is_final;

    return run_send(&r->run, &response);
}


/* Sends tokens that are ready, until the client is slow. */
static void
model_run_send(model_engine_t *m, model_run_t *r)
{
    int  is_final;

    while (r->next < r->ready && !run_is_full(&r->run)) {
        is_final = r->begin + r->next == r->max_tokens - 1;

        if (model_token_send(r, is_final) != 0) {
            model_run_fail(m, r, "out of memory");
            return;
        }

        r->next++;

        if (is_final) {
            model_run_forget(m, r);
            run_finish(&r->run, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
            return;
        }
    }
}


static void
model_deliver(model_engine_t *m, model_run_t *r)
{
    if (r->is_refused) {
        model_run_fail(m, r, "the request does not fit the engine");
        return;
    }

    r->ready++;
    model_run_send(m, r);
}


/* --- the machine's hooks */

static void
model_on_token(void *data, model_request_t *request, int64_t at_us)
{
    model_run_t     *r;
    model_engine_t  *m;

    m = data;
    r = request->data;

    if (++r->made > r->promised) {
        r->promised++;

        if (model_delivery_add(&m->deliveries, r, at_us) != 0) {
            m->is_short = 1;
        }
    }
}


static void
model_on_preempted(void *data, model_request_t *request, int64_t now_us)
{
    ((model_run_t *) request->data)->made = 0;
}


/* model_judge() accepts only what fits, so an early end is an error of ours. */
static void
model_on_ended(void *data, model_request_t *request, model_end_t end,
    int64_t now_us, int64_t at_us)
{
    model_run_t     *r;
    model_engine_t  *m;

    m = data;
    r = request->data;

    if (end != MODEL_COMPLETED) {
        r->is_refused = 1;

        if (model_delivery_add(&m->deliveries, r, at_us) != 0) {
            m->is_short = 1;
        }
    }
}


/* --- time */

static int32_t
model_permille(const model_facts_t *facts)
{
    return (int32_t) ((uint64_t) (facts->total_blocks - facts->free_blocks)
                      * 1000 / facts->total_blocks);
}


/*
 * Free blocks and hits are sent with the next report, and do not cause one.
 */
static void
model_count_prompts(model_engine_t *m)
{
    model_counters_t  counters;

    model_replica_counters(m->replica, &counters);
    m->engine->stats.prompt_tokens = (int64_t) counters.input_tokens;
    m->engine->stats.cached_tokens = (int64_t) counters.hits
                                     * m->config.block_tokens;
}


static void
model_publish(model_engine_t *m)
{
    model_facts_t      facts;
    engine_facts_t    *to;
    model_counters_t   counters;

    to = &m->engine->facts;
    model_replica_facts(m->replica, &facts);
    model_replica_counters(m->replica, &counters);
    facts.queue_depth += facts.pending;

    to->kv_free_blocks = facts.free_blocks;
    to->hit_permille = hits_permille(&m->hits,
                                     (uint64_t) (int64_t) mono_us() / 1000,
                                     counters.prompt_hits,
                                     counters.prompt_blocks);

    if (to->running != facts.batch_size
        || to->waiting != facts.queue_depth
        || to->kv_permille != model_permille(&facts))
    {
        to->running = facts.batch_size;
        to->waiting = facts.queue_depth;
        to->kv_permille = model_permille(&facts);
        engine_publish(m->engine);
    }
}


static void
model_break(model_engine_t *m)
{
    log_write(m->engine->log, LOG_ERROR, "out of memory");
    m->engine->is_broken = 1;
    ev_break(m->engine->loop, EVBREAK_ALL);
}


/* Processes the next event if its time has come.  0: nothing is due. */
static int
model_do_next(model_engine_t *m, int64_t now_us)
{
    int64_t  event_us, due_us;

    event_us = model_replica_next(m->replica);
    due_us = model_delivery_at(&m->deliveries);

    if (due_us <= event_us && due_us <= now_us) {
        model_deliver(m, model_delivery_pop(&m->deliveries));
        return 1;
    }

    if (event_us > now_us) {
        return 0;
    }

    if (model_replica_step(m->replica) != 0 || m->is_short) {
        model_break(m);
        return 0;
    }

    m->engine->progress++;
    return 1;
}


/* Processes what is due, and sets the timer to what is next. */
static void
model_advance(model_engine_t *m)
{
    int      left;
    int64_t  now_us, next_us, due_us;

    now_us = (int64_t) mono_us();
    left = MODEL_TURN_EVENTS;

    while (left > 0 && model_do_next(m, now_us)) {
        left--;
    }

    next_us = model_replica_next(m->replica);
    due_us = model_delivery_at(&m->deliveries);
    next_us = due_us < next_us ? due_us : next_us;

    model_publish(m);
    model_count_prompts(m);
    ev_timer_stop(m->engine->loop, &m->timer);

    if (next_us != INT64_MAX) {
        now_us = (int64_t) mono_us();
        ev_timer_set(&m->timer, next_us > now_us
                     ? (double) (next_us - now_us) / 1e6 : 0, 0);
        ev_now_update(m->engine->loop);
        ev_timer_start(m->engine->loop, &m->timer);
    }
}


static void
model_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    model_advance(w->data);
}


/* --- the kind */

int
model_engine_check(const model_options_t *o, char *error, size_t bytes)
{
    model_config_t  config;

    return model_settings_read(o, &config, error, bytes);
}


static void
model_close(engine_t *engine)
{
    model_engine_t  *m;

    m = engine->data;
    engine_weights_close(engine);
    ev_timer_stop(engine->loop, &m->timer);
    model_replica_destroy(m->replica);
    model_delivery_done(&m->deliveries);
    free(m);
}


static int
model_open(engine_t *engine, const engine_options_t *o)
{
    char             error[MODEL_ERROR_BYTES];
    model_hooks_t    hooks = {
        .first_token = model_on_token,
        .token = model_on_token,
        .preempted = model_on_preempted,
        .ended = model_on_ended
    };
    model_engine_t  *m;

    m = calloc(1, sizeof(model_engine_t));

    if (m == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    if (model_settings_read(o->own, &m->config, error, sizeof(error)) != 0) {
        log_write(engine->log, LOG_ERROR, "%s", error);
        free(m);
        return -1;
    }

    m->replica = model_replica_create(&m->config, &hooks, m);

    if (m->replica == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        free(m);
        return -1;
    }

    m->engine = engine;
    ev_init(&m->timer, model_on_timer);
    m->timer.data = m;
    engine->data = m;
    engine->facts.max_capacity = o->max_capacity;

    if (o->max_capacity == ENGINE_CAPACITY_AUTO) {
        engine->facts.max_capacity =
            m->config.max_seqs < ENGINE_CAPACITY_MAX
            ? (int32_t) m->config.max_seqs : ENGINE_CAPACITY_MAX;
    }

    model_publish(m);

    if (engine_weights_open(engine, o) != 0) {
        model_close(engine);
        return -1;
    }

    return 0;
}


static int
model_wake(engine_t *engine)
{
    engine_weights_wake(engine);

    return 0;
}


static llmgw_grpc_status_t
model_judge(engine_t *engine, const Llmgateway__GenerateRequest *request,
    char *text, size_t bytes)
{
    int64_t              tokens, most;
    model_engine_t      *m;
    llmgw_grpc_status_t  status;

    m = engine->data;

    status = run_judge_tokens(request, text, bytes);

    if (status != LLMGW_GRPC_OK) {
        return status;
    }

    tokens = (int64_t) model_prompt_tokens(request->prompt.len, 0)
             + request->max_tokens;
    most = m->config.max_model_len;

    if (tokens > most) {
        snprintf(text, bytes, "prompt and answer are %lld tokens, the model"
                 " takes %lld", (long long) tokens, (long long) most);
        return LLMGW_GRPC_INVALID_ARGUMENT;
    }

    return LLMGW_GRPC_OK;
}


/* 0, or -1: out of memory. */
static int
model_run_arrive(model_engine_t *m, model_run_t *r)
{
    model_request_t              *q;
    Llmgateway__GenerateRequest  *request;

    q = &r->request;
    request = r->run.request;

    r->begin = request->tokens_already_generated;
    r->max_tokens = request->max_tokens;
    r->prompt_hash = sim_token_hash(request->prompt.data, request->prompt.len);
    r->hashes = model_prompt_hashes(request->prompt.data, request->prompt.len,
                                    (uint32_t) r->begin,
                                    (uint32_t) m->config.block_tokens,
                                    &q->nhashes);

    if (r->hashes == NULL) {
        return -1;
    }

    q->id = "";
    q->data = r;
    q->hashes = r->hashes;
    q->input_tokens = model_prompt_tokens(request->prompt.len,
                                          (uint32_t) r->begin);
    q->output_tokens = (uint32_t) (r->max_tokens - r->begin);
    q->max_output_tokens = q->output_tokens;
    q->arrival_us = (int64_t) mono_us();

    return model_replica_arrive(m->replica, q, q->arrival_us);
}


static void
model_start(run_t *run)
{
    model_run_t     *r;
    model_engine_t  *m;

    r = (model_run_t *) run;
    m = run->engine->data;

    model_advance(m);               /* what was due before this arrival */

    if (model_run_arrive(m, r) != 0) {
        model_run_fail(m, r, "out of memory");
        return;
    }

    run_drop_request(run);
    model_advance(m);
}


static void
model_cancel(run_t *run)
{
    model_engine_t  *m;

    m = run->engine->data;
    model_run_forget(m, (model_run_t *) run);
    model_publish(m);
}


static void
model_resume(run_t *run)
{
    model_run_send(run->engine->data, (model_run_t *) run);
}


const engine_kind_t  model_engine_kind = {
    .name = "model",
    .run_bytes = sizeof(model_run_t),
    .open = model_open,
    .wake = model_wake,
    .close = model_close,
    .judge = model_judge,
    .start = model_start,
    .cancel = model_cancel,
    .resume = model_resume
};

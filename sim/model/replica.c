
#include <stdlib.h>
#include <string.h>

#include "sim/model/replica_inner.h"


model_replica_t *
model_replica_create(const model_config_t *config, const model_hooks_t *hooks,
    void *data)
{
    model_replica_t  *replica;

    replica = calloc(1, sizeof(model_replica_t));

    if (replica == NULL) {
        return NULL;
    }

    replica->config = config;
    replica->data = data;
    replica->step = 1;
    replica->slowness = 1;
    replica->step_at_us = MODEL_NEVER;
    replica->batch.next_due = UINT64_MAX;

    if (hooks != NULL) {
        replica->hooks = *hooks;
    }

    model_queue_init(&replica->queue, config->scheduler);
    model_kv_init(&replica->kv, (uint32_t) config->total_blocks,
                  (uint32_t) config->block_tokens, config->view);

    return replica;
}


static void
replica_forget(void *data, model_request_t *request)
{
}


void
model_replica_destroy(model_replica_t *replica)
{
    if (replica == NULL) {
        return;
    }

    model_replica_crash(replica, replica_forget, NULL);
    model_queue_done(&replica->queue);
    model_moments_done(&replica->pending);
    model_moments_done(&replica->deadlines);
    model_gaps_done(&replica->gaps);
    model_kv_done(&replica->kv);
    free(replica->batch.requests);
    free(replica->batch.due);
    free(replica->prefills);
    free(replica->decode_at);
    free(replica);
}


/* --- arrivals */

static void
replica_was_at(model_replica_t *replica, int64_t now_us)
{
    if (now_us > replica->ended_us) {
        replica->ended_us = now_us;
    }
}


int
model_replica_arrive(model_replica_t *replica, model_request_t *request,
    int64_t now_us)
{
    int64_t  us;

    request->state = MODEL_REQUEST_PENDING;
    model_stuck_forget(replica);
    replica_was_at(replica, now_us);
    us = model_latency_queueing(&replica->config->latency,
                                request->input_tokens);

    return model_moments_add(&replica->pending, request, now_us + us);
}


/* Makes a step due if the batch is idle while requests wait. */
static void
replica_wake(model_replica_t *replica, int64_t now_us)
{
    if (replica->step_at_us == MODEL_NEVER && replica->batch.n == 0
        && replica->queue.n > 0)
    {
        replica->step_at_us = now_us;
    }
}


static int
replica_enqueue(model_replica_t *replica, model_request_t *request)
{
    request->state = MODEL_REQUEST_QUEUED;
    model_stuck_forget(replica);

    if (model_queue_add(&replica->queue, request) != 0) {
        return -1;
    }

    return request->deadline_us > 0
           ? model_moments_add(&replica->deadlines, request,
                               request->deadline_us)
           : 0;
}


/* Whether the request could ever fit. */
static int
replica_serves(const model_replica_t *replica, const model_request_t *request)
{
    int64_t                most, blocks;
    const model_config_t  *config;

    config = replica->config;
    most = config->max_model_len;

    if (most > 0
        && ((int64_t) request->input_tokens >= most
            || (int64_t) request->input_tokens + request->max_output_tokens
               > most))
    {
        return 0;
    }

    blocks = ((int64_t) request->input_tokens + config->block_tokens - 1)
             / config->block_tokens;

    return blocks <= config->total_blocks;
}


static int
replica_admit(model_replica_t *replica, model_request_t *request,
    int64_t now_us)
{
    int  rc;

    if (!replica_serves(replica, request)) {
        replica->counters.unservable++;
        model_end(replica, request, MODEL_UNSERVABLE, now_us, now_us);
        return 0;
    }

    replica->counters.input_tokens += request->input_tokens;

    if (request->deadline_us > 0 && request->deadline_us <= now_us) {
        replica->counters.timed_out++;
        model_end(replica, request, MODEL_PAST_DUE, now_us, now_us);
        return 0;
    }

    rc = replica_enqueue(replica, request);
    replica_wake(replica, now_us);

    return rc;
}


int
model_replica_reserve(model_replica_t *replica, model_request_t *request)
{
    request->is_decode_only = 1;
    request->progress = 0;

    if (request->input_tokens > 0
        && model_kv_prefill(&replica->kv, request, request->input_tokens, 0)
           != 0)
    {
        return -1;
    }

    request->progress = request->input_tokens;
    request->state = MODEL_REQUEST_RESERVED;
    model_stuck_forget(replica);
    replica->reserved++;

    return 0;
}


int
model_replica_arrive_decode(model_replica_t *replica,
    model_request_t *request, int64_t now_us)
{
    int  rc;

    replica->reserved--;
    rc = replica_enqueue(replica, request);
    replica_wake(replica, now_us);

    return rc;
}


/* --- removals */

void
model_settle(const model_replica_t *replica, model_request_t *request)
{
    if (request->state == MODEL_REQUEST_RUNNING && !request->is_prefilling) {
        request->itl_count = model_progress(replica, request)
                             - request->input_tokens;
        request->itl_sum_us = replica->gap_sum - request->gap_base;
    }
}


static void
replica_let_go(model_replica_t *replica, model_request_t *request)
{
    if (request->deadline_us > 0
        && (request->state == MODEL_REQUEST_QUEUED
            || request->state == MODEL_REQUEST_RUNNING))
    {
        model_moments_remove(&replica->deadlines, request);
    }

    request->state = MODEL_REQUEST_AWAY;
    model_stuck_forget(replica);
    model_kv_forget(request);
}


void
model_end(model_replica_t *replica, model_request_t *request,
    model_end_t end, int64_t now_us, int64_t at_us)
{
    replica_let_go(replica, request);

    if (replica->hooks.ended != NULL) {
        replica->hooks.ended(replica->data, request, end, now_us, at_us);
    }
}


static void
replica_leave_batch(model_replica_t *replica, const model_request_t *request)
{
    uint32_t  i;

    for (i = 0; i < replica->batch.n; i++) {

        if (replica->batch.requests[i] == request) {
            model_batch_leave(replica, i);
            return;
        }
    }
}


/* Removes a request from the list that it is in. */
static void
replica_take(model_replica_t *replica, model_request_t *request)
{
    model_settle(replica, request);

    switch (request->state) {

    case MODEL_REQUEST_PENDING:
        model_moments_remove(&replica->pending, request);
        break;

    case MODEL_REQUEST_QUEUED:
        model_queue_remove(&replica->queue, request);
        model_kv_release(&replica->kv, request);
        break;

    case MODEL_REQUEST_RUNNING:
        replica_leave_batch(replica, request);
        break;

    case MODEL_REQUEST_RESERVED:
        model_kv_release(&replica->kv, request);
        replica->reserved--;
        break;

    default:
        break;
    }
}


void
model_replica_remove(model_replica_t *replica, model_request_t *request)
{
    replica_take(replica, request);
    replica_let_go(replica, request);
}


/*
 * A request's deadline has passed.  A step that is due remains due, even if no
 * request is left for it.
 */
static void
replica_expire(model_replica_t *replica, model_request_t *request,
    int64_t now_us)
{
    model_end_t  end;

    end = request->state == MODEL_REQUEST_RUNNING ? MODEL_TIMED_OUT_RUNNING
                                                  : MODEL_TIMED_OUT_QUEUED;
    replica->counters.timed_out++;
    replica_take(replica, request);
    replica_wake(replica, now_us);
    model_end(replica, request, end, now_us, now_us);
}


void
model_replica_crash(model_replica_t *replica,
    void (*lost)(void *data, model_request_t *request), void *data)
{
    model_request_t  *request;

    for ( ;; ) {

        if (replica->batch.n > 0) {
            request = replica->batch.requests[0];

        } else if (replica->queue.n > 0) {
            request = model_queue_head(&replica->queue);

        } else if (replica->pending.n > 0) {
            request = replica->pending.items[0].request;

        } else {
            break;
        }

        model_replica_remove(replica, request);
        lost(data, request);
    }

    model_kv_clear(&replica->kv);
    replica->step_at_us = MODEL_NEVER;
}


void
model_replica_stall(model_replica_t *replica, int64_t until_us)
{
    replica->stalled_us = until_us;
}


void
model_replica_slow(model_replica_t *replica, double factor)
{
    replica->slowness = factor;
}


/* --- events */

static int64_t
replica_step_at(const model_replica_t *replica)
{
    return replica->step_at_us > replica->stalled_us ? replica->step_at_us
                                                     : replica->stalled_us;
}


static int64_t
moments_at(const model_moments_t *moments)
{
    return moments->n > 0 ? moments->items[0].at_us : MODEL_NEVER;
}


int64_t
model_replica_next(const model_replica_t *replica)
{
    int64_t  at, other;

    at = replica_step_at(replica);
    other = moments_at(&replica->pending);
    at = other < at ? other : at;
    other = moments_at(&replica->deadlines);

    return other < at ? other : at;
}


int
model_replica_step(model_replica_t *replica)
{
    int64_t           now_us;
    model_request_t  *request;

    now_us = model_replica_next(replica);

    if (now_us == MODEL_NEVER) {
        return 0;
    }

    replica_was_at(replica, now_us);

    if (moments_at(&replica->pending) == now_us) {
        request = replica->pending.items[0].request;
        model_moments_remove(&replica->pending, request);

        return replica_admit(replica, request, now_us);
    }

    if (replica_step_at(replica) == now_us) {
        return model_step(replica, now_us);
    }

    replica_expire(replica, replica->deadlines.items[0].request, now_us);

    return 0;
}


/* --- reports */

void
model_replica_facts(const model_replica_t *replica, model_facts_t *facts)
{
    facts->queue_depth = replica->queue.n;
    facts->batch_size = replica->batch.n;
    facts->pending = replica->pending.n;
    facts->total_blocks = replica->kv.total;
    facts->free_blocks = replica->kv.free;
}


void
model_replica_counters(const model_replica_t *replica,
    model_counters_t *counters)
{
    *counters = replica->counters;
    counters->hits = replica->kv.hits;
    counters->misses = replica->kv.misses;
}


int64_t
model_replica_ended(const model_replica_t *replica)
{
    return replica->ended_us;
}


uint32_t
model_replica_cached(const model_replica_t *replica, const uint64_t *hashes,
    uint32_t n)
{
    return model_kv_cached(&replica->kv, hashes, n);
}


uint32_t
model_replica_viewed(const model_replica_t *replica, const uint64_t *hashes,
    uint32_t n)
{
    return model_kv_viewed(&replica->kv, hashes, n);
}


uint32_t
model_replica_tokens(const model_replica_t *replica,
    const model_request_t *request)
{
    return request->state == MODEL_REQUEST_RUNNING && !request->is_prefilling
           ? model_progress(replica, request) - request->input_tokens + 1
           : 0;
}


int64_t
model_replica_step_end(const model_replica_t *replica)
{
    return replica->step_end_us;
}

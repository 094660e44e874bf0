
/*
 * The batch of a step.
 *
 * First the running requests continue, in order: a prompt by its next chunk, an
 * answer by one token.  A request that finds no block preempts others until it
 * finds one, or until it is preempted itself; then the requests behind it get
 * nothing in this step.  If no request was preempted, more come from the
 * queue's head as long as there are places, tokens and blocks.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/model/replica_inner.h"


uint32_t
model_progress(const model_replica_t *replica, const model_request_t *request)
{
    return request->is_prefilling
           ? request->progress
           : request->input_tokens
             + (uint32_t) (replica->step - request->since);
}


uint32_t
model_batch_last(const model_replica_t *replica,
    const model_request_t *request)
{
    int64_t  last;

    last = (int64_t) request->input_tokens
           + (request->output_tokens > 0 ? request->output_tokens : 1) - 1;

    if (replica->config->max_model_len > 0
        && last > replica->config->max_model_len - 1)
    {
        last = replica->config->max_model_len - 1;
    }

    return (uint32_t) last;
}


uint64_t
model_batch_due(const model_replica_t *replica,
    const model_request_t *request)
{
    uint32_t  progress, last;
    uint64_t  block, end;

    if (request->is_prefilling) {
        return DUE_ALWAYS;
    }

    block = request->filled + model_kv_room(&replica->kv, request);
    progress = model_progress(replica, request);
    last = model_batch_last(replica, request);
    end = replica->step + (last > progress ? last - progress - 1 : 0);

    return block < end ? block : end;
}


void
model_batch_fill(const model_replica_t *replica, model_request_t *request)
{
    if (request->nblocks > 0) {
        request->tail += (uint32_t) (replica->step - request->filled);
    }

    request->filled = replica->step;
}


void
model_batch_drop(model_replica_t *replica, model_request_t *request)
{
    if (request->is_prefilling) {
        replica->batch.prefilling--;

    } else {
        replica->batch.context -= model_progress(replica, request);
    }

    model_kv_release(&replica->kv, request);
}


void
model_batch_leave(model_replica_t *replica, uint32_t i)
{
    model_batch_t  *batch;

    batch = &replica->batch;
    model_batch_drop(replica, batch->requests[i]);
    batch->n--;

    memmove(batch->requests + i, batch->requests + i + 1,
            (batch->n - i) * sizeof(model_request_t *));
    memmove(batch->due + i, batch->due + i + 1,
            (batch->n - i) * sizeof(uint64_t));
}


/* --- running requests */

/*
 * The request to preempt: the last one, or the least urgent, and among equally
 * urgent ones the latest.
 */
static uint32_t
batch_victim(const model_replica_t *replica)
{
    uint32_t                i, victim;
    const model_request_t  *a, *b;

    victim = replica->batch.n - 1;

    if (replica->config->preemption == MODEL_PREEMPT_LAST) {
        return victim;
    }

    for (i = victim; i-- > 0; /* void */ ) {
        a = replica->batch.requests[i];
        b = replica->batch.requests[victim];

        if (a->priority > b->priority
            || (a->priority == b->priority && a->arrival_us > b->arrival_us))
        {
            victim = i;
        }
    }

    return victim;
}


/*
 * Preempts a request, which will start again.  Its tokens of this step are
 * available to others.
 */
static int
batch_preempt(model_replica_t *replica, uint32_t i, int64_t now_us)
{
    model_request_t  *request;

    request = replica->batch.requests[i];

    if (i < replica->batch.granted) {
        replica->batch.budget += request->is_prefilling ? request->new_tokens
                                                        : 1;
        replica->batch.granted--;
    }

    model_batch_leave(replica, i);
    replica->batch.is_preempted = 1;
    replica->counters.preemptions++;

    request->state = MODEL_REQUEST_QUEUED;
    request->is_prefilling = 0;
    request->progress = 0;
    request->spans = 0;
    request->preemptions++;

    if (replica->hooks.preempted != NULL) {
        replica->hooks.preempted(replica->data, request, now_us);
    }

    return model_queue_return(&replica->queue, request);
}


static int
batch_allocate(model_replica_t *replica, model_request_t *request)
{
    if (request->is_prefilling) {
        return model_kv_prefill(&replica->kv, request, request->new_tokens,
                                0);
    }

    model_batch_fill(replica, request);

    if (model_kv_extend(&replica->kv, request) != 0) {
        return -1;
    }

    request->filled++;

    return 0;
}


/*
 * Gives the request at batch.granted the blocks it needs, by preempting others
 * if necessary.  -1: it was preempted itself.
 */
static int
batch_make_room(model_replica_t *replica, int64_t now_us)
{
    uint32_t          victim;
    model_request_t  *request;

    request = replica->batch.requests[replica->batch.granted];

    while (batch_allocate(replica, request) != 0) {
        victim = batch_victim(replica);

        if (victim == replica->batch.granted) {
            request = NULL;
        }

        if (batch_preempt(replica, victim, now_us) != 0) {
            replica->kv.is_broken = 1;
        }

        if (request == NULL || replica->kv.is_broken) {
            return -1;
        }
    }

    return 0;
}


/*
 * The number of tokens in the next chunk of a prompt, which begins at `from`.
 */
static uint32_t
batch_chunk(const model_replica_t *replica, const model_request_t *request,
    uint32_t from)
{
    int64_t                tokens, most;
    const model_config_t  *config;

    config = replica->config;
    tokens = request->input_tokens - from;

    if (config->long_prefill_threshold > 0
        && tokens > config->long_prefill_threshold)
    {
        tokens = config->long_prefill_threshold;
    }

    if (tokens > replica->batch.budget) {
        tokens = replica->batch.budget;
    }

    if (config->max_model_len > 0) {
        most = config->max_model_len - 1 - from;
        most = most > 0 ? most : 0;
        tokens = tokens < most ? tokens : most;
    }

    return (uint32_t) tokens;
}


static void
batch_continue(model_replica_t *replica, int64_t now_us)
{
    model_batch_t    *batch;
    model_request_t  *request;

    batch = &replica->batch;

    while (batch->granted < batch->n && batch->budget > 0) {

        if (batch->due[batch->granted] > replica->step) {
            batch->granted++;
            batch->budget--;
            continue;
        }

        request = batch->requests[batch->granted];
        request->new_tokens = 1;

        if (request->is_prefilling) {
            request->new_tokens = batch_chunk(replica, request,
                                              request->progress);
            request->target = request->progress + request->new_tokens;
        }

        if (batch_make_room(replica, now_us) != 0) {
            break;
        }

        batch->budget -= request->new_tokens;
        batch->granted++;
    }
}


/* --- waiting requests */

/* Makes room for one more request in all arrays. */
static int
batch_reserve(model_replica_t *replica)
{
    uint32_t           capacity;
    uint32_t          *decode_at;
    uint64_t          *due;
    model_batch_t     *batch;
    model_prefill_t   *prefills;
    model_request_t  **requests;

    batch = &replica->batch;

    if (batch->n < batch->capacity) {
        return 0;
    }

    capacity = batch->capacity > 0 ? 2 * batch->capacity : 8;

    requests = realloc(batch->requests, capacity * sizeof(model_request_t *));

    if (requests == NULL) {
        return -1;
    }

    batch->requests = requests;
    due = realloc(batch->due, capacity * sizeof(uint64_t));

    if (due == NULL) {
        return -1;
    }

    batch->due = due;
    prefills = realloc(replica->prefills, capacity * sizeof(model_prefill_t));

    if (prefills == NULL) {
        return -1;
    }

    replica->prefills = prefills;
    decode_at = realloc(replica->decode_at, capacity * sizeof(uint32_t));

    if (decode_at == NULL) {
        return -1;
    }

    replica->decode_at = decode_at;
    batch->capacity = capacity;

    return 0;
}


void
model_batch_decode(model_replica_t *replica, model_request_t *request)
{
    request->is_prefilling = 0;
    request->since = replica->step;
    request->filled = replica->step;
    request->span = replica->step;
    request->spans = 0;
    request->gap_base = replica->gap_sum;
    replica->batch.context += request->input_tokens;
}


/*
 * Admits a request whose prompt came from elsewhere.  If it was preempted, its
 * prompt is computed here, one token at a time.
 */
static int
batch_admit_decode(model_replica_t *replica, model_request_t *request)
{
    if (request->progress < request->input_tokens) {

        if (model_kv_prefill(&replica->kv, request, 1, 0) != 0) {
            return -1;
        }

        request->is_prefilling = 1;
        replica->batch.prefilling++;

    } else {
        if (model_kv_extend(&replica->kv, request) != 0) {
            return -1;
        }

        model_batch_decode(replica, request);
        request->filled++;
    }

    request->new_tokens = 1;
    request->target = request->progress + 1;

    return 0;
}


static int
batch_admit_prefill(model_replica_t *replica, model_request_t *request)
{
    uint32_t  cached, from, tokens;

    cached = model_kv_match(&replica->kv, request);
    from = cached * replica->kv.block_tokens;
    tokens = batch_chunk(replica, request, from);

    /*
     * If the whole prompt is cached, the request takes no block for it: its own
     * blocks begin with its answer.
     */
    request->is_unchained = tokens == 0;

    if (request->input_tokens > 0
        ? model_kv_prefill(&replica->kv, request, tokens, cached) != 0
        : model_kv_extend(&replica->kv, request) != 0)
    {
        return -1;
    }

    request->is_prefilling = 1;
    request->progress = 0;
    request->target = from + tokens;
    request->new_tokens = tokens;
    replica->batch.prefilling++;
    replica->counters.prompt_blocks += request->input_tokens
                                       / replica->kv.block_tokens;
    replica->counters.prompt_hits += cached;

    return 0;
}


static void
batch_enter(model_replica_t *replica, model_request_t *request,
    int64_t now_us)
{
    model_batch_t  *batch;

    batch = &replica->batch;
    batch->requests[batch->n] = request;
    batch->due[batch->n] = request->is_prefilling ? DUE_ALWAYS
                                                  : replica->step;
    batch->n++;
    batch->granted++;
    batch->budget -= request->new_tokens;
    batch->next_due = DUE_ALWAYS;

    request->state = MODEL_REQUEST_RUNNING;
    request->scheduled_us = now_us;

    if (replica->hooks.scheduled != NULL) {
        replica->hooks.scheduled(replica->data, request, now_us);
    }
}


static void
batch_admit(model_replica_t *replica, int64_t now_us)
{
    model_batch_t    *batch;
    model_request_t  *request;

    batch = &replica->batch;

    while (replica->queue.n > 0 && batch->n < replica->config->max_seqs
           && batch->budget > 0)
    {
        request = model_queue_head(&replica->queue);

        if (batch_reserve(replica) != 0) {
            replica->kv.is_broken = 1;
        }

        if (replica->kv.is_broken
            || (request->is_decode_only
                ? batch_admit_decode(replica, request)
                : batch_admit_prefill(replica, request)) != 0)
        {
            break;
        }

        model_queue_pop(&replica->queue);
        batch_enter(replica, request, now_us);
    }
}


int
model_batch_form(model_replica_t *replica, int64_t now_us)
{
    model_batch_t  *batch;

    batch = &replica->batch;
    batch->granted = 0;
    batch->budget = replica->config->max_batched_tokens;
    batch->is_preempted = 0;

    if (batch->next_due > replica->step && batch->n <= batch->budget) {
        batch->granted = batch->n;      /* all requests get a token each */
        batch->budget -= batch->n;

    } else {
        batch_continue(replica, now_us);
    }

    if (!batch->is_preempted) {
        batch_admit(replica, now_us);
    }

    return replica->kv.is_broken ? -1 : 0;
}

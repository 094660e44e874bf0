
/*
 * One step: form the batch, compute how long it takes, count its tokens, and
 * end the requests that have all of theirs.
 *
 * The clock stands at the step's start.  Tokens leave at its end, and requests
 * end then, but these requests and their blocks are removed at once, so the
 * fleet sees them gone one step early (as in BLIS).
 */

#include <string.h>

#include "sim/model/replica_inner.h"


/* --- how long it takes */

/*
 * Collects the prompts of the batch one by one; for answers, the sums are
 * known.
 */
static void
step_prompts(model_replica_t *replica, model_work_t *work)
{
    uint32_t                i;
    const model_batch_t    *batch;
    const model_request_t  *request;

    batch = &replica->batch;

    for (i = 0; i < batch->granted; i++) {
        request = batch->requests[i];

        if (!request->is_prefilling) {
            continue;
        }

        work->decodes--;

        if (request->new_tokens > 0) {
            replica->prefills[work->nprefills++] = (model_prefill_t) {
                request->progress, request->new_tokens,
                request->input_tokens
            };
        }
    }
}


static void
step_answers(model_replica_t *replica, model_work_t *work)
{
    uint32_t                i, n;
    const model_batch_t    *batch;
    const model_request_t  *request;

    batch = &replica->batch;

    for (i = batch->granted; i < batch->n; i++) {
        request = batch->requests[i];

        if (!request->is_prefilling) {
            work->context -= model_progress(replica, request);
        }
    }

    n = 0;

    for (i = 0; replica->config->latency.takes_each && i < batch->granted;
         i++)
    {
        request = batch->requests[i];

        if (!request->is_prefilling) {
            replica->decode_at[n++] = model_progress(replica, request);
        }
    }
}


static int64_t
step_time(model_replica_t *replica, model_work_t *work)
{
    int64_t  us;

    memset(work, 0, sizeof(model_work_t));
    work->prefills = replica->prefills;
    work->decode_at = replica->decode_at;
    work->decodes = replica->batch.granted;
    work->context = replica->batch.context;

    if (replica->batch.prefilling > 0) {
        step_prompts(replica, work);
    }

    step_answers(replica, work);
    us = model_latency_step(&replica->config->latency, work);

    if (replica->slowness != 1) {
        us = (int64_t) ((double) us * replica->slowness);
    }

    return us > 0 ? us : 1;
}


/* --- its tokens */

/* Requests for which the step's tokens did not suffice get none. */
static int
step_skip(model_replica_t *replica, int64_t gap_us)
{
    uint32_t          i;
    model_batch_t    *batch;
    model_request_t  *request;

    batch = &replica->batch;

    for (i = batch->granted; i < batch->n; i++) {
        request = batch->requests[i];

        if (request->is_prefilling) {
            continue;
        }

        if (replica->config->keeps_gaps
            && model_gaps_break(&replica->gaps, request, replica->step) != 0)
        {
            return -1;
        }

        request->since++;
        request->filled++;
        request->gap_base += gap_us;
    }

    return 0;
}


static void
step_tell_tokens(model_replica_t *replica, int64_t at_us)
{
    uint32_t          i;
    model_request_t  *request;

    for (i = 0; i < replica->batch.granted; i++) {
        request = replica->batch.requests[i];

        if (!request->is_prefilling) {
            replica->hooks.token(replica->data, request, at_us);
        }
    }
}


static void
step_first_token(model_replica_t *replica, model_request_t *request,
    int64_t at_us)
{
    request->ttft_us = at_us - request->arrival_us;
    request->has_first_token = 1;
    replica->batch.prefilling--;
    model_batch_decode(replica, request);

    if (replica->hooks.first_token != NULL) {
        replica->hooks.first_token(replica->data, request, at_us);
    }
}


/*
 * The step's tokens are computed; from here on replica->step is the next step.
 */
static int
step_advance(model_replica_t *replica, const model_work_t *work,
    int64_t now_us, int64_t us)
{
    int64_t           gap_us;
    uint32_t          i;
    model_batch_t    *batch;
    model_request_t  *request;

    batch = &replica->batch;
    gap_us = us + replica->config->latency.token_us;

    if (step_skip(replica, gap_us) != 0
        || (replica->config->keeps_gaps
            && model_gaps_add(replica, gap_us) != 0))
    {
        return -1;
    }

    if (replica->hooks.token != NULL) {
        step_tell_tokens(replica, now_us + gap_us);
    }

    replica->step++;
    replica->gap_sum += gap_us;
    batch->context += work->decodes;

    for (i = 0; i < batch->granted && batch->prefilling > 0; i++) {
        request = batch->requests[i];

        if (request->is_prefilling) {
            request->progress = request->target;

            if (request->progress == request->input_tokens) {
                step_first_token(replica, request, now_us + gap_us);
            }
        }
    }

    return 0;
}


/* --- ends of requests */

/*
 * Takes the block for the last token, which is given back at once, as the
 * engine would.
 */
static void
step_last_block(model_replica_t *replica, model_request_t *request)
{
    model_batch_fill(replica, request);

    if (model_kv_extend(&replica->kv, request) != 0) {
        replica->counters.kv_failures++;
    }
}


static void
step_complete(model_replica_t *replica, model_request_t *request,
    int64_t now_us, int64_t end_us)
{
    uint32_t           progress, tokens, full;
    model_end_t        end;
    model_counters_t  *counters;

    counters = &replica->counters;
    progress = model_progress(replica, request);
    tokens = request->output_tokens;
    full = request->input_tokens + (tokens > 0 ? tokens : 1) - 1;
    end = progress >= full ? MODEL_COMPLETED : MODEL_LENGTH_CAPPED;

    if (end == MODEL_LENGTH_CAPPED) {
        request->is_length_capped = 1;
        counters->length_capped++;

    } else if (tokens > 0 && progress < request->input_tokens + tokens) {
        step_last_block(replica, request);
    }

    model_settle(replica, request);
    request->e2e_us = request->ttft_us + request->itl_sum_us
                      + (tokens > 0 ? replica->config->latency.end_us : 0);
    model_gaps_count(&replica->gaps, request, replica->step);
    model_batch_drop(replica, request);

    counters->completed++;
    counters->ttft_sum_us += request->ttft_us;
    counters->output_tokens += request->itl_count
                               + (request->itl_count < tokens);

    if (end_us <= replica->config->horizon_us
        && end_us > replica->ended_us)
    {
        replica->ended_us = end_us;
    }

    model_end(replica, request, end, now_us, end_us);
}


static void
step_let_go(model_replica_t *replica, int64_t now_us, int64_t end_us)
{
    uint32_t          i, n;
    uint64_t          due;
    model_batch_t    *batch;
    model_request_t  *request;

    batch = &replica->batch;

    if (batch->next_due >= replica->step) {
        return;
    }

    n = 0;
    batch->next_due = UINT64_MAX;

    for (i = 0; i < batch->n; i++) {
        request = batch->requests[i];
        due = batch->due[i];

        if (due < replica->step) {

            if (!request->is_prefilling
                && model_progress(replica, request)
                   >= model_batch_last(replica, request))
            {
                step_complete(replica, request, now_us, end_us);
                continue;
            }

            due = model_batch_due(replica, request);
        }

        batch->requests[n] = request;
        batch->due[n++] = due;

        if (due < batch->next_due) {
            batch->next_due = due;
        }
    }

    batch->n = n;
}


static void
step_count(model_replica_t *replica, int64_t us)
{
    uint32_t           used;
    model_counters_t  *counters;

    counters = &replica->counters;
    used = replica->kv.total - replica->kv.free;

    if (used > counters->blocks_peak) {
        counters->blocks_peak = used;
    }

    counters->block_us += (double) used * (double) us;
    counters->queue_sum += replica->queue.n;
    counters->steps++;
}


int
model_step(model_replica_t *replica, int64_t now_us)
{
    int64_t       us;
    model_work_t  work;

    replica->step_at_us = MODEL_NEVER;

    if (replica->batch.n == 0 && replica->queue.n == 0) {
        return 0;
    }

    if (model_batch_form(replica, now_us) != 0) {
        return -1;
    }

    if (replica->batch.n == 0) {
        model_stuck_look(replica);
    }

    us = step_time(replica, &work);

    if (step_advance(replica, &work, now_us, us) != 0) {
        return -1;
    }

    step_count(replica, us);
    step_let_go(replica, now_us, now_us + us);
    replica->step_end_us = now_us + us;

    if (replica->batch.n > 0 || replica->queue.n > 0) {
        replica->step_at_us = now_us + us;
    }

    return replica->kv.is_broken ? -1 : 0;
}

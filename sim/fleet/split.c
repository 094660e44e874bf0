
/*
 * Disaggregation: a prompt is computed at one replica, its KV cache
 * transferred, and the answer computed at another.
 *
 *   routing      where the answer is computed is chosen first; it may compute
 *                the prompt, too: then the request is not split
 *      |
 *   prefill      where the prompt is computed is chosen; that half is sent
 *      |
 *   transfer     when that half has ended: blocks are reserved at the replica
 *   start        of the answer (too few: dropped), and the transfer starts
 *      |
 *   transfer     the other half is queued
 *   end
 *
 * Halves that end in one step are handled in the order of their names, as in
 * BLIS.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/data/grow.h"
#include "sim/fleet/fleet_inner.h"


#define SPLIT_NAME_BYTES  128


/* How a half has ended; kept until the step is over. */
typedef enum {
    SPLIT_PREFILLED = 0,
    SPLIT_DECODED,
    SPLIT_TIMED_OUT
} split_end_t;


static fleet_split_row_t *
split_row(fleet_t *f, uint32_t split)
{
    return &f->result->splits[split];
}


static fleet_request_t *
split_request(fleet_t *f, uint32_t split)
{
    return f->memory->halves[split]->request;
}


static const char *
split_name(fleet_t *f, const fleet_request_t *r, const char *half)
{
    int   len;
    char  name[SPLIT_NAME_BYTES];

    len = snprintf(name, sizeof(name), "%s_%s", work_at(f->work, r->index)->id,
                   half);
    len = len < (int) sizeof(name) ? len : (int) sizeof(name) - 1;

    return work_arena_text(&f->memory->texts, name, (size_t) len);
}


/* --- memory */

static int
split_grow(fleet_t *f)
{
    fleet_memory_t  *m = f->memory;
    fleet_result_t  *result = f->result;

    return grow(&result->splits, &m->max_splits, result->nsplits + 1,
                sizeof(fleet_split_row_t)) != 0
           || grow(&m->halves, &m->max_halves, result->nsplits + 1,
                   sizeof(fleet_half_t *)) != 0 ? -1 : 0;
}


static void
split_add(fleet_t *f, fleet_request_t *r, uint32_t decode_replica)
{
    uint32_t               split;
    int64_t                block_tokens;
    fleet_half_t          *half;
    const work_request_t  *w = work_at(f->work, r->index);

    half = split_grow(f) == 0 ? fleet_alloc(f, 1, sizeof(fleet_half_t)) : NULL;

    if (half == NULL) {
        fleet_fail(f, "no memory");
        return;
    }

    block_tokens = f->config->model.block_tokens;
    split = (uint32_t) f->result->nsplits++;
    half->request = r;
    f->memory->halves[split] = half;
    *split_row(f, split) = (fleet_split_row_t) {
        .request = r->index,
        .prefill_replica = FLEET_NONE,
        .decode_replica = decode_replica,
        .blocks = (uint32_t) ((w->input_tokens + block_tokens - 1)
                              / block_tokens),
        .prefill_enqueue_us = FLEET_NEVER,
        .prefill_complete_us = FLEET_NEVER,
        .transfer_start_us = FLEET_NEVER,
        .transfer_complete_us = FLEET_NEVER,
        .decode_enqueue_us = FLEET_NEVER,
        .completion_us = FLEET_NEVER,
        .prefill_ttft_us = FLEET_NEVER,
        .first_step_us = FLEET_NEVER
    };
    fleet_outcome(f, r->index)->split = split;
    fleet_outcome(f, r->index)->replica = decode_replica;
    fleet_schedule(f, f->loop.clock_us, FLEET_EVENT_PREFILL, split, 0);
}


/* --- choosing replicas */

static int
split_is_wanted(fleet_t *f, const fleet_request_t *r, uint32_t replica)
{
    int64_t                input, cached;
    const fleet_pools_t   *pools = &f->config->pools;

    input = work_at(f->work, r->index)->input_tokens;

    switch (pools->split) {

    case FLEET_SPLIT_ALWAYS:
        return 1;

    case FLEET_SPLIT_PREFIX:
        cached = view_cached(f, replica, r) * f->config->model.block_tokens;
        return input > 0 && input - cached > pools->split_tokens;

    default:
        return 0;
    }
}


void
split_route(fleet_t *f, fleet_request_t *r)
{
    uint32_t         chosen, replica;
    fleet_choice_t   choice;
    fleet_ranker_t  *ranker;

    choice = view_read(f, NULL, FLEET_DECODES);

    if (choice.n == 0) {
        route_reject(f, r);
        return;
    }

    ranker = &f->rankers[f->config->routing.has_decode ? 2 : 0];
    chosen = route_choose(f, ranker, &choice, r);
    replica = choice.list[chosen].replica;

    if (split_is_wanted(f, r, replica)) {
        record_tell(f, FLEET_DECISION_DECODE);
        split_add(f, r, replica);
        return;
    }

    record_tell(f, FLEET_DECISION_ROUTING);
    route_send(f, r, replica);
}


void
split_prefill(fleet_t *f, uint32_t split)
{
    uint32_t            chosen;
    fleet_choice_t      choice;
    fleet_ranker_t     *ranker;
    fleet_request_t    *r = split_request(f, split);
    fleet_split_row_t  *row = split_row(f, split);

    choice = view_read(f, NULL, FLEET_PREFILLS);

    if (choice.n == 0) {
        route_reject(f, r);
        return;
    }

    ranker = &f->rankers[f->config->routing.has_prefill ? 1 : 0];
    chosen = route_choose(f, ranker, &choice, r);
    record_tell(f, FLEET_DECISION_PREFILL);
    row->prefill_replica = choice.list[chosen].replica;
    row->prefill_enqueue_us = f->loop.clock_us;
    fleet_outcome(f, r->index)->status = FLEET_IN_INSTANCE;

    fleet_fill(f, r, &r->call);
    r->call.id = split_name(f, r, "prefill");
    r->call.output_tokens = 0;
    fleet_send(f, r, &r->call, row->prefill_replica);
}


/* --- the transfer */

static void
split_drop(fleet_t *f, fleet_request_t *r, fleet_split_row_t *row)
{
    row->transfer_start_us = f->loop.clock_us;
    row->completion_us = f->loop.clock_us;
    f->result->dropped_at_decode_kv++;
    f->result->transfers++;
    fleet_outcome(f, r->index)->ttft_us = row->prefill_ttft_us;
    fleet_outcome(f, r->index)->was_injected = 1;
    fleet_over(f, r, FLEET_DROPPED_AT_DECODE_KV, "");
}


/* How long the transfer takes; concurrent transfers share the bandwidth. */
static int64_t
split_duration(fleet_t *f, const fleet_split_row_t *row)
{
    double                bytes, bandwidth, base_us;
    int64_t               us;
    const fleet_pools_t  *pools = &f->config->pools;

    bytes = (double) row->blocks
            * ((double) f->config->model.block_tokens * pools->kv_bytes);
    bandwidth = pools->bandwidth_gbps * 1000.0;
    base_us = pools->base_ms * 1000.0;

    if (pools->has_contention && f->transfers > 1) {
        bandwidth = bandwidth / (double) f->transfers;
    }

    us = (int64_t) ceil(bandwidth > 0 ? base_us + bytes / bandwidth : base_us);

    return us > 1 ? us : 1;
}


void
split_transfer_start(fleet_t *f, uint32_t split)
{
    fleet_half_t       *half = f->memory->halves[split];
    fleet_result_t     *result = f->result;
    fleet_request_t    *r = half->request;
    fleet_split_row_t  *row = split_row(f, split);

    fleet_fill(f, r, &half->call);
    half->call.id = split_name(f, r, "decode");

    if (model_replica_reserve(f->memory->nodes[row->decode_replica].model,
                              &half->call)
        != 0)
    {
        split_drop(f, r, row);
        return;
    }

    row->has_decode = 1;
    row->transfer_start_us = f->loop.clock_us;
    result->transfers++;

    if (f->config->pools.has_contention) {
        f->transfers++;
        result->transfers_depth += f->transfers;

        if (f->transfers > result->transfers_peak) {
            result->transfers_peak = f->transfers;
        }
    }

    fleet_schedule(f, f->loop.clock_us + split_duration(f, row),
                   FLEET_EVENT_TRANSFER_END, split, 0);
    fleet_replica_changed(f, row->decode_replica);
}


void
split_transfer_end(fleet_t *f, uint32_t split)
{
    fleet_half_t       *half = f->memory->halves[split];
    fleet_split_row_t  *row = split_row(f, split);

    row->transfer_complete_us = f->loop.clock_us;
    row->decode_enqueue_us = f->loop.clock_us;

    if (f->config->pools.has_contention) {
        f->transfers--;
    }

    admit_sent(f, work_at(f->work, row->request));
    f->seen[row->decode_replica].in_flight++;

    if (model_replica_arrive_decode(f->memory->nodes[row->decode_replica].model,
                                    &half->call, f->loop.clock_us)
        != 0)
    {
        fleet_fail(f, "no memory");
    }

    fleet_replica_changed(f, row->decode_replica);
}


/* --- the end of a half */

static void
split_finished(fleet_t *f, uint32_t split, split_end_t end)
{
    if (grow(&f->finished, &f->max_finished, f->nfinished + 1,
             sizeof(split_finished_t)) != 0)
    {
        fleet_fail(f, "no memory");
        return;
    }

    f->finished[f->nfinished++] = (split_finished_t) {
        .split = split,
        .end = end,
        .name = end == SPLIT_PREFILLED
                ? split_request(f, split)->call.id
                : f->memory->halves[split]->call.id
    };
}


/* The half with the prompt has failed, so the answer will not be computed. */
static void
split_failed(fleet_t *f, fleet_request_t *r, model_end_t end)
{
    if (end == MODEL_UNSERVABLE) {
        fleet_over(f, r, FLEET_UNSERVABLE, "");
        return;
    }

    fleet_over(f, r, FLEET_TIMED_OUT,
               end == MODEL_TIMED_OUT_RUNNING ? "prefill running"
               : end == MODEL_TIMED_OUT_QUEUED ? "prefill queued"
               : "prefill past_due_at_enqueue");
}


/* A replica's hook: takes note of the end; split_settle() does the rest. */
void
split_ended(fleet_t *f, model_request_t *call, model_end_t end)
{
    uint32_t            split;
    fleet_request_t    *r = call->data;

    split = fleet_outcome(f, r->index)->split;

    if (call != &r->call) {
        split_finished(f, split, end == MODEL_COMPLETED
                                 || end == MODEL_LENGTH_CAPPED
                                 ? SPLIT_DECODED : SPLIT_TIMED_OUT);
        fleet_outcome(f, r->index)->status = end == MODEL_LENGTH_CAPPED
            ? FLEET_LENGTH_CAPPED : FLEET_COMPLETED;
        fleet_outcome(f, r->index)->detail =
            end == MODEL_TIMED_OUT_RUNNING ? "decode running"
                                           : "decode queued";
        return;
    }

    if (end != MODEL_COMPLETED && end != MODEL_LENGTH_CAPPED) {
        split_failed(f, r, end);
        return;
    }

    split_row(f, split)->prefill_ttft_us = call->has_first_token
                                           ? call->ttft_us : FLEET_NEVER;
    split_finished(f, split, SPLIT_PREFILLED);
}


/*
 * The client's first token is the first one after the transfer.  Times of the
 * half with the answer count from when it was scheduled, unless it was
 * preempted and computed its prompt itself.
 */
static void
split_measure(fleet_t *f, uint32_t split, fleet_outcome_t *outcome)
{
    int64_t                   delay;
    fleet_split_row_t        *row = split_row(f, split);
    const model_request_t    *call = &f->memory->halves[split]->call;

    delay = call->scheduled_us - call->arrival_us;
    outcome->ttft_us = row->first_step_us != FLEET_NEVER
                       && row->prefill_ttft_us != FLEET_NEVER
                       ? delay + row->first_step_us : row->prefill_ttft_us;
    outcome->itl_sum_us = call->itl_sum_us;
    outcome->itl_count = call->itl_count;
    outcome->preemptions = call->preemptions;
    outcome->output_tokens = call->output_tokens;

    if (row->is_completed) {
        outcome->e2e_us = call->has_first_token ? call->e2e_us
                                                : delay + call->e2e_us;
    }
}


static void
split_over(fleet_t *f, const split_finished_t *finished)
{
    fleet_split_row_t      *row = split_row(f, finished->split);
    fleet_request_t        *r = split_request(f, finished->split);
    fleet_outcome_t        *outcome = fleet_outcome(f, r->index);
    const work_request_t   *w = work_at(f->work, r->index);
    const model_request_t  *call;

    call = &f->memory->halves[finished->split]->call;
    row->completion_us = f->loop.clock_us;
    outcome->was_injected = 1;

    if (finished->end == SPLIT_TIMED_OUT) {
        split_measure(f, finished->split, outcome);
        fleet_over(f, r, FLEET_TIMED_OUT, outcome->detail);
        fleet_follow(f, w, WORK_END_TIMED_OUT, call->itl_count,
                     f->loop.clock_us);
        return;
    }

    row->is_completed = 1;
    row->completion_us += f->result->replicas[row->decode_replica].config
                              ->latency.end_us;
    split_measure(f, finished->split, outcome);
    fleet_over(f, r, outcome->status, "");
    fleet_follow(f, w, WORK_END_COMPLETED, call->itl_count,
                 row->completion_us);
}


static int
split_compare(const void *a, const void *b)
{
    const split_finished_t  *x = a, *y = b;

    return x->end != y->end ? x->end - y->end : strcmp(x->name, y->name);
}


/* To be called at the end of the step in which these halves ended. */
void
split_settle(fleet_t *f)
{
    size_t                   i;
    const split_finished_t  *finished;

    qsort(f->finished, f->nfinished, sizeof(split_finished_t), split_compare);

    for (i = 0; i < f->nfinished; i++) {
        finished = &f->finished[i];

        if (finished->end == SPLIT_PREFILLED) {
            split_row(f, finished->split)->prefill_complete_us =
                f->loop.clock_us;
            fleet_schedule(f, f->loop.clock_us, FLEET_EVENT_TRANSFER_START,
                           finished->split, 0);

        } else {
            split_over(f, finished);
        }
    }

    f->nfinished = 0;
}


/*
 * A request at a replica: sending it to the replica, and handling its end.
 *
 * A request's hashes exist from its routing to its end.  Its outcome is written
 * during the run; its status is its state at the last change.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/data/grow.h"
#include "sim/fleet/fleet_inner.h"


static const char *const  fleet_timeouts[] = {
    [MODEL_TIMED_OUT_RUNNING] = "running",
    [MODEL_TIMED_OUT_QUEUED] = "queued",
    [MODEL_PAST_DUE] = "past_due_at_enqueue",
};


/* --- memory */

fleet_request_t *
fleet_request(fleet_t *f, uint32_t index)
{
    return &f->memory->pages[index >> WORK_PAGE_SHIFT][index
                                                       & (WORK_PAGE - 1)];
}


static int
fleet_grow_pages(fleet_t *f, size_t n)
{
    size_t             i, npages;
    fleet_memory_t    *m = f->memory;
    fleet_request_t  **pages;

    npages = (n + WORK_PAGE - 1) >> WORK_PAGE_SHIFT;

    if (npages <= m->npages) {
        return 0;
    }

    pages = realloc(m->pages, npages * sizeof(fleet_request_t *));

    if (pages == NULL) {
        return -1;
    }

    m->pages = pages;

    while (m->npages < npages) {
        pages[m->npages] = calloc(WORK_PAGE, sizeof(fleet_request_t));

        if (pages[m->npages] == NULL) {
            return -1;
        }

        for (i = 0; i < WORK_PAGE; i++) {
            pages[m->npages][i].index = (uint32_t) (m->npages * WORK_PAGE + i);
        }

        m->npages++;
    }

    return 0;
}


static int
fleet_grow_outcomes(fleet_t *f, size_t n)
{
    fleet_result_t  *result = f->result;

    if (grow(&result->outcomes, &f->memory->max_outcomes, n,
             sizeof(fleet_outcome_t)) != 0)
    {
        return -1;
    }

    for (; result->n < n; result->n++) {
        result->outcomes[result->n] = fleet_outcome_none;
    }

    return 0;
}


/* Makes room for all requests that the workload has now. */
int
fleet_grow(fleet_t *f)
{
    size_t                n, max;
    fleet_result_t       *result = f->result;
    fleet_class_count_t  *classes;

    n = f->work->n;

    if (fleet_grow_pages(f, n) != 0 || fleet_grow_outcomes(f, n) != 0) {
        return -1;
    }

    max = f->work->names.n;

    if (max > result->nclasses) {
        classes = realloc(result->classes, max * sizeof(fleet_class_count_t));

        if (classes == NULL) {
            return -1;
        }

        memset(classes + result->nclasses, 0,
               (max - result->nclasses) * sizeof(fleet_class_count_t));
        result->classes = classes;
        result->nclasses = max;
    }

    return 0;
}


/* --- sending to a replica */

/* Computes the hashes of a request's prompt blocks, once. */
void
fleet_hash(fleet_t *f, fleet_request_t *r)
{
    uint32_t               b, n, block_tokens;
    const work_request_t  *w;

    if (r->hashes != NULL) {
        return;
    }

    w = work_at(f->work, r->index);
    block_tokens = (uint32_t) f->config->model.block_tokens;
    n = w->input_tokens;

    if (f->work->accumulates) {
        n += w->output_tokens;          /* a later prompt begins with them */
    }

    n /= block_tokens;
    r->hashes = malloc((n > 0 ? n : 1) * sizeof(uint64_t));

    if (r->hashes == NULL) {
        fleet_fail(f, "no memory");
        return;
    }

    r->call.nhashes = n;
    r->call.hashes = r->hashes;

    for (b = 0; b < n; b++) {
        r->hashes[b] = work_block_hash(w, block_tokens, b);
    }
}


void
fleet_fill(fleet_t *f, fleet_request_t *r, model_request_t *call)
{
    const work_request_t  *w;

    w = work_at(f->work, r->index);
    fleet_hash(f, r);

    call->id = w->id;
    call->hashes = r->hashes;
    call->nhashes = r->call.nhashes;
    call->input_tokens = w->input_tokens;
    call->output_tokens = w->output_tokens;
    call->max_output_tokens = w->max_output_tokens;
    call->priority = fleet_engine_priority(&f->config->admission.classes,
                                           admit_priority(f, w));
    call->arrival_us = w->arrival_us;
    call->deadline_us = w->deadline_us;
    call->data = r;
}


/* Counts the request as in flight at the replica, and sends it there. */
void
fleet_send(fleet_t *f, fleet_request_t *r, model_request_t *call,
    uint32_t replica)
{
    admit_sent(f, work_at(f->work, r->index));
    f->seen[replica].in_flight++;

    if (model_replica_arrive(f->memory->nodes[replica].model, call,
                             f->loop.clock_us)
        != 0)
    {
        fleet_fail(f, "no memory");
    }

    fleet_replica_changed(f, replica);
}


/* --- the end of a request */

void
fleet_measure(fleet_outcome_t *outcome, const model_request_t *call)
{
    if (call->has_first_token) {
        outcome->ttft_us = call->ttft_us;
    }

    outcome->itl_sum_us = call->itl_sum_us;
    outcome->itl_count = call->itl_count;
    outcome->preemptions = call->preemptions;
}


/* Ends a request: nothing happens to it afterwards. */
void
fleet_over(fleet_t *f, fleet_request_t *r, fleet_status_t status,
    const char *detail)
{
    fleet_outcome_t  *outcome;

    outcome = fleet_outcome(f, r->index);
    outcome->status = status;
    outcome->detail = detail;

    if (status != FLEET_COMPLETED && status != FLEET_LENGTH_CAPPED) {
        outcome->end_us = f->loop.clock_us;
    }

    free(r->hashes);
    r->hashes = NULL;
    f->loop.ended++;
}


/* The name of a replica in BLIS's output. */
const char *
fleet_name(fleet_t *f, uint32_t replica)
{
    int   len;
    char  name[32];

    len = snprintf(name, sizeof(name), "instance_%u", replica);

    return work_arena_text(&f->memory->texts, name, (size_t) len);
}


void
fleet_shed(fleet_t *f, const work_request_t *w)
{
    f->result->classes[w->slo_class->id].shed++;
}


void
fleet_follow(fleet_t *f, const work_request_t *w, work_end_t end,
    uint32_t output_tokens, int64_t now_us)
{
    work_request_t  *next;

    if (f->work->sessions == NULL) {
        return;
    }

    next = work_followup(f->work, w, end, output_tokens, now_us);

    if (fleet_grow(f) != 0) {
        fleet_fail(f, "no memory");
        return;
    }

    if (next != NULL && f->config->checks) {
        check_follow(f, w, next, now_us);
    }

    if (next != NULL) {
        fleet_schedule(f, next->arrival_us, FLEET_EVENT_ARRIVAL, next->index,
                       0);
    }
}


static fleet_status_t
fleet_status_of(model_end_t end)
{
    switch (end) {

    case MODEL_COMPLETED:
        return FLEET_COMPLETED;

    case MODEL_LENGTH_CAPPED:
        return FLEET_LENGTH_CAPPED;

    case MODEL_UNSERVABLE:
        return FLEET_UNSERVABLE;

    default:
        return FLEET_TIMED_OUT;
    }
}


static work_end_t
fleet_work_end(fleet_status_t status)
{
    return status == FLEET_TIMED_OUT ? WORK_END_TIMED_OUT
           : status == FLEET_UNSERVABLE ? WORK_END_DROPPED
           : WORK_END_COMPLETED;
}


/* What the end of a half and of a whole request have in common. */
static void
fleet_left(fleet_t *f, fleet_node_t *node, fleet_request_t *r)
{
    admit_ended(f, work_at(f->work, r->index));

    if (f->seen[node->index].in_flight > 0) {
        f->seen[node->index].in_flight--;
    }
}


static void
fleet_scheduled(void *data, model_request_t *call, int64_t now_us)
{
    fleet_t           *f = ((fleet_node_t *) data)->fleet;
    fleet_request_t   *r = call->data;
    fleet_outcome_t   *outcome;

    outcome = fleet_outcome(f, r->index);

    if (outcome->split == FLEET_NONE || call == &r->call) {
        outcome->sched_delay_us = now_us - call->arrival_us;
    }
}


static void
fleet_ended(void *data, model_request_t *call, model_end_t end,
    int64_t now_us, int64_t at_us)
{
    fleet_node_t      *node = data;
    fleet_t           *f = node->fleet;
    fleet_request_t   *r = call->data;
    fleet_status_t     status = fleet_status_of(end);
    fleet_outcome_t   *outcome;

    fleet_left(f, node, r);
    outcome = fleet_outcome(f, r->index);

    if (outcome->split != FLEET_NONE) {
        split_ended(f, call, end);
        return;
    }

    if (f->evict != NULL) {
        evict_untrack(f->evict, r->index);
    }

    fleet_measure(outcome, call);
    outcome->was_injected = status != FLEET_UNSERVABLE;
    outcome->output_tokens = call->output_tokens;

    if (status == FLEET_COMPLETED || status == FLEET_LENGTH_CAPPED) {
        outcome->e2e_us = call->e2e_us;
    }

    fleet_over(f, r, status,
               status == FLEET_TIMED_OUT ? fleet_timeouts[end] : "");
    fleet_follow(f, work_at(f->work, r->index), fleet_work_end(status),
                 call->itl_count, at_us);
}


/*
 * Called at the first token after a transfer, from which BLIS counts the time
 * to first token.
 */
static void
fleet_token(void *data, model_request_t *call, int64_t at_us)
{
    fleet_t            *f = ((fleet_node_t *) data)->fleet;
    fleet_request_t    *r = call->data;
    fleet_outcome_t    *outcome;
    fleet_split_row_t  *row;

    outcome = fleet_outcome(f, r->index);

    if (outcome->split == FLEET_NONE || call == &r->call) {
        return;
    }

    row = &f->result->splits[outcome->split];

    if (row->first_step_us == FLEET_NEVER) {
        row->first_step_us = at_us - f->loop.clock_us;
    }
}


static void
fleet_preempted(void *data, model_request_t *call, int64_t now_us)
{
    fleet_t          *f = ((fleet_node_t *) data)->fleet;
    fleet_request_t  *r = call->data;
    fleet_outcome_t  *outcome;

    outcome = fleet_outcome(f, r->index);

    if (outcome->split != FLEET_NONE && call != &r->call) {
        f->result->splits[outcome->split].first_step_us = FLEET_NEVER;
    }
}


const model_hooks_t  fleet_hooks = {
    .scheduled = fleet_scheduled,
    .ended = fleet_ended,
};

const model_hooks_t  fleet_split_hooks = {
    .scheduled = fleet_scheduled,
    .token = fleet_token,
    .preempted = fleet_preempted,
    .ended = fleet_ended,
};

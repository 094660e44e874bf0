
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/flow/flow_inner.h"


static void flow_free(flow_t *flow);


flows_t *
flows_create(const flow_world_t *world, fleet_t *fleet, void *clock,
    const log_t *log, const flows_options_t *options)
{
    flows_t  *flows;

    flows = calloc(1, sizeof(flows_t));

    if (flows == NULL) {
        return NULL;
    }

    flows->world = world;
    flows->fleet = fleet;
    flows->clock = clock;
    flows->log = log;
    flows->options = *options;

    if (options->started_ms == 0) {
        flows->options.started_ms = FLOW_STARTED_MS;
    }

    flows->rate_ns = flows_now(flows);
    flows->scratch = malloc((size_t) SHARD_ROWS_MAX * options->width
                            * sizeof(float));

    if (flows->scratch == NULL) {
        free(flows);
        return NULL;
    }

    return flows;
}


void
flows_close(flows_t *flows)
{
    audits_done(flows);

    if (flows->free_clock != NULL) {
        flows->free_clock(flows->clock);
    }

    flow_shards_done(&flows->shards);
    free(flows->scratch);
    free(flows);
}


void
flows_enter(flows_t *flows)
{
    flows->depth++;
}


void
flows_leave(flows_t *flows)
{
    flow_t  *flow, *next;

    if (flows->depth > 1) {
        flows->depth--;
        return;
    }

    while (flows->is_turn_due) {
        flows->is_turn_due = 0;
        turn_round(flows);
    }

    flows->depth = 0;

    for (flow = flows->has_closed ? flows->first : NULL; flow; flow = next) {
        next = flow->next;
        if (flow->is_closed) {
            flow_free(flow);
        }
    }

    flows->has_closed = 0;
}


void
flows_due(flows_t *flows, uint64_t at_ns)
{
    if (flows->wake_ns == 0 || at_ns < flows->wake_ns) {
        flows->wake_ns = at_ns;
        flows->world->wake(flows->clock, at_ns);
    }
}


/* A flow begins with one hop over all layers that has no session: it is
   replaced like any lost hop. */
flow_t *
flow_open(flows_t *flows, uint64_t name, uint32_t expected,
    const flow_callbacks_t *callbacks, void *data)
{
    flow_t  *flow;

    flow = calloc(1, sizeof(flow_t));

    if (flow == NULL) {
        return NULL;
    }

    flow->flows = flows;
    flow->name = name;
    flow->expected = expected;
    flow->callbacks = callbacks;
    flow->data = data;
    flow->is_kept = 1;
    flow->opened_ns = flows_now(flows);
    flow->nhops = 1;
    flow->hops[0] = hop_create(flow, NULL);

    if (flow->hops[0] == NULL) {
        free(flow);
        return NULL;
    }

    flow->prev = flows->last;
    *(flows->last ? &flows->last->next : &flows->first) = flow;
    flows->last = flow;
    flows->nflows++;

    return flow;
}


static void
flow_forget_asked(flow_t *flow)
{
    flow_asked_t  *asked;

    while ((asked = flow->asked) != NULL) {
        flow->asked = asked->next;
        free(asked);
    }
}


/* Frees all that the flow has but itself. */
static void
flow_release(flow_t *flow)
{
    size_t  i;

    turn_leave(flow);

    for (i = 0; i < flow->nhops; i++) {
        hop_destroy(flow->hops[i]);
    }

    flow->nhops = 0;
    flow->ntodo = 0;
    flow_forget_asked(flow);
}


static void
flow_free(flow_t *flow)
{
    flows_t  *flows;

    flows = flow->flows;
    *(flow->prev ? &flow->prev->next : &flows->first) = flow->next;
    *(flow->next ? &flow->next->prev : &flows->last) = flow->prev;
    free(flow);
}


void
flow_close(flow_t *flow)
{
    flows_t  *flows;

    flows = flow->flows;

    flows_enter(flows);
    flow_release(flow);
    flow->is_closed = 1;
    flows->has_closed = 1;
    flows->nflows--;
    flows_leave(flows);
}


void
flow_lose(flow_t *flow, const char *reason, const char *text)
{
    flow->reason = reason;

    if (text != flow->text) {
        snprintf(flow->text, sizeof(flow->text), "%s", text);
        snprintf(flow->failure.text, sizeof(flow->failure.text), "%s", text);
    }

    flow_release(flow);
    flow->is_lost = 1;
    flow->tell_rewind = 0;
    flow->tell_lost = 1;
    flows_due(flow->flows, flows_now(flow->flows));
}


flow_asked_t *
flow_asked(const flow_t *flow, uint32_t position)
{
    flow_asked_t  *asked;

    for (asked = flow->asked; asked != NULL; asked = asked->next) {
        if (asked->position == position) {
            return asked;
        }
    }

    return NULL;
}


/* Adds an entry for logits, unless there is one from before a rewind. */
static int
flow_ask(flow_t *flow, uint32_t position)
{
    flow_asked_t  *asked;

    if (flow_asked(flow, position) != NULL) {
        return 0;
    }

    asked = malloc(sizeof(flow_asked_t)
                   + flow->flows->options.vocabulary * sizeof(float));

    if (asked == NULL) {
        return -1;
    }

    asked->position = position;
    asked->is_there = 0;
    asked->next = flow->asked;
    flow->asked = asked;

    return 0;
}


static int
flow_take(flow_t *flow, const flow_todo_t *todo, const float *values)
{
    if (todo->is_asked
        && flow_ask(flow, todo->position + todo->rows - 1) != 0)
    {
        return -1;
    }

    if (rows_append(&flow->hops[0]->in, values, todo->rows) != 0) {
        return -1;
    }

    flow->todo[flow->ntodo++] = *todo;
    flow->end += todo->rows;

    return 0;
}


/* 0 is a mistake of the core: rows that are not the next, or logits that would
   need all rows to be computed again. */
static int
flow_is_due(const flow_t *flow, const flow_todo_t *todo)
{
    uint32_t  last;

    if (todo->position != flow->end || todo->rows == 0
        || todo->rows > SHARD_ROWS_MAX || flow->ntodo == FLOW_STEPS_MAX)
    {
        return 0;
    }

    last = todo->position + todo->rows - 1;

    return !todo->is_asked || flow_asked(flow, last) != NULL
           || last >= flow->hops[flow->nhops - 1]->next;
}


void
flow_step(flow_t *flow, uint32_t position, uint32_t rows,
    uint32_t logits_rows, float *values)
{
    flow_todo_t  todo = { position, rows, logits_rows > 0 };

    if (flow->is_lost || flow->tell_rewind) {
        free(values);           /* the step was in transit when the flow was
                                   lost */
        return;
    }

    flows_enter(flow->flows);

    if (!flow_is_due(flow, &todo)) {
        flow_lose(flow, "failed", "rows came that were not due");

    } else if (flow_take(flow, &todo, values) != 0) {
        flow_lose(flow, "out_of_memory", "no memory for rows");

    } else {
        flow_go_on(flow);
    }

    free(values);
    flows_leave(flow->flows);
}


static hop_t *
flow_lost_hop(const flow_t *flow)
{
    size_t  i;

    for (i = 0; i < flow->nhops; i++) {
        if (flow->hops[i]->state == HOP_LOST) {
            return flow->hops[i];
        }
    }

    return NULL;
}


/* Why there is no path: the fleet's reason; or the cause of the flow's last
   loss, if only this flow excludes the shard. */
static const char *
flow_reason(const flow_t *flow, fleet_rc_t rc)
{
    if (rc == FLEET_FULL || rc == FLEET_MISMATCH || rc == FLEET_NO_MEMORY) {
        return fleet_reason(rc);
    }

    switch (flow->cause) {
    case SHARD_OUT_OF_MEMORY:
        return fleet_reason(FLEET_FULL);
    case SHARD_FULL:
    case SHARD_CONTEXT_FULL:
    case SHARD_WEIGHTS_MISMATCH:
        return shard_reason_name(flow->cause);
    default:
        return flow->is_stalled ? "pipeline_stalled" : fleet_reason(rc);
    }
}


/* Loses the flow; the reason is added after the text of the last loss, if
   any. */
static void
flow_lose_by(flow_t *flow, fleet_rc_t rc, const char *why)
{
    size_t  used;

    used = strlen(flow->text);
    snprintf(flow->text + used, sizeof(flow->text) - used, "%s%s",
             used > 0 ? "; " : "", why);
    failure_by_path(flow, rc);
    flow_lose(flow, flow_reason(flow, rc), flow->text);
}


/* Whether the lost shard was late and is doubted by gossip: then a shard that
   is SUSPECT is no better, and may be the same one. */
static int
flow_left_doubted(const flow_t *flow, const hop_t *lost)
{
    return flow->cause == SHARD_LATE
           && flow->flows->world->is_doubted(flow->flows->fleet,
                                             lost->at.key);
}


/*
 * Prefers a path over more hops to a shard that was late, and that one to a
 * shard whose agent is SUSPECT.  Shards that have the layers with other ids are
 * no reason to give up earlier.
 */
int
flow_find(flow_t *flow)
{
    hop_t        *lost;
    fleet_rc_t    rc;
    plan_with_t   with;

    if (flow->failovers > FLOW_FAILOVERS_MAX) {
        flow_lose_by(flow, FLEET_GAP, "it had lost others before");
        return -1;
    }

    lost = flow_lost_hop(flow);
    rc = FLEET_GAP;

    for (with = PLAN_SURE;
         with <= PLAN_ANY && (rc == FLEET_GAP || rc == FLEET_MISMATCH);
         with++)
    {
        if (with == PLAN_FAILED && !flow_left_doubted(flow, lost)) {
            continue;
        }

        rc = plan_find(flow, lost, with);
    }

    if (rc != FLEET_FOUND) {
        flow_lose_by(flow, rc, flow->path.why);
        return -1;
    }

    return 0;
}


/*
 * Replaces lost hops.  A session that ended while nothing is to be computed is
 * not replaced yet: a stream that pauses must not be replayed again and again.
 */
static void
flow_mend(flow_t *flow)
{
    if (flow_lost_hop(flow) != NULL && flow->ntodo > 0 && !flow->is_waiting
        && !flow->tell_rewind && flow_find(flow) == 0)
    {
        turn_ask(flow);
    }
}


/* Removes an entry from the list; the caller frees it. */
static flow_asked_t *
flow_unask(flow_t *flow, uint32_t position)
{
    flow_asked_t  *asked, **link;

    link = &flow->asked;

    while ((*link)->position != position) {
        link = &(*link)->next;
    }

    asked = *link;
    *link = asked->next;

    return asked;
}


static void
flow_count_token(flow_t *flow)
{
    flows_t   *flows;
    uint64_t   now;

    flows = flow->flows;
    flows->tokens++;

    if (!flow->has_token) {
        flow->has_token = 1;
        now = flows_now(flows);
        histogram_record_recent(&flows->first_token,
                                (now - flow->opened_ns) / 1000);
    }
}


static void
flow_answer_one(flow_t *flow)
{
    flow_todo_t    todo;
    flow_asked_t  *asked;

    asked = NULL;
    todo = flow->todo[0];
    flow->ntodo--;
    memmove(flow->todo, flow->todo + 1, flow->ntodo * sizeof(flow_todo_t));

    if (todo.is_asked) {
        asked = flow_unask(flow, todo.position + todo.rows - 1);
        flow_count_token(flow);
    }

    flow->answers++;
    flow->callbacks->on_result(flow->data, todo.position, todo.rows,
                               asked ? asked->logits : NULL);
    free(asked);
}


/*
 * Whether the oldest step is answered: the last hop has computed it, and the
 * first one does not need its rows any more.  So a rewind keeps no more rows
 * than a prompt does.
 */
static int
flow_is_answered(const flow_t *flow)
{
    uint32_t             end;
    hop_t               *last;
    const flow_todo_t   *todo;

    if (flow->ntodo == 0) {
        return 0;
    }

    todo = &flow->todo[0];
    end = todo->position + todo->rows;
    last = flow->hops[flow->nhops - 1];

    if (last->done < end || flow->hops[0]->next < end) {
        return 0;
    }

    return !todo->is_asked || flow_asked(flow, end - 1)->is_there;
}


void
flow_go_on(flow_t *flow)
{
    size_t  i;

    if (flow->is_lost || flow->is_closed) {
        return;
    }

    flow_mend(flow);

    for (i = 0; i < flow->nhops; i++) {
        hop_feed(flow->hops[i]);
    }
}


const flow_failure_t *
flow_failure(const flow_t *flow)
{
    return &flow->failure;
}


void
flow_answer(flow_t *flow)
{
    while (!flow->is_lost && !flow->is_closed && flow_is_answered(flow)) {
        flow_answer_one(flow);
    }
}


/* A hop's session with its shard: sends steps, and takes results. */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/check.h"
#include "replica/shard/flow/flow_inner.h"


hop_t *
hop_create(flow_t *flow, const fleet_hop_t *at)
{
    hop_t    *hop;
    flows_t  *flows;

    flows = flow->flows;
    hop = calloc(1, sizeof(hop_t));

    if (hop == NULL) {
        return NULL;
    }

    hop->flow = flow;
    rows_init(&hop->in, flows->options.width, &flows->history_bytes);

    if (at == NULL) {
        hop->at.last = flows->options.layers - 1;
        return hop;
    }

    hop->at = *at;
    hop->shard = flow_shards_enter(&flows->shards, at);

    if (hop->shard == NULL) {
        free(hop);
        return NULL;
    }

    return hop;
}


/* Ends the hop's session; its steps are dropped. */
static void
hop_end_session(hop_t *hop)
{
    turn_end(hop);
    audit_leave(hop);

    if (hop->session != NULL) {
        hop->flow->flows->world->close(hop->session);
        hop->session = NULL;
    }

    hop->state = HOP_LOST;
    hop->nsteps = 0;
    hop->again_ns = 0;
}


void
hop_destroy(hop_t *hop)
{
    hop_end_session(hop);

    if (hop->shard != NULL) {
        flow_shard_leave(hop->shard);
    }

    rows_done(&hop->in);
    free(hop);
}


/* --- sending */

/*
 * The number of rows that can be sent as one step now; only the last one of a
 * step can have logits.  Logits stay asked for over a rewind, when their rows
 * may still be between hops.
 */
static uint32_t
hop_rows(const hop_t *hop)
{
    uint32_t             rows;
    const flow_asked_t  *asked;

    rows = hop->in.end - hop->next;

    if (rows > hop->rows_max) {
        rows = hop->rows_max;
    }

    for (asked = hop->flow->asked; asked != NULL; asked = asked->next) {
        if (asked->position >= hop->next
            && asked->position < hop->next + rows)
        {
            rows = asked->position + 1 - hop->next;
        }
    }

    return rows;
}


static int
hop_is_asked(const hop_t *hop, uint32_t rows)
{
    return hop->index + 1 == hop->flow->nhops
           && flow_asked(hop->flow, hop->next + rows - 1) != NULL;
}


static void
hop_send(hop_t *hop, uint32_t rows)
{
    int           is_asked;
    flows_t      *flows;
    flow_t       *flow;
    hop_step_t   *step;
    uint64_t      now;
    const float  *values;

    flow = hop->flow;
    flows = flow->flows;
    now = flows_now(flows);

    is_asked = hop_is_asked(hop, rows);
    values = rows_get(&hop->in, hop->next, rows, flows->scratch);
    flows->world->step(hop->session, hop->next, rows, is_asked, values);

    if (hop->audit != NULL) {
        audit_sent(hop->audit, hop->next, rows, is_asked, values);
    }

    step = &hop->steps[hop->nsteps++];
    *step = (hop_step_t) { hop->next, rows, now, 0 };
    hop->next += rows;
    flow->moved_ns = now;

    if (hop->next <= hop->replay_to) {
        flows->replayed_rows += rows;
    }

    if (hop->nsteps == 1) {
        hop->since_ns = now;
        flows_due(flows, tick_deadline(hop));
    }

    if (hop->index == 0 || !flow->is_kept || hop->in.base > 0) {
        rows_trim(&hop->in, hop->next);
    }
}


void
hop_feed(hop_t *hop)
{
    uint32_t  rows;

    while (hop->state == HOP_OPEN && hop->nsteps < SHARD_STEPS_MAX) {
        rows = hop_rows(hop);

        if (rows == 0) {
            break;
        }

        hop_send(hop, rows);
    }
}


/* --- the end of a session */

typedef enum {
    LOSS_FAULT = 0,     /* the shard's fault: all flows exclude it for a
                           while */
    LOSS_BUSY,          /* it may serve others: only this flow excludes it */
    LOSS_EXPIRED        /* it may serve this very flow again */
} loss_t;


/* Whether the hop had long had no rows to send, since another hop replays, or
   its shard loads. */
static int
hop_was_idle(const hop_t *hop)
{
    return hop->nsteps == 0
           && flows_now(hop->flow->flows) - hop->since_ns
              >= SHARD_IDLE_MS / 2 * 1000000ULL;
}


/* An expired session is the shard's fault if the flow got no answer in it,
   unless the hop had sent nothing for about as long as expiry takes. */
static loss_t
hop_loss(const hop_t *hop, shard_reason_t reason)
{
    switch (reason) {
    case SHARD_SESSION_EXPIRED:
        return hop->built_answers == hop->flow->answers && !hop_was_idle(hop)
               ? LOSS_FAULT : LOSS_EXPIRED;
    case SHARD_FULL:
    case SHARD_LOADING:
    case SHARD_DRAINING:
    case SHARD_CONTEXT_FULL:
    case SHARD_OUT_OF_MEMORY:
        return LOSS_BUSY;

    default:
        return LOSS_FAULT;
    }
}


/*
 * Excludes the shard from the flow's paths: for a while if it was busy, and for
 * good for another reason, a context that is too short included.  If the table
 * is full, the flow gives up.
 */
static void
hop_exclude(hop_t *hop, shard_reason_t reason, loss_t loss)
{
    flow_t    *flow;
    uint64_t   until;

    flow = hop->flow;
    until = loss == LOSS_BUSY && reason != SHARD_CONTEXT_FULL
            ? flows_now(flow->flows) + FLOW_BUSY_MS * 1000000ULL : UINT64_MAX;

    if (flow->nexcluded < FLOW_EXCLUDED_MAX) {
        flow->excluded[flow->nexcluded++]
            = (flow_excluded_t) { hop->at.key, until,
                                  reason == SHARD_LATE
                                  || reason == SHARD_LOADING };

    } else {
        flow->failovers = FLOW_FAILOVERS_MAX + 1;
    }
}


static void
hop_count_fault(hop_t *hop, shard_reason_t reason, int is_stall)
{
    flows_t  *flows;

    flows = hop->flow->flows;
    hop->flow->failovers += reason != SHARD_LATE;
    hop->flow->failure.count++;
    hop->shard->failovers++;

    if (is_stall) {
        flows->stalls++;
    } else {
        flows->failovers[reason]++;
    }

    if (reason == SHARD_CORRUPTION) {
        hop->shard->corruptions++;
    }

    flows->world->exclude(flows->fleet, hop->at.key, reason);
}


void
hop_lose(hop_t *hop, shard_reason_t reason, int is_stall, const char *text)
{
    loss_t   loss;
    flow_t  *flow;

    flow = hop->flow;
    loss = hop_loss(hop, reason);

    log_write(flow->flows->log, loss == LOSS_FAULT ? LOG_WARN : LOG_INFO,
              "stream %016" PRIx64 " lost shard \"%s\" (layers %u-%u) at"
              " position %u: %s: %s", flow->name, hop->at.id, hop->at.first,
              hop->at.last, hop->done,
              is_stall ? "stalled" : shard_reason_name(reason), text);

    snprintf(flow->text, sizeof(flow->text), "shard \"%.63s\" %s: %.120s",
             hop->at.id, is_stall ? "stalled" : shard_reason_name(reason),
             text);
    flow->cause = reason;
    flow->is_stalled = is_stall;
    hop_end_session(hop);           /* the text may be in the session's
                                       memory */

    if (loss != LOSS_EXPIRED) {
        failure_by_shard(flow, hop, is_stall ? SHARD_LATE : reason);
        hop_exclude(hop, reason, loss);
    }

    if (loss == LOSS_FAULT) {
        hop_count_fault(hop, reason, is_stall);
    }
}


/* --- the session's callbacks */

static void
hop_on_opened(void *data, uint32_t max_rows)
{
    hop_t    *hop = data;
    flows_t  *flows;

    flows = hop->flow->flows;

    flows_enter(flows);
    hop->state = HOP_OPEN;
    hop->again_ns = 0;
    hop->rows_max = max_rows;
    turn_built(hop->flow);
    flow_go_on(hop->flow);
    flows_leave(flows);
}


static void
hop_on_lost(void *data, shard_reason_t reason, const char *text)
{
    hop_t    *hop = data;
    flows_t  *flows;

    flows = hop->flow->flows;

    flows_enter(flows);
    hop_lose(hop, reason, 0, text);
    flow_go_on(hop->flow);
    flows_leave(flows);
}


static void
hop_on_started(void *data, uint32_t position)
{
    hop_t       *hop = data;
    size_t       i;
    uint64_t     now;
    flows_t     *flows;
    hop_step_t  *step;

    flows = hop->flow->flows;
    now = flows_now(flows);

    for (i = 0; i < hop->nsteps; i++) {
        step = &hop->steps[i];

        if (step->started_ns == 0) {
            step->started_ns = now;
            break;
        }
    }

    hop->again_ns = 0;
    flows_due(flows, tick_deadline(hop));
}


static void
hop_measure(hop_t *hop, const hop_step_t *step, uint64_t now)
{
    flows_t  *flows;

    flows = hop->flow->flows;
    flow_shard_took(hop->shard, step->rows, now - step->started_ns);
    hop->shard->steps++;
    histogram_record_recent(&hop->shard->latency,
                            (now - step->sent_ns) / 1000);
    flows->world->worked(flows->fleet, hop->at.key);
}


/* Passes rows to the next hop.  Rows below the end of its input are there
   already, since the hop has replayed them. */
static int
hop_pass_on(hop_t *hop, const hop_step_t *step, const float *values)
{
    hop_t     *to;
    flows_t   *flows;
    uint32_t   known;

    flows = hop->flow->flows;
    to = hop->flow->hops[hop->index + 1];

    assert(to->in.end >= step->position);
    known = to->in.end - step->position;

    if (known >= step->rows) {
        return 0;
    }

    return rows_append(&to->in,
                       values + (size_t) known * flows->options.width,
                       step->rows - known);
}


/* Keeps logits for the answer, unless they were answered before a replay. */
static void
hop_keep_logits(hop_t *hop, uint32_t position, const float *values)
{
    flow_asked_t  *asked;

    asked = flow_asked(hop->flow, position);

    if (asked != NULL && !asked->is_there) {
        asked->is_there = 1;
        memcpy(asked->logits, values,
               hop->flow->flows->options.vocabulary * sizeof(float));
    }
}


static check_t
hop_check(const hop_t *hop, const hop_step_t *step, uint32_t rows,
    int is_logits, const float *values)
{
    uint32_t                boundary;
    const flows_options_t  *options;

    options = &hop->flow->flows->options;

    if (is_logits) {
        return check_rows(values, rows, options->vocabulary, 0, 0);
    }

    boundary = hop->at.last + 1;

    return check_rows(values, rows, options->width, step->position,
                      options->norms ? options->norms[boundary] : 0);
}


static void
hop_took(hop_t *hop, const hop_step_t *step)
{
    flow_t    *flow;
    uint64_t   now;

    flow = hop->flow;
    now = flows_now(flow->flows);
    hop_measure(hop, step, now);

    hop->nsteps--;
    memmove(hop->steps, hop->steps + 1, hop->nsteps * sizeof(hop_step_t));
    hop->since_ns = now;
    hop->again_ns = 0;
    flow->moved_ns = now;
    flow->flows->rows += step->rows;
    hop->done = step->position + step->rows;

    if (hop->shard->turn == flow) {
        flow->flows->turned_ns = now;
    }

    if (hop->replay_to > 0 && hop->done >= hop->replay_to) {
        log_write(flow->flows->log, LOG_INFO, "shard \"%s\" has computed %u"
                  " positions of stream %016" PRIx64 " again, after %" PRIu64
                  " ms", hop->at.id, hop->replay_to, flow->name,
                  (now - hop->built_ns) / 1000000);
        hop->replay_to = 0;
        turn_end(hop);
    }
}


/* Takes a result.  0, or -1: out of memory. */
static int
hop_take(hop_t *hop, const hop_step_t *step, uint32_t rows,
    const float *values)
{
    int  rc;

    rc = 0;

    if (hop->index + 1 < hop->flow->nhops) {
        rc = hop_pass_on(hop, step, values);

    } else if (rows > 0) {
        hop_keep_logits(hop, step->position + step->rows - 1, values);
    }

    hop_took(hop, step);

    return rc;
}


static void
hop_result(hop_t *hop, uint32_t rows, int is_logits, const float *values)
{
    check_t      check;
    flow_t      *flow;
    hop_step_t   step;

    flow = hop->flow;
    step = hop->steps[0];
    check = hop_check(hop, &step, rows, is_logits, values);

    if (check == CHECK_GOOD && hop->audit != NULL) {
        audit_answered(hop->audit, rows, is_logits, values);
    }

    if (check != CHECK_GOOD) {
        hop_lose(hop, SHARD_CORRUPTION, 0, check_text(check));

    } else if (hop_take(hop, &step, rows, values) != 0) {
        flow_lose(flow, "out_of_memory", "no memory for a history");

    } else {
        history_bound(flow->flows);
    }

    flow_go_on(flow);
    flow_answer(flow);
}


static void
hop_on_result(void *data, uint32_t position, uint32_t rows, int is_logits,
    const float *values)
{
    hop_t    *hop = data;
    flows_t  *flows;

    flows = hop->flow->flows;

    flows_enter(flows);
    hop_result(hop, rows, is_logits, values);
    flows_leave(flows);
}


static const link_callbacks_t  hop_callbacks = {
    hop_on_opened, hop_on_started, hop_on_result, hop_on_lost
};


int
hop_open(hop_t *hop)
{
    uint64_t   now;
    flow_t    *flow;
    flows_t   *flows;

    flow = hop->flow;
    flows = flow->flows;
    now = flows_now(flows);

    hop->session = flows->world->open(flows->fleet, &hop->at, flow->expected,
                                      &hop_callbacks, hop);

    if (hop->session == NULL) {
        return -1;
    }

    hop->state = HOP_OPENING;
    hop->since_ns = now;
    hop->built_ns = now;
    flows_due(flows, tick_deadline(hop));

    return 0;
}

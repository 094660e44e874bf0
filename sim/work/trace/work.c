
/*
 * A trace as a workload: at its own times, or with its sessions in closed loop.
 */

#include "sim/work/trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "sim/work/session_plan.h"


/* BLIS's horizon if all requests arrive at the beginning */
#define HORIZON_OF_NOTHING_US  600000000


static const work_name_t *
name_of(work_t *work, const work_name_t *name)
{
    return work_name(&work->names, name->text, name->len);
}


/*
 * The prefix of each group, by the id of the group's name in the trace: the
 * first length that a row of the group has.
 */
static uint32_t *
prefix_lengths(const work_trace_t *trace)
{
    size_t                i;
    uint32_t             *lengths;
    const work_record_t  *r;

    lengths = calloc(trace->names.n, sizeof(*lengths));

    for (i = 0; i < trace->n && lengths != NULL; i++) {
        r = &trace->records[i];

        if (r->prefix_group->len > 0 && lengths[r->prefix_group->id] == 0) {
            lengths[r->prefix_group->id] = r->prefix_length;
        }
    }

    return lengths;
}


/*
 * The length of a request's body.  The server's count includes the chat
 * template, and the prefix, if any.
 */
static uint32_t
body_tokens(const work_record_t *r)
{
    if (r->server_input_tokens > 0 && r->prefix_group->len == 0) {
        return r->server_input_tokens;
    }

    return r->input_tokens;
}


static void
work_of_record(work_t *work, work_request_t *to, const work_record_t *from,
    uint32_t prefix_tokens)
{
    work_set_id(work, to, from->request_id);
    to->round = from->round;
    to->client = name_of(work, from->client);
    to->tenant = name_of(work, from->tenant);
    to->slo_class = name_of(work, from->slo_class);
    to->model = name_of(work, from->model);
    to->session = name_of(work, from->session);
    to->prefix_group = name_of(work, from->prefix_group);
    to->adapter = name_of(work, from->adapter);
    to->prefix_tokens = prefix_tokens;
    to->prefix_length = from->prefix_length;
    to->input_tokens = prefix_tokens + body_tokens(from);
    to->output_tokens = from->output_tokens;
    to->max_output_tokens = from->output_tokens;
    to->priority = from->vllm_priority;
    to->arrival_us = from->send_us > 0 ? from->send_us : from->arrival_us;
    to->deadline_us = from->deadline_us;
    to->slo_target_us = from->slo_target_us;
    to->think_time_us = from->think_time_us;
    to->text_tokens = from->text_tokens;
    to->image_tokens = from->image_tokens;
    to->audio_tokens = from->audio_tokens;
    to->video_tokens = from->video_tokens;
    to->reason_ratio = from->reason_ratio;
    to->streaming = from->streaming;
}


/*
 * Whether each round's input includes the rounds before it, as in traces of
 * simulated sessions; in other traces it is what the round adds.
 */
static int
inputs_accumulate(const work_trace_header_t *h)
{
    return h->session_context_growth != NULL
           && h->session_context_growth[0] != '\0'
           && h->mode != NULL && strcmp(h->mode, "real") != 0;
}


static void
work_fixed(work_t *work, const work_trace_t *trace, const uint32_t *lengths)
{
    size_t                i;
    work_request_t       *r;
    const work_record_t  *from;

    work->accumulates = inputs_accumulate(&trace->header);

    for (i = 0; i < trace->n; i++) {
        from = &trace->records[i];
        r = work_add(work);
        work_of_record(work, r, from, lengths[from->prefix_group->id]);
        work_set_origin(r, work->accumulates);
    }
}


/*
 * A row and its place: rows of sessions are sorted by their session's first
 * row, then by round; other rows follow.
 */
typedef struct {
    const work_record_t  *record;
    size_t                first;        /* row of its session's first round */
} place_t;


static int
place_order(const void *a, const void *b)
{
    const place_t  *x, *y;

    x = a;
    y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }

    if (x->record->round != y->record->round) {
        return x->record->round < y->record->round ? -1 : 1;
    }

    return x->record < y->record ? -1 : x->record > y->record;
}


static place_t *
places(const work_trace_t *trace)
{
    size_t                i, *firsts;
    place_t              *p;
    const work_record_t  *r;

    firsts = calloc(trace->names.n, sizeof(*firsts));
    p = calloc(trace->n, sizeof(*p));

    for (i = 0; i < trace->n && firsts != NULL && p != NULL; i++) {
        r = &trace->records[i];
        p[i].record = r;

        if (r->session->len == 0) {
            p[i].first = trace->n + i;
            continue;
        }

        if (firsts[r->session->id] == 0) {
            firsts[r->session->id] = i + 1;
        }

        p[i].first = firsts[r->session->id] - 1;
    }

    free(firsts);

    if (p != NULL) {
        qsort(p, trace->n, sizeof(*p), place_order);
    }

    return p;
}


/* A session keeps an answer without its last token, as BLIS does. */
static int64_t
answer_kept(uint32_t output_tokens)
{
    return output_tokens > 0 ? (int64_t) output_tokens - 1 : 0;
}


/*
 * The tokens that round i adds to its session.  In a trace whose inputs
 * accumulate, these are the tokens beyond the last round's input and answer.
 */
static int64_t
round_input(const place_t *session, size_t i, int accumulated)
{
    int64_t  tokens, before;

    tokens = body_tokens(session[i].record);

    if (!accumulated) {
        return tokens;
    }

    before = (int64_t) body_tokens(session[i - 1].record)
             + answer_kept(session[i - 1].record->output_tokens);

    return tokens > before ? tokens - before : 1;
}


/*
 * Think times: as recorded, or else the gaps between arrivals, which include
 * the time of the answer.
 */
static int64_t *
round_thinks(work_t *work, const place_t *session, size_t n)
{
    size_t    i;
    int64_t  *thinks;
    int64_t   gap, recorded;

    thinks = work_arena_alloc(&work->arena, n * sizeof(*thinks));
    recorded = 0;

    for (i = 1; i < n; i++) {
        recorded |= session[i].record->think_time_us;
    }

    for (i = 1; i < n; i++) {
        gap = session[i].record->arrival_us - session[i - 1].record->arrival_us;
        thinks[i - 1] = recorded != 0 ? session[i].record->think_time_us
                        : gap > 0 ? gap : 0;
    }

    return thinks;
}


static void
plan_of_rounds(work_t *work, work_plan_t *plan, const place_t *session,
    size_t n, int accumulated)
{
    size_t    i;
    int64_t  *inputs, *outputs;

    inputs = work_arena_alloc(&work->arena, n * sizeof(*inputs));
    outputs = work_arena_alloc(&work->arena, n * sizeof(*outputs));

    for (i = 1; i < n; i++) {
        inputs[i - 1] = round_input(session, i, accumulated);
        outputs[i - 1] = session[i].record->output_tokens;
    }

    plan->inputs = inputs;
    plan->outputs = outputs;
    plan->rounds = (uint32_t) n;
    plan->timeout_us = WORK_SESSION_TIMEOUT_US;
}


/* How many rows, from session[0] on, are rounds of its session; 0: *error. */
static size_t
count_rounds(const work_trace_t *trace, const place_t *session, size_t left,
    work_error_t *error)
{
    size_t  n;

    for (n = 0; n < left && session[n].first == session[0].first; n++) {
        if (session[n].record->session->len > 0
            && session[n].record->round != n)
        {
            work_fail(error, trace->data_file, session[n].record->line,
                      "round %u of session \"%.60s\" where %zu is next",
                      session[n].record->round,
                      session[n].record->session->text, n);
            return 0;
        }
    }

    return n;
}


/* Makes requests of first rounds, and plans of the others. */
static int
work_closed(work_t *work, const work_trace_t *trace,
    const work_replay_options_t *options, const uint32_t *lengths,
    work_error_t *error)
{
    size_t                i, n;
    rnd_t                 rnd;
    place_t              *p;
    work_plan_t          *plan;
    const char           *what;
    work_sample_t        *think;
    work_request_t       *r;
    const work_record_t  *from;

    think = NULL;
    rnd.state = options->seed;

    if (options->think_time != NULL) {
        think = work_arena_alloc(&work->arena, sizeof(*think));

        if (work_sample_think(think, options->think_time, &what) != 0) {
            return work_fail(error, "--think-time-dist", 0, "%s", what);
        }
    }

    p = places(trace);

    if (p == NULL) {
        return work_fail(error, trace->data_file, 0, "no memory left");
    }

    work_sessions_init(work, options->horizon_us);
    work->accumulates = trace->header.session_context_growth != NULL
                        && trace->header.session_context_growth[0] != '\0';

    for (i = 0; i < trace->n; i += n) {
        n = count_rounds(trace, p + i, trace->n - i, error);

        if (n == 0) {
            free(p);
            return -1;
        }

        from = p[i].record;
        r = work_add(work);
        work_of_record(work, r, from, lengths[from->prefix_group->id]);
        work_set_origin(r, work->accumulates);

        if (n > 1) {
            plan = work_session_add(work, r);
            plan_of_rounds(work, plan, p + i, n,
                           inputs_accumulate(&trace->header));
            plan->accumulates = work->accumulates;
            plan->think = think;
            plan->thinks = think == NULL ? round_thinks(work, p + i, n) : NULL;
            plan->rnd.state = rnd_next(&rnd);
        }
    }

    free(p);

    return 0;
}


int
work_from_trace(work_t *work, const work_trace_t *trace,
    const work_replay_options_t *options, work_error_t *error)
{
    int        rc;
    uint32_t  *lengths;

    if (trace->n == 0) {
        return work_fail(error, trace->data_file, 0, "no requests");
    }

    rc = 0;
    lengths = prefix_lengths(trace);

    if (lengths == NULL) {
        return work_fail(error, trace->data_file, 0, "no memory left");
    }

    if (options->mode == WORK_REPLAY_FIXED) {
        work_fixed(work, trace, lengths);

    } else {
        rc = work_closed(work, trace, options, lengths, error);
    }

    free(lengths);

    return rc;
}


int64_t
work_trace_horizon(const work_trace_t *trace)
{
    size_t                i;
    int64_t               at, last;
    const work_record_t  *r;

    last = 0;

    for (i = 0; i < trace->n; i++) {
        r = &trace->records[i];
        at = r->send_us > 0 ? r->send_us : r->arrival_us;
        last = at > last ? at : last;
    }

    return last > 0 ? 2 * last : HORIZON_OF_NOTHING_US;
}

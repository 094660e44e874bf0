
#include "sim/work/trace/trace.h"

#include <stdlib.h>
#include <string.h>


/* BLIS's horizon where no request arrives after the beginning. */
#define HORIZON_OF_NOTHING_US  600000000


static const work_name_t *
name_of(work_t *work, const work_name_t *name)
{
    return work_name(&work->names, name->text, name->len);
}


/*
 * The prefix of each group is as long as the first row says that has a length:
 * lengths[] by the id of the group's name in the trace.
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


/* What the server counted includes its template, and a prefix if any. */
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
 * Is each round's input all that its session has said?  So it is in traces of
 * simulated sessions; in others it is what the round adds.
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


int
work_from_trace(work_t *work, const work_trace_t *trace,
    const work_replay_options_t *options, work_error_t *error)
{
    uint32_t  *lengths;

    if (trace->n == 0) {
        return work_fail(error, trace->data_file, 0, "no requests");
    }

    if (options->mode != WORK_REPLAY_FIXED) {
        return work_fail(error, trace->data_file, 0,
                         "sessions in closed loop are not read yet");
    }

    lengths = prefix_lengths(trace);

    if (lengths == NULL) {
        return work_fail(error, trace->data_file, 0, "no memory left");
    }

    work_fixed(work, trace, lengths);
    free(lengths);

    return 0;
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

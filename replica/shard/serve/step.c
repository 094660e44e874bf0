
/*
 * Incoming steps: from chunks to the tensor that the plugin gets.
 *
 * A tensor's description is checked at its first chunk, before memory is
 * allocated for it; later chunks have to repeat it.  The plugin works on the
 * wire's numbers, so nothing is converted here; the plugin also checks whether
 * the model can have such numbers.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/serve/serve_inner.h"


#define STEP_ALIGNMENT  64          /* of tensors: a cache line */

static size_t
step_aligned(uint64_t bytes)
{
    return (bytes + STEP_ALIGNMENT - 1) / STEP_ALIGNMENT * STEP_ALIGNMENT;
}


/* The step that waits for chunks, which is the last of its session. */
static step_t **
step_filling(session_t *s)
{
    step_t  **at;

    for (at = &s->steps; *at != NULL; at = &(*at)->next) {
        if ((*at)->state == STEP_FILLING) {
            break;
        }
    }

    return at;
}


/* Checks that do not depend on the session's other steps. */
static shard_reason_t
step_judge_shape(const session_t *s, const Llmgateway__Shard__Step *m,
    char text[SERVE_TEXT_BYTES])
{
    uint64_t             bytes;
    const core_facts_t  *f;

    f = &s->serve->facts;
    bytes = tensor_bytes(m->rows, f->width, s->serve->options.dtype);

    if (m->chunks > SHARD_TENSOR_BYTES / SHARD_CHUNK_BYTES
        || bytes > SHARD_TENSOR_BYTES
        || tensor_bytes(m->logits_rows, f->vocabulary, TENSOR_FP32)
           > SHARD_TENSOR_BYTES)
    {
        return serve_why(text, SHARD_TENSOR_TOO_LARGE, "%u rows, %u of "
                           "logits, in %u chunks: a tensor has at most %d MiB",
                           m->rows, m->logits_rows, m->chunks,
                           SHARD_TENSOR_BYTES >> 20);
    }

    if (m->rows == 0 || m->rows > SHARD_ROWS_MAX || m->logits_rows > m->rows
        || (m->logits_rows > 0 && !s->has_logits))
    {
        return serve_why(text, SHARD_BAD_SHAPE, "%u rows, %u of logits: "
                           "a step has 1 to %d, and logits of some where the "
                           "model ends", m->rows, m->logits_rows,
                           SHARD_ROWS_MAX);
    }

    if (m->chunks != tensor_chunks(bytes)) {
        return serve_why(text, SHARD_BAD_SHAPE, "%u rows of %u in %u chunks, "
                           "not %u", m->rows, f->width, m->chunks,
                           tensor_chunks(bytes));
    }

    return SHARD_OK;
}


static shard_reason_t
step_judge(const session_t *s, const Llmgateway__Shard__Step *m,
    char text[SERVE_TEXT_BYTES])
{
    shard_reason_t       reason;
    const core_facts_t  *f;

    f = &s->serve->facts;
    reason = step_judge_shape(s, m, text);

    if (reason != SHARD_OK) {
        return reason;
    }

    if (m->position != s->position) {
        return serve_why(text, SHARD_BAD_POSITION, "position %u where %u is "
                           "the next", m->position, s->position);
    }

    if (m->rows > f->context - s->position) {
        return serve_why(text, SHARD_CONTEXT_FULL, "%u rows at position %u, "
                           "a session has %u", m->rows, m->position,
                           f->context);
    }

    if (s->nsteps == SHARD_STEPS_MAX) {
        return serve_why(text, SHARD_TOO_MANY_STEPS, "%d steps are "
                           "outstanding", SHARD_STEPS_MAX);
    }

    return SHARD_OK;
}


static shard_reason_t
step_create(session_t *s, const Llmgateway__Shard__Step *m, step_t **made,
    char text[SERVE_TEXT_BYTES])
{
    size_t               in, out, bytes;
    step_t              *step;
    serve_t             *v;
    const core_facts_t  *f;

    v = s->serve;
    f = &v->facts;
    in = step_aligned(tensor_bytes(m->rows, f->width, v->options.dtype));
    out = step_aligned(tensor_bytes(m->logits_rows, f->vocabulary,
                                    TENSOR_FP32));
    bytes = step_aligned(sizeof(step_t)) + in + out;

    if (v->options.max_memory != 0
        && f->bytes + v->tensor_bytes + bytes > v->options.max_memory)
    {
        return serve_why(text, SHARD_OUT_OF_MEMORY, "the slice and %u "
                           "sessions take %llu bytes, %zu more are above "
                           "--shard-max-memory %llu", v->sessions,
                           (unsigned long long) (f->bytes + v->tensor_bytes),
                           bytes, (unsigned long long) v->options.max_memory);
    }

    step = aligned_alloc(STEP_ALIGNMENT, bytes);

    if (step == NULL) {
        return serve_why(text, SHARD_OUT_OF_MEMORY, "no memory for %zu "
                           "bytes", bytes);
    }

    memset(step, 0, sizeof(step_t));
    step->core.place = s->place;
    step->core.position = m->position;
    step->core.rows = m->rows;
    step->core.logits_rows = m->logits_rows;
    step->core.in = (uint8_t *) step + step_aligned(sizeof(step_t));
    step->core.out = s->has_logits
                     ? (out > 0 ? (uint8_t *) step->core.in + in : NULL)
                     : (void *) step->core.in;
    step->core.data = step;
    step->serve = v;
    step->session = s;
    step->in_bytes = tensor_bytes(m->rows, f->width, v->options.dtype);
    step->chunks = m->chunks;
    step->bytes = bytes;
    v->tensor_bytes += bytes;

    *made = step;

    return SHARD_OK;
}


/* Whether the chunk continues the tensor of the step's earlier chunks. */
static int
step_is_next(const step_t *step, const Llmgateway__Shard__Step *m)
{
    return m->position == step->core.position && m->rows == step->core.rows
           && m->logits_rows == step->core.logits_rows
           && m->chunks == step->chunks && m->chunk == step->chunk;
}


static shard_reason_t
step_take_data(step_t *step, const ProtobufCBinaryData *data,
    char text[SERVE_TEXT_BYTES])
{
    if (data->len != tensor_chunk_bytes(step->in_bytes, step->chunk)) {
        return serve_why(text, SHARD_BAD_SHAPE, "chunk %u has %zu bytes, not "
                           "%zu", step->chunk, data->len,
                           tensor_chunk_bytes(step->in_bytes, step->chunk));
    }

    memcpy((uint8_t *) step->core.in
           + (size_t) step->chunk * SHARD_CHUNK_BYTES, data->data, data->len);
    step->chunk++;

    return SHARD_OK;
}


/* Finds the chunk's step; the first chunk makes it. */
static shard_reason_t
step_find(session_t *s, const Llmgateway__Shard__Step *m, step_t **found,
    char text[SERVE_TEXT_BYTES])
{
    step_t          **at;
    shard_reason_t    reason;

    at = step_filling(s);

    if (*at != NULL || m->chunk != 0) {

        if (*at == NULL || !step_is_next(*at, m)) {
            return serve_why(text, SHARD_BAD_SHAPE, "chunk %u of %u at "
                               "position %u is not the next", m->chunk,
                               m->chunks, m->position);
        }

        *found = *at;
        return SHARD_OK;
    }

    reason = step_judge(s, m, text);

    if (reason == SHARD_OK) {
        reason = step_create(s, m, at, text);
    }

    if (reason == SHARD_OK) {
        s->nsteps++;
        *found = *at;
    }

    return reason;
}


shard_reason_t
step_take(session_t *s, const Llmgateway__Shard__Step *m, step_t **whole,
    char text[SERVE_TEXT_BYTES])
{
    step_t          *step;
    shard_reason_t   reason;

    step = NULL;
    *whole = NULL;
    reason = step_find(s, m, &step, text);

    if (reason == SHARD_OK) {
        reason = step_take_data(step, &m->data, text);
    }

    if (reason != SHARD_OK || step->chunk < step->chunks) {
        return reason;
    }

    step->state = STEP_WAITING;
    s->position += step->core.rows;
    *whole = step;

    return SHARD_OK;
}


shard_reason_t
step_fault(const step_t *step)
{
    switch (step->core.status) {

    case SHARD_STEP_DONE:
        return SHARD_OK;

    case SHARD_STEP_BAD_POSITION:
        return SHARD_BAD_POSITION;

    case SHARD_STEP_BAD_SHAPE:
        return SHARD_BAD_SHAPE;

    case SHARD_STEP_CONTEXT_FULL:
        return SHARD_CONTEXT_FULL;

    case SHARD_STEP_BAD_INPUT:
    case SHARD_STEP_CORRUPT:
        return SHARD_CORRUPTION;

    default:
        return SHARD_FAILED;
    }
}


void
step_submit(step_t *step)
{
    serve_t  *v;

    v = step->serve;
    step->state = STEP_COMPUTING;
    step->next_in_hand = v->in_hand;
    step->in_hand = &v->in_hand;

    if (step->next_in_hand != NULL) {
        step->next_in_hand->in_hand = &step->next_in_hand;
    }

    v->in_hand = step;
    v->plugin->submit(v->core, &step->core);
}


void
step_returned(step_t *step)
{
    *step->in_hand = step->next_in_hand;

    if (step->next_in_hand != NULL) {
        step->next_in_hand->in_hand = step->in_hand;
    }
}


void
step_explain(const step_t *step, char text[SERVE_TEXT_BYTES])
{
    int               is_input;
    const session_t  *s;

    s = step->session;
    is_input = (step->core.status == SHARD_STEP_BAD_INPUT);

    if (!is_input && step->core.status != SHARD_STEP_CORRUPT) {
        snprintf(text, SERVE_TEXT_BYTES, "the computation of %u rows at "
                 "position %u failed", step->core.rows, step->core.position);
        return;
    }

    snprintf(text, SERVE_TEXT_BYTES, "a value that is no finite number, or a "
             "row far longer than any that the model gave, in the rows that "
             "%s layer %u from position %u on", is_input ? "enter" : "leave",
             is_input ? s->serve->facts.first_layer : s->open->open->last_layer,
             step->core.position);
}


void
step_shift(step_t *step)
{
    assert(step->session->steps == step);

    step->session->steps = step->next;
    step->session->nsteps--;
    step->session = NULL;
}


void
step_free(step_t *step)
{
    step->serve->tensor_bytes -= step->bytes;
    free(step);
}


/*
 * One llama_decode() over hidden states.
 *
 * The result is taken from inside: libllama names the output of each layer,
 * and asks a callback, node by node, whether it wants to see it.  The callback
 * wants the output of the session's last layer, copies its rows to where they
 * are to go, and ends the computation: layers above are not computed, nor is
 * the head, and their cells are never read.  A session with the model's last
 * layer wants nothing, and takes the logits in the end.
 *
 * Rows of the callback's tensor are those of the batch, since a call keeps the
 * order under which libllama leaves them alone (turn.c).
 */

#include <stdio.h>
#include <string.h>

#include "replica/engine/llama/plugin/shard/shard_inner.h"
#include "replica/shard/check.h"
#include "replica/shard/half.h"


/* The greatest norm of a row at this boundary of the model; 0: not known, or
   not used, since the probe's rows are not of a model. */
static float
call_norm(const shard_t *s, uint32_t boundary)
{
    return s->is_probed && s->core.facts.norms != NULL
           ? s->core.facts.norms[boundary] : 0;
}


/* Reads rows of a step as floats. */
static void
call_read(shard_t *s, part_t *part, float *rows)
{
    size_t       n;
    const char  *in;

    in = (const char *) part->step->in + part->from * s->row_bytes;
    n = part->rows * (size_t) s->core.facts.width;

    if (s->core.options.is_fp16) {
        half_decode(rows, (const uint16_t *) (const void *) in, n);

    } else {
        memcpy(rows, in, n * sizeof(float));
    }

    /* The part is computed although its rows are bad: without it the places of
       the call would have a gap. */

    if (check_rows(rows, part->rows, s->core.facts.width,
                   part->step->position + part->from,
                   call_norm(s, s->core.facts.first_layer))
        != CHECK_GOOD)
    {
        part->status = SHARD_STEP_BAD_INPUT;
        memset(rows, 0, n * sizeof(float));
    }
}


/*
 * The number of a part's last rows that are outputs in libllama's sense: the
 * model's last layer drops all others.  If a call ends before that layer, no
 * row needs to be an output.
 */
static uint32_t
call_outputs(const shard_t *s, const part_t *part)
{
    if (part->is_logits) {
        return part->step->logits_rows;
    }

    return part->last_layer == s->last_layer ? part->step->rows : 0;
}


static void
call_add(shard_t *s, const part_t *part)
{
    uint32_t             i, row, wanted;
    struct llama_batch  *b;

    b = &s->core.batch;
    wanted = call_outputs(s, part);

    for (i = 0; i < part->rows; i++) {
        row = part->from + i;
        b->pos[b->n_tokens] = (llama_pos) (part->step->position + row);
        b->n_seq_id[b->n_tokens] = 1;
        b->seq_id[b->n_tokens][0] = (llama_seq_id) part->step->place;
        b->logits[b->n_tokens] = (row + wanted >= part->step->rows);
        b->n_tokens++;
    }
}


/* Writes the hidden states of a part, from this row of the tensor on. */
static void
call_write(shard_t *s, part_t *part, const struct ggml_tensor *t,
    size_t at)
{
    char    *out;
    float   *rows;
    size_t   n, bytes;

    bytes = s->core.facts.width * sizeof(float);
    n = part->rows * (size_t) s->core.facts.width;
    out = (char *) part->step->out + part->from * s->row_bytes;
    rows = s->core.options.is_fp16 ? s->rows : (float *) (void *) out;
    ggml_backend_tensor_get(t, rows, at * bytes, part->rows * bytes);

    if (check_rows(rows, part->rows, s->core.facts.width,
                   part->step->position + part->from,
                   call_norm(s, s->core.facts.first_layer
                                   + part->last_layer + 1))
        != CHECK_GOOD)
    {
        part->status = SHARD_STEP_CORRUPT;
    }

    if (s->core.options.is_fp16
        && half_encode((uint16_t *) (void *) out, rows, n) != 0)
    {
        part->status = SHARD_STEP_CORRUPT;
    }
}


/* Returns false to end the computation. */
bool
call_tensor(struct ggml_tensor *t, bool is_question, void *data)
{
    size_t    at;
    uint32_t  i;
    call_t   *call;
    shard_t  *s;

    s = shard_of(data);
    call = &s->call;

    if (is_question) {
        return call->stop[0] != '\0' && strcmp(t->name, call->stop) == 0;
    }

    if (t->type != GGML_TYPE_F32 || t->ne[0] != s->core.facts.width
        || t->ne[1] != s->core.batch.n_tokens || !ggml_is_contiguous(t))
    {
        return false;
    }

    call->is_taken = 1;
    at = 0;

    for (i = 0; i < call->n; i++) {
        if (call->parts[i].status == SHARD_STEP_DONE) {
            call_write(s, &call->parts[i], t, at);
        }

        at += call->parts[i].rows;
    }

    return false;
}


/* Takes the logits of a part whose rows begin at this row of the batch. */
static void
call_take_logits(shard_t *s, part_t *part, uint32_t at)
{
    float               *out;
    uint32_t             i, first, row, n;
    const float         *logits;
    const shard_step_t  *step;

    step = part->step;
    first = step->rows - step->logits_rows;
    n = s->core.facts.vocabulary;

    for (i = 0; i < part->rows; i++) {
        row = part->from + i;

        if (row < first) {
            continue;
        }

        logits = llama_get_logits_ith(s->core.context, (int32_t) (at + i));

        if (logits == NULL) {
            part->status = SHARD_STEP_FAILED;
            return;
        }

        out = (float *) step->out + (size_t) (row - first) * n;
        memcpy(out, logits, n * sizeof(float));

        if (check_rows(out, 1, n, 0, 0) != CHECK_GOOD) {
            part->status = SHARD_STEP_CORRUPT;
        }
    }
}


/* Sets the status of each part of the call that has no error yet. */
static void
call_end(shard_t *s, int rc)
{
    uint32_t   i, at;
    call_t    *call;
    part_t    *part;

    call = &s->call;
    at = 0;

    for (i = 0; i < call->n; i++) {
        part = &call->parts[i];

        if (part->status == SHARD_STEP_DONE
            && (rc != 0 || (!part->is_logits && !call->is_taken)))
        {
            part->status = SHARD_STEP_FAILED;
        }

        if (part->status == SHARD_STEP_DONE && part->is_logits) {
            call_take_logits(s, part, at);
        }

        at += part->rows;
    }
}


void
call_run(shard_t *s, part_t *parts, uint32_t n)
{
    int       rc;
    float    *rows;
    uint32_t  i;
    call_t   *call;

    call = &s->call;
    call->parts = parts;
    call->n = n;
    call->is_taken = 0;
    call->stop[0] = '\0';
    rows = s->core.batch.embd;
    s->core.batch.n_tokens = 0;

    for (i = 0; i < n; i++) {
        call_read(s, &parts[i], rows);
        call_add(s, &parts[i]);
        rows += parts[i].rows * (size_t) s->core.facts.width;
    }

    if (!parts[0].is_logits) {
        snprintf(call->stop, sizeof(call->stop), "l_out-%u",
                 parts[0].last_layer);
    }

    rc = llama_decode(s->core.context, s->core.batch);
    call_end(s, rc);
}


/*
 * Decoding: what one call of libllama computes.
 *
 * Sequences keep to the rules under which results are exact: a prompt goes in
 * chunks with a call of its own, a call for running sequences has one token
 * of each, by ascending place (libllama reorders others).  Chunks and running
 * tokens take turns, so that a long prompt does not silence all others.
 *
 *              +---------------------- step ----------------------+
 *   PREFILL -->| chunk of the next place in turn                  |
 *              |   its last token: sample                         |--> events
 *   RUNNING -->| one token of each that has room for its events   |
 *              |   sample for each                                |
 *              +--------------------------------------------------+
 */

#include <string.h>

#include "replica/engine/llama/plugin/plugin_inner.h"


void
decode_add(core_t *core, llama_token id, uint32_t position, int32_t place,
    int is_output)
{
    struct llama_batch  *b;

    b = &core->batch;
    b->token[b->n_tokens] = id;
    b->pos[b->n_tokens] = (llama_pos) position;
    b->n_seq_id[b->n_tokens] = 1;
    b->seq_id[b->n_tokens][0] = place;
    b->logits[b->n_tokens] = (int8_t) is_output;
    b->n_tokens++;
}


int
decode_batch(core_t *core)
{
    int  rc;

    rc = llama_decode(core->context, core->batch);
    core->batch.n_tokens = 0;

    return rc == 0 ? 0 : -1;
}


static void
decode_end(core_seq_t *seq, core_event_kind_t kind)
{
    core_event_t  event;

    memset(&event, 0, sizeof(event));
    event.kind = kind;
    seq->state = SEQ_ENDED;
    worker_event(seq, &event);
}


static uint32_t
decode_generated(const core_seq_t *seq)
{
    return seq->nids - seq->nprompt;
}


/* Whether the text is as long as it may become. */
static int
decode_is_full(const core_seq_t *seq)
{
    const core_job_t  *job;

    job = seq->job;

    return (job->max_tokens > 0 && decode_generated(seq) >= job->max_tokens)
           || seq->nids >= seq->core->facts.context;
}


/* The token after all ids, out of a row of the last call. */
static void
decode_sample(core_seq_t *seq, int32_t row)
{
    core_t            *core;
    core_event_t       event;
    sample_input_t     input;
    const core_job_t  *job;

    core = seq->core;
    job = seq->job;

    memset(&event, 0, sizeof(event));
    memset(&input, 0, sizeof(input));
    input.logits = llama_get_logits_ith(core->context, row);
    input.before = (const uint32_t *) seq->ids;
    input.nbefore = seq->nids;
    input.position = decode_generated(seq);

    if (job->is_endless || input.position < job->min_tokens) {
        input.banned = core->ends;
        input.nbanned = core->nends;
    }

    event.kind = CORE_TOKEN;
    event.id = sample_token(&job->sample, &core->room, &input);

    if (llama_vocab_is_eog(core->vocab, (llama_token) event.id)
        && !job->is_endless)
    {
        decode_end(seq, CORE_STOP);
        return;
    }

    if (job->sample.is_logprobs) {
        sample_logprobs(&job->sample, &core->room, input.logits, event.id,
                        &event.logprobs);
    }

    seq->ids[seq->nids++] = (llama_token) event.id;
    worker_event(seq, &event);

    if (decode_is_full(seq)) {
        decode_end(seq, CORE_LENGTH);
    }
}


/* The next chunk of one prompt. */
static void
decode_prefill(core_seq_t *seq)
{
    int        is_last;
    core_t    *core;
    uint32_t   i, to;

    core = seq->core;

    if (decode_is_full(seq)) {
        decode_end(seq, CORE_LENGTH);
        return;
    }

    to = seq->ndecoded + (core->facts.is_stepwise ? 1 : core->chunk);
    to = to < seq->nids ? to : seq->nids;
    is_last = (to == seq->nids);

    for (i = seq->ndecoded; i < to; i++) {
        decode_add(core, seq->ids[i], i, seq->place,
                   is_last && i == to - 1);
    }

    i = to - seq->ndecoded;

    if (decode_batch(core) != 0) {
        decode_end(seq, CORE_FAILED);
        return;
    }

    seq->ndecoded = to;

    if (is_last) {
        seq->state = SEQ_RUNNING;
        decode_sample(seq, (int32_t) i - 1);
    }
}


/* The place whose turn it is among those whose prompt is not decoded yet. */
static core_seq_t *
decode_next_prefill(core_t *core)
{
    uint32_t     i, place;
    core_seq_t  *seq;

    for (i = 0; i < core->options.sequences; i++) {
        place = (core->turn + i) % core->options.sequences;
        seq = core->places[place];

        if (seq != NULL && seq->state == SEQ_PREFILL) {
            core->turn = place + 1;
            return seq;
        }
    }

    return NULL;
}


/* A last event follows a token at once, so room for two is needed. */
static int
decode_may_run(core_seq_t *seq)
{
    int  has_room;

    if (seq == NULL || seq->state != SEQ_RUNNING) {
        return 0;
    }

    pthread_mutex_lock(&seq->core->lock);
    has_room = seq->nevents + 2 <= CORE_EVENTS_MAX;
    pthread_mutex_unlock(&seq->core->lock);

    return has_room;
}


/* One call for the tokens in the batch: `rows` are its sequences. */
static void
decode_rows(core_t *core, core_seq_t **rows, uint32_t n)
{
    int       rc;
    uint32_t  i;

    rc = decode_batch(core);

    for (i = 0; i < n; i++) {
        if (rc != 0) {
            decode_end(rows[i], CORE_FAILED);
            continue;
        }

        rows[i]->ndecoded++;
        decode_sample(rows[i], (int32_t) i);
    }
}


/* One token of each running sequence.  Returns their number. */
static uint32_t
decode_running(core_t *core)
{
    uint32_t     i, n, total;
    core_seq_t  *seq, *rows[CORE_SEQUENCES_MAX];

    n = 0;
    total = 0;

    for (i = 0; i < core->options.sequences; i++) {
        seq = core->places[i];

        if (!decode_may_run(seq)) {
            continue;
        }

        decode_add(core, seq->ids[seq->ndecoded], seq->ndecoded, seq->place,
                   1);
        rows[n++] = seq;
        total++;

        if (core->facts.is_stepwise) {
            decode_rows(core, rows, n);
            n = 0;
        }
    }

    if (n > 0) {
        decode_rows(core, rows, n);
    }

    return total;
}


int
decode_step(core_t *core)
{
    core_seq_t  *seq;

    seq = decode_next_prefill(core);

    if (seq != NULL) {
        decode_prefill(seq);
    }

    return decode_running(core) > 0 || seq != NULL;
}

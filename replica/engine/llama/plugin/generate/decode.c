
/*
 * Decoding: which rows of which sequences are computed next, and what follows
 * from their logits.
 *
 * A sequence's way decides where its rows are computed: here (local.c), or by
 * shards (remote.c).  Chunks and running tokens take turns, so that a long
 * prompt does not stop all others.
 *
 *              +---------------------- step ----------------------+
 *   PREFILL -->| chunk of the next place in turn                  |
 *              |   behind its last token: sample                  |--> events
 *   RUNNING -->| one token of each that has room for its events   |
 *              |   sample for each                                |
 *              +--------------------------------------------------+
 *
 * A sequence whose logits come later than its step is SENT until then.
 */

#include <string.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


static void
decode_end_because(core_seq_t *seq, core_event_kind_t kind,
    const char *reason, const char *text)
{
    core_event_t  event;

    memset(&event, 0, sizeof(event));
    event.kind = kind;
    event.reason = reason;
    event.text = text;
    seq->state = SEQ_ENDED;
    worker_event(seq, &event);
}


void
decode_end(core_seq_t *seq, core_event_kind_t kind)
{
    decode_end_because(seq, kind, NULL, NULL);
}


void
decode_lost(core_seq_t *seq)
{
    decode_end_because(seq, CORE_FAILED, seq->reason, seq->text);
}


void
decode_again(core_seq_t *seq, const way_t *way)
{
    seq->way = way;
    seq->ndecoded = 0;
    seq->state = SEQ_PREFILL;
}


static uint32_t
decode_generated(const core_seq_t *seq)
{
    return seq->nids - seq->nprompt;
}


/* Whether the text has its greatest length. */
static int
decode_is_full(const core_seq_t *seq)
{
    const core_job_t  *job;

    job = seq->job;

    return (job->max_tokens > 0 && decode_generated(seq) >= job->max_tokens)
           || seq->nids >= seq->generator->core.facts.context;
}


/* Samples the token after all ids. */
static void
decode_sample(core_seq_t *seq, const float *logits)
{
    generator_t       *g;
    core_event_t       event;
    sample_input_t     input;
    const core_job_t  *job;

    g = seq->generator;
    job = seq->job;

    memset(&event, 0, sizeof(event));
    memset(&input, 0, sizeof(input));
    input.logits = logits;
    input.before = (const uint32_t *) seq->ids;
    input.nbefore = seq->nids;
    input.position = decode_generated(seq);

    if (job->is_endless || input.position < job->min_tokens) {
        input.banned = g->ends;
        input.nbanned = g->nends;
    }

    event.kind = CORE_TOKEN;
    event.id = sample_token(&job->sample, &g->room, &input);

    if (llama_vocab_is_eog(g->vocab, (llama_token) event.id)
        && !job->is_endless)
    {
        decode_end(seq, CORE_STOP);
        return;
    }

    if (job->sample.is_logprobs) {
        sample_logprobs(&job->sample, &g->room, input.logits, event.id,
                        &event.logprobs);
    }

    seq->ids[seq->nids++] = (llama_token) event.id;
    worker_event(seq, &event);

    if (decode_is_full(seq)) {
        decode_end(seq, CORE_LENGTH);
    }
}


void
decode_computed(core_seq_t *seq, const float *logits)
{
    seq->state = SEQ_RUNNING;
    decode_sample(seq, logits);
}


/* Computes the next chunk of one prompt. */
static void
decode_prefill(core_seq_t *seq)
{
    uint32_t  to;

    if (decode_is_full(seq)) {
        decode_end(seq, CORE_LENGTH);
        return;
    }

    to = seq->ndecoded + seq->way->chunk_rows(seq->generator);
    seq->way->chunk(seq, to < seq->nids ? to : seq->nids);
}


/* Whether a sequence in this state can have a token: it needs room for two
   events, since a last event may follow at once. */
static int
decode_may(core_seq_t *seq, seq_state_t state)
{
    int  has_room;

    if (seq == NULL || seq->state != state || !seq->way->may(seq)) {
        return 0;
    }

    pthread_mutex_lock(&seq->generator->core.lock);
    has_room = seq->nevents + 2 <= CORE_EVENTS_MAX;
    pthread_mutex_unlock(&seq->generator->core.lock);

    return has_room;
}


/* The next sequence, in turn, whose prompt is not decoded yet. */
static core_seq_t *
decode_next_prefill(generator_t *g)
{
    uint32_t     i, place;
    core_seq_t  *seq;

    for (i = 0; i < g->core.options.sequences; i++) {
        place = (g->turn + i) % g->core.options.sequences;
        seq = g->places[place];

        if (decode_may(seq, SEQ_PREFILL)) {
            g->turn = place + 1;
            return seq;
        }
    }

    return NULL;
}


/* Computes one token of each running sequence.  Returns their number. */
static uint32_t
decode_running(generator_t *g)
{
    uint32_t     i, total;
    core_seq_t  *seq;

    total = 0;

    for (i = 0; i < g->core.options.sequences; i++) {
        seq = g->places[i];

        if (decode_may(seq, SEQ_RUNNING)) {
            seq->way->row(seq);
            total++;
        }
    }

    local_flush(g);

    return total;
}


int
decode_step(generator_t *g)
{
    int          has_answers;
    core_seq_t  *seq;

    has_answers = g->core.options.is_head && remote_collect(g);
    seq = decode_next_prefill(g);

    if (seq != NULL) {
        decode_prefill(seq);

        if (seq->state != SEQ_PREFILL) {    /* a first token does not wait */
            g->core.options.notify(g->core.options.data);
        }
    }

    return decode_running(g) > 0 || seq != NULL || has_answers;
}


/*
 * Rows that shards compute: steps out, answers in.
 *
 * A step is queued by the core's thread and taken by the replica's, which
 * brings its answer.  The replica's thread requests changes of a sequence by
 * its fields under the lock; the core's thread looks at them once a step, in
 * this order:
 *
 *   logits    sample; a token that was computed is never computed again
 *   is_lost   all ids again, by the fallback; or the end
 *   is_again  all ids again, as steps
 *
 * From rewind() or lose() to that look a sequence queues nothing, so a step
 * is of one attempt only, and its answer belongs to it.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


/* --- the core's thread */

static int
remote_may(core_seq_t *seq)
{
    int  may;

    pthread_mutex_lock(&seq->generator->core.lock);
    may = seq->naway < CORE_STEPS_MAX;
    pthread_mutex_unlock(&seq->generator->core.lock);

    return may;
}


static uint32_t
remote_chunk_rows(const generator_t *g)
{
    return CORE_ROWS_MAX;
}


/* The number of positions that the sequence will need at most. */
static uint32_t
remote_expected(const core_seq_t *seq)
{
    uint64_t  most;

    most = (uint64_t) seq->nprompt + seq->job->max_tokens;

    return seq->job->max_tokens > 0 && most < seq->generator->core.facts.context
           ? (uint32_t) most : seq->generator->core.facts.context;
}


/* A step of these rows; NULL: out of memory. */
static remote_step_t *
remote_make(core_seq_t *seq, uint32_t to)
{
    generator_t    *g;
    core_step_t    *step;
    remote_step_t  *made;

    g = seq->generator;
    made = calloc(1, sizeof(remote_step_t));

    if (made == NULL) {
        return NULL;
    }

    step = &made->step;
    step->seq = seq;
    step->data = seq->job->data;
    step->name = seq->name;
    step->expected = remote_expected(seq);
    step->position = seq->ndecoded;
    step->rows = to - seq->ndecoded;
    step->logits_rows = (to == seq->nids);
    step->embeddings = malloc((size_t) step->rows * g->core.facts.width
                              * sizeof(float));

    if (step->embeddings == NULL) {
        free(made);
        return NULL;
    }

    head_embed(g, seq->ids + step->position, step->rows,
               step->embeddings);

    return made;
}


static void
remote_free(remote_step_t *step)
{
    free(step->step.embeddings);
    free(step);
}


/* Allocates room for logits, before any can come. */
static int
remote_make_room(core_seq_t *seq)
{
    if (seq->logits == NULL) {
        seq->logits = malloc(seq->generator->room.n * sizeof(float));
    }

    return seq->logits != NULL ? 0 : -1;
}


static void
remote_chunk(core_seq_t *seq, uint32_t to)
{
    generator_t    *g;
    remote_step_t  *step;

    g = seq->generator;
    step = remote_make_room(seq) == 0 ? remote_make(seq, to) : NULL;

    if (step == NULL) {
        decode_end(seq, CORE_FAILED);
        return;
    }

    seq->ndecoded = to;
    seq->state = to == seq->nids ? SEQ_SENT : SEQ_PREFILL;

    pthread_mutex_lock(&g->core.lock);

    if (seq->is_released || seq->is_again || seq->is_lost) {
        remote_free(step);

    } else {
        *g->last_step = step;
        g->last_step = &step->next;
        seq->naway++;
    }

    pthread_mutex_unlock(&g->core.lock);
}


static void
remote_row(core_seq_t *seq)
{
    remote_chunk(seq, seq->nids);
}


static void
remote_leave(core_seq_t *seq)
{
    /* Nothing is to be done here: the flow ends the sessions at shards. */
}


const way_t  way_remote = {
    .may = remote_may,
    .chunk_rows = remote_chunk_rows,
    .chunk = remote_chunk,
    .row = remote_row,
    .leave = remote_leave
};


/* Does what was requested for the sequence since the last look.  0: nothing
   was. */
static int
remote_look(core_seq_t *seq)
{
    int           has_logits, is_again, is_lost;
    generator_t  *g;

    g = seq->generator;

    pthread_mutex_lock(&g->core.lock);
    has_logits = seq->has_logits;
    is_again = seq->is_again;
    is_lost = seq->is_lost;
    seq->has_logits = 0;
    seq->is_again = 0;
    seq->is_lost = 0;
    g->core.load.fallbacks += is_lost && g->core.context != NULL;
    pthread_mutex_unlock(&g->core.lock);

    if (has_logits && seq->state == SEQ_SENT) {
        decode_computed(seq, seq->logits);
    }

    if (seq->state == SEQ_ENDED || (!is_lost && !is_again)) {
        return has_logits;
    }

    if (is_lost && g->core.context == NULL) {
        decode_lost(seq);

    } else {
        decode_again(seq, is_lost ? &way_local : &way_remote);
    }

    return 1;
}


int
remote_collect(generator_t *g)
{
    int          has_any;
    uint32_t     i;
    core_seq_t  *seq;

    has_any = 0;

    for (i = 0; i < g->core.options.sequences; i++) {
        seq = g->places[i];

        if (seq != NULL && seq->way == &way_remote) {
            has_any |= remote_look(seq);
        }
    }

    return has_any;
}


/* --- under the lock */

void
remote_drop(core_seq_t *seq)
{
    generator_t    *g;
    remote_step_t  *step, **link;

    g = seq->generator;

    for (link = &g->steps; (step = *link) != NULL; /* void */) {
        if (step->step.seq != seq) {
            link = &step->next;
            continue;
        }

        *link = step->next;
        remote_free(step);
    }

    g->last_step = link;
    seq->naway = 0;
    seq->nanswered = 0;
}


/* --- the replica's thread */

int
remote_take(core_t *core, core_step_t *out)
{
    generator_t    *g;
    remote_step_t  *step;

    g = generator_of(core);

    pthread_mutex_lock(&core->lock);
    step = g->steps;

    if (step != NULL) {
        g->steps = step->next;

        if (g->steps == NULL) {
            g->last_step = &g->steps;
        }
    }

    pthread_mutex_unlock(&core->lock);

    if (step == NULL) {
        return -1;
    }

    *out = step->step;
    free(step);

    return 0;
}


void
remote_give(core_seq_t *seq, uint32_t position, uint32_t rows,
    const float *logits)
{
    generator_t  *g;

    g = seq->generator;

    /* The core's thread reads them after has_logits, and never twice. */

    if (logits != NULL) {
        memcpy(seq->logits, logits, g->room.n * sizeof(float));
    }

    pthread_mutex_lock(&g->core.lock);
    assert(seq->naway > 0 && position == seq->nanswered);
    seq->naway--;
    seq->nanswered += rows;
    seq->has_logits = (logits != NULL);
    worker_call(g);
    pthread_mutex_unlock(&g->core.lock);
}


void
remote_rewind(core_seq_t *seq)
{
    pthread_mutex_lock(&seq->generator->core.lock);
    remote_drop(seq);
    seq->is_again = 1;
    worker_call(seq->generator);
    pthread_mutex_unlock(&seq->generator->core.lock);
}


void
remote_lose(core_seq_t *seq, const char *reason, const char *text)
{
    pthread_mutex_lock(&seq->generator->core.lock);
    remote_drop(seq);
    seq->is_lost = 1;
    snprintf(seq->reason, sizeof(seq->reason), "%s", reason);
    snprintf(seq->text, sizeof(seq->text), "%s", text);
    worker_call(seq->generator);
    pthread_mutex_unlock(&seq->generator->core.lock);
}

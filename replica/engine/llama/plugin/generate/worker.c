
/*
 * A READY generator: places for sequences in the order in which they came, and
 * decoding while there is anything to decode.
 *
 *   WAITING --place, prompt--> PREFILL --all decoded--> RUNNING --> ENDED
 *
 * A sequence leaves its place when it has ended or was released, whatever its
 * state; it is freed when it was released.
 */

#include <stdlib.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


void
worker_call(generator_t *g)
{
    g->has_news = 1;
    pthread_cond_signal(&g->core.work);
}


void
worker_event(core_seq_t *seq, const core_event_t *event)
{
    generator_t  *g;
    uint32_t      at;

    g = seq->generator;

    pthread_mutex_lock(&g->core.lock);
    at = (seq->first_event + seq->nevents) % CORE_EVENTS_MAX;
    seq->events[at] = *event;
    seq->nevents++;
    pthread_mutex_unlock(&g->core.lock);
}


static void
worker_free(core_seq_t *seq)
{
    seq->job->free(seq->job);
    free(seq->ids);
    free(seq->logits);
    free(seq);
}


static void
worker_leave(core_seq_t *seq)
{
    if (seq->place < 0) {
        return;
    }

    seq->way->leave(seq);
    seq->generator->places[seq->place] = NULL;
    seq->place = -1;
}


/* Under the lock: frees sequences that were released, and the places of those
   that have ended. */
static void
worker_reap(generator_t *g)
{
    core_seq_t  *seq, **link;

    for (link = &g->seqs; (seq = *link) != NULL; /* void */) {
        if (seq->state == SEQ_ENDED || seq->is_released) {
            worker_leave(seq);
        }

        if (seq->is_released) {
            *link = seq->next;
            worker_free(seq);
            continue;
        }

        link = &seq->next;
    }
}


/* Under the lock: the first waiting sequence, if there is a place for it. */
static core_seq_t *
worker_place(generator_t *g)
{
    uint32_t     i;
    core_seq_t  *seq;

    for (seq = g->seqs; seq != NULL; seq = seq->next) {
        if (seq->state == SEQ_WAITING) {
            break;
        }
    }

    if (seq == NULL) {
        return NULL;
    }

    for (i = 0; i < g->core.options.sequences; i++) {
        if (g->places[i] == NULL) {
            g->places[i] = seq;
            seq->place = (int32_t) i;
            return seq;
        }
    }

    return NULL;
}


/* Under the lock. */
static void
worker_measure(generator_t *g)
{
    uint64_t           cells;
    core_load_t       *load;
    const core_seq_t  *seq;

    load = &g->core.load;
    load->running = 0;
    load->waiting = 0;
    load->away = 0;
    cells = 0;

    for (seq = g->seqs; seq != NULL; seq = seq->next) {
        load->running += (seq->place >= 0);
        load->waiting += (seq->state == SEQ_WAITING && seq->place < 0);
        load->away += seq->naway;
        cells += seq->place >= 0 ? seq->ndecoded : 0;
    }

    load->kv_permille = (uint32_t) (cells * 1000 / g->core.facts.context
                                    / g->core.options.sequences);
}


static void
worker_begin(core_seq_t *seq)
{
    core_event_t  event;

    seq->state = prompt_make(seq, &event) == 0 ? SEQ_PREFILL : SEQ_ENDED;
    worker_event(seq, &event);
}


int
worker_has_work(core_t *core)
{
    int           is_busy;
    generator_t  *g;

    g = generator_of(core);
    is_busy = g->is_busy;
    g->is_busy = 0;
    core->load.steps += (uint64_t) is_busy;

    worker_reap(g);
    g->fresh = worker_place(g);
    worker_measure(g);

    is_busy |= g->has_news || g->fresh != NULL;
    g->has_news = 0;

    return is_busy;
}


void
worker_work(core_t *core)
{
    generator_t  *g;

    g = generator_of(core);

    if (g->fresh != NULL) {
        worker_begin(g->fresh);
    }

    g->is_busy = decode_step(g) || g->fresh != NULL;

    if (g->is_busy) {
        core->options.notify(core->options.data);
    }
}


void
worker_done(generator_t *g)
{
    core_seq_t  *seq;

    while ((seq = g->seqs) != NULL) {
        g->seqs = seq->next;
        remote_drop(seq);
        worker_free(seq);
    }
}


/*
 * The core's thread: loads the model, sleeps if it stands by, then gives places
 * to sequences in the order in which they came, and decodes while there is
 * anything to decode.
 *
 *   WAITING --place, prompt--> PREFILL --all decoded--> RUNNING --> ENDED
 *
 * A sequence leaves its place when it has ended or was released, whatever its
 * state; it is freed when it was released.  The lock is never held while
 * libllama computes.
 */

#include <stdlib.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


static void
worker_notify(const core_t *core)
{
    core->options.notify(core->options.data);
}


void
worker_call(core_t *core)
{
    core->has_news = 1;
    pthread_cond_signal(&core->work);
}


void
worker_event(core_seq_t *seq, const core_event_t *event)
{
    core_t    *core;
    uint32_t   at;

    core = seq->core;

    pthread_mutex_lock(&core->lock);
    at = (seq->first_event + seq->nevents) % CORE_EVENTS_MAX;
    seq->events[at] = *event;
    seq->nevents++;
    pthread_mutex_unlock(&core->lock);
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
    seq->core->places[seq->place] = NULL;
    seq->place = -1;
}


/* Under the lock: frees what was released, empties places that have ended. */
static void
worker_reap(core_t *core)
{
    core_seq_t  *seq, **link;

    for (link = &core->seqs; (seq = *link) != NULL; /* void */) {
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


/* Under the lock: the first that waits, if there is a place. */
static core_seq_t *
worker_place(core_t *core)
{
    uint32_t     i;
    core_seq_t  *seq;

    for (seq = core->seqs; seq != NULL; seq = seq->next) {
        if (seq->state == SEQ_WAITING) {
            break;
        }
    }

    if (seq == NULL) {
        return NULL;
    }

    for (i = 0; i < core->options.sequences; i++) {
        if (core->places[i] == NULL) {
            core->places[i] = seq;
            seq->place = (int32_t) i;
            return seq;
        }
    }

    return NULL;
}


/* Under the lock. */
static void
worker_measure(core_t *core)
{
    uint64_t           cells;
    core_load_t       *load;
    const core_seq_t  *seq;

    load = &core->load;
    load->running = 0;
    load->waiting = 0;
    load->away = 0;
    cells = 0;

    for (seq = core->seqs; seq != NULL; seq = seq->next) {
        load->running += (seq->place >= 0);
        load->waiting += (seq->state == SEQ_WAITING && seq->place < 0);
        load->away += seq->naway;
        cells += seq->place >= 0 ? seq->ndecoded : 0;
    }

    load->kv_permille = (uint32_t) (cells * 1000 / core->facts.context
                                    / core->options.sequences);
}


static void
worker_begin(core_seq_t *seq)
{
    core_event_t  event;

    seq->state = prompt_make(seq, &event) == 0 ? SEQ_PREFILL : SEQ_ENDED;
    worker_event(seq, &event);
}


/* Returns when there may be something to do; -1: the core is closing. */
static int
worker_wait(core_t *core, int is_busy, core_seq_t **fresh)
{
    pthread_mutex_lock(&core->lock);
    core->load.steps += (uint64_t) is_busy;

    for ( ;; ) {
        worker_reap(core);
        *fresh = worker_place(core);
        worker_measure(core);

        if (is_busy || core->has_news || *fresh != NULL
            || atomic_load(&core->is_stopping))
        {
            break;
        }

        pthread_cond_wait(&core->work, &core->lock);
    }

    core->has_news = 0;
    pthread_mutex_unlock(&core->lock);

    return atomic_load(&core->is_stopping) ? -1 : 0;
}


static void
worker_serve(core_t *core)
{
    int          is_busy;
    core_seq_t  *fresh;

    is_busy = 0;

    while (worker_wait(core, is_busy, &fresh) == 0) {
        if (fresh != NULL) {
            worker_begin(fresh);
        }

        is_busy = decode_step(core) || fresh != NULL;

        if (is_busy) {
            worker_notify(core);
        }
    }
}


static void
worker_end_all(core_t *core)
{
    core_seq_t  *seq;

    while ((seq = core->seqs) != NULL) {
        core->seqs = seq->next;
        remote_drop(seq);
        worker_free(seq);
    }
}


static void
worker_tell(core_t *core, core_state_t state)
{
    pthread_mutex_lock(&core->lock);
    core->state = state;
    pthread_mutex_unlock(&core->lock);

    worker_notify(core);
}


/* Until generate_wake(); -1: the core is closing. */
static int
worker_await(core_t *core)
{
    pthread_mutex_lock(&core->lock);

    while (!core->is_called && !atomic_load(&core->is_stopping)) {
        pthread_cond_wait(&core->work, &core->lock);
    }

    core->is_called = 0;
    pthread_mutex_unlock(&core->lock);

    return atomic_load(&core->is_stopping) ? -1 : 0;
}


static int
worker_time(core_t *core, int (*step)(core_t *core), uint32_t *ms)
{
    int      rc;
    int64_t  start_us;

    start_us = llama_time_us();
    rc = step(core);
    *ms = (uint32_t) ((llama_time_us() - start_us) / 1000);

    return rc;
}


/* 0 once it can serve. */
static int
worker_load(core_t *core)
{
    if (core->options.is_deferred && worker_await(core) != 0) {
        return -1;
    }

    if (worker_time(core, model_load, &core->facts.load_ms) != 0) {
        return -1;
    }

    if (!core->options.is_standby) {
        return 0;
    }

    worker_tell(core, CORE_ASLEEP);

    if (worker_await(core) != 0) {
        return -1;
    }

    return worker_time(core, model_wake, &core->facts.wake_ms);
}


void *
worker_run(void *data)
{
    int      rc;
    core_t  *core;

    core = data;
    rc = worker_load(core);
    worker_tell(core, rc == 0 ? CORE_READY : CORE_BROKEN);

    if (rc == 0) {
        worker_serve(core);
    }

    worker_end_all(core);
    model_free(core);

    return NULL;
}

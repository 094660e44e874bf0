
/*
 * What the replica calls: each function of core.h's table.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/parts.h"
#include "replica/engine/llama/plugin/generate/generate_inner.h"


static int
generate_check(const core_options_t *o, char error[CORE_ERROR_BYTES])
{
    if (o->sequences < 1 || o->sequences > CORE_SEQUENCES_MAX) {
        snprintf(error, CORE_ERROR_BYTES, "%u sequences, not from 1 to %d",
                 o->sequences, CORE_SEQUENCES_MAX);
        return -1;
    }

    if (!o->is_deferred && access(o->file, R_OK) != 0) {
        snprintf(error, CORE_ERROR_BYTES, "cannot open \"%.200s\": %m",
                 o->file);
        return -1;
    }

    return 0;
}


static void
generate_free(core_t *core)
{
    pthread_mutex_destroy(&core->lock);
    pthread_cond_destroy(&core->work);
    parts_free(core->parts, core->nparts);
    free(core->file);
    free(core->cpu);
    free(core);
}


static core_t *
generate_open(const core_options_t *options, char error[CORE_ERROR_BYTES])
{
    int          has_parts;
    core_t      *core;
    const char  *model;

    if (generate_check(options, error) != 0) {
        return NULL;
    }

    core = calloc(1, sizeof(core_t));

    if (core == NULL) {
        snprintf(error, CORE_ERROR_BYTES, "out of memory");
        return NULL;
    }

    core->options = *options;
    core->state = options->is_deferred ? CORE_WAITING : CORE_STARTING;
    core->last_step = &core->steps;
    core->file = strdup(options->file);
    core->cpu = options->cpu != NULL ? strdup(options->cpu) : NULL;
    pthread_mutex_init(&core->lock, NULL);
    pthread_cond_init(&core->work, NULL);

    model = options->is_head ? options->fallback : options->file;
    has_parts = !options->is_deferred && model != NULL;

    if (has_parts) {
        core->parts = parts_list(model, &core->nparts);
    }

    if (core->file == NULL || (options->cpu != NULL && core->cpu == NULL)
        || (has_parts && core->parts == NULL)
        || pthread_create(&core->thread, NULL, worker_run, core) != 0)
    {
        snprintf(error, CORE_ERROR_BYTES, "no memory for a thread");
        generate_free(core);
        return NULL;
    }

    return core;
}


static char **
generate_copy(const char *const *files, size_t n)
{
    size_t   i;
    char   **parts;

    parts = calloc(n, sizeof(char *));

    for (i = 0; parts != NULL && i < n; i++) {
        parts[i] = strdup(files[i]);

        if (parts[i] == NULL) {
            parts_free(parts, i);
            return NULL;
        }
    }

    return parts;
}


static int
generate_wake(core_t *core, const char *const *files, size_t n)
{
    char  **parts;

    parts = n > 0 ? generate_copy(files, n) : NULL;

    if (n > 0 && parts == NULL) {
        return -1;
    }

    pthread_mutex_lock(&core->lock);

    if (n > 0) {
        parts_free(core->parts, core->nparts);
        core->parts = parts;
        core->nparts = n;
    }

    core->is_called = 1;
    core->state = core->state == CORE_ASLEEP ? CORE_LOADING : CORE_STARTING;
    pthread_cond_signal(&core->work);
    pthread_mutex_unlock(&core->lock);

    return 0;
}


static void
generate_close(core_t *core)
{
    atomic_store(&core->is_stopping, 1);

    pthread_mutex_lock(&core->lock);
    pthread_cond_signal(&core->work);
    pthread_mutex_unlock(&core->lock);

    pthread_join(core->thread, NULL);
    generate_free(core);
}


static core_state_t
generate_state(core_t *core, core_facts_t *facts)
{
    core_state_t  state;

    pthread_mutex_lock(&core->lock);
    state = core->state;
    pthread_mutex_unlock(&core->lock);

    if (state == CORE_ASLEEP || state >= CORE_READY) {
        *facts = core->facts;
    }

    return state;
}


static void
generate_load(core_t *core, core_load_t *load)
{
    pthread_mutex_lock(&core->lock);
    *load = core->load;
    pthread_mutex_unlock(&core->lock);
}


static core_seq_t *
generate_submit(core_t *core, core_job_t *job)
{
    core_seq_t  *seq, **link;

    seq = calloc(1, sizeof(core_seq_t));

    if (seq == NULL) {
        job->free(job);
        return NULL;
    }

    seq->core = core;
    seq->job = job;
    seq->place = -1;
    seq->way = core->options.is_head ? &way_remote : &way_local;

    pthread_mutex_lock(&core->lock);

    for (link = &core->seqs; *link != NULL; link = &(*link)->next) {
        /* void */
    }

    *link = seq;
    core->load.waiting++;
    worker_call(core);
    pthread_mutex_unlock(&core->lock);

    return seq;
}


static int
generate_take(core_seq_t *seq, core_event_t *event)
{
    int      rc;
    core_t  *core;

    core = seq->core;
    rc = -1;

    pthread_mutex_lock(&core->lock);

    if (seq->nevents > 0) {
        *event = seq->events[seq->first_event];
        seq->first_event = (seq->first_event + 1) % CORE_EVENTS_MAX;
        rc = 0;

        /* One that had paused runs again. */

        if (seq->nevents-- == CORE_EVENTS_MAX / 2) {
            worker_call(core);
        }
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static void
generate_release(core_seq_t *seq)
{
    core_t  *core;

    core = seq->core;

    pthread_mutex_lock(&core->lock);
    seq->is_released = 1;
    remote_drop(seq);
    worker_call(core);
    pthread_mutex_unlock(&core->lock);
}


static size_t
generate_piece(core_t *core, uint32_t id, char *buf, size_t size)
{
    int32_t  n;

    if (id >= core->room.n) {
        return 0;
    }

    n = llama_token_to_piece(core->vocab, (llama_token) id, buf,
                             (int32_t) size, 0, false);

    return n > 0 ? (size_t) n : 0;
}


static const core_plugin_t  generate_table = {
    .abi = CORE_ABI,
    .open = generate_open,
    .wake = generate_wake,
    .close = generate_close,
    .state = generate_state,
    .load = generate_load,
    .submit = generate_submit,
    .take = generate_take,
    .release = generate_release,
    .piece = generate_piece,
    .take_step = remote_take,
    .give = remote_give,
    .rewind = remote_rewind,
    .lose = remote_lose
};


__attribute__((visibility("default")))
const core_plugin_t *
llmgw_engine_llama(void)
{
    return &generate_table;
}


/*
 * What the replica calls: the table of core.h, and what its core does in each
 * state.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/parts.h"
#include "replica/engine/llama/plugin/generate/generate_inner.h"


/* Stores the names of the files that start() loads, unless they come with
   wake(). */
static int
generate_init(core_t *core)
{
    const char            *model;
    generator_t           *g;
    const core_options_t  *o;

    g = generator_of(core);
    o = &core->options;
    model = o->is_head ? o->fallback : o->file;
    g->last_step = &g->steps;

    if (!o->is_deferred && model != NULL) {
        g->parts = parts_list(model, &g->nparts);
    }

    return o->is_deferred || model == NULL || g->parts != NULL ? 0 : -1;
}


static void
generate_done(core_t *core)
{
    generator_t  *g;

    g = generator_of(core);
    worker_done(g);
    model_done(g);
    parts_free(g->parts, g->nparts);
}


static const core_ops_t  generate_ops = {
    .bytes = sizeof(generator_t),
    .sequences = "sequences",
    .init = generate_init,
    .start = model_start,
    .load = model_load,
    .has_work = worker_has_work,
    .work = worker_work,
    .done = generate_done
};


static core_t *
generate_open(const core_options_t *options, char error[CORE_ERROR_BYTES])
{
    return thread_open(&generate_ops, options, error);
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
    int           rc;
    char        **parts;
    generator_t  *g;

    g = generator_of(core);
    parts = n > 0 ? generate_copy(files, n) : NULL;

    if (n > 0 && parts == NULL) {
        return -1;
    }

    pthread_mutex_lock(&core->lock);
    rc = thread_wake(core);

    if (rc == 0 && n > 0) {
        parts_free(g->parts, g->nparts);
        g->parts = parts;
        g->nparts = n;
        parts = NULL;
    }

    pthread_mutex_unlock(&core->lock);
    parts_free(parts, parts != NULL ? n : 0);

    return rc;
}


static core_seq_t *
generate_submit(core_t *core, core_job_t *job)
{
    core_seq_t   *seq, **link;
    generator_t  *g;

    g = generator_of(core);
    seq = calloc(1, sizeof(core_seq_t));

    if (seq == NULL) {
        job->free(job);
        return NULL;
    }

    seq->generator = g;
    seq->job = job;
    seq->place = -1;
    seq->way = core->options.is_head ? &way_remote : &way_local;

    pthread_mutex_lock(&core->lock);

    for (link = &g->seqs; *link != NULL; link = &(*link)->next) {
        /* void */
    }

    *link = seq;
    core->load.waiting++;
    worker_call(g);
    pthread_mutex_unlock(&core->lock);

    return seq;
}


static int
generate_take(core_seq_t *seq, core_event_t *event)
{
    int           rc;
    generator_t  *g;

    g = seq->generator;
    rc = -1;

    pthread_mutex_lock(&g->core.lock);

    if (seq->nevents > 0) {
        *event = seq->events[seq->first_event];
        seq->first_event = (seq->first_event + 1) % CORE_EVENTS_MAX;
        rc = 0;

        /* A sequence that had paused runs again. */

        if (seq->nevents-- == CORE_EVENTS_MAX / 2) {
            worker_call(g);
        }
    }

    pthread_mutex_unlock(&g->core.lock);

    return rc;
}


static void
generate_release(core_seq_t *seq)
{
    generator_t  *g;

    g = seq->generator;

    pthread_mutex_lock(&g->core.lock);
    seq->is_released = 1;
    remote_drop(seq);
    worker_call(g);
    pthread_mutex_unlock(&g->core.lock);
}


static size_t
generate_piece(core_t *core, uint32_t id, char *buf, size_t size)
{
    int32_t       n;
    generator_t  *g;

    g = generator_of(core);

    if (id >= g->room.n) {
        return 0;
    }

    n = llama_token_to_piece(g->vocab, (llama_token) id, buf,
                             (int32_t) size, 0, false);

    return n > 0 ? (size_t) n : 0;
}


static const core_plugin_t  generate_table = {
    .abi = CORE_ABI,
    .open = generate_open,
    .wake = generate_wake,
    .close = thread_close,
    .state = thread_state,
    .load = thread_load,
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

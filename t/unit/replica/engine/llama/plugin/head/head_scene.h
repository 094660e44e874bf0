
/*
 * A core with a head, a core with the whole model, and a computer of the
 * head's rows: libllama over the whole model, which takes the embeddings that
 * the core gives out, and has a sequence of its context for each stream.
 *
 * The files are made once a program, in a folder of their own.
 */

#ifndef HEAD_SCENE_H
#define HEAD_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <llama.h>
#include <pthread.h>
#include <time.h>

#include "replica/engine/llama/core.h"
#include "replica/engine/llama/plugin/profile.h"
#include "slice/cut.h"


#define LAYERS   4
#define CONTEXT  512
#define STREAMS  3
#define TOKENS   24             /* to be generated */
#define WAIT_S   60             /* far more than anything takes */


/* --- files */

static char  folder[64];
static char  model_path[128], head_path[128], other_path[128];


static void
files_write_model(const char *path, int seed)
{
    char  command[512];

    snprintf(command, sizeof(command), "/usr/bin/python3 -c \"import sys; "
             "sys.path.insert(0, 't'); from llmgw.model import gguf; "
             "gguf.write('%s', "
             "layers=%d, seed=%d, context=%d)\"", path, LAYERS, seed,
             CONTEXT);
    assert_int_equal(system(command), 0);
}


static int
files_make(void **state)
{
    char     error[SLICED_ERROR_BYTES];
    cut_t    cut;
    whole_t  whole;

    snprintf(folder, sizeof(folder), "/tmp/llmgw-head-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(model_path, sizeof(model_path), "%s/model.gguf", folder);
    snprintf(other_path, sizeof(other_path), "%s/other.gguf", folder);
    snprintf(head_path, sizeof(head_path), "%s/head.gguf", folder);
    files_write_model(model_path, 1);
    files_write_model(other_path, 2);

    assert_int_equal(whole_open(&whole, model_path, "tiny", error), 0);
    assert_int_equal(whole_hash(&whole, NULL, error), 0);
    memset(&cut, 0, sizeof(cut));
    cut.kind = SLICED_HEAD;
    cut.path = head_path;
    assert_int_equal(cut_write(&whole, &cut, NULL, error), 0);
    whole_done(&whole);

    return 0;
}


static int
files_drop(void **state)
{
    char  command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);

    return system(command);
}


/* --- a core, and the events that it gave */

typedef struct stream_s  stream_t;

typedef struct {
    core_t           *core;
    core_facts_t      facts;
    pthread_mutex_t   lock;
    pthread_cond_t    is_told;
    int               has_news;
    stream_t         *watched;      /* its events are taken in notify() */
    uint32_t          most;         /* tokens that one notify() found */
} engine_t;

struct stream_s {
    core_seq_t         *seq;
    int                 place;              /* in the context that computes */
    uint32_t            ids[CONTEXT];
    sample_logprobs_t   logprobs[CONTEXT];
    uint32_t            n;
    core_event_t        last;
    int                 has_ended;
};

static const core_plugin_t  *plugin;


static void stream_take(stream_t *s);


static void
engine_on_notify(void *data)
{
    uint32_t   before;
    engine_t  *e;

    e = data;
    pthread_mutex_lock(&e->lock);

    if (e->watched != NULL) {
        before = e->watched->n;
        stream_take(e->watched);
        e->most = e->watched->n - before > e->most ? e->watched->n - before
                                                   : e->most;
    }

    e->has_news = 1;
    pthread_cond_signal(&e->is_told);
    pthread_mutex_unlock(&e->lock);
}


/* The lock is held. */
static void
engine_await_news(engine_t *e)
{
    struct timespec  until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;

    while (!e->has_news) {
        assert_int_equal(pthread_cond_timedwait(&e->is_told, &e->lock,
                                                &until), 0);
    }

    e->has_news = 0;
}


static void
engine_wait(engine_t *e)
{
    pthread_mutex_lock(&e->lock);
    engine_await_news(e);
    pthread_mutex_unlock(&e->lock);
}


static core_state_t
engine_open(engine_t *e, const char *head, const char *model)
{
    char            error[CORE_ERROR_BYTES];
    core_state_t    state;
    core_options_t  o;

    plugin = llmgw_engine_llama();
    memset(e, 0, sizeof(*e));
    memset(&o, 0, sizeof(o));
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->is_told, NULL);
    o.file = head != NULL ? head : model;
    o.is_head = (head != NULL);
    o.fallback = head != NULL ? model : NULL;
    o.sequences = STREAMS;
    o.threads = 1;
    o.is_exact = 1;
    o.notify = engine_on_notify;
    o.data = e;
    e->core = plugin->open(&o, error);
    assert_non_null(e->core);

    while ((state = plugin->state(e->core, &e->facts)) == CORE_STARTING
           || state == CORE_LOADING)
    {
        engine_wait(e);
    }

    return state;
}


static void
engine_open_ready(engine_t *e, const char *head, const char *model)
{
    if (engine_open(e, head, model) != CORE_READY) {
        fail_msg("%s", e->facts.error);
    }
}


static void
engine_close(engine_t *e)
{
    plugin->close(e->core);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->is_told);
}


static void
job_free(core_job_t *job)
{
    free(job->ids);
    free(job);
}


/* Each number is another way to choose tokens. */
static void
stream_begin_of(stream_t *s, engine_t *e, int which, size_t tokens)
{
    size_t       i;
    core_job_t  *job;

    memset(s, 0, sizeof(*s));
    s->place = which;
    job = calloc(1, sizeof(core_job_t));
    assert_non_null(job);
    job->nids = tokens;
    job->ids = malloc(job->nids * sizeof(uint32_t));

    for (i = 0; i < job->nids; i++) {
        job->ids[i] = (uint32_t) (i * 7919 + (size_t) which * 31 + 300) % 400;
    }

    job->max_tokens = TOKENS;
    job->is_endless = 1;
    job->sample.temperature = which == 0 ? 0 : 1;
    job->sample.top_p = 1;
    job->sample.repeat_penalty = 1.1f;
    job->sample.seed = 42 + (uint64_t) which;
    job->sample.is_logprobs = 1;
    job->sample.top = 3;
    job->data = s;
    job->free = job_free;
    s->seq = plugin->submit(e->core, job);
    assert_non_null(s->seq);
}


static void
stream_begin(stream_t *s, engine_t *e, int which)
{
    static const size_t  lengths[STREAMS] = { 5, 100, 33 };

    stream_begin_of(s, e, which, lengths[which]);
}


static void
stream_take(stream_t *s)
{
    core_event_t  event;

    while (plugin->take(s->seq, &event) == 0) {
        assert_false(s->has_ended);

        if (event.kind == CORE_TOKEN) {
            s->logprobs[s->n] = event.logprobs;
            s->ids[s->n++] = event.id;

        } else if (event.kind != CORE_PROMPT) {
            s->last = event;
            s->has_ended = 1;
        }
    }
}


/* What the engine `llama` gives, with which all else is compared. */
static stream_t  whole[STREAMS];


static void
whole_make(void)
{
    int       i;
    engine_t  e;

    if (whole[0].n > 0) {
        return;
    }

    engine_open_ready(&e, NULL, model_path);

    for (i = 0; i < STREAMS; i++) {
        stream_begin(&whole[i], &e, i);
    }

    for (i = 0; i < STREAMS; /* void */) {
        stream_take(&whole[i]);

        if (whole[i].has_ended) {
            plugin->release(whole[i].seq);
            i++;
            continue;
        }

        engine_wait(&e);
    }

    engine_close(&e);
}


static void
stream_check(const stream_t *s, int which)
{
    const stream_t  *w;

    w = &whole[which];
    assert_true(s->has_ended);
    assert_int_equal(s->last.kind, CORE_LENGTH);
    assert_int_equal(s->n, TOKENS);
    assert_memory_equal(s->ids, w->ids, sizeof(w->ids));
    assert_memory_equal(s->logprobs, w->logprobs, sizeof(w->logprobs));
}


/* --- the computer of rows */

typedef struct {
    struct llama_model    *model;
    struct llama_context  *context;
} computer_t;


static void
computer_make(computer_t *c)
{
    int                          is_stepwise;
    struct llama_model_params    model;
    struct llama_context_params  context;

    model = llama_model_default_params();
    model.use_extra_bufts = false;
    c->model = llama_model_load_from_file(model_path, model);
    assert_non_null(c->model);

    context = llama_context_default_params();
    context.n_ctx = CONTEXT * STREAMS;
    context.n_seq_max = STREAMS;
    context.n_threads = 1;
    context.n_threads_batch = 1;
    c->context = profile_open_context(c->model, context, &is_stepwise);
    assert_non_null(c->context);
}


static void
computer_drop(computer_t *c)
{
    llama_free(c->context);
    llama_model_free(c->model);
}


static void
computer_fill(struct llama_batch *b, const core_step_t *step, int place,
    uint32_t width)
{
    uint32_t  i;

    for (i = 0; i < step->rows; i++) {
        memcpy(b->embd + i * width, step->embeddings + i * width,
               width * sizeof(float));
        b->pos[i] = (llama_pos) (step->position + i);
        b->n_seq_id[i] = 1;
        b->seq_id[i][0] = place;
        b->logits[i] = i + step->logits_rows >= step->rows;
    }

    b->n_tokens = (int32_t) step->rows;
}


/* Returns the logits; NULL: none were asked for. */
static const float *
computer_step(computer_t *c, const core_step_t *step, uint32_t width)
{
    int                  place;
    struct llama_batch   b;

    place = ((const stream_t *) step->data)->place;
    assert_in_range(step->rows, 1, CORE_ROWS_MAX);

    if (step->position == 0) {
        (void) llama_memory_seq_rm(llama_get_memory(c->context), place, -1,
                                   -1);
    }

    b = llama_batch_init(CORE_ROWS_MAX, (int32_t) width, 1);
    computer_fill(&b, step, place, width);
    assert_int_equal(llama_decode(c->context, b), 0);
    llama_batch_free(b);

    return step->logits_rows == 0 ? NULL : llama_get_logits_ith(
        c->context, (int32_t) step->rows - 1);
}


static void
computer_answer(computer_t *c, engine_t *e, core_step_t *step)
{
    const float  *logits;

    logits = computer_step(c, step, e->facts.width);
    plugin->give(step->seq, step->position, step->rows, logits);
    free(step->embeddings);
}


/* Takes all streams as far as they come; returns 0 if no step was waiting. */
static int
computer_turn(computer_t *c, engine_t *e)
{
    core_step_t  step;

    if (plugin->take_step(e->core, &step) != 0) {
        return 0;
    }

    computer_answer(c, e, &step);

    return 1;
}


static void
computer_run(computer_t *c, engine_t *e, stream_t *streams, int n)
{
    int  i;

    for (i = 0; i < n; /* void */) {
        stream_take(&streams[i]);

        if (streams[i].has_ended) {
            i++;

        } else if (!computer_turn(c, e)) {
            engine_wait(e);
        }
    }
}


/* Takes the next step, and does not answer it; returns its stream. */
static stream_t *
engine_take_step(engine_t *e, core_step_t *step)
{
    while (plugin->take_step(e->core, step) != 0) {
        engine_wait(e);
    }

    free(step->embeddings);

    return step->data;
}

#endif /* HEAD_SCENE_H */

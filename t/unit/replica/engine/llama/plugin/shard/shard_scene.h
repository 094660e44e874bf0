
/*
 * Real slices of a small random model, which the plugin's own code computes
 * with libllama; and the whole model, computed as the engine `llama` does it:
 * from tokens, one a call.
 *
 * The model's files are made once a program, in a folder of their own.
 */

#ifndef SHARD_SCENE_H
#define SHARD_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <ggml-backend.h>
#include <llama.h>
#include <pthread.h>
#include <time.h>

#include "replica/engine/llama/plugin/profile.h"
#include "replica/engine/llama/shard_core.h"
#include "slice/cut.h"


#define LAYERS     8
#define WIDTH      128
#define POSITIONS  96
#define TEXTS      3            /* different texts, of POSITIONS tokens each */
#define CONTEXT    128
#define WAIT_S     60           /* far more than anything takes */
#define ROW_BYTES  (WIDTH * sizeof(float))

#define length(array)  (sizeof(array) / sizeof(array[0]))


/* --- the files */

typedef struct {
    char     folder[64];
    whole_t  whole;
} model_t;

/* options: those of gguf.write(). */
static inline void
model_make(model_t *m, const char *options)
{
    char  command[512], path[128], error[SLICED_ERROR_BYTES];

    memset(m, 0, sizeof(*m));
    snprintf(m->folder, sizeof(m->folder), "/tmp/llmgw-shard-XXXXXX");
    assert_non_null(mkdtemp(m->folder));
    snprintf(path, sizeof(path), "%s/model.gguf", m->folder);
    snprintf(command, sizeof(command), "/usr/bin/python3 -c \"import sys; "
             "sys.path.insert(0, 't'); from llmgw.model import gguf; "
             "gguf.write('%s', "
             "layers=%d, %s)\"", path, LAYERS, options);
    assert_int_equal(system(command), 0);
    assert_int_equal(whole_open(&m->whole, path, "tiny", error), 0);
    assert_int_equal(whole_hash(&m->whole, NULL, error), 0);
    assert_int_equal(m->whole.width, WIDTH);
}


static inline void
model_drop(model_t *m)
{
    char  command[128];

    whole_done(&m->whole);
    snprintf(command, sizeof(command), "rm -r %s", m->folder);
    assert_int_equal(system(command), 0);
}


/* The path of a slice, which is cut when it is first asked for. */
static inline const char *
model_slice(model_t *m, uint32_t first, uint32_t last)
{
    cut_t  cut;
    char   error[SLICED_ERROR_BYTES];

    static char  path[128];

    snprintf(path, sizeof(path), "%s/%u-%u.gguf", m->folder, first, last);
    memset(&cut, 0, sizeof(cut));
    cut.kind = SLICED_SLICE;
    cut.first_layer = first;
    cut.last_layer = last;
    cut.path = path;

    if (access(path, R_OK) != 0) {
        assert_int_equal(cut_write(&m->whole, &cut, NULL, error), 0);
    }

    return path;
}


/* --- cores */

typedef struct {
    core_t          *core;
    core_facts_t     facts;
    pthread_mutex_t  lock;
    pthread_cond_t   is_told;
    int              has_news;
    int              is_held;       /* the core's thread stops in notify() */
    pthread_cond_t   is_let;
} node_t;

static const shard_plugin_t  *plugin;


static inline void
node_on_notify(void *data)
{
    node_t  *node;

    node = data;
    pthread_mutex_lock(&node->lock);
    node->has_news = 1;
    pthread_cond_signal(&node->is_told);

    while (node->is_held) {
        pthread_cond_wait(&node->is_let, &node->lock);
    }

    pthread_mutex_unlock(&node->lock);
}


/* From now on the core's thread stops in notify(). */
static inline void
node_hold(node_t *node)
{
    pthread_mutex_lock(&node->lock);
    node->is_held = 1;
    node->has_news = 0;
    pthread_mutex_unlock(&node->lock);
}


static inline void
node_let(node_t *node)
{
    pthread_mutex_lock(&node->lock);
    node->is_held = 0;
    pthread_cond_signal(&node->is_let);
    pthread_mutex_unlock(&node->lock);
}


/* Waits until the core has an event. */
static inline void
node_wait(node_t *node)
{
    struct timespec  until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&node->lock);

    while (!node->has_news) {
        assert_int_equal(pthread_cond_timedwait(&node->is_told, &node->lock,
                                                &until), 0);
    }

    node->has_news = 0;
    pthread_mutex_unlock(&node->lock);
}


static inline core_state_t
node_state(node_t *node)
{
    return plugin->state(node->core, &node->facts);
}


static inline void
node_until(node_t *node, core_state_t state)
{
    while (node_state(node) != state) {
        if (node->facts.error[0] != '\0') {
            fail_msg("%s", node->facts.error);
        }

        node_wait(node);
    }
}


static inline core_options_t
node_options(node_t *node, const char *file, uint32_t sessions)
{
    core_options_t  o;

    memset(&o, 0, sizeof(o));
    o.file = file;
    o.sequences = sessions;
    o.threads = 1;
    o.notify = node_on_notify;
    o.data = node;

    return o;
}


static inline void
node_open_as(node_t *node, const core_options_t *options)
{
    char  error[CORE_ERROR_BYTES];

    plugin = llmgw_shard_llama();
    assert_int_equal(plugin->abi, SHARD_ABI);
    memset(node, 0, sizeof(*node));
    pthread_mutex_init(&node->lock, NULL);
    pthread_cond_init(&node->is_told, NULL);
    pthread_cond_init(&node->is_let, NULL);
    node->core = plugin->open(options, error);
    assert_non_null(node->core);
}


static inline void
node_open(node_t *node, model_t *m, uint32_t first, uint32_t last,
    uint32_t sessions)
{
    core_options_t  o;

    o = node_options(node, model_slice(m, first, last), sessions);
    node_open_as(node, &o);
    node_until(node, CORE_READY);
}


static inline void
node_close(node_t *node)
{
    plugin->close(node->core);
    pthread_mutex_destroy(&node->lock);
    pthread_cond_destroy(&node->is_told);
    pthread_cond_destroy(&node->is_let);
}


static inline uint32_t
node_begin(node_t *node, uint32_t last_layer)
{
    int  place;

    place = plugin->begin(node->core, last_layer);
    assert_true(place >= 0);

    return (uint32_t) place;
}


/*
 * Waits for the next step that is done; its STARTED came first, if it began.
 */
static inline shard_step_t *
node_take(node_t *node)
{
    shard_event_t  event;

    for ( ;; ) {
        if (plugin->take(node->core, &event) != 0) {
            node_wait(node);

        } else if (event.kind == SHARD_EVENT_DONE) {
            return event.step;
        }
    }
}


static inline void
step_fill(shard_step_t *step, uint32_t place, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const void *in, void *out)
{
    memset(step, 0, sizeof(*step));
    step->place = place;
    step->position = position;
    step->rows = rows;
    step->logits_rows = logits_rows;
    step->in = in;
    step->out = out;
}


/* Computes one step: submits it, and waits for it. */
static inline shard_status_t
node_step(node_t *node, uint32_t place, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const void *in, void *out)
{
    shard_step_t  step;

    step_fill(&step, place, position, rows, logits_rows, in, out);
    plugin->submit(node->core, &step);
    assert_ptr_equal(node_take(node), &step);

    return step.status;
}


/* --- the whole model */

typedef struct {
    uint32_t   vocabulary;
    float     *rows[LAYERS + 1];    /* at each boundary: all positions */
    float     *logits;
} text_t;

typedef struct {
    struct llama_model    *model;
    struct llama_context  *context;
    text_t                 texts[TEXTS];
    text_t                *text;    /* that is being computed */
    uint32_t               position;
} reference_t;


/*
 * Keeps the rows that enter a layer: embeddings, or what the layer before it
 * gives.
 */
static inline bool
reference_on_tensor(struct ggml_tensor *t, bool is_question, void *data)
{
    int           boundary;
    reference_t  *r;

    r = data;

    if (strcmp(t->name, "embd") == 0) {
        boundary = 0;

    } else if (strncmp(t->name, "l_out-", 6) == 0) {
        boundary = atoi(t->name + 6) + 1;

    } else {
        return is_question ? false : true;
    }

    if (!is_question) {
        assert_int_equal(t->ne[0], WIDTH);
        ggml_backend_tensor_get(t, r->text->rows[boundary]
                                   + r->position * WIDTH, 0, ROW_BYTES);
    }

    return true;
}


static inline llama_token
reference_token(uint32_t text, uint32_t position, uint32_t vocabulary)
{
    return (llama_token) ((position * 7919 + text * 104729 + 13) % vocabulary);
}


static inline void
reference_compute(reference_t *r, uint32_t index)
{
    uint32_t      i, vocabulary;
    llama_token   token;

    r->text = &r->texts[index];
    vocabulary = (uint32_t) llama_vocab_n_tokens(
        llama_model_get_vocab(r->model));
    r->text->vocabulary = vocabulary;
    r->text->logits = malloc(POSITIONS * vocabulary * sizeof(float));

    for (i = 0; i <= LAYERS; i++) {
        r->text->rows[i] = calloc(POSITIONS, ROW_BYTES);
    }

    llama_memory_clear(llama_get_memory(r->context), true);

    for (i = 0; i < POSITIONS; i++) {
        r->position = i;
        token = reference_token(index, i, vocabulary);
        assert_int_equal(llama_decode(r->context,
                                      llama_batch_get_one(&token, 1)), 0);
        memcpy(r->text->logits + i * vocabulary,
               llama_get_logits_ith(r->context, 0),
               vocabulary * sizeof(float));
    }
}


/* To be called after a core was opened, which loads ggml's code. */
static inline void
reference_make(reference_t *r, model_t *m)
{
    int                          is_stepwise;
    uint32_t                     i;
    struct llama_model_params    model;
    struct llama_context_params  context;

    memset(r, 0, sizeof(*r));
    model = llama_model_default_params();
    model.use_extra_bufts = false;
    r->model = llama_model_load_from_file(m->whole.paths[0], model);
    assert_non_null(r->model);

    context = llama_context_default_params();
    context.n_ctx = CONTEXT;
    context.n_threads = 1;
    context.n_threads_batch = 1;
    context.cb_eval = reference_on_tensor;
    context.cb_eval_user_data = r;
    r->context = profile_open_context(r->model, context, &is_stepwise);
    assert_non_null(r->context);

    for (i = 0; i < TEXTS; i++) {
        reference_compute(r, i);
    }
}


static inline void
reference_drop(reference_t *r)
{
    uint32_t  i, j;

    for (i = 0; i < TEXTS; i++) {
        for (j = 0; j <= LAYERS; j++) {
            free(r->texts[i].rows[j]);
        }

        free(r->texts[i].logits);
    }

    llama_free(r->context);
    llama_model_free(r->model);
}


static inline const float *
text_row(const text_t *text, uint32_t boundary, uint32_t position)
{
    return text->rows[boundary] + position * WIDTH;
}


static inline int
text_has_rows(const text_t *text, uint32_t boundary, uint32_t position,
    const void *rows, uint32_t n)
{
    return memcmp(text_row(text, boundary, position), rows, n * ROW_BYTES)
           == 0;
}


static inline int
text_has_logits(const text_t *text, uint32_t position, const float *logits,
    uint32_t n)
{
    return memcmp(text->logits + position * text->vocabulary, logits,
                  n * text->vocabulary * sizeof(float)) == 0;
}

#endif /* SHARD_SCENE_H */

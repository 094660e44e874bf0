
/*
 * What a slice is, and loading it, in the profile in which results are exact
 * (plugin/profile.h).
 *
 * The weights are compared with the manifest each time before libllama maps
 * them: a file may have been replaced since the last time.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/plugin/file.h"
#include "replica/engine/llama/plugin/profile.h"
#include "replica/engine/llama/plugin/shard/shard_inner.h"
#include "replica/engine/llama/plugin/shard_name.h"
#include "slice/tensors.h"


#define LOAD_KEY_BYTES     128
#define LOAD_CELLS_STEP    256          /* libllama rounds a context up */
#define LOAD_BLOCK         32           /* values of q8_0 in 34 bytes */
#define LOAD_BLOCK_BYTES   34

#define load_fail(core, ...)                                                  \
    (snprintf((core)->facts.error, CORE_ERROR_BYTES, __VA_ARGS__), -1)

_Static_assert(CORE_ERROR_BYTES == SLICED_ERROR_BYTES
               && CORE_ERROR_BYTES == TENSORS_ERROR_BYTES, "one error's room");
_Static_assert(CORE_NAME_BYTES == SLICED_NAME_BYTES, "one name's room");
_Static_assert(CORE_WEIGHTS_BYTES == MANIFEST_ID_BYTES, "one id's room");


/* --- facts */

static int
load_read_file(core_t *core)
{
    const sliced_t  *s;
    core_facts_t    *f;

    s = &core->sliced;
    f = &core->facts;

    if (sliced_read(&core->sliced, core->file, f->error) != 0) {
        return -1;
    }

    if (s->kind != SLICED_SLICE) {
        return load_fail(core, "\"%.180s\" is the head of a model: a shard "
                         "needs a slice", core->file);
    }

    memcpy(f->model, s->model, CORE_NAME_BYTES);
    memcpy(f->weights_id, s->weights_id, CORE_WEIGHTS_BYTES);
    f->first_layer = s->first_layer;
    f->last_layer = s->last_layer;
    f->layers = s->layers;
    f->width = s->width;
    f->vocabulary = s->has_output ? s->vocabulary : 0;
    f->norms = s->norms;
    core->last_layer = s->last_layer - s->first_layer;
    core->row_bytes = s->width * (core->options.is_fp16 ? sizeof(uint16_t)
                                                        : sizeof(float));

    return 0;
}


/* A fact "ARCHITECTURE.KEY", or what holds without it. */
static uint32_t
load_fact(const tensors_t *t, const char *key, uint32_t otherwise)
{
    char      whole[LOAD_KEY_BYTES];
    uint32_t  value;

    snprintf(whole, sizeof(whole), "%.64s.%.60s",
             tensors_text(t, "general.architecture"), key);

    return tensors_u32(t, whole, &value) == 0 ? value : otherwise;
}


/* Of one position in one layer: its key and its value.  Where a layer has a
   number of its own, as many heads as there are at most. */
static uint64_t
load_cell_bytes(const core_t *core, const tensors_t *t)
{
    uint64_t  heads, key, value;

    heads = load_fact(t, "attention.head_count", 1);
    key = load_fact(t, "attention.key_length",
                    (uint32_t) (core->facts.width / (heads ? heads : 1)));
    value = load_fact(t, "attention.value_length", (uint32_t) key);
    heads = load_fact(t, "attention.head_count_kv", (uint32_t) heads);

    if (key % LOAD_BLOCK == 0 && value % LOAD_BLOCK == 0) {
        return heads * (key + value) / LOAD_BLOCK * LOAD_BLOCK_BYTES;
    }

    return heads * (key + value) * sizeof(uint16_t);
}


static uint64_t
load_cells(const core_t *core)
{
    return (uint64_t) (core->facts.context + LOAD_CELLS_STEP - 1)
           / LOAD_CELLS_STEP * LOAD_CELLS_STEP * core->options.sequences;
}


/* The largest call: a step, or a row of each place. */
static uint32_t
load_batch_rows(const core_t *core)
{
    return core->options.sequences > SHARD_CORE_ROWS_MAX
           ? core->options.sequences : SHARD_CORE_ROWS_MAX;
}


/* Of all rows of the largest call: as they are computed, and as libllama keeps
   them for its caller. */
static uint64_t
load_logits_bytes(const core_t *core)
{
    return 2 * sizeof(float) * (uint64_t) core->facts.vocabulary
           * load_batch_rows(core);
}


static int
load_sizes(core_t *core)
{
    char          *path;
    uint32_t       trained, asked;
    tensors_t      t;
    core_facts_t  *f;

    f = &core->facts;
    path = core->file;

    if (tensors_open(&t, &path, 1, f->error) != 0) {
        return -1;
    }

    trained = load_fact(&t, "context_length", CORE_CONTEXT_DEFAULT);
    asked = core->options.context > 0 ? core->options.context
                                      : CORE_CONTEXT_DEFAULT;
    f->context = asked < trained ? asked : trained;
    f->bytes = core->sliced.bytes + load_logits_bytes(core)
               + load_cell_bytes(core, &t) * load_cells(core)
                 * (core->last_layer + 1);
    tensors_close(&t);

    if (f->context == 0 || load_cells(core) > INT32_MAX) {
        return load_fail(core, "%u sessions of %u positions are none, or too "
                         "many", core->options.sequences, f->context);
    }

    return 0;
}


/* What libllama says beside loading is in a step's status. */
static void
load_on_nothing(enum ggml_log_level level, const char *text, void *data)
{
    /* void */
}


int
load_facts(core_t *core)
{
    core_facts_t  *f;

    f = &core->facts;
    llama_log_set(load_on_nothing, NULL);
    snprintf(f->library, CORE_NAME_BYTES, "libllama %.40s", llama_version());

    if (load_read_file(core) != 0 || load_sizes(core) != 0
        || backend_load(core->cpu, &core->is_stopping, &core->backend,
                        f->error)
           != 0)
    {
        return -1;
    }

    memcpy(f->cpu, core->backend.variant, CORE_NAME_BYTES);

    return shard_name(core->file, &core->backend, core->options.is_fp16,
                      f->numerics, f->error);
}


/* --- the model */

/* Keeps libllama's first complaint, for whoever reports a failure. */
static void
load_on_log(enum ggml_log_level level, const char *text, void *data)
{
    core_t  *core;

    core = data;

    if (level == GGML_LOG_LEVEL_ERROR && core->facts.error[0] == '\0') {
        snprintf(core->facts.error, CORE_ERROR_BYTES, "%.*s",
                 (int) strcspn(text, "\n"), text);
    }
}


/* Instead of libllama's own, which prints dots. */
static bool
load_on_progress(float progress, void *data)
{
    core_t  *core;

    core = data;

    return !atomic_load(&core->is_stopping);
}


static bool
load_on_abort(void *data)
{
    core_t  *core;

    core = data;

    return atomic_load(&core->is_stopping);
}


/* It is still the file whose facts were told, and has the weights. */
static int
load_check_weights(core_t *core)
{
    int       is_same;
    sliced_t  now, *told;

    told = &core->sliced;

    if (sliced_check(&now, core->file, &core->is_stopping, core->facts.error)
        != 0)
    {
        return -1;
    }

    is_same = now.kind == told->kind && now.first_layer == told->first_layer
              && now.last_layer == told->last_layer
              && memcmp(now.weights_id, told->weights_id,
                        sizeof(now.weights_id)) == 0;
    sliced_done(&now);

    return is_same ? 0 : load_fail(core, "\"%.180s\" is not the slice that it "
                                   "was at the start", core->file);
}


static int
load_check(core_t *core)
{
    if (core->facts.bytes > file_memory_bytes()) {
        return load_fail(core, "not enough memory: the slice and %u sessions "
                         "of %u positions take %lu MB, this machine has %lu",
                         core->options.sequences, core->facts.context,
                         core->facts.bytes >> 20, file_memory_bytes() >> 20);
    }

    return load_check_weights(core);
}


static int
load_open_model(core_t *core)
{
    struct llama_model_params  params;

    params = llama_model_default_params();
    params.use_extra_bufts = false;
    params.load_mode = LLAMA_LOAD_MODE_MMAP;
    params.n_gpu_layers = 0;
    params.progress_callback = load_on_progress;
    params.progress_callback_user_data = core;
    core->model = llama_model_load_from_file(core->file, params);

    return core->model != NULL ? 0 : -1;
}


static int
load_open_context(core_t *core)
{
    struct llama_context_params  params;

    params = llama_context_default_params();
    params.n_ctx = core->facts.context * core->options.sequences;
    params.n_batch = load_batch_rows(core);
    params.n_ubatch = params.n_batch;
    params.n_seq_max = core->options.sequences;
    params.n_threads = profile_threads(core->options.threads);
    params.n_threads_batch = params.n_threads;
    params.abort_callback = load_on_abort;
    params.abort_callback_data = core;
    params.cb_eval = call_tensor;
    params.cb_eval_user_data = core;
    core->context = profile_open_context(core->model, params,
                                         &core->facts.is_stepwise);

    return core->context != NULL ? 0 : -1;
}


static int
load_rooms(core_t *core)
{
    if (core->rows != NULL) {
        return 0;
    }

    core->batch = llama_batch_init((int32_t) load_batch_rows(core),
                                   (int32_t) core->facts.width, 1);
    core->rows = malloc(SHARD_CORE_ROWS_MAX * (size_t) core->facts.width
                        * sizeof(float));
    core->parts = calloc(core->options.sequences, sizeof(part_t));

    if (core->batch.embd == NULL || core->rows == NULL || core->parts == NULL) {
        return load_fail(core, "out of memory");
    }

    return 0;
}


static int
load_open(core_t *core)
{
    int   rc;
    char  why[CORE_ERROR_BYTES / 2];

    llama_log_set(load_on_log, core);
    rc = load_open_model(core) == 0 ? load_open_context(core) : -1;
    llama_log_set(load_on_nothing, NULL);

    if (rc != 0) {
        snprintf(why, sizeof(why), "%.*s", (int) sizeof(why) - 1,
                 core->facts.error);
        return load_fail(core, "cannot load \"%.100s\": %s", core->file, why);
    }

    core->facts.error[0] = '\0';

    return 0;
}


int
load_model(core_t *core)
{
    int64_t  start_us;

    start_us = llama_time_us();
    llama_backend_init();

    if (load_check(core) != 0 || load_rooms(core) != 0
        || load_open(core) != 0)
    {
        return -1;
    }

    if (!core->is_probed && probe_run(core) != 0) {
        return -1;
    }

    core->is_probed = 1;
    core->facts.load_ms = (uint32_t) ((llama_time_us() - start_us) / 1000);

    return 0;
}


void
load_free(core_t *core)
{
    if (core->context != NULL) {
        llama_free(core->context);
        core->context = NULL;
    }

    if (core->model != NULL) {
        llama_model_free(core->model);
        core->model = NULL;
    }
}


void
load_done(core_t *core)
{
    load_free(core);

    if (core->batch.embd != NULL) {
        llama_batch_free(core->batch);
    }

    free(core->rows);
    free(core->parts);
    sliced_done(&core->sliced);
    llama_backend_free();
}

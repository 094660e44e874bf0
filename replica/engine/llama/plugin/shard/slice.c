
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
#include "replica/engine/llama/plugin/load.h"
#include "replica/engine/llama/plugin/shard/shard_inner.h"
#include "replica/engine/llama/plugin/shard_name.h"
#include "slice/tensors.h"


#define SLICE_KEY_BYTES     128
#define SLICE_CELLS_STEP    256          /* libllama rounds a context up */
#define SLICE_BLOCK         32           /* values of q8_0 in 34 bytes */
#define SLICE_BLOCK_BYTES   34

_Static_assert(CORE_ERROR_BYTES == SLICED_ERROR_BYTES
               && CORE_ERROR_BYTES == TENSORS_ERROR_BYTES, "one error's room");
_Static_assert(CORE_NAME_BYTES == SLICED_NAME_BYTES, "one name's room");
_Static_assert(CORE_WEIGHTS_BYTES == MANIFEST_ID_BYTES, "one id's room");


/* --- facts */

static int
slice_read_file(shard_t *s)
{
    core_facts_t    *f;
    const sliced_t  *sliced;

    f = &s->core.facts;
    sliced = &s->sliced;

    if (sliced_read(&s->sliced, s->core.file, f->error) != 0) {
        return -1;
    }

    if (sliced->kind != SLICED_SLICE) {
        return core_fail(&s->core, "\"%.180s\" is the head of a model: a shard "
                         "needs a slice", s->core.file);
    }

    memcpy(f->model, sliced->model, CORE_NAME_BYTES);
    memcpy(f->weights_id, sliced->weights_id, CORE_WEIGHTS_BYTES);
    f->first_layer = sliced->first_layer;
    f->last_layer = sliced->last_layer;
    f->layers = sliced->layers;
    f->width = sliced->width;
    f->vocabulary = sliced->has_output ? sliced->vocabulary : 0;
    f->norms = sliced->norms;
    s->last_layer = f->last_layer - f->first_layer;
    s->row_bytes = f->width * (s->core.options.is_fp16 ? sizeof(uint16_t)
                                                       : sizeof(float));

    return 0;
}


/* A fact "ARCHITECTURE.KEY", or its default if the file has none. */
static uint32_t
slice_fact(const tensors_t *t, const char *key, uint32_t otherwise)
{
    char      whole[SLICE_KEY_BYTES];
    uint32_t  value;

    snprintf(whole, sizeof(whole), "%.64s.%.60s",
             tensors_text(t, "general.architecture"), key);

    return tensors_u32(t, whole, &value) == 0 ? value : otherwise;
}


/* Bytes of one position in one layer: its key and its value.  If layers have
   different numbers of heads, the greatest counts. */
static uint64_t
slice_cell_bytes(const shard_t *s, const tensors_t *t)
{
    uint64_t  heads, key, value;

    heads = slice_fact(t, "attention.head_count", 1);
    key = slice_fact(t, "attention.key_length",
                    (uint32_t) (s->core.facts.width / (heads ? heads : 1)));
    value = slice_fact(t, "attention.value_length", (uint32_t) key);
    heads = slice_fact(t, "attention.head_count_kv", (uint32_t) heads);

    if (key % SLICE_BLOCK == 0 && value % SLICE_BLOCK == 0) {
        return heads * (key + value) / SLICE_BLOCK * SLICE_BLOCK_BYTES;
    }

    return heads * (key + value) * sizeof(uint16_t);
}


static uint64_t
slice_cells(const shard_t *s)
{
    return (uint64_t) (s->core.facts.context + SLICE_CELLS_STEP - 1)
           / SLICE_CELLS_STEP * SLICE_CELLS_STEP * s->core.options.sequences;
}


/* Rows of the largest call: of a step, or one of each place. */
static uint32_t
slice_batch_rows(const shard_t *s)
{
    return s->core.options.sequences > SHARD_CORE_ROWS_MAX
           ? s->core.options.sequences : SHARD_CORE_ROWS_MAX;
}


/* Bytes of the logits of all rows of the largest call: as they are computed,
   and as libllama keeps them for its caller. */
static uint64_t
slice_logits_bytes(const shard_t *s)
{
    return 2 * sizeof(float) * (uint64_t) s->core.facts.vocabulary
           * slice_batch_rows(s);
}


static int
slice_sizes(shard_t *s)
{
    char          *path;
    tensors_t      t;
    core_facts_t  *f;

    f = &s->core.facts;
    path = s->core.file;

    if (tensors_open(&t, &path, 1, f->error) != 0) {
        return -1;
    }

    f->context = load_context_tokens(&s->core, slice_fact(
                     &t, "context_length", CORE_CONTEXT_DEFAULT));
    f->bytes = s->sliced.bytes + slice_logits_bytes(s)
               + slice_cell_bytes(s, &t) * slice_cells(s)
                 * (s->last_layer + 1);
    tensors_close(&t);

    if (f->context == 0 || slice_cells(s) > INT32_MAX) {
        return core_fail(&s->core, "%u sessions of %u positions are none, or "
                         "too many", s->core.options.sequences, f->context);
    }

    return 0;
}


int
slice_start(core_t *core)
{
    shard_t  *s;

    s = shard_of(core);
    core->options.is_exact = 1;

    if (slice_read_file(s) != 0 || slice_sizes(s) != 0
        || load_backend(core) != 0)
    {
        return -1;
    }

    return shard_name(core->file, &core->backend, core->options.is_fp16,
                      core->facts.numerics, core->facts.error);
}


/* --- the model */

/* Checks that this is still the file whose facts were published, and that its
   weights are those of the manifest. */
static int
slice_check_weights(shard_t *s)
{
    int       is_same;
    sliced_t  now, *before;

    before = &s->sliced;

    if (sliced_check(&now, s->core.file, &s->core.is_stopping,
                     s->core.facts.error)
        != 0)
    {
        return -1;
    }

    is_same = now.kind == before->kind
              && now.first_layer == before->first_layer
              && now.last_layer == before->last_layer
              && memcmp(now.weights_id, before->weights_id,
                        sizeof(now.weights_id)) == 0;
    sliced_done(&now);

    return is_same ? 0 : core_fail(&s->core, "\"%.180s\" is not the slice "
                                   "that it was at the start", s->core.file);
}


static int
slice_check(shard_t *s)
{
    if (s->core.facts.bytes > file_memory_bytes()) {
        return core_fail(&s->core, "not enough memory: the slice and %u "
                         "sessions of %u positions take %lu MB, this machine "
                         "has %lu", s->core.options.sequences,
                         s->core.facts.context, s->core.facts.bytes >> 20,
                         file_memory_bytes() >> 20);
    }

    return slice_check_weights(s);
}


static int
slice_rooms(shard_t *s)
{
    if (s->rows != NULL) {
        return 0;
    }

    s->core.batch = llama_batch_init((int32_t) slice_batch_rows(s),
                                     (int32_t) s->core.facts.width, 1);
    s->rows = malloc(SHARD_CORE_ROWS_MAX * (size_t) s->core.facts.width
                     * sizeof(float));
    s->parts = calloc(s->core.options.sequences, sizeof(part_t));

    if (s->core.batch.embd == NULL || s->rows == NULL || s->parts == NULL) {
        return core_fail(&s->core, "out of memory");
    }

    return 0;
}


static int
slice_open(shard_t *s)
{
    core_t                    *core;
    struct llama_model_params  params;

    core = &s->core;
    params = llama_model_default_params();
    params.use_extra_bufts = false;
    core->model = load_model(core, core->file, params, &core->file, 1);

    if (core->model == NULL) {
        return -1;
    }

    return load_context(core, core->options.sequences, core->facts.context,
                        slice_batch_rows(s), call_tensor) == 0
           ? 0 : core_fail(core, "cannot load \"%.100s\": %.127s", core->file,
                           core->libllama.error);
}


int
slice_load(core_t *core)
{
    shard_t  *s;

    s = shard_of(core);

    if (slice_check(s) != 0 || slice_rooms(s) != 0 || slice_open(s) != 0
        || (!s->is_probed && trial_run(s) != 0))
    {
        return -1;
    }

    s->is_probed = 1;

    return 0;
}


void
slice_done(shard_t *s)
{
    free(s->rows);
    free(s->parts);
    sliced_done(&s->sliced);
}

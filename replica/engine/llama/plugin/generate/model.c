
/*
 * The model and its context, in the profile in which results are exact
 * (profile.h); numerics.c tries whether they are.
 *
 * A model that stands by is probed in a context as small as the probe, since
 * the memory for a whole one may be another process's until it wakes.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/plugin/file.h"
#include "replica/engine/llama/plugin/generate/generate_inner.h"
#include "replica/engine/llama/plugin/profile.h"
#include "slice/sliced.h"


#define MODEL_PROBE_TOKENS   256        /* libllama gives no less */
#define MODEL_PROBE_PLACES   2

#define model_fail(core, ...)                                                 \
    (snprintf((core)->facts.error, CORE_ERROR_BYTES, __VA_ARGS__), -1)


/* Keeps libllama's first complaint, for whoever reports a failure. */
static void
model_on_log(enum ggml_log_level level, const char *text, void *data)
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
model_on_progress(float progress, void *data)
{
    core_t  *core;

    core = data;

    return !atomic_load(&core->is_stopping);
}


static bool
model_on_abort(void *data)
{
    core_t  *core;

    core = data;

    return atomic_load(&core->is_stopping);
}


/* Weights that processes share are computed with as they lie there. */
int
model_is_repacked(const core_t *core)
{
    return !core->options.is_exact && !core->options.is_deferred;
}


/* For messages. */
static const char *
model_file(const core_t *core)
{
    return core->options.is_head ? core->parts[0] : core->file;
}


static int
model_open_file(core_t *core)
{
    struct llama_model_params  params;

    params = llama_model_default_params();
    params.use_extra_bufts = model_is_repacked(core);
    params.load_mode = LLAMA_LOAD_MODE_MMAP;
    params.n_gpu_layers = 0;
    params.progress_callback = model_on_progress;
    params.progress_callback_user_data = core;

    core->model = llama_model_load_from_splits((const char **) core->parts,
                                               core->nparts, params);

    if (core->model == NULL) {
        char  why[CORE_ERROR_BYTES / 2];

        snprintf(why, sizeof(why), "%.*s", (int) sizeof(why) - 1,
                 core->facts.error);
        return model_fail(core, "cannot load \"%.100s\": %s",
                          model_file(core), why);
    }

    if (llama_model_has_encoder(core->model)
        || !llama_model_has_decoder(core->model))
    {
        return model_fail(core, "\"%.100s\" does not generate text from a "
                          "prompt alone", model_file(core));
    }

    return 0;
}


/* Of a head they are its own, also where it has a fallback. */
static int
model_open_vocabulary(core_t *core)
{
    if (core->options.is_head) {
        return head_open(core);
    }

    core->vocab = llama_model_get_vocab(core->model);
    core->template = llama_model_chat_template(core->model, NULL);
    core->trained = (uint32_t) llama_model_n_ctx_train(core->model);
    core->facts.layers = (uint32_t) llama_model_n_layer(core->model);
    core->facts.width = (uint32_t) llama_model_n_embd(core->model);
    core->facts.vocabulary = (uint32_t) llama_vocab_n_tokens(core->vocab);

    return 0;
}


static uint32_t
model_context_tokens(const core_t *core)
{
    uint32_t  asked;

    asked = core->options.context;

    if (asked == 0) {
        asked = CORE_CONTEXT_DEFAULT;
    }

    return asked < core->trained ? asked : core->trained;
}


/* Above it the kernel would end the process in mid-stream. */
static int
model_check_memory(core_t *core, uint64_t file_bytes)
{
    uint64_t  memory, kv, width;

    width = (uint64_t) llama_model_n_head_kv(core->model)
            * (uint64_t) llama_model_n_embd(core->model)
            / (uint64_t) llama_model_n_head(core->model);
    kv = 2 * width * (uint64_t) llama_model_n_layer(core->model)
         * model_context_tokens(core) * core->options.sequences;
    memory = file_memory_bytes();

    if (file_bytes + kv <= memory) {
        return 0;
    }

    return model_fail(core, "not enough memory: %lu MB for the model, %lu MB "
                      "for %u sequences of %u tokens, of %lu MB",
                      file_bytes >> 20, kv >> 20, core->options.sequences,
                      model_context_tokens(core), memory >> 20);
}


/* The largest one: of a chunk, or a token of each sequence. */
static uint32_t
model_batch_tokens(const core_t *core)
{
    return core->chunk > core->options.sequences ? core->chunk
                                                 : core->options.sequences;
}


/* For so many sequences of so many tokens. */
static int
model_open_context(core_t *core, uint32_t n, uint32_t tokens)
{
    struct llama_context_params  params;

    params = llama_context_default_params();
    params.n_ctx = tokens * n;
    params.n_batch = model_batch_tokens(core);
    params.n_ubatch = params.n_batch;
    params.n_seq_max = n;
    params.n_threads = profile_threads(core->options.threads);
    params.n_threads_batch = params.n_threads;
    params.kv_unified = false;
    params.abort_callback = model_on_abort;
    params.abort_callback_data = core;

    core->context = core->options.is_exact
                    ? profile_open_context(core->model, params,
                                           &core->is_stepwise)
                    : llama_init_from_model(core->model, params);

    if (core->context == NULL) {
        return model_fail(core, "no context of %u sequences of %u tokens",
                          n, tokens);
    }

    return 0;
}


static int
model_open_whole_context(core_t *core)
{
    return model_open_context(core, core->options.sequences,
                              core->facts.context);
}


/* What a model that stands by computes with, until it is probed. */
static int
model_open_small_context(core_t *core)
{
    uint32_t  n, tokens;

    n = core->options.sequences;
    tokens = core->facts.context;

    return model_open_context(core,
                              n < MODEL_PROBE_PLACES ? n : MODEL_PROBE_PLACES,
                              tokens < MODEL_PROBE_TOKENS
                              ? tokens : MODEL_PROBE_TOKENS);
}


/* What outlives a context. */
static int
model_open_rooms(core_t *core)
{
    core->facts.context = model_context_tokens(core);
    core->chunk = core->options.is_exact ? CHUNK_TOKENS : CHUNK_TOKENS_FAST;
    core->batch = llama_batch_init((int32_t) model_batch_tokens(core), 0, 1);
    core->places = calloc(core->options.sequences, sizeof(core_seq_t *));

    if (core->batch.token == NULL || core->places == NULL
        || sample_room_init(&core->room,
                            (uint32_t) llama_vocab_n_tokens(core->vocab)) != 0)
    {
        return model_fail(core, "out of memory");
    }

    return 0;
}


/* Bytes of a token; libllama says a long one's as a negative number. */
static size_t
model_token_bytes(const core_t *core, llama_token id)
{
    char     piece[64];
    int32_t  n;

    n = llama_token_to_piece(core->vocab, id, piece, sizeof(piece), 0, true);

    return (size_t) (n < 0 ? -n : n);
}


/*
 * The tokens that end a text, which a request may forbid for a while; and the
 * longest one, by which a text is too long without being tokenized.
 */
static int
model_read_tokens(core_t *core)
{
    size_t    bytes;
    uint32_t  id, n;

    n = (uint32_t) llama_vocab_n_tokens(core->vocab);
    core->ends = malloc(n * sizeof(uint32_t));

    if (core->ends == NULL) {
        return model_fail(core, "out of memory");
    }

    for (id = 0; id < n; id++) {
        bytes = model_token_bytes(core, (llama_token) id);
        core->longest = bytes > core->longest ? bytes : core->longest;

        if (llama_vocab_is_eog(core->vocab, (llama_token) id)) {
            core->ends[core->nends++] = id;
        }
    }

    return 0;
}


/* Found early, so that libllama's own words are not needed; at a slice, which
   has no vocabulary, it would end the process. */
static int
model_check_file(core_t *core, uint64_t *hash, uint64_t *bytes)
{
    int  rc;

    rc = file_check_gguf(core->parts[0]);

    if (rc > 0) {
        return model_fail(core, "\"%.200s\" is not a GGUF file",
                          model_file(core));
    }

    if (rc == 0 && sliced_is_one(core->parts[0])) {
        return model_fail(core, "\"%.120s\" is a file of llmgw-slice, not a "
                          "whole model: --shard takes a slice, --orchestrate "
                          "the head", model_file(core));
    }

    if (rc < 0 || file_hash_parts(core->parts, core->nparts,
                                  &core->is_stopping, hash, bytes)
                  != 0)
    {
        return model_fail(core, "cannot read \"%.200s\": %s",
                          model_file(core), strerror(errno));
    }

    if (*bytes > file_memory_bytes()) {
        return model_fail(core, "not enough memory: the model has %lu MB, "
                          "this machine %lu MB", *bytes >> 20,
                          file_memory_bytes() >> 20);
    }

    return 0;
}


static void
model_sleep(core_t *core)
{
    llama_free(core->context);
    core->context = NULL;

    if (core->options.is_unmapped) {
        llama_model_free(core->model);
        core->model = NULL;
        core->vocab = NULL;
    }
}


/* Of other weights it would go on with another text. */
static int
model_check_fallback(core_t *core)
{
    uint8_t  id[CORE_WEIGHTS_BYTES];

    if (!core->options.is_head) {
        return 0;
    }

    if (sliced_weights_id(core->parts, core->nparts, &core->is_stopping, id,
                          core->facts.error)
        != 0)
    {
        return -1;
    }

    if (memcmp(id, core->facts.weights_id, sizeof(id)) == 0) {
        return 0;
    }

    return model_fail(core, "\"%.90s\" cannot stand in for the shards of "
                      "\"%.90s\": it has other weights", model_file(core),
                      core->file);
}


/* All that computes: of a head its fallback. */
static int
model_load_whole(core_t *core, uint64_t file_hash, uint64_t file_bytes,
    uint64_t cpu_hash)
{
    if (model_check_fallback(core) != 0
        || model_check_memory(core, file_bytes) != 0
        || (core->options.is_standby ? model_open_small_context(core)
                                     : model_open_whole_context(core)) != 0)
    {
        return -1;
    }

    (void) llama_model_meta_val_str(core->model, "general.name",
                                    core->facts.name, CORE_NAME_BYTES);

    return numerics_probe(core, file_hash, cpu_hash);
}


int
model_load(core_t *core)
{
    uint64_t   file_hash, file_bytes;
    backend_t  backend;

    file_hash = 0;
    file_bytes = 0;
    llama_log_set(model_on_log, core);
    snprintf(core->facts.library, CORE_NAME_BYTES, "libllama %s",
             llama_version());

    if ((core->nparts > 0
         && model_check_file(core, &file_hash, &file_bytes) != 0)
        || backend_load(core->cpu, &core->is_stopping, &backend,
                        core->facts.error)
           != 0)
    {
        return -1;
    }

    snprintf(core->facts.cpu, CORE_NAME_BYTES, "%s", backend.variant);
    llama_backend_init();

    if ((core->nparts > 0 && model_open_file(core) != 0)
        || model_open_vocabulary(core) != 0
        || model_open_rooms(core) != 0
        || model_read_tokens(core) != 0)
    {
        return -1;
    }

    if (core->nparts > 0
        && model_load_whole(core, file_hash, file_bytes, backend.hash) != 0)
    {
        return -1;
    }

    if (core->options.is_standby) {
        model_sleep(core);
    }

    return core->options.is_head ? head_name(core, &backend) : 0;
}


int
model_wake(core_t *core)
{
    if (core->model == NULL
        && (model_open_file(core) != 0 || model_open_vocabulary(core) != 0))
    {
        return -1;
    }

    return model_open_whole_context(core);
}


void
model_free(core_t *core)
{
    sample_room_done(&core->room);
    free(core->ends);
    free(core->places);

    if (core->batch.token != NULL) {
        llama_batch_free(core->batch);
    }

    if (core->context != NULL) {
        llama_free(core->context);
    }

    if (core->model != NULL) {
        llama_model_free(core->model);
    }

    head_close(core);
    llama_backend_free();
}

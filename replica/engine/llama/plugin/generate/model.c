
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
#include "replica/engine/llama/plugin/load.h"
#include "slice/sliced.h"


#define MODEL_PROBE_TOKENS   256        /* libllama gives no less */
#define MODEL_PROBE_PLACES   2


/* Whether weights are repacked: shared weights are computed with as they are in
   memory. */
int
model_is_repacked(const core_t *core)
{
    return !core->options.is_exact && !core->options.is_deferred;
}


/* The model's name for messages. */
static const char *
model_file(const generator_t *g)
{
    return g->core.options.is_head ? g->parts[0] : g->core.file;
}


static int
model_open(generator_t *g)
{
    core_t                    *core;
    struct llama_model_params  params;

    core = &g->core;
    params = llama_model_default_params();
    params.use_extra_bufts = model_is_repacked(core);
    core->model = load_model(core, model_file(g), params, g->parts, g->nparts);

    if (core->model == NULL) {
        return -1;
    }

    if (llama_model_has_encoder(core->model)
        || !llama_model_has_decoder(core->model))
    {
        return core_fail(core, "\"%.100s\" does not generate text from a "
                         "prompt alone", model_file(g));
    }

    return 0;
}


/* Opens the vocabulary: of a head it is its own, even if it has a fallback. */
static int
model_open_vocabulary(generator_t *g)
{
    if (g->core.options.is_head) {
        return head_open(g);
    }

    g->vocab = llama_model_get_vocab(g->core.model);
    g->template = llama_model_chat_template(g->core.model, NULL);
    g->trained = (uint32_t) llama_model_n_ctx_train(g->core.model);
    g->core.facts.layers = (uint32_t) llama_model_n_layer(g->core.model);
    g->core.facts.width = (uint32_t) llama_model_n_embd(g->core.model);
    g->core.facts.vocabulary = (uint32_t) llama_vocab_n_tokens(g->vocab);

    return 0;
}


/* Checks that the model fits into memory: otherwise the kernel would kill the
   process in the middle of streams. */
static int
model_check_memory(generator_t *g, uint64_t file_bytes)
{
    uint64_t  memory, kv, width;

    width = (uint64_t) llama_model_n_head_kv(g->core.model)
            * (uint64_t) llama_model_n_embd(g->core.model)
            / (uint64_t) llama_model_n_head(g->core.model);
    kv = 2 * width * (uint64_t) llama_model_n_layer(g->core.model)
         * g->core.facts.context * g->core.options.sequences;
    memory = file_memory_bytes();

    if (file_bytes + kv <= memory) {
        return 0;
    }

    return core_fail(&g->core, "not enough memory: %lu MB for the model, %lu "
                     "MB for %u sequences of %u tokens, of %lu MB",
                     file_bytes >> 20, kv >> 20, g->core.options.sequences,
                     g->core.facts.context, memory >> 20);
}


/* Tokens of the largest batch: of a chunk, or one of each sequence. */
static uint32_t
model_batch_tokens(const generator_t *g)
{
    return g->chunk > g->core.options.sequences ? g->chunk
                                                : g->core.options.sequences;
}


static int
model_open_context(generator_t *g, uint32_t n, uint32_t tokens)
{
    return load_context(&g->core, n, tokens, model_batch_tokens(g), NULL) == 0
           ? 0 : core_fail(&g->core, "no context of %u sequences of %u tokens",
                           n, tokens);
}


static int
model_open_whole_context(generator_t *g)
{
    return model_open_context(g, g->core.options.sequences,
                              g->core.facts.context);
}


/* Opens the context in which a model that stands by is probed. */
static int
model_open_small_context(generator_t *g)
{
    uint32_t  n, tokens;

    n = g->core.options.sequences;
    tokens = g->core.facts.context;

    return model_open_context(g,
                              n < MODEL_PROBE_PLACES ? n : MODEL_PROBE_PLACES,
                              tokens < MODEL_PROBE_TOKENS
                              ? tokens : MODEL_PROBE_TOKENS);
}


/* Allocates what outlives a context. */
static int
model_open_rooms(generator_t *g)
{
    g->core.facts.context = load_context_tokens(&g->core, g->trained);
    g->chunk = g->core.options.is_exact ? CHUNK_TOKENS : CHUNK_TOKENS_FAST;
    g->core.batch = llama_batch_init((int32_t) model_batch_tokens(g), 0, 1);
    g->places = calloc(g->core.options.sequences, sizeof(core_seq_t *));

    if (g->core.batch.token == NULL || g->places == NULL
        || sample_room_init(&g->room,
                            (uint32_t) llama_vocab_n_tokens(g->vocab)) != 0)
    {
        return core_fail(&g->core, "out of memory");
    }

    return 0;
}


/* Bytes of a token; for a long one libllama returns a negative number. */
static size_t
model_token_bytes(const generator_t *g, llama_token id)
{
    char     piece[64];
    int32_t  n;

    n = llama_token_to_piece(g->vocab, id, piece, sizeof(piece), 0, true);

    return (size_t) (n < 0 ? -n : n);
}


/*
 * The tokens that end a text, which a request may forbid for a while; and the
 * longest one, by which a text is too long without being tokenized.
 */
static int
model_read_tokens(generator_t *g)
{
    size_t    bytes;
    uint32_t  id, n;

    n = (uint32_t) llama_vocab_n_tokens(g->vocab);
    g->ends = malloc(n * sizeof(uint32_t));

    if (g->ends == NULL) {
        return core_fail(&g->core, "out of memory");
    }

    for (id = 0; id < n; id++) {
        bytes = model_token_bytes(g, (llama_token) id);
        g->longest = bytes > g->longest ? bytes : g->longest;

        if (llama_vocab_is_eog(g->vocab, (llama_token) id)) {
            g->ends[g->nends++] = id;
        }
    }

    return 0;
}


/* Checks the file early, for messages of our own; with a slice, which has no
   vocabulary, libllama would end the process. */
static int
model_check_file(generator_t *g, uint64_t *hash, uint64_t *bytes)
{
    int  rc;

    rc = file_check_gguf(g->parts[0]);

    if (rc > 0) {
        return core_fail(&g->core, "\"%.200s\" is not a GGUF file",
                          model_file(g));
    }

    if (rc == 0 && sliced_is_one(g->parts[0])) {
        return core_fail(&g->core, "\"%.120s\" is a file of llmgw-slice, not a "
                          "whole model: --shard takes a slice, --orchestrate "
                          "the head", model_file(g));
    }

    if (rc < 0 || file_hash_parts(g->parts, g->nparts,
                                  &g->core.is_stopping, hash, bytes)
                  != 0)
    {
        return core_fail(&g->core, "cannot read \"%.200s\": %s",
                          model_file(g), strerror(errno));
    }

    if (*bytes > file_memory_bytes()) {
        return core_fail(&g->core, "not enough memory: the model has %lu MB, "
                          "this machine %lu MB", *bytes >> 20,
                          file_memory_bytes() >> 20);
    }

    return 0;
}


static void
model_sleep(generator_t *g)
{
    if (g->core.options.is_unmapped) {
        load_close(&g->core);
        g->vocab = NULL;

    } else {
        llama_free(g->core.context);
        g->core.context = NULL;
    }
}


/* Checks that the fallback has the same weights: with others it would continue
   with another text. */
static int
model_check_fallback(generator_t *g)
{
    uint8_t  id[CORE_WEIGHTS_BYTES];

    if (!g->core.options.is_head) {
        return 0;
    }

    if (sliced_weights_id(g->parts, g->nparts, &g->core.is_stopping, id,
                          g->core.facts.error)
        != 0)
    {
        return -1;
    }

    if (memcmp(id, g->core.facts.weights_id, sizeof(id)) == 0) {
        return 0;
    }

    return core_fail(&g->core, "\"%.90s\" cannot stand in for the shards of "
                      "\"%.90s\": it has other weights", model_file(g),
                      g->core.file);
}


/* Probes what computes here: for a head, its fallback. */
static int
model_probe(generator_t *g, uint64_t file_hash, uint64_t file_bytes)
{
    if (model_check_fallback(g) != 0
        || model_check_memory(g, file_bytes) != 0
        || (g->core.options.is_standby ? model_open_small_context(g)
                                       : model_open_whole_context(g)) != 0)
    {
        return -1;
    }

    (void) llama_model_meta_val_str(g->core.model, "general.name",
                                    g->core.facts.name, CORE_NAME_BYTES);

    return numerics_probe(g, file_hash);
}


int
model_start(core_t *core)
{
    int           has_model;
    uint64_t      file_hash, file_bytes;
    generator_t  *g;

    g = generator_of(core);
    has_model = (g->nparts > 0);

    if ((has_model && model_check_file(g, &file_hash, &file_bytes) != 0)
        || load_backend(core) != 0
        || (has_model && model_open(g) != 0)
        || model_open_vocabulary(g) != 0
        || model_open_rooms(g) != 0
        || model_read_tokens(g) != 0
        || (has_model && model_probe(g, file_hash, file_bytes) != 0))
    {
        return -1;
    }

    if (core->options.is_standby) {
        model_sleep(g);
    }

    return core->options.is_head ? head_name(g) : 0;
}


int
model_load(core_t *core)
{
    generator_t  *g;

    g = generator_of(core);

    if (g->nparts == 0 || core->context != NULL) {
        return 0;
    }

    if (core->model == NULL
        && (model_open(g) != 0 || model_open_vocabulary(g) != 0))
    {
        return -1;
    }

    return model_open_whole_context(g);
}


void
model_done(generator_t *g)
{
    sample_room_done(&g->room);
    free(g->ends);
    free(g->places);
    head_close(g);
}


/*
 * A head: a GGUF file with a model's vocabulary, chat template and embedding
 * of tokens, and without its layers.
 *
 * The vocabulary is libllama's to read (vocab_only), which then leaves all
 * tensors alone; the embedding is mapped and its rows are dequantized as
 * ggml's own get_rows does, so that a row is exactly what the model's first
 * layer would have got.
 */

#include <fcntl.h>
#include <gguf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replica/engine/llama/plugin/plugin_inner.h"


#define HEAD_EMBEDDING   "token_embd.weight"
#define HEAD_LAYERS_MAX  4096

#define head_fail(core, ...)                                                  \
    (snprintf((core)->facts.error, CORE_ERROR_BYTES, __VA_ARGS__), -1)

struct head_s {
    struct llama_model   *model;        /* its vocabulary */
    struct gguf_context  *gguf;
    char                 *map;          /* NULL: not mapped */
    size_t                map_bytes;
    const char           *rows;
    size_t                row_bytes;
    enum ggml_type        type;
};


/* --- facts */

/* NULL: there is no such text. */
static const char *
head_text(const head_t *h, const char *key)
{
    int64_t  id;

    id = gguf_find_key(h->gguf, key);

    return id >= 0 && gguf_get_kv_type(h->gguf, id) == GGUF_TYPE_STRING
           ? gguf_get_val_str(h->gguf, id) : NULL;
}


/* 0: there is no such number. */
static uint32_t
head_number(const head_t *h, const char *key)
{
    int64_t  id;

    id = gguf_find_key(h->gguf, key);

    return id >= 0 && gguf_get_kv_type(h->gguf, id) == GGUF_TYPE_UINT32
           ? gguf_get_val_u32(h->gguf, id) : 0;
}


static int
head_read_weights_id(core_t *core, const char *hex)
{
    size_t    i;
    unsigned  byte;

    if (hex == NULL || strlen(hex) != 2 * CORE_WEIGHTS_BYTES
        || strspn(hex, "0123456789abcdef") != 2 * CORE_WEIGHTS_BYTES)
    {
        return head_fail(core, "\"%.100s\" has no id of weights", core->file);
    }

    for (i = 0; i < CORE_WEIGHTS_BYTES; i++) {
        (void) sscanf(hex + 2 * i, "%2x", &byte);
        core->facts.weights_id[i] = (uint8_t) byte;
    }

    return 0;
}


static int
head_read_norms(core_t *core)
{
    int64_t        id;
    const head_t  *h;

    h = core->head;
    id = gguf_find_key(h->gguf, "llmgw.norms");

    if (id < 0) {
        return 0;
    }

    if (gguf_get_kv_type(h->gguf, id) != GGUF_TYPE_ARRAY
        || gguf_get_arr_type(h->gguf, id) != GGUF_TYPE_FLOAT32
        || gguf_get_arr_n(h->gguf, id) != core->facts.layers + 1)
    {
        return head_fail(core, "\"%.100s\": llmgw.norms is not one number a "
                         "boundary of layers", core->file);
    }

    core->facts.norms = gguf_get_arr_data(h->gguf, id);

    return 0;
}


/* What llmgw-slice wrote into it. */
static int
head_read_facts(core_t *core)
{
    char           key[2 * CORE_NAME_BYTES];
    const char    *kind, *model, *arch;
    const head_t  *h;

    h = core->head;
    kind = head_text(h, "llmgw.kind");
    model = head_text(h, "llmgw.model");
    arch = head_text(h, "general.architecture");

    if (kind == NULL || strcmp(kind, "head") != 0 || model == NULL
        || arch == NULL)
    {
        return head_fail(core, "\"%.100s\" is not a head: llmgw-slice writes "
                         "one", core->file);
    }

    core->facts.layers = head_number(h, "llmgw.layers");

    if (core->facts.layers < 1 || core->facts.layers > HEAD_LAYERS_MAX) {
        return head_fail(core, "\"%.100s\" has %u layers, not from 1 to %d",
                         core->file, core->facts.layers, HEAD_LAYERS_MAX);
    }

    snprintf(core->facts.model, CORE_NAME_BYTES, "%s", model);
    snprintf(key, sizeof(key), "%.60s.context_length", arch);
    core->trained = head_number(h, key);

    if (core->trained == 0) {
        return head_fail(core, "\"%.100s\" does not say how long a context "
                         "is", core->file);
    }

    return head_read_weights_id(core, head_text(h, "llmgw.weights_id")) != 0
           || head_read_norms(core) != 0 ? -1 : 0;
}


/* --- the embedding */

static int
head_map(core_t *core)
{
    int           fd;
    head_t       *h;
    struct stat   st;

    h = core->head;
    fd = open(core->file, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return head_fail(core, "cannot read \"%.200s\": %m", core->file);
    }

    h->map_bytes = fstat(fd, &st) == 0 ? (size_t) st.st_size : 0;
    h->map = mmap(NULL, h->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);

    if (h->map == MAP_FAILED) {
        h->map = NULL;
        return head_fail(core, "cannot map \"%.200s\": %m", core->file);
    }

    return 0;
}


static int
head_find_rows(core_t *core)
{
    size_t          at, bytes;
    head_t         *h;
    int64_t         id;
    const int64_t  *ne;

    h = core->head;
    id = gguf_find_tensor(h->gguf, HEAD_EMBEDDING);

    if (id < 0) {
        return head_fail(core, "\"%.100s\" has no " HEAD_EMBEDDING,
                         core->file);
    }

    ne = gguf_get_tensor_ne(h->gguf, id);
    at = gguf_get_data_offset(h->gguf) + gguf_get_tensor_offset(h->gguf, id);
    bytes = gguf_get_tensor_size(h->gguf, id);
    h->type = gguf_get_tensor_type(h->gguf, id);

    if (ne[0] < 1 || ne[0] > INT32_MAX || ne[2] != 1 || ne[3] != 1
        || ne[1] != llama_vocab_n_tokens(core->vocab)
        || at > h->map_bytes || bytes > h->map_bytes - at)
    {
        return head_fail(core, "\"%.100s\": " HEAD_EMBEDDING " has not one "
                         "row a token", core->file);
    }

    if (h->type != GGML_TYPE_F32
        && ggml_get_type_traits(h->type)->to_float == NULL)
    {
        return head_fail(core, "\"%.100s\": " HEAD_EMBEDDING " is of a type "
                         "that ggml does not read, %s", core->file,
                         ggml_type_name(h->type));
    }

    core->facts.width = (uint32_t) ne[0];
    core->facts.vocabulary = (uint32_t) ne[1];
    h->row_bytes = ggml_row_size(h->type, ne[0]);
    h->rows = h->map + at;

    return 0;
}


void
head_embed(const core_t *core, const llama_token *ids, uint32_t n, float *out)
{
    uint32_t       i, width;
    const char    *row;
    const head_t  *h;

    h = core->head;
    width = core->facts.width;

    for (i = 0; i < n; i++, out += width) {
        row = h->rows + (size_t) ids[i] * h->row_bytes;

        if (h->type == GGML_TYPE_F32) {
            memcpy(out, row, width * sizeof(float));
            continue;
        }

        ggml_get_type_traits(h->type)->to_float(row, out, width);
    }
}


/* --- the file */

static int
head_open_vocabulary(core_t *core)
{
    struct llama_model_params  params;

    params = llama_model_default_params();
    params.vocab_only = true;
    core->head->model = llama_model_load_from_file(core->file, params);

    if (core->head->model == NULL) {
        char  why[CORE_ERROR_BYTES / 2];

        snprintf(why, sizeof(why), "%.*s", (int) sizeof(why) - 1,
                 core->facts.error);
        return head_fail(core, "cannot load \"%.100s\": %s", core->file, why);
    }

    core->vocab = llama_model_get_vocab(core->head->model);
    core->template = llama_model_chat_template(core->head->model, NULL);

    return 0;
}


int
head_open(core_t *core)
{
    struct gguf_init_params  params = { .no_alloc = true, .ctx = NULL };

    core->head = calloc(1, sizeof(head_t));

    if (core->head == NULL) {
        return head_fail(core, "out of memory");
    }

    core->head->gguf = gguf_init_from_file(core->file, params);

    if (core->head->gguf == NULL) {
        return head_fail(core, "\"%.200s\" is not a GGUF file", core->file);
    }

    if (head_read_facts(core) != 0 || head_open_vocabulary(core) != 0
        || head_map(core) != 0)
    {
        return -1;
    }

    return head_find_rows(core);
}


int
head_name(core_t *core, uint64_t cpu_hash)
{
    core->facts.is_exact = 1;
    snprintf(core->facts.numerics, CORE_NAME_BYTES, "llama-%016lx", cpu_hash);

    return 0;
}


void
head_close(core_t *core)
{
    head_t  *h;

    h = core->head;

    if (h == NULL) {
        return;
    }

    if (h->model != NULL) {
        llama_model_free(h->model);
    }

    if (h->map != NULL) {
        munmap(h->map, h->map_bytes);
    }

    gguf_free(h->gguf);
    free(h);
    core->head = NULL;
}

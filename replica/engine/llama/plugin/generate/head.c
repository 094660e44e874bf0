
/*
 * A head: a file of llmgw-slice with a model's vocabulary, chat template and
 * embedding of tokens, and without its layers (slice/sliced.h).
 *
 * libllama reads the vocabulary (vocab_only), and then ignores all tensors.
 * The embedding is mapped, and its rows are dequantized as ggml's own get_rows
 * does, so that a row is exactly what the model's first layer would have got.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"
#include "replica/engine/llama/plugin/load.h"
#include "replica/engine/llama/plugin/shard_name.h"
#include "slice/sliced.h"
#include "slice/tensors.h"


#define HEAD_EMBEDDING  "token_embd.weight"
#define HEAD_KEY_BYTES  128

_Static_assert(CORE_ERROR_BYTES == SLICED_ERROR_BYTES, "one error's room");
_Static_assert(CORE_WEIGHTS_BYTES == MANIFEST_ID_BYTES, "one id's room");

struct head_s {
    struct llama_model  *model;         /* its vocabulary */
    sliced_t             sliced;        /* its norms are facts */
    char                *map;           /* NULL: not mapped */
    size_t               map_bytes;
    const char          *rows;
    size_t               row_bytes;
    enum ggml_type       type;
};


/* --- facts in the file */

static int
head_read_facts(generator_t *g)
{
    head_t  *h;

    h = g->head;

    if (sliced_check(&h->sliced, g->core.file, &g->core.is_stopping,
                     g->core.facts.error)
        != 0)
    {
        return -1;
    }

    if (h->sliced.kind != SLICED_HEAD) {
        return core_fail(&g->core, "\"%.200s\" is a slice, not the head",
                         g->core.file);
    }

    snprintf(g->core.facts.model, CORE_NAME_BYTES, "%s", h->sliced.model);
    snprintf(g->core.facts.name, CORE_NAME_BYTES, "%s", h->sliced.model);
    memcpy(g->core.facts.weights_id, h->sliced.weights_id, CORE_WEIGHTS_BYTES);
    g->core.facts.layers = h->sliced.layers;
    g->core.facts.width = h->sliced.width;
    g->core.facts.vocabulary = h->sliced.vocabulary;
    g->core.facts.norms = h->sliced.norms;

    return 0;
}


static int
head_read_context(generator_t *g, const tensors_t *t)
{
    char  key[HEAD_KEY_BYTES];

    snprintf(key, sizeof(key), "%.80s.context_length",
             tensors_text(t, "general.architecture"));

    if (tensors_u32(t, key, &g->trained) != 0 || g->trained == 0) {
        return core_fail(&g->core, "\"%.200s\" does not say how long a context "
                         "is", g->core.file);
    }

    return 0;
}


/* --- the embedding */

/* Maps the embedding, from the file's beginning on, since mmap takes whole
   pages. */
static int
head_map(generator_t *g, const tensor_t *tensor)
{
    head_t  *h;

    h = g->head;
    h->map_bytes = tensor->offset + tensor->bytes;
    h->map = mmap(NULL, h->map_bytes, PROT_READ, MAP_SHARED, tensor->fd, 0);

    if (h->map == MAP_FAILED) {
        h->map = NULL;
        return core_fail(&g->core, "cannot map \"%.200s\": %m", g->core.file);
    }

    h->type = tensor->type;
    h->row_bytes = ggml_row_size(tensor->type, tensor->ne[0]);
    h->rows = h->map + tensor->offset;

    return 0;
}


static int
head_find_rows(generator_t *g, const tensors_t *t)
{
    const tensor_t  *tensor;

    tensor = tensors_find(t, HEAD_EMBEDDING);

    if (tensor == NULL || tensor->ne[0] != g->core.facts.width
        || tensor->ne[1] != g->core.facts.vocabulary
        || llama_vocab_n_tokens(g->vocab)
           != (int32_t) g->core.facts.vocabulary)
    {
        return core_fail(&g->core, "\"%.150s\": " HEAD_EMBEDDING " has not one "
                         "row a token", g->core.file);
    }

    if (tensor->type != GGML_TYPE_F32
        && ggml_get_type_traits(tensor->type)->to_float == NULL)
    {
        return core_fail(&g->core, "\"%.150s\": ggml does not read %s, the "
                         "type of " HEAD_EMBEDDING, g->core.file,
                         ggml_type_name(tensor->type));
    }

    return head_map(g, tensor);
}


void
head_embed(const generator_t *g, const llama_token *ids, uint32_t n, float *out)
{
    uint32_t       i, width;
    const char    *row;
    const head_t  *h;

    h = g->head;
    width = g->core.facts.width;

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
head_open_vocabulary(generator_t *g)
{
    struct llama_model_params  params;

    params = llama_model_default_params();
    params.vocab_only = true;
    g->head->model = load_model(&g->core, g->core.file, params, &g->core.file,
                                1);

    if (g->head->model == NULL) {
        return -1;
    }

    g->vocab = llama_model_get_vocab(g->head->model);
    g->template = llama_model_chat_template(g->head->model, NULL);

    return 0;
}


static int
head_open_rows(generator_t *g)
{
    int        rc;
    tensors_t  tensors;

    if (tensors_open(&tensors, &g->core.file, 1, g->core.facts.error) != 0) {
        return -1;
    }

    rc = head_read_context(g, &tensors) != 0
         || head_find_rows(g, &tensors) != 0 ? -1 : 0;
    tensors_close(&tensors);

    return rc;
}


int
head_open(generator_t *g)
{
    g->head = calloc(1, sizeof(head_t));

    if (g->head == NULL) {
        return core_fail(&g->core, "out of memory");
    }

    return head_read_facts(g) != 0 || head_open_vocabulary(g) != 0
           || head_open_rows(g) != 0 ? -1 : 0;
}


int
head_name(generator_t *g)
{
    g->core.facts.is_exact = !g->core.options.is_fp16;

    return shard_name(g->core.file, &g->core.backend, g->core.options.is_fp16,
                      g->core.facts.numerics, g->core.facts.error);
}


void
head_close(generator_t *g)
{
    head_t  *h;

    h = g->head;

    if (h == NULL) {
        return;
    }

    if (h->model != NULL) {
        llama_model_free(h->model);
    }

    if (h->map != NULL) {
        munmap(h->map, h->map_bytes);
    }

    sliced_done(&h->sliced);
    free(h);
    g->head = NULL;
}


/*
 * Operations on fixed numbers: a matrix of each type times a row, and the other
 * operations of a layer.  Two machines on which one of them differs in a bit
 * get different hashes, whatever their processors and libraries are called.
 */

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/kernels.h"


#define KERNELS_WIDTH    256            /* the largest block of any type */
#define KERNELS_ROWS     32
#define KERNELS_HEAD     64             /* floats of an attention head */
#define KERNELS_CELLS    256            /* positions that attention looks back
                                           at */
#define KERNELS_TENSORS  256
#define KERNELS_RESULTS  (GGML_TYPE_COUNT + 8)

typedef struct {
    struct ggml_context  *ctx;
    struct ggml_tensor   *inputs[KERNELS_RESULTS];
    struct ggml_tensor   *results[KERNELS_RESULTS];
    size_t                ninputs;
    size_t                nresults;
} kernels_t;


/* A number from -1 to 1, always the same for one i. */
static float
kernels_number(uint32_t i)
{
    i = i * 2654435761u + 12345;
    i ^= i >> 15;
    i *= 2246822519u;

    return (float) (int32_t) (i ^ i >> 13) * 0x1p-31f;
}


static struct ggml_tensor *
kernels_input(kernels_t *k, enum ggml_type type, int64_t ne0, int64_t ne1)
{
    struct ggml_tensor  *t;

    t = ggml_new_tensor_2d(k->ctx, type, ne0, ne1);
    k->inputs[k->ninputs++] = t;

    return t;
}


static void
kernels_result(kernels_t *k, struct ggml_tensor *t)
{
    k->results[k->nresults++] = t;
}


static void
kernels_attention(kernels_t *k)
{
    struct ggml_tensor  *q, *key, *value, *mask;

    q = kernels_input(k, GGML_TYPE_F32, KERNELS_HEAD, 1);
    key = kernels_input(k, GGML_TYPE_Q8_0, KERNELS_HEAD, KERNELS_CELLS);
    value = kernels_input(k, GGML_TYPE_Q8_0, KERNELS_HEAD, KERNELS_CELLS);
    mask = kernels_input(k, GGML_TYPE_F16, KERNELS_CELLS, 1);

    kernels_result(k, ggml_flash_attn_ext(k->ctx, q, key, value, mask, 0.125f,
                                          0, 0));
}


static void
kernels_build(kernels_t *k, const uint8_t types[GGML_TYPE_COUNT])
{
    uint32_t             type;
    struct ggml_tensor  *row, *position;

    row = kernels_input(k, GGML_TYPE_F32, KERNELS_WIDTH, 1);
    position = kernels_input(k, GGML_TYPE_I32, 1, 1);

    for (type = 0; type < GGML_TYPE_COUNT; type++) {
        if (types[type]) {
            kernels_result(k, ggml_mul_mat(
                k->ctx, kernels_input(k, type, KERNELS_WIDTH, KERNELS_ROWS),
                row));
        }
    }

    kernels_result(k, ggml_rms_norm(k->ctx, row, 1e-5f));
    kernels_result(k, ggml_soft_max(k->ctx, row));
    kernels_result(k, ggml_silu(k->ctx, row));
    kernels_result(k, ggml_gelu(k->ctx, row));
    kernels_result(k, ggml_rope(
        k->ctx, ggml_reshape_3d(k->ctx, row, KERNELS_HEAD,
                                KERNELS_WIDTH / KERNELS_HEAD, 1),
        ggml_reshape_1d(k->ctx, position, 1), KERNELS_HEAD,
        GGML_ROPE_TYPE_NEOX));
    kernels_attention(k);
}


/* Fills a matrix; some types are quantized by the importance of each column. */
static int
kernels_fill(struct ggml_tensor *t, uint32_t seed)
{
    void     *bytes;
    float    *numbers, *worth;
    int64_t   i, n;

    if (t->type == GGML_TYPE_I32) {
        i = 4242;
        ggml_backend_tensor_set(t, &i, 0, sizeof(int32_t));
        return 0;
    }

    n = ggml_nelements(t);
    numbers = malloc((size_t) n * sizeof(float));
    worth = malloc((size_t) t->ne[0] * sizeof(float));
    bytes = calloc(1, ggml_nbytes(t));

    if (numbers != NULL && worth != NULL && bytes != NULL) {
        for (i = 0; i < n; i++) {
            numbers[i] = kernels_number(seed * 100003 + (uint32_t) i);
        }

        for (i = 0; i < t->ne[0]; i++) {
            worth[i] = 1;
        }

        ggml_quantize_chunk(t->type, numbers, bytes, 0, t->ne[1], t->ne[0],
                            worth);
        ggml_backend_tensor_set(t, bytes, 0, ggml_nbytes(t));
    }

    i = (numbers != NULL && worth != NULL && bytes != NULL);
    free(numbers);
    free(worth);
    free(bytes);

    return i ? 0 : -1;
}


static int
kernels_fill_all(kernels_t *k)
{
    size_t  i;

    for (i = 0; i < k->ninputs; i++) {
        if (kernels_fill(k->inputs[i], (uint32_t) i) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
kernels_add_result(XXH3_state_t *state, struct ggml_tensor *t)
{
    void  *bytes;

    bytes = malloc(ggml_nbytes(t));

    if (bytes == NULL) {
        return -1;
    }

    ggml_backend_tensor_get(t, bytes, 0, ggml_nbytes(t));
    XXH3_64bits_update(state, bytes, ggml_nbytes(t));
    free(bytes);

    return 0;
}


static int
kernels_read(kernels_t *k, uint64_t *hash)
{
    int            rc;
    size_t         i;
    XXH3_state_t  *state;

    state = XXH3_createState();

    if (state == NULL) {
        return -1;
    }

    XXH3_64bits_reset(state);
    rc = 0;

    for (i = 0; i < k->nresults && rc == 0; i++) {
        rc = kernels_add_result(state, k->results[i]);
    }

    *hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);

    return rc;
}


static int
kernels_run(kernels_t *k, ggml_backend_t backend, uint64_t *hash)
{
    int                    rc;
    size_t                 i;
    struct ggml_cgraph    *graph;
    ggml_backend_buffer_t  buffer;

    graph = ggml_new_graph(k->ctx);

    for (i = 0; i < k->nresults; i++) {
        ggml_build_forward_expand(graph, k->results[i]);
    }

    buffer = ggml_backend_alloc_ctx_tensors(k->ctx, backend);

    if (buffer == NULL) {
        return -1;
    }

    rc = kernels_fill_all(k) == 0
         && ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS
         ? kernels_read(k, hash) : -1;
    ggml_backend_buffer_free(buffer);

    return rc;
}


int
kernels_hash(const uint8_t types[GGML_TYPE_COUNT], uint64_t *hash)
{
    int                      rc;
    kernels_t                k;
    ggml_backend_t           backend;
    struct ggml_init_params  params;

    memset(&k, 0, sizeof(k));
    memset(&params, 0, sizeof(params));
    params.mem_size = KERNELS_TENSORS * ggml_tensor_overhead()
                      + ggml_graph_overhead();
    params.no_alloc = true;
    k.ctx = ggml_init(params);
    backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    rc = -1;

    if (k.ctx != NULL && backend != NULL) {
        kernels_build(&k, types);
        rc = kernels_run(&k, backend, hash);
    }

    ggml_backend_free(backend);
    ggml_free(k.ctx);

    return rc;
}

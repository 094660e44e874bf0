
#include <string.h>
#include <strings.h>

#include "sim/model/card.h"


static const struct {
    const char    *name;            /* without what is before the last slash */
    model_card_t   card;
} card_presets[] = {
    { "qwen3-14b",
      { .layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 8,
        .head = 128, .intermediate = 17408, .param_bytes = 2,
        .max_positions = 40960, .vocabulary = 151936,
        .is_gated = 1 } },
    { "llama-3.1-8b-instruct",
      { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
        .intermediate = 14336, .param_bytes = 2, .max_positions = 131072,
        .vocabulary = 128256, .is_gated = 1 } },
    { "llama-3.1-8b",
      { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
        .intermediate = 14336, .param_bytes = 2, .max_positions = 131072,
        .vocabulary = 128256, .is_gated = 1 } }
};

static const struct {
    const char   *name;
    model_gpu_t   gpu;
} gpu_presets[] = {
    { "H100",
      { .tflops = 989.5, .tflops_fp8 = 1979, .bandwidth_tbs = 3.35,
        .mfu_prefill = 0.45, .mfu_decode = 0.30, .memory_gib = 80 } },
    { "A100-SXM",
      { .tflops = 312, .bandwidth_tbs = 2.039, .mfu_prefill = 0.38,
        .mfu_decode = 0.18, .memory_gib = 80 } },
    { "A100-80",
      { .tflops = 312, .bandwidth_tbs = 2.039, .mfu_prefill = 0.38,
        .mfu_decode = 0.18, .memory_gib = 80 } },
    { "L40S",
      { .tflops = 362.05, .tflops_fp8 = 1466, .bandwidth_tbs = 0.864,
        .mfu_prefill = 0.32, .mfu_decode = 0.08, .memory_gib = 48 } }
};


int
model_card_preset(const char *name, model_card_t *card)
{
    size_t       i;
    const char  *slash;

    slash = strrchr(name, '/');

    if (slash != NULL) {
        name = slash + 1;
    }

    for (i = 0; i < sizeof(card_presets) / sizeof(card_presets[0]); i++) {

        if (strcasecmp(name, card_presets[i].name) == 0) {
            *card = card_presets[i].card;
            return 0;
        }
    }

    return -1;
}


int
model_gpu_preset(const char *name, model_gpu_t *gpu)
{
    size_t  i;

    for (i = 0; i < sizeof(gpu_presets) / sizeof(gpu_presets[0]); i++) {

        if (strcmp(name, gpu_presets[i].name) == 0) {
            *gpu = gpu_presets[i].gpu;
            return 0;
        }
    }

    return -1;
}


double
model_card_kv_bytes(const model_card_t *card, int64_t tp)
{
    int64_t  kv_heads, head;

    if (tp <= 0 || card->heads <= 0) {
        return 0;
    }

    if (card->kv_latent > 0) {
        return (double) card->layers * (double) card->kv_latent
               * card->param_bytes;
    }

    kv_heads = card->kv_heads > 0 ? card->kv_heads : card->heads;
    head = card->head > 0 ? card->head : card->hidden / card->heads;

    return (double) card->layers * 2.0 * (double) head * (double) kv_heads
           * card->param_bytes / (double) tp;
}


/* --- memory */

#define GIB                  1073741824.0
#define ACTIVATIONS_GIB      5.5        /* of a dense model, in GiB */
#define ACTIVATIONS_MOE_GIB  8.0
#define RUNTIME_GIB          0.15       /* of a GPU that computes alone */
#define RUNTIME_TP_GIB       0.6        /* of each GPU, if they share layers */


/* Parameters of the feed-forward parts of all layers together. */
static int64_t
card_ffn_params(const model_card_t *card)
{
    int64_t  d, dense, moe, width;

    d = card->hidden;
    dense = 3 * d * card->intermediate;

    if (card->experts < MODEL_EXPERTS_MIN) {
        return card->layers * dense;
    }

    width = card->expert_intermediate > 0 ? card->expert_intermediate
                                          : card->intermediate;
    moe = 3 * d * width * card->experts + 3 * d * card->shared_intermediate
          + card->experts * d;

    if (card->dense_intermediate > 0) {
        dense = 3 * d * card->dense_intermediate;
    }

    width = card->dense_first < card->layers ? card->dense_first
                                             : card->layers;

    return width * dense + (card->layers - width) * moe;
}


static double
card_weights_gib(const model_card_t *card)
{
    double   bytes;
    int64_t  d, kv, params;

    d = card->hidden;
    kv = (card->kv_heads > 0 ? card->kv_heads : card->heads)
         * (card->head > 0 ? card->head : d / card->heads);
    params = card->layers * (d * (d + 2 * kv) + d * d + 2 * d)
             + card_ffn_params(card) + d
             + card->vocabulary * d * (card->is_tied ? 1 : 2);
    bytes = card->weight_bytes > 0 ? card->weight_bytes : card->param_bytes;

    return (double) (int64_t) ((double) params * bytes) / GIB;
}


int64_t
model_card_blocks(const model_card_t *card, const model_gpu_t *gpu,
    int64_t tp, int64_t block_tokens, double utilization)
{
    double   whole_gib, taken_gib;
    int64_t  block_bytes;

    block_bytes = (int64_t) (model_card_kv_bytes(card, tp)
                             * (double) block_tokens);

    if (block_bytes <= 0 || card->vocabulary <= 0 || !card->is_gated
        || card->intermediate <= 0 || gpu->memory_gib <= 0)
    {
        return 0;
    }

    whole_gib = gpu->memory_gib * utilization * (double) tp;
    taken_gib = card_weights_gib(card)
                + (card->experts >= MODEL_EXPERTS_MIN ? ACTIVATIONS_MOE_GIB
                                                      : ACTIVATIONS_GIB)
                + (tp == 1 ? RUNTIME_GIB : RUNTIME_TP_GIB) * (double) tp;

    return taken_gib < whole_gib
           ? (int64_t) ((whole_gib - taken_gib) * GIB) / block_bytes : 0;
}

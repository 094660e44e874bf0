
#include <string.h>
#include <strings.h>

#include "sim/model/card.h"


static const struct {
    const char    *name;            /* behind the last slash */
    model_card_t   card;
} card_presets[] = {
    { "qwen3-14b",
      { .layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 8,
        .head = 128, .intermediate = 17408, .param_bytes = 2,
        .max_positions = 40960 } },
    { "llama-3.1-8b-instruct",
      { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
        .intermediate = 14336, .param_bytes = 2, .max_positions = 131072 } },
    { "llama-3.1-8b",
      { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
        .intermediate = 14336, .param_bytes = 2, .max_positions = 131072 } }
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

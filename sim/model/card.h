
/*
 * The inputs of step times: a model's shape and a GPU's figures.
 *
 * Both come from a table of presets, or from the files that such tools share:
 * a model's config.json as Hugging Face publishes it, and a JSON file of GPUs
 * with the keys TFlopsPeak, TFlopsFP8, BwPeakTBs, mfuPrefill, mfuDecode and
 * MemoryGiB by name.
 */

#ifndef MODEL_CARD_H
#define MODEL_CARD_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_EXPERTS_MIN  2    /* a model with fewer experts is dense */

typedef struct {
    int64_t  layers;
    int64_t  hidden;                /* width of the hidden state */
    int64_t  heads;
    int64_t  kv_heads;
    int64_t  head;                  /* width of a head; 0: hidden / heads */
    int64_t  kv_latent;             /* width of compressed keys and values; 0:
                                       not compressed */
    int64_t  intermediate;          /* width of the feed-forward part */
    double   param_bytes;           /* of activations and the KV cache */
    double   weight_bytes;          /* of a quantized weight; 0: param_bytes */
    int64_t  max_positions;         /* tokens in a sequence; 0: unknown */
    int64_t  vocabulary;            /* 0: unknown */
    int      is_tied;               /* first and last matrix are the same */
    int      is_gated;              /* three feed-forward matrices */

    /* Mixtures of experts; a model with less than 2 experts is dense. */
    int64_t  experts;
    int64_t  experts_per_token;
    int64_t  expert_intermediate;   /* 0: intermediate */
    int64_t  shared_intermediate;   /* width of experts that all tokens use */
    int64_t  interleave;            /* n: one layer in n + 1 has experts; 0:
                                       all */
    int64_t  dense_intermediate;    /* width in layers without experts; 0:
                                       intermediate */
    int64_t  dense_first;           /* number of first layers without experts */
} model_card_t;

typedef struct {
    double  tflops;
    double  tflops_fp8;             /* 0: it computes in 16 bits */
    double  bandwidth_tbs;
    double  mfu_prefill;            /* share of tflops that is reached */
    double  mfu_decode;
    double  memory_gib;             /* 0: unknown */
} model_gpu_t;


/*
 * Finds a preset by name: models such as "qwen/qwen3-14b" and
 * "meta-llama/llama-3.1-8b-instruct", GPUs "H100", "A100-SXM", "A100-80",
 * "L40S".  0, or -1: there is none.
 */
int model_card_preset(const char *name, model_card_t *card);
int model_gpu_preset(const char *name, model_gpu_t *gpu);

/*
 * Reads folder/config.json, or the GPU `name` from a JSON file.  0, or -1 and
 * one line "FILE:LINE: what" in error, with nothing changed.  model_name, which
 * may be NULL, tells the quantization of the weights if the file does not.
 */
int model_card_read(const char *folder, const char *model_name,
    model_card_t *card, char *error, size_t bytes);
int model_gpu_read(const char *file, const char *name, model_gpu_t *gpu,
    char *error, size_t bytes);

/*
 * Bytes of KV cache that a token takes on each of tp GPUs; 0: tp or the card's
 * number of heads is not above 0.
 */
double model_card_kv_bytes(const model_card_t *card, int64_t tp);

/*
 * KV blocks that fit beside the weights into `utilization` (0 to 1) of the
 * memory of tp GPUs, by the estimate of llm-d's capacity planner.  0: the
 * memory needed is unknown, or the model does not fit.
 */
int64_t model_card_blocks(const model_card_t *card, const model_gpu_t *gpu,
    int64_t tp, int64_t block_tokens, double utilization);

#endif /* MODEL_CARD_H */

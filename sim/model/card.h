
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


#define MODEL_EXPERTS_MIN  2    /* with one expert, a model is dense */

typedef struct {
    int64_t  layers;
    int64_t  hidden;                /* width of the hidden state */
    int64_t  heads;
    int64_t  kv_heads;
    int64_t  head;                  /* width of one; 0: hidden / heads */
    int64_t  kv_latent;             /* width of compressed keys and values; 0:
                                       they are not compressed */
    int64_t  intermediate;          /* width of the feed-forward part */
    double   param_bytes;           /* of activations and the KV cache */
    double   weight_bytes;          /* of quantized weights; 0: param_bytes */
    int64_t  max_positions;         /* tokens of a sequence; 0: not known */
    int64_t  vocabulary;            /* 0: not known */
    int      is_tied;               /* its two ends share their weights */
    int      is_gated;              /* feed-forward by three matrices */

    /* Mixtures of experts; a model with less than 2 experts is dense. */
    int64_t  experts;
    int64_t  experts_per_token;
    int64_t  expert_intermediate;   /* 0: intermediate */
    int64_t  shared_intermediate;   /* of experts that all tokens take */
    int64_t  interleave;            /* n: one layer in n + 1 has experts; 0:
                                       all */
    int64_t  dense_intermediate;    /* of layers without experts; 0:
                                       intermediate */
    int64_t  dense_first;           /* first layers, without experts */
} model_card_t;

typedef struct {
    double  tflops;
    double  tflops_fp8;             /* 0: computes in 16 bits */
    double  bandwidth_tbs;
    double  mfu_prefill;            /* part of tflops that is reached */
    double  mfu_decode;
    double  memory_gib;             /* 0: not known */
} model_gpu_t;


/*
 * By name: "qwen/qwen3-14b", "meta-llama/llama-3.1-8b-instruct" and what is
 * common for them; "H100", "A100-SXM", "A100-80", "L40S".  -1: not known.
 */
int model_card_preset(const char *name, model_card_t *card);
int model_gpu_preset(const char *name, model_gpu_t *gpu);

/*
 * Reads folder/config.json, or GPU `name` of a JSON file.  -1, and one line
 * "FILE:LINE: what" in error: nothing is changed.  model_name is used if the
 * file lacks the quantization of the weights; it may be NULL.
 */
int model_card_read(const char *folder, const char *model_name,
    model_card_t *card, char *error, size_t bytes);
int model_gpu_read(const char *file, const char *name, model_gpu_t *gpu,
    char *error, size_t bytes);

/* Bytes of KV cache that a token takes on each of tp GPUs; 0: cannot be. */
double model_card_kv_bytes(const model_card_t *card, int64_t tp);

/*
 * KV blocks that fit beside the weights into `utilization` (0 to 1) of the
 * memory of tp GPUs, by the estimate of llm-d's capacity planner.  0: the
 * memory needed is unknown, or the model does not fit.
 */
int64_t model_card_blocks(const model_card_t *card, const model_gpu_t *gpu,
    int64_t tp, int64_t block_tokens, double utilization);

#endif /* MODEL_CARD_H */


#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/model/latency_inner.h"


const double  model_physics_alpha[MODEL_ALPHAS] = {
    15563.199579, 777.3455, 45.907545
};

const double  model_physics_beta[MODEL_BETAS_MAX] = {
    0.152128, 0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825,
    481.8613888, 0, 1.94710771, 0.752037
};

static const struct {
    const char            *name;
    model_latency_kind_t   kind;
} latency_kinds[] = {
    { "linear", MODEL_LINEAR },
    { "blackbox", MODEL_LINEAR },
    { "roofline", MODEL_ROOFLINE },
    { "trained-physics", MODEL_PHYSICS },
    { "physics", MODEL_PHYSICS }
};


int
model_latency_kind(const char *name, model_latency_kind_t *kind)
{
    size_t  i;

    for (i = 0; i < sizeof(latency_kinds) / sizeof(latency_kinds[0]); i++) {

        if (strcmp(name, latency_kinds[i].name) == 0) {
            *kind = latency_kinds[i].kind;
            return 0;
        }
    }

    return -1;
}


static int
latency_wrong(char *error, size_t bytes, const char *what)
{
    snprintf(error, bytes, "%s", what);

    return -1;
}


static int
latency_are_sane(const double *coefficients, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (!isfinite(coefficients[i]) || coefficients[i] < 0) {
            return 0;
        }
    }

    return 1;
}


static int
latency_check_coefficients(const model_latency_options_t *options,
    char *error, size_t bytes)
{
    if (options->nbeta > MODEL_BETAS_MAX
        || !latency_are_sane(options->alpha, MODEL_ALPHAS)
        || !latency_are_sane(options->beta, options->nbeta))
    {
        return latency_wrong(error, bytes,
                             "a coefficient is not a number >= 0");
    }

    if (options->kind == MODEL_LINEAR && options->nbeta != 3) {
        return latency_wrong(error, bytes,
                             "the linear model takes 3 beta coefficients");
    }

    if (options->kind == MODEL_PHYSICS && options->nbeta < 7) {
        return latency_wrong(error, bytes, "the trained-physics model takes"
                             " 7 to 11 beta coefficients");
    }

    return 0;
}


static int
latency_is_positive(double figure)
{
    return isfinite(figure) && figure > 0;
}


static int
latency_check_card(const model_card_t *card, int64_t tp, char *error,
    size_t bytes)
{
    if (card->layers <= 0 || card->hidden <= 0 || card->heads <= 0
        || card->kv_heads < 0 || card->intermediate < 0)
    {
        return latency_wrong(error, bytes, "the model's layers, width and"
                             " heads must be positive");
    }

    if (!latency_is_positive(card->param_bytes)
        || (card->weight_bytes != 0
            && !latency_is_positive(card->weight_bytes)))
    {
        return latency_wrong(error, bytes,
                             "the bytes of the model's numbers are not known");
    }

    if (card->experts >= MODEL_EXPERTS_MIN
        && (card->experts_per_token <= 0
            || card->experts_per_token > card->experts))
    {
        return latency_wrong(error, bytes, "each token takes 1 or more of"
                             " the model's experts");
    }

    if (tp <= 0) {
        return latency_wrong(error, bytes, "tp must be at least 1");
    }

    return 0;
}


static int
latency_check_machine(const model_latency_options_t *options, char *error,
    size_t bytes)
{
    int64_t              kv_heads;
    const model_gpu_t   *gpu;
    const model_card_t  *card;

    gpu = &options->gpu;
    card = &options->card;
    kv_heads = card->kv_heads > 0 ? card->kv_heads : card->heads;

    if (!latency_is_positive(gpu->tflops)
        || !latency_is_positive(gpu->bandwidth_tbs))
    {
        return latency_wrong(error, bytes,
                             "the GPU's rates must be positive");
    }

    if (options->kind == MODEL_ROOFLINE
        && (!latency_is_positive(gpu->mfu_prefill)
            || !latency_is_positive(gpu->mfu_decode)))
    {
        return latency_wrong(error, bytes, "the roofline model needs the"
                             " GPU's mfuPrefill and mfuDecode");
    }

    if (options->kind == MODEL_PHYSICS
        && (card->intermediate <= 0 || card->heads % options->tp != 0
            || kv_heads % options->tp != 0))
    {
        return latency_wrong(error, bytes, "the model's heads must be"
                             " divisible by tp");
    }

    return 0;
}


/* Counts the layers with experts, and the width of each kind of layer. */
static void
latency_split_layers(model_latency_t *latency, const model_card_t *card)
{
    int64_t  moe;
    double   intermediate;

    intermediate = card->intermediate > 0 ? (double) card->intermediate
                                          : 4.0 * (double) card->hidden;
    moe = 0;

    if (card->experts >= MODEL_EXPERTS_MIN) {
        moe = card->interleave > 0 ? card->layers / (card->interleave + 1)
                                   : card->layers;
        latency->p.interleaved = card->interleave > 0;
    }

    latency->p.moe_layers = (double) moe;
    latency->p.dense_layers = (double) (card->layers - moe);
    latency->p.moe_hidden = card->expert_intermediate > 0
                            ? (double) card->expert_intermediate
                            : intermediate;
    latency->p.dense_hidden = card->dense_intermediate > 0
                              ? (double) card->dense_intermediate
                              : intermediate;
    latency->p.shared = (double) card->shared_intermediate;
    latency->p.chosen = (double) card->experts_per_token;
    latency->p.top_k = card->experts_per_token > 1
                       ? (double) card->experts_per_token : 1;
}


static void
latency_prepare(model_latency_t *latency)
{
    double               scale;
    const model_gpu_t   *gpu;
    const model_card_t  *card;

    gpu = &latency->options.gpu;
    card = &latency->options.card;

    latency->p.tp = (double) latency->options.tp;
    latency->p.layers = (double) card->layers;
    latency->p.hidden = (double) card->hidden;
    latency->p.heads = (double) card->heads;
    latency->p.kv_heads = (double) (card->kv_heads > 0 ? card->kv_heads
                                                       : card->heads);
    latency->p.heads_tp = latency->p.heads / latency->p.tp;
    latency->p.param_bytes = card->param_bytes;
    latency->p.weight_bytes = card->weight_bytes > 0 ? card->weight_bytes
                                                     : card->param_bytes;
    latency_split_layers(latency, card);

    /* The fitted model uses us, and head sizes in whole numbers. */
    scale = latency->options.kind == MODEL_PHYSICS ? 1e6 : 1e12;
    latency->p.head = latency->options.kind == MODEL_PHYSICS
                      ? (double) (card->hidden / card->heads)
                      : latency->p.hidden / latency->p.heads;
    latency->p.kv = latency->p.kv_heads * latency->p.head;
    latency->p.flops = gpu->tflops * scale;
    latency->p.bandwidth = gpu->bandwidth_tbs * scale;

    if (latency->p.weight_bytes == 1.0 && gpu->tflops_fp8 > 0) {
        latency->p.flops = gpu->tflops_fp8 * scale;
    }

    latency->p.weight_us = model_physics_weights(latency);
}


/* Cuts a time to whole microseconds. */
static int64_t
latency_cut(double us)
{
    return isnan(us) || us >= 0x1p62 ? INT64_MAX / 4 : (int64_t) us;
}


int
model_latency_init(model_latency_t *latency,
    const model_latency_options_t *options, char *error, size_t bytes)
{
    if (latency_check_coefficients(options, error, bytes) != 0) {
        return -1;
    }

    if (options->kind != MODEL_LINEAR
        && (latency_check_card(&options->card, options->tp, error, bytes) != 0
            || latency_check_machine(options, error, bytes) != 0))
    {
        return -1;
    }

    memset(latency, 0, sizeof(model_latency_t));
    latency->options = *options;
    latency->token_us = latency_cut(options->alpha[2]);

    if (options->kind != MODEL_LINEAR) {
        latency_prepare(latency);
    }

    if (options->kind == MODEL_PHYSICS) {
        latency->end_us = latency_cut(options->alpha[1]);
    }

    latency->takes_each = options->kind == MODEL_ROOFLINE;

    return 0;
}


int64_t
model_latency_queueing(const model_latency_t *latency, uint32_t input_tokens)
{
    const double  *alpha;

    alpha = latency->options.alpha;

    return latency_cut(latency->options.kind == MODEL_PHYSICS
                       ? alpha[0] : alpha[0] + alpha[1] * input_tokens);
}


static double
latency_linear_step(const model_latency_t *latency, const model_work_t *work)
{
    size_t         i;
    double         prefilled;
    const double  *beta;

    beta = latency->options.beta;
    prefilled = 0;

    for (i = 0; i < work->nprefills; i++) {
        prefilled += work->prefills[i].new_tokens;
    }

    return beta[0] + beta[1] * prefilled + beta[2] * (double) work->decodes;
}


int64_t
model_latency_step(const model_latency_t *latency, const model_work_t *work)
{
    int64_t  us;

    switch (latency->options.kind) {

    case MODEL_ROOFLINE:
        us = latency_cut(model_roofline_step(latency, work));
        break;

    case MODEL_PHYSICS:
        us = latency_cut(model_physics_step(latency, work));
        break;

    default:
        us = latency_cut(latency_linear_step(latency, work));
    }

    return us > 0 ? us : 1;
}


/*
 * The roofline model: each request's floating point operations at the rate that
 * its phase reaches, and each byte that the step moves at the memory's rate;
 * the step takes the longer of both.  The weights are read once a step.
 *
 * The sums are over single requests, so this model needs the progress of each.
 */

#include <math.h>

#include "sim/model/latency_inner.h"


#define MLP_MATRICES  2.0


/*
 * Bytes of weights that a step with so many tokens reads in the feed-forward
 * part.
 */
static double
roofline_mlp_weights(const model_latency_t *latency, double tokens)
{
    double  weights, experts, missed;

    weights = 0;

    if (latency->p.moe_layers > 0) {
        experts = (double) latency->options.card.experts;
        missed = (experts - latency->p.chosen) / experts;
        weights = MLP_MATRICES * latency->p.hidden * latency->p.moe_hidden
                  * (experts * (1.0 - pow(missed, tokens)))
                  * latency->p.moe_layers;
    }

    if (latency->p.dense_layers > 0) {
        weights += MLP_MATRICES * latency->p.hidden * latency->p.dense_hidden
                   * latency->p.dense_layers;
    }

    return weights;
}


static double
roofline_weight_bytes(const model_latency_t *latency, double tokens)
{
    double  d, attention;

    d = latency->p.hidden;
    attention = d * (d + 2 * latency->p.kv) + d * d;

    return (attention * latency->p.layers
            + roofline_mlp_weights(latency, tokens))
           * latency->p.weight_bytes;
}


static double
roofline_flops(const model_latency_t *latency, double context, double tokens)
{
    double  d, layers, heads, seen, gemm, vector, attention;

    d = latency->p.hidden;
    layers = latency->p.layers;
    heads = latency->p.heads;

    gemm = (2 * tokens * (d * d + 2 * d * latency->p.kv)
            + 2 * tokens * d * d) * layers;

    seen = tokens > 1 ? context + (tokens - 1) / 2.0 : context;
    attention = 4 * heads * tokens * seen * latency->p.head;
    vector = 5 * heads * tokens * seen + 2 * tokens * d;
    gemm += attention * layers;

    if (latency->p.moe_layers > 0) {
        gemm += 2 * tokens * (MLP_MATRICES * d * latency->p.moe_hidden)
                * latency->p.chosen * latency->p.moe_layers;
    }

    if (latency->p.dense_layers > 0) {
        gemm += 2 * tokens * (MLP_MATRICES * d * latency->p.dense_hidden)
                * latency->p.dense_layers;
    }

    return gemm + vector * layers;
}


/* Bytes that a request moves besides the weights. */
static double
roofline_bytes(const model_latency_t *latency, double context, double tokens)
{
    double  weights, kv, total;

    weights = roofline_weight_bytes(latency, tokens);
    kv = 2 * latency->p.layers * latency->p.kv_heads * latency->p.head
         * latency->p.param_bytes;
    total = weights + kv * tokens + kv * context
            + latency->p.layers * latency->p.hidden * latency->p.param_bytes
              * tokens;

    return (total - weights) / latency->p.tp;
}


double
model_roofline_step(const model_latency_t *latency, const model_work_t *work)
{
    size_t                  i;
    double                  compute_s, memory_s, bytes, tokens, rate;
    const model_gpu_t      *gpu;
    const model_prefill_t  *prefill;

    if (work->nprefills == 0 && work->decodes == 0) {
        return 0;
    }

    gpu = &latency->options.gpu;
    compute_s = 0;
    bytes = 0;
    tokens = (double) work->decodes;
    rate = latency->p.flops * gpu->mfu_prefill;

    for (i = 0; i < work->nprefills; i++) {
        prefill = &work->prefills[i];
        tokens += prefill->new_tokens;
        compute_s += roofline_flops(latency, prefill->progress,
                                    prefill->new_tokens)
                     / latency->p.tp / rate;
        bytes += roofline_bytes(latency, prefill->progress,
                                prefill->new_tokens);
    }

    rate = latency->p.flops * gpu->mfu_decode;

    for (i = 0; i < work->decodes; i++) {
        compute_s += roofline_flops(latency, work->decode_at[i], 1)
                     / latency->p.tp / rate;
        bytes += roofline_bytes(latency, work->decode_at[i], 1);
    }

    memory_s = (roofline_weight_bytes(latency, tokens) / latency->p.tp + bytes)
               / latency->p.bandwidth;

    return fmax(compute_s, memory_s) * 1e6;
}


/*
 * The fitted model: the least times of computing, of reading the KV cache, of
 * reading the weights and of communication among GPUs, each times a coefficient
 * that was fitted to a real engine, plus constants for layers, requests and the
 * step.
 *
 * With 7 or 8 coefficients, the longer of computing and memory counts in each
 * phase; with the 9th both count for prompts, with the 10th for answers.  The
 * 11th is for several data-parallel ranks, which are not modelled.
 */

#include <math.h>

#include "sim/model/latency_inner.h"


#define KV_BYTES  2.0           /* of a number in the KV cache, in all models */


/* Floating point operations of the feed-forward part for so many tokens. */
static double
physics_ffn(const model_latency_t *latency, double tokens)
{
    double  flops, d;

    d = latency->p.hidden;
    flops = 0;

    if (latency->p.moe_layers > 0) {
        flops += latency->p.moe_layers
                 * (tokens * latency->p.top_k / latency->p.tp) * 6 * d
                 * latency->p.moe_hidden;

        if (latency->p.shared > 0) {
            flops += latency->p.moe_layers * tokens * 6 * d
                     * latency->p.shared / latency->p.tp;
        }
    }

    if (latency->p.dense_layers > 0) {
        flops += latency->p.dense_layers * tokens * 6 * d
                 * latency->p.dense_hidden / latency->p.tp;
    }

    return flops;
}


static double
physics_projections(const model_latency_t *latency, double tokens)
{
    double  d;

    d = latency->p.hidden;

    return latency->p.layers * 2 * tokens * d * (2 * d + 2 * latency->p.kv)
           / latency->p.tp;
}


double
model_physics_weights(const model_latency_t *latency)
{
    double  d, attention, ffn, bytes;

    d = latency->p.hidden;
    bytes = latency->p.weight_bytes;
    attention = latency->p.layers * d * (2 * d + 2 * latency->p.kv) * bytes
                / latency->p.tp;
    ffn = 0;

    if (latency->p.moe_layers > 0) {
        ffn += latency->p.moe_layers
               * ((double) latency->options.card.experts / latency->p.tp)
               * 3 * d * latency->p.moe_hidden * bytes;

        if (latency->p.shared > 0) {
            ffn += latency->p.moe_layers * 3 * d * latency->p.shared * bytes
                   / latency->p.tp;
        }
    }

    if (latency->p.dense_layers > 0) {
        ffn += latency->p.dense_layers * 3 * d * latency->p.dense_hidden
               * bytes / latency->p.tp;
    }

    return (attention + ffn) / latency->p.bandwidth;
}


static double
physics_prefill(const model_latency_t *latency, const model_work_t *work,
    double tokens)
{
    size_t                  i;
    double                  n, attention, compute, memory;
    const double           *beta;
    const model_prefill_t  *prefill;

    if (tokens == 0) {
        return 0;
    }

    attention = 0;

    for (i = 0; i < work->nprefills; i++) {
        prefill = &work->prefills[i];
        n = prefill->new_tokens;
        attention += 4 * latency->p.heads_tp * n
                     * (prefill->input_tokens + n / 2) * latency->p.head;
    }

    compute = (physics_projections(latency, tokens)
               + latency->p.layers * attention + physics_ffn(latency, tokens))
              / latency->p.flops;
    memory = latency->p.layers * 2 * (latency->p.kv / latency->p.tp) * tokens
             * KV_BYTES / latency->p.bandwidth;
    beta = latency->options.beta;

    return latency->options.nbeta >= 9
           ? beta[0] * compute + beta[8] * memory
           : beta[0] * fmax(compute, memory);
}


static double
physics_decode(const model_latency_t *latency, double tokens, double context)
{
    double         compute, memory;
    const double  *beta;

    if (tokens == 0) {
        return 0;
    }

    compute = (physics_projections(latency, tokens)
               + latency->p.layers * 4 * latency->p.heads_tp * context
                 * latency->p.head
               + physics_ffn(latency, tokens)) / latency->p.flops;
    memory = latency->p.layers * 2 * (latency->p.kv / latency->p.tp)
             * KV_BYTES * (context + tokens) / latency->p.bandwidth;
    beta = latency->options.beta;

    return latency->options.nbeta >= 10
           ? beta[1] * compute + beta[9] * memory
           : beta[1] * fmax(compute, memory);
}


/*
 * The time to add up results over the GPUs that share layers, once for each of
 * `units`.
 */
static double
physics_reduce(const model_latency_t *latency, double units, double tokens)
{
    if (latency->p.tp <= 1) {
        return 0;
    }

    return units * tokens * latency->p.hidden * latency->p.param_bytes * 2.0
           * ((latency->p.tp - 1) / latency->p.tp) / latency->p.bandwidth;
}


double
model_physics_step(const model_latency_t *latency, const model_work_t *work)
{
    size_t         i;
    double         prefilled, decoded, tokens, reduce;
    const double  *beta;

    if (work->nprefills == 0 && work->decodes == 0) {
        return 1;
    }

    prefilled = 0;

    for (i = 0; i < work->nprefills; i++) {
        prefilled += work->prefills[i].new_tokens;
    }

    decoded = (double) work->decodes;
    tokens = prefilled + decoded;
    reduce = physics_reduce(latency, latency->p.layers, tokens)
             + physics_reduce(latency, latency->p.dense_layers, tokens)
             + physics_reduce(latency, latency->p.moe_layers, tokens);
    beta = latency->options.beta;

    return physics_prefill(latency, work, prefilled)
           + physics_decode(latency, decoded, (double) work->context)
           + beta[2] * latency->p.weight_us
           + beta[3] * reduce
           + beta[4] * latency->p.layers
           + beta[5] * (double) (work->nprefills + work->decodes)
           + beta[6]
           + beta[7] * latency->p.interleaved * latency->p.moe_layers;
}

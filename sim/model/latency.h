
/*
 * The time of a step, and the additional time of a request.
 *
 *     linear    b0 + b1 x prefilled tokens + b2 x decoded tokens
 *     roofline  the longer of what computing and what memory takes
 *     physics   such bounds, with coefficients that were fitted to a real
 *               engine ("trained-physics"): 7 to 11 of them
 *
 * The sums are doubles, in the order of BLIS's formulas, and are cut to whole
 * microseconds, so that the times are BLIS's.  Operations must not be
 * contracted: this folder is compiled with -ffp-contract=off.
 */

#ifndef MODEL_LATENCY_H
#define MODEL_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/card.h"


#define MODEL_ALPHAS     3
#define MODEL_BETAS_MAX  11

typedef enum {
    MODEL_LINEAR = 0,
    MODEL_ROOFLINE,
    MODEL_PHYSICS
} model_latency_kind_t;

typedef struct {
    model_latency_kind_t  kind;

    /*
     * linear    alpha: a0 + a1 x input tokens until a request is queued, a2
     *           for each token; beta: b0, b1, b2
     * roofline  alpha likewise; no beta
     * physics   alpha: a0 until a request is queued, a1 once at its end, a2
     *           for each token; beta: 7 to 11
     */
    double                alpha[MODEL_ALPHAS];
    double                beta[MODEL_BETAS_MAX];
    size_t                nbeta;

    model_card_t          card;         /* used by roofline and physics */
    model_gpu_t           gpu;
    int64_t               tp;           /* GPUs that share each layer */
} model_latency_options_t;

/*
 * A request in a step that prefills new_tokens of its prompt; `progress` tokens
 * are computed already.
 */
typedef struct {
    uint32_t  progress;
    uint32_t  new_tokens;
    uint32_t  input_tokens;
} model_prefill_t;

/* What one step computes. */
typedef struct {
    const model_prefill_t  *prefills;       /* in the order of the batch */
    size_t                  nprefills;
    uint64_t                decodes;        /* requests that get one token */
    uint64_t                context;        /* sum of their progress */
    const uint32_t         *decode_at;      /* their progress, in order; set
                                               only if takes_each */
} model_work_t;

/* Made by model_latency_init(); read-only from then on. */
typedef struct {
    model_latency_options_t  options;
    int                      takes_each;    /* its sums depend on the order of
                                               decoding requests */
    int64_t                  token_us;      /* for each token sent */
    int64_t                  end_us;        /* once, at an end with output */

    /* Parts of the formulas that do not change between steps. */
    struct {
        double  tp, layers, hidden, head, heads, heads_tp, kv_heads, kv;
        double  moe_layers, dense_layers, moe_hidden, dense_hidden;
        double  chosen, top_k, shared;      /* experts per token; >= 1 */
        double  interleaved;                /* 1 or 0 */
        double  param_bytes, weight_bytes;
        double  flops, bandwidth;           /* per us, or per second */
        double  weight_us;                  /* us to read all weights once */
    } p;
} model_latency_t;


/*
 * Finds a kind by its name: "linear" ("blackbox"), "roofline",
 * "trained-physics" ("physics").  0, or -1: there is none.
 */
int model_latency_kind(const char *name, model_latency_kind_t *kind);

/* The coefficients of `physics` that come with the simulator. */
extern const double  model_physics_alpha[MODEL_ALPHAS];
extern const double  model_physics_beta[MODEL_BETAS_MAX];

/* 0, or -1 and one line in error: a figure is out of its range. */
int model_latency_init(model_latency_t *latency,
    const model_latency_options_t *options, char *error, size_t bytes);

/* From a request's arrival until it is in the queue, in us. */
int64_t model_latency_queueing(const model_latency_t *latency,
    uint32_t input_tokens);

/* How long a step takes, in us; at least 1. */
int64_t model_latency_step(const model_latency_t *latency,
    const model_work_t *work);

#endif /* MODEL_LATENCY_H */

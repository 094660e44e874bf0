
/*
 * Latency models: by hand, and compared with the times of BLIS for the same
 * request.
 */

#include <math.h>

#include "t/unit/sim/model/scene.h"


#define INPUT   1254
#define OUTPUT  93

static model_latency_options_t
options(model_latency_kind_t kind, const char *model, const char *gpu,
    int64_t tp)
{
    model_latency_options_t  options = { .kind = kind, .tp = tp };

    assert_int_equal(model_card_preset(model, &options.card), 0);
    assert_int_equal(model_gpu_preset(gpu, &options.gpu), 0);

    if (kind == MODEL_PHYSICS) {
        memcpy(options.alpha, model_physics_alpha, sizeof(options.alpha));
        memcpy(options.beta, model_physics_beta, sizeof(options.beta));
        options.nbeta = MODEL_BETAS_MAX;
    }

    return options;
}


/* One request alone: the times that `blis replay` gives it. */
static void
expect_times(const model_latency_options_t *options, int64_t ttft_us,
    int64_t e2e_us)
{
    char             error[128];
    model_config_t   config;
    model_request_t  request = { .id = "r", .input_tokens = INPUT,
                                 .output_tokens = OUTPUT, .arrival_us = 1 };
    model_replica_t  *replica;

    model_config_init(&config);
    config.max_model_len = 40960;
    assert_int_equal(model_latency_init(&config.latency, options, error,
                                        sizeof(error)), 0);
    replica = model_replica_create(&config, NULL, NULL);
    assert_int_equal(model_replica_arrive(replica, &request, 1), 0);

    while (model_replica_next(replica) != MODEL_NEVER) {
        assert_int_equal(model_replica_step(replica), 0);
    }

    assert_int_equal(request.ttft_us, ttft_us);
    assert_int_equal(request.e2e_us, e2e_us);
    model_replica_destroy(replica);
}


static void
times_one_request_as_blis_does(void **state)
{
    model_latency_options_t  o;
    const double             beta8[] = { 0.2, 0.1, 1, 0.5, 10, 2, 50, 400 };

    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "H100", 1);
    expect_times(&o, 33161, 1168294);

    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "H100", 2);
    expect_times(&o, 25322, 660398);

    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "A100-SXM", 1);
    expect_times(&o, 51778, 1829970);

    o = options(MODEL_PHYSICS, "meta-llama/llama-3.1-8b-instruct", "H100", 1);
    expect_times(&o, 25324, 668114);

    /* without separate times for computing and memory */
    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "H100", 1);
    memcpy(o.beta, beta8, sizeof(beta8));
    o.nbeta = 8;
    expect_times(&o, 31035, 803770);

    o = options(MODEL_ROOFLINE, "qwen/qwen3-14b", "H100", 1);
    expect_times(&o, 55796, 591473);

    o = options(MODEL_ROOFLINE, "qwen/qwen3-14b", "L40S", 1);
    expect_times(&o, 214445, 2291564);
}


static void
times_mixtures_of_experts_as_blis_does(void **state)
{
    model_latency_options_t  o;

    /* mixtral-8x7b: all layers have 8 experts, 2 for a token */
    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "H100", 4);
    o.card = (model_card_t) {
        .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
        .intermediate = 14336, .param_bytes = 2, .experts = 8,
        .experts_per_token = 2
    };
    expect_times(&o, 27694, 1010199);
    o.kind = MODEL_ROOFLINE;
    memset(o.alpha, 0, sizeof(o.alpha));
    expect_times(&o, 12707, 135469);

    /* llama-4-scout: every other layer, in 8 bits, with a shared one */
    o = options(MODEL_PHYSICS, "qwen/qwen3-14b", "H100", 4);
    o.card = (model_card_t) {
        .layers = 48, .hidden = 5120, .heads = 40, .kv_heads = 8,
        .intermediate = 8192, .param_bytes = 2, .weight_bytes = 1,
        .experts = 16, .experts_per_token = 1, .interleave = 1,
        .dense_intermediate = 16384
    };
    expect_times(&o, 35719, 1798477);
}


static void
adds_up_a_linear_step(void **state)
{
    char                     error[128];
    model_latency_t          latency;
    model_latency_options_t  o = {
        .kind = MODEL_LINEAR, .alpha = { 232.46, 1.752, 3357.4 },
        .beta = { 5752.7, 17.25, 5.999 }, .nbeta = 3
    };
    const model_prefill_t    prefills[] = { { 0, 100, 300 }, { 64, 7, 71 } };
    model_work_t             work = { .prefills = prefills, .nprefills = 2,
                                      .decodes = 3, .context = 900 };

    assert_int_equal(model_latency_init(&latency, &o, error, sizeof(error)),
                     0);

    /* 5752.7 + 17.25 x 107 + 5.999 x 3 = 7616.447 */
    assert_int_equal(model_latency_step(&latency, &work), 7616);
    assert_int_equal(model_latency_queueing(&latency, 1000), 1984);
    assert_int_equal(latency.token_us, 3357);
    assert_int_equal(latency.end_us, 0);

    o.beta[0] = o.beta[1] = o.beta[2] = 0;
    assert_int_equal(model_latency_init(&latency, &o, error, sizeof(error)),
                     0);
    assert_int_equal(model_latency_step(&latency, &work), 1);
}


/* Layers x 2 x head x KV heads x bytes: 40 x 2 x 128 x 8 x 2. */
static void
knows_how_large_a_token_is(void **state)
{
    model_card_t  card;

    assert_int_equal(model_card_preset("qwen3-14b", &card), 0);
    assert_true(model_card_kv_bytes(&card, 1) == 163840);
    assert_true(model_card_kv_bytes(&card, 4) == 40960);
    card.kv_latent = 576;
    assert_true(model_card_kv_bytes(&card, 4) == 40 * 576 * 2);
    assert_int_equal(model_card_preset("gpt-2", &card), -1);
}


/* The numbers are those of `blis replay` without --total-kv-blocks. */
static void
knows_how_many_blocks_fit(void **state)
{
    model_gpu_t   gpu;
    model_card_t  card;

    assert_int_equal(model_gpu_preset("H100", &gpu), 0);
    assert_int_equal(model_card_preset("qwen3-14b", &card), 0);
    assert_int_equal(model_card_blocks(&card, &gpu, 1, 16, 0.9), 15909);
    assert_int_equal(model_card_blocks(&card, &gpu, 4, 16, 0.9), 413846);
    assert_int_equal(model_card_preset("llama-3.1-8b", &card), 0);
    assert_int_equal(model_card_blocks(&card, &gpu, 1, 16, 0.9), 26312);

    /* mixtral-8x7b takes 87 GiB */
    card.experts = 8;
    card.experts_per_token = 2;
    card.vocabulary = 32000;
    assert_int_equal(model_card_blocks(&card, &gpu, 1, 16, 0.9), 0);
    assert_int_equal(model_card_blocks(&card, &gpu, 4, 16, 0.9), 390367);

    card.is_gated = 0;
    assert_int_equal(model_card_blocks(&card, &gpu, 4, 16, 0.9), 0);
}


static void
refuse(const model_latency_options_t *o, const char *what)
{
    char             error[128];
    model_latency_t  latency;

    assert_int_equal(model_latency_init(&latency, o, error, sizeof(error)),
                     -1);
    assert_non_null(strstr(error, what));
}


static void
refuses_what_cannot_be(void **state)
{
    model_latency_options_t  o;

    o = options(MODEL_PHYSICS, "qwen3-14b", "H100", 1);
    o.beta[3] = NAN;
    refuse(&o, "coefficient");
    o.beta[3] = -1;
    refuse(&o, "coefficient");
    o.beta[3] = 1;
    o.nbeta = 6;
    refuse(&o, "7 to 11");
    o.nbeta = 7;
    o.tp = 3;
    refuse(&o, "divisible");
    o.tp = 0;
    refuse(&o, "tp");
    o.tp = 1;
    o.gpu.tflops = INFINITY;
    refuse(&o, "rates");

    o = options(MODEL_ROOFLINE, "qwen3-14b", "H100", 1);
    o.gpu.mfu_decode = 0;
    refuse(&o, "mfu");
    o.card.param_bytes = 0;
    refuse(&o, "bytes");
    o.card.layers = 0;
    refuse(&o, "layers");

    o.kind = MODEL_LINEAR;
    o.nbeta = 2;
    refuse(&o, "3 beta");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(times_one_request_as_blis_does),
        cmocka_unit_test(times_mixtures_of_experts_as_blis_does),
        cmocka_unit_test(adds_up_a_linear_step),
        cmocka_unit_test(knows_how_large_a_token_is),
        cmocka_unit_test(knows_how_many_blocks_fit),
        cmocka_unit_test(refuses_what_cannot_be)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

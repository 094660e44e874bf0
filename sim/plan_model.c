
/*
 * Makes a plan from settings: the replicas' half.
 *
 * A model and a GPU are found as presets by their names; a file that is given
 * comes first.  A file that does not exist causes only a note if a preset has
 * the name, so that command lines of BLIS run without BLIS's files.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/plan_inner.h"


#define PLAN_MODEL    "qwen/qwen3-14b"
#define PLAN_GPU      "H100"
#define PLAN_BLOCKS   1000000           /* if the GPUs' memory is unknown */
#define PLAN_PATH     4096


/* Model and GPU of the fleet, or of a pool. */
typedef struct {
    const char  *hardware;
    const char  *latency_model;
    int64_t      tp;
    int64_t      max_model_len;         /* 0: not given */
} plan_engine_t;


/* --- files and presets */

static int
plan_reads(const char *path, const char *what, int has_preset)
{
    if (path == NULL) {
        return 0;
    }

    if (access(path, R_OK) == 0 || !has_preset) {
        return 1;
    }

    fprintf(stderr, "llmgw-sim: %s does not exist, the preset of that name is "
            "used for %s\n", path, what);

    return 0;
}


static int
plan_card(sim_plan_t *plan, const sim_settings_t *s, const char *name,
    model_card_t *card)
{
    int   has_preset;
    char  path[PLAN_PATH];

    has_preset = model_card_preset(name, card) == 0;
    snprintf(path, sizeof(path), "%s/config.json",
             s->model_folder != NULL ? s->model_folder : "");

    if (plan_reads(s->model_folder != NULL ? path : NULL, "the model",
                   has_preset))
    {
        return model_card_read(s->model_folder, name, card, plan->error,
                               sizeof(plan->error));
    }

    if (!has_preset) {
        return plan_fail(plan, "--model: no preset is called \"%s\", and "
                         "--model-config-folder does not say what it is",
                         name);
    }

    return 0;
}


static int
plan_gpu(sim_plan_t *plan, const sim_settings_t *s, const char *name,
    model_gpu_t *gpu)
{
    int  has_preset;

    has_preset = model_gpu_preset(name, gpu) == 0;

    if (plan_reads(s->hardware_file, "the hardware", has_preset)) {
        return model_gpu_read(s->hardware_file, name, gpu, plan->error,
                              sizeof(plan->error));
    }

    if (!has_preset) {
        return plan_fail(plan, "--hardware: no preset is called \"%s\", and "
                         "--hardware-config does not say what it is", name);
    }

    return 0;
}


/* --- coefficients */

/* Reads "1,2.5,3"; returns how many numbers, or -1. */
static int
plan_coefficients(sim_plan_t *plan, const char *option, const char *text,
    double *list, size_t max)
{
    char    *end;
    size_t   n;

    for (n = 0; n < max; text = end + 1) {
        list[n] = strtod(text, &end);

        if (end == text || !isfinite(list[n]) || list[n] < 0
            || (*end != ',' && *end != '\0'))
        {
            return plan_fail(plan, "%s: \"%s\" is not a list of finite "
                             "numbers, not below 0", option, text);
        }

        n++;

        if (*end == '\0') {
            return (int) n;
        }
    }

    return plan_fail(plan, "%s: at most %zu numbers", option, max);
}


static int
plan_given_coefficients(sim_plan_t *plan, const sim_settings_t *s,
    model_latency_options_t *options)
{
    int  n;

    if (options->kind == MODEL_ROOFLINE) {
        return plan_fail(plan, "--alpha-coeffs, --beta-coeffs: roofline has "
                         "none");
    }

    memset(options->alpha, 0, sizeof(options->alpha));

    if (plan_coefficients(plan, "--alpha-coeffs", s->alpha, options->alpha,
                          MODEL_ALPHAS)
        < 0)
    {
        return -1;
    }

    n = plan_coefficients(plan, "--beta-coeffs", s->beta, options->beta,
                          MODEL_BETAS_MAX);
    options->nbeta = n > 0 ? (size_t) n : 0;

    return n < 0 ? -1 : 0;
}


static int
plan_latency_coefficients(sim_plan_t *plan, const sim_settings_t *s,
    model_latency_options_t *options)
{
    if ((s->alpha != NULL) != (s->beta != NULL)) {
        return plan_fail(plan, "--alpha-coeffs and --beta-coeffs go together");
    }

    if (s->alpha != NULL) {
        return plan_given_coefficients(plan, s, options);
    }

    if (options->kind == MODEL_LINEAR) {
        return plan_fail(plan, "linear needs --alpha-coeffs and "
                         "--beta-coeffs");
    }

    if (options->kind == MODEL_PHYSICS) {
        memcpy(options->alpha, model_physics_alpha, sizeof(options->alpha));
        memcpy(options->beta, model_physics_beta, sizeof(options->beta));
        options->nbeta = MODEL_BETAS_MAX;
    }

    return 0;
}


/* --- a replica */

static const char *
plan_model_name(sim_plan_t *plan, const sim_settings_t *s)
{
    char    *name;
    size_t   i;

    if (s->model == NULL) {
        return PLAN_MODEL;
    }

    name = work_arena_text(&plan->arena, s->model, strlen(s->model));

    for (i = 0; name[i] != '\0'; i++) {
        name[i] += name[i] >= 'A' && name[i] <= 'Z' ? 'a' - 'A' : 0;
    }

    return name;
}


static int
plan_latency(sim_plan_t *plan, const sim_settings_t *s,
    const plan_engine_t *engine, model_latency_t *latency)
{
    const char               *name = engine->latency_model;
    model_latency_options_t   options;

    memset(&options, 0, sizeof(options));
    options.tp = engine->tp > 0 ? engine->tp : 1;

    if (model_latency_kind(name, &options.kind) != 0) {
        return plan_fail(plan, "unknown latency model \"%s\", see --help",
                         name);
    }

    if (plan_latency_coefficients(plan, s, &options) != 0
        || plan_card(plan, s, plan->fleet.model_name, &options.card) != 0
        || plan_gpu(plan, s, engine->hardware, &options.gpu) != 0)
    {
        return -1;
    }

    return model_latency_init(latency, &options, plan->error,
                              sizeof(plan->error));
}


/*
 * The number of KV blocks.  0, which is refused later: the model does not fit
 * into its GPUs.
 */
static int64_t
plan_blocks(const model_config_t *model, const sim_settings_t *s)
{
    const model_latency_options_t  *o = &model->latency.options;

    if (o->gpu.memory_gib <= 0 || o->card.vocabulary <= 0
        || !o->card.is_gated)
    {
        return PLAN_BLOCKS;
    }

    return model_card_blocks(&o->card, &o->gpu, o->tp, model->block_tokens,
                             s->gpu_memory_utilization);
}


/* Limits sequences to what the model supports and the blocks can hold. */
static void
plan_model_len(model_config_t *model, int64_t given)
{
    int64_t  asked;

    model->max_model_len = given != SIM_UNSET
                           ? given : model->latency.options.card.max_positions;

    if (model->block_tokens > MODEL_TOKENS_MAX) {
        return;                         /* it will be refused */
    }

    asked = model_config_cap(model);

    if (asked > 0) {
        fprintf(stderr, "llmgw-sim: sequences end at %lld tokens, not %lld: "
                "the KV blocks hold no more\n",
                (long long) model->max_model_len, (long long) asked);
    }
}


static int
plan_no_block(sim_plan_t *plan)
{
    return plan_fail(plan, "the GPUs of a replica hold no KV block beside the "
                     "model; see --tp, --gpu-memory-utilization");
}


static int
plan_scheduling(sim_plan_t *plan, const char *scheduler,
    const char *preemption)
{
    model_config_t  *model = &plan->fleet.model;

    if (scheduler != NULL
        && model_config_scheduler(scheduler, &model->scheduler) != 0)
    {
        return plan_fail(plan, "unknown scheduler \"%s\", see --help",
                         scheduler);
    }

    if (preemption != NULL
        && model_config_preemption(preemption, &model->preemption) != 0)
    {
        return plan_fail(plan, "unknown preemption policy \"%s\", see --help",
                         preemption);
    }

    return 0;
}


int
plan_model(sim_plan_t *plan, const sim_settings_t *s, const char *scheduler,
    const char *preemption)
{
    model_config_t  *model = &plan->fleet.model;
    plan_engine_t    engine = {
        .hardware = s->hardware != NULL ? s->hardware : PLAN_GPU,
        .latency_model = s->latency_model != NULL ? s->latency_model
                                                  : "trained-physics",
        .tp = s->tp
    };

    if (s->dp != 1 || s->cpu_blocks != 0) {
        return plan_fail(plan, "--dp and --kv-cpu-blocks are not simulated");
    }

    plan->fleet.model_name = plan_model_name(plan, s);
    model->block_tokens = s->block_tokens;
    model->max_seqs = s->max_seqs;
    model->max_batched_tokens = s->max_batched_tokens;
    model->long_prefill_threshold = s->long_prefill_threshold;

    if (plan_scheduling(plan,
                        s->scheduler != NULL ? s->scheduler : scheduler,
                        s->preemption != NULL ? s->preemption : preemption)
        != 0
        || plan_latency(plan, s, &engine, &model->latency) != 0)
    {
        return -1;
    }

    model->total_blocks = s->total_blocks != SIM_UNSET ? s->total_blocks
                                                       : plan_blocks(model, s);

    if (model->total_blocks < 1) {
        return plan_no_block(plan);
    }

    plan_model_len(model, s->max_model_len);

    return 0;
}


/* --- pools */

/* A pool on other GPUs has as many blocks as fit into those. */
static int
plan_pool(sim_plan_t *plan, const sim_settings_t *s,
    const plan_engine_t *given, model_config_t *model,
    const model_config_t **used)
{
    int64_t         blocks, len;
    plan_engine_t   engine = *given;
    model_config_t *whole = &plan->fleet.model;

    if (given->hardware == NULL && given->latency_model == NULL
        && given->tp == 0 && given->max_model_len == 0)
    {
        return 0;
    }

    engine.tp = given->tp > 0 ? given->tp : s->tp;
    engine.hardware = given->hardware != NULL ? given->hardware
                      : s->hardware != NULL ? s->hardware : PLAN_GPU;
    engine.latency_model = given->latency_model != NULL ? given->latency_model
                           : s->latency_model != NULL ? s->latency_model
                           : "trained-physics";
    *model = *whole;

    if (plan_latency(plan, s, &engine, &model->latency) != 0) {
        return -1;
    }

    len = given->max_model_len > 0 ? given->max_model_len
                                   : whole->max_model_len;

    if (given->tp > 0 || given->hardware != NULL) {
        blocks = plan_blocks(model, s);
        model->total_blocks = blocks;

        if (blocks < 1) {
            return plan_no_block(plan);
        }

        if (given->max_model_len == 0 && blocks * model->block_tokens < len) {
            len = blocks * model->block_tokens;
        }
    }

    model->max_model_len = len;
    *used = model;

    return 0;
}


static int
plan_decider(sim_plan_t *plan, const char *name)
{
    size_t  i;

    static const char *const  names[] = {
        [FLEET_SPLIT_NEVER] = "never",
        [FLEET_SPLIT_ALWAYS] = "always",
        [FLEET_SPLIT_PREFIX] = "prefix-threshold",
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {

        if (strcmp(name, names[i]) == 0) {
            plan->fleet.pools.split = (fleet_split_t) i;
            return 0;
        }
    }

    return plan_fail(plan, "unknown decider \"%s\", see --help", name);
}


int
plan_pools(sim_plan_t *plan, const sim_settings_t *s)
{
    plan_engine_t    prefill = {
        .hardware = s->prefill_hardware,
        .latency_model = s->prefill_latency_model,
        .tp = s->prefill_tp,
        .max_model_len = s->prefill_max_model_len
    };
    plan_engine_t    decode = {
        .hardware = s->decode_hardware,
        .latency_model = s->decode_latency_model,
        .tp = s->decode_tp,
        .max_model_len = s->decode_max_model_len
    };
    fleet_pools_t   *p = &plan->fleet.pools;
    model_config_t  *model = &plan->fleet.model;

    if (s->encode > 0) {
        return plan_fail(plan, "--encode-instances are not simulated");
    }

    if (s->prefill > FLEET_REPLICAS_MAX || s->decode > FLEET_REPLICAS_MAX
        || s->both > FLEET_REPLICAS_MAX)
    {
        return plan_fail(plan, "a pool has at most %d replicas",
                         FLEET_REPLICAS_MAX);
    }

    p->prefill = (uint32_t) s->prefill;
    p->decode = (uint32_t) s->decode;
    p->both = (uint32_t) s->both;
    p->split_tokens = s->split_tokens;
    p->bandwidth_gbps = s->bandwidth_gbps;
    p->base_ms = s->base_ms;
    p->has_contention = s->contention;
    p->kv_bytes = model_card_kv_bytes(&model->latency.options.card,
        s->prefill_tp > 0 ? s->prefill_tp : model->latency.options.tp);

    if (fleet_has_pools(&plan->fleet) && p->kv_bytes <= 0) {
        return plan_fail(plan, "a transfer's size does not follow from the "
                         "model and --tp");
    }

    if (plan_decider(plan, s->decider != NULL ? s->decider : "never") != 0
        || plan_pool(plan, s, &prefill, &plan->prefill_model,
                     &p->prefill_model)
           != 0)
    {
        return -1;
    }

    return plan_pool(plan, s, &decode, &plan->decode_model, &p->decode_model);
}


#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/model/settings.h"


#define SETTINGS_MODEL    "qwen3-14b"
#define SETTINGS_GPU      "H100"
#define SETTINGS_LATENCY  "trained-physics"
#define SETTINGS_MEMORY   0.9           /* of the GPUs', for the model */


static int __attribute__((format(printf, 3, 4)))
settings_wrong(char *error, size_t bytes, const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(error, bytes, format, args);
    va_end(args);

    return -1;
}


/* Reads "1,2.5,3"; returns the number of values, or -1. */
static int
settings_list(const char *text, double *list, size_t max)
{
    char    *end;
    size_t   n;

    for (n = 0; n < max; text = end + 1) {
        list[n++] = strtod(text, &end);

        if (end == text || !isfinite(list[n - 1])
            || (*end != ',' && *end != '\0'))
        {
            return -1;
        }

        if (*end == '\0') {
            return (int) n;
        }
    }

    return -1;
}


static int
settings_coefficients(const model_options_t *o,
    model_latency_options_t *latency, char *error, size_t bytes)
{
    int  n;

    if (o->alpha == NULL && o->beta == NULL
        && latency->kind != MODEL_LINEAR)
    {
        if (latency->kind == MODEL_PHYSICS) {
            memcpy(latency->alpha, model_physics_alpha,
                   sizeof(latency->alpha));
            memcpy(latency->beta, model_physics_beta, sizeof(latency->beta));
            latency->nbeta = MODEL_BETAS_MAX;
        }

        return 0;
    }

    if (latency->kind == MODEL_ROOFLINE) {
        return settings_wrong(error, bytes,
                              "--latency-model roofline takes no"
                              " --alpha-coeffs and --beta-coeffs");
    }

    if (o->alpha == NULL || o->beta == NULL) {
        return settings_wrong(error, bytes, "--alpha-coeffs and --beta-coeffs"
                              " go together");
    }

    if (settings_list(o->alpha, latency->alpha, MODEL_ALPHAS)
        != MODEL_ALPHAS)
    {
        return settings_wrong(error, bytes, "--alpha-coeffs: \"%.80s\" is not"
                              " 3 numbers", o->alpha);
    }

    n = settings_list(o->beta, latency->beta, MODEL_BETAS_MAX);
    latency->nbeta = n > 0 ? (size_t) n : 0;

    return n > 0 ? 0
           : settings_wrong(error, bytes, "--beta-coeffs: \"%.80s\" is not a"
                            " list of up to %d numbers", o->beta,
                            MODEL_BETAS_MAX);
}


static int
settings_machine(const model_options_t *o, model_latency_options_t *latency,
    char *error, size_t bytes)
{
    const char  *model, *gpu;

    model = o->name != NULL ? o->name : SETTINGS_MODEL;
    gpu = o->hardware != NULL ? o->hardware : SETTINGS_GPU;

    if (o->folder != NULL) {
        if (model_card_read(o->folder, model, &latency->card, error,
                            bytes) != 0)
        {
            return -1;
        }

    } else if (model_card_preset(model, &latency->card) != 0
               && latency->kind != MODEL_LINEAR)
    {
        return settings_wrong(error, bytes, "--model: \"%.80s\" is not known,"
                              " see --model-config-folder", model);
    }

    if (o->hardware_file != NULL) {
        return model_gpu_read(o->hardware_file, gpu, &latency->gpu,
                              error, bytes);
    }

    if (model_gpu_preset(gpu, &latency->gpu) != 0) {
        return settings_wrong(error, bytes, "--hardware: \"%.80s\" is not"
                              " known, see --hardware-config", gpu);
    }

    return 0;
}


static int
settings_latency(const model_options_t *o, model_config_t *config,
    char *error, size_t bytes)
{
    const char               *name;
    model_latency_options_t   latency;

    memset(&latency, 0, sizeof(latency));
    latency.tp = o->tp > 0 ? o->tp : 1;
    name = o->latency != NULL ? o->latency : SETTINGS_LATENCY;

    if (model_latency_kind(name, &latency.kind) != 0) {
        return settings_wrong(error, bytes, "--latency-model: \"%.80s\" is"
                              " not trained-physics, roofline or linear",
                              name);
    }

    if (settings_coefficients(o, &latency, error, bytes) != 0
        || settings_machine(o, &latency, error, bytes) != 0)
    {
        return -1;
    }

    return model_latency_init(&config->latency, &latency, error, bytes);
}


static int
settings_order(const model_options_t *o, model_config_t *config, char *error,
    size_t bytes)
{
    if (o->scheduler != NULL
        && model_config_scheduler(o->scheduler, &config->scheduler) != 0)
    {
        return settings_wrong(error, bytes, "--scheduler: \"%.80s\" is not"
                              " fcfs, priority-fcfs, sjf or"
                              " reverse-priority", o->scheduler);
    }

    if (o->preemption != NULL
        && model_config_preemption(o->preemption, &config->preemption)
           != 0)
    {
        return settings_wrong(error, bytes, "--preemption-policy: \"%.80s\""
                              " is not fcfs or priority",
                              o->preemption);
    }

    return 0;
}


static void
settings_take(int64_t given, int64_t *value)
{
    if (given > 0) {
        *value = given;
    }
}


int
model_settings_read(const model_options_t *o, model_config_t *config,
    char *error, size_t bytes)
{
    const model_latency_options_t  *latency;

    model_config_init(config);
    config->keeps_gaps = 0;

    settings_take(o->block_tokens, &config->block_tokens);
    settings_take(o->max_seqs, &config->max_seqs);
    settings_take(o->batched_tokens, &config->max_batched_tokens);
    settings_take(o->chunk_tokens, &config->long_prefill_threshold);

    if (settings_order(o, config, error, bytes) != 0
        || settings_latency(o, config, error, bytes) != 0)
    {
        return -1;
    }

    latency = &config->latency.options;
    settings_take(model_card_blocks(&latency->card, &latency->gpu,
                                    latency->tp, config->block_tokens,
                                    SETTINGS_MEMORY),
                  &config->total_blocks);
    settings_take(o->blocks, &config->total_blocks);

    /* A stream that needed more than all blocks would be preempted for ever. */
    config->max_model_len = config->latency.options.card.max_positions;
    settings_take(o->max_len, &config->max_model_len);

    if (config->max_model_len == 0) {
        config->max_model_len = INT64_MAX;
    }

    (void) model_config_cap(config);

    return model_config_check(config, error, bytes);
}

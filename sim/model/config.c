
#include <stdio.h>
#include <string.h>

#include "sim/model/config.h"


static const struct {
    const char         *name;
    model_scheduler_t   scheduler;
} config_schedulers[] = {
    { "fcfs", MODEL_FCFS },
    { "priority-fcfs", MODEL_PRIORITY_FCFS },
    { "sjf", MODEL_SJF },
    { "reverse-priority", MODEL_REVERSE_PRIORITY }
};


void
model_config_init(model_config_t *config)
{
    memset(config, 0, sizeof(model_config_t));

    config->block_tokens = 16;
    config->total_blocks = 20000;
    config->max_seqs = 256;
    config->max_batched_tokens = 2048;
    config->horizon_us = INT64_MAX;
    config->keeps_gaps = 1;
}


int
model_config_scheduler(const char *name, model_scheduler_t *scheduler)
{
    size_t  i, n;

    n = sizeof(config_schedulers) / sizeof(config_schedulers[0]);

    for (i = 0; i < n; i++) {

        if (strcmp(name, config_schedulers[i].name) == 0) {
            *scheduler = config_schedulers[i].scheduler;
            return 0;
        }
    }

    return -1;
}


int
model_config_preemption(const char *name, model_preemption_t *preemption)
{
    if (strcmp(name, "fcfs") == 0) {
        *preemption = MODEL_PREEMPT_LAST;
        return 0;
    }

    if (strcmp(name, "priority") == 0) {
        *preemption = MODEL_PREEMPT_PRIORITY;
        return 0;
    }

    return -1;
}


int64_t
model_config_cap(model_config_t *config)
{
    int64_t  asked, most;

    asked = config->max_model_len;
    most = config->total_blocks * config->block_tokens;

    if (asked <= most) {
        return 0;
    }

    config->max_model_len = most;

    return asked;
}


static int
config_wrong(char *error, size_t bytes, const char *what)
{
    snprintf(error, bytes, "%s", what);

    return -1;
}


int
model_config_check(const model_config_t *config, char *error, size_t bytes)
{
    if (config->block_tokens <= 0 || config->block_tokens > MODEL_TOKENS_MAX) {
        return config_wrong(error, bytes, "block-size-in-tokens must be at"
                            " least 1, and at most 2^30");
    }

    if (config->total_blocks <= 0 || config->total_blocks > MODEL_BLOCKS_MAX) {
        return config_wrong(error, bytes, "total-kv-blocks must be at least"
                            " 1, and at most 2^30");
    }

    if (config->max_seqs <= 0 || config->max_batched_tokens <= 0) {
        return config_wrong(error, bytes, "max-num-seqs and"
                            " max-num-batched-tokens must be at least 1");
    }

    if (config->long_prefill_threshold < 0 || config->max_model_len < 0) {
        return config_wrong(error, bytes, "long-prefill-token-threshold and"
                            " max-model-len must be at least 0");
    }

    if (config->max_model_len > 0
        && (config->max_model_len - 1) / config->block_tokens
           >= config->total_blocks)
    {
        return config_wrong(error, bytes,
                            "max-model-len does not fit total-kv-blocks");
    }

    return 0;
}

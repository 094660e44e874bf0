
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/fleet/config.h"


/* The defaults are BLIS's, and llm-d's. */
void
fleet_config_init(fleet_config_t *config)
{
    memset(config, 0, sizeof(fleet_config_t));
    model_config_init(&config->model);
    llmgw_classes_init(&config->admission.classes);

    config->replicas = 1;
    config->model_name = "";
    config->horizon_us = INT64_MAX;
    config->seed = 42;

    config->admission.rule_name = "always-admit";
    config->admission.bucket_capacity = 10000;
    config->admission.bucket_rate = 1000;
    config->admission.rule.queue_depth = 5;
    config->admission.rule.kv_utilization = 0.8;

    config->routing.policy_name = "round-robin";
    config->routing.snapshot_us = 50000;
    config->routing.cache_us = 50000;

    config->flow.queue.usage_limit = 1;
    config->flow.saturation.queue_depth = 5;
    config->flow.saturation.kv_utilization = 0.8;
    config->flow.saturation.max_concurrency = 100;
    config->flow.tick_us = 1000;

    config->pools.bandwidth_gbps = 25;
    config->pools.base_ms = 0.05;
}


static const char *
config_check_pools(const fleet_config_t *config)
{
    uint64_t              sum;
    const fleet_pools_t  *pools = &config->pools;

    sum = (uint64_t) pools->prefill + pools->decode + pools->both;

    if (sum > config->replicas) {
        return "the pools have more replicas than the fleet";
    }

    if (sum > 0 && pools->both == 0
        && (pools->prefill == 0 || pools->decode == 0))
    {
        return "a pool that prefills needs one that decodes, and vice versa";
    }

    if (sum > 0 && !(isfinite(pools->bandwidth_gbps)
                     && pools->bandwidth_gbps > 0
                     && isfinite(pools->base_ms) && pools->base_ms >= 0))
    {
        return "a transfer's bandwidth is above 0, its latency not below 0";
    }

    return NULL;
}


static const char *
config_check_flow(const fleet_flow_t *flow)
{
    if (!flow->is_on) {
        return NULL;
    }

    if (!(flow->queue.usage_limit > 0 && flow->queue.usage_limit <= 1)) {
        return "the usage limit is above 0 and at most 1";
    }

    if (flow->tick_us < 1 || flow->ttl_us < 0) {
        return "a tick is at least 1 us, a time to live not below 0";
    }

    return NULL;
}


int
fleet_config_check(const fleet_config_t *config, char *error, size_t bytes)
{
    const char  *what = NULL;

    if (config->replicas < 1 || config->replicas > FLEET_REPLICAS_MAX) {
        snprintf(error, bytes, "a fleet has 1 to %d replicas",
                 FLEET_REPLICAS_MAX);
        return -1;
    }

    if (config->horizon_us <= 0 || config->admission.latency_us < 0
        || config->routing.latency_us < 0 || config->routing.snapshot_us < 0
        || config->routing.cache_us < 0)
    {
        what = "a horizon is above 0, latencies and ages are not below 0";
    }

    what = what != NULL ? what : config_check_pools(config);
    what = what != NULL ? what : config_check_flow(&config->flow);

    if (what != NULL) {
        snprintf(error, bytes, "%s", what);
        return -1;
    }

    return model_config_check(&config->model, error, bytes);
}


int32_t
fleet_priority(const llmgw_classes_t *classes, const char *name, size_t len)
{
    uint32_t  i;

    i = llmgw_classes_index(classes, name, len);

    return i == LLMGW_CLASSES_MAX ? LLMGW_CLASS_DEFAULT
                                  : classes->classes[i].priority;
}


int32_t
fleet_engine_priority(const llmgw_classes_t *classes, int32_t priority)
{
    int32_t   highest;
    uint32_t  i;

    highest = LLMGW_CLASS_DEFAULT;

    for (i = 0; i < classes->n; i++) {
        if (classes->classes[i].priority > highest) {
            highest = classes->classes[i].priority;
        }
    }

    return highest - priority;
}


/* The settings' defaults, and the reader of their file. */

#include <stddef.h>
#include <string.h>

#include "core/resume.h"
#include "sim/fleet/policy/scorers.h"
#include "sim/gateway/config.h"
#include "sim/work/yaml.h"


#define YEAR_S  31536000.0

#define CONFIG_WHY_BYTES  256

/* The settings, and values of the file that are converted to settings later. */
typedef struct {
    work_yaml_t        at;
    const char        *policy;
    int                breaker_off;
    work_yaml_list_t   faults;          /* of gateway_fault_t */
    gateway_config_t   config;
} config_file_t;

#define FIELD(kind_, key_, field, least, most)                                \
    { .key = key_, .kind = kind_, .min = least, .max = most,                  \
      .offset = offsetof(config_file_t, config.field) }
#define INT(key_, field, least, most)                                         \
    FIELD(WORK_YAML_UINT32, key_, field, least, most)
#define TIME(key_, field, least, most)                                        \
    FIELD(WORK_YAML_SECONDS_US, key_, field, least, most)
#define INNER(key_, table_)                                                   \
    { .key = key_, .kind = WORK_YAML_INNER, .table = table_ }

static const work_yaml_field_t  queue_keys[] = {
    INT("size", queue_size, 0, 1000000),
    TIME("timeout", queue_us, 0.001, YEAR_S),
    TIME("hold", hold_us, 0, YEAR_S),
    { .key = NULL }
};

static const work_yaml_field_t  breaker_keys[] = {
    FIELD(WORK_YAML_SECONDS_MS, "window", breaker.window_ms, 0.01, YEAR_S),
    INT("min_requests", breaker.min_requests, 1, 1000000),
    FIELD(WORK_YAML_PERMILLE, "error_rate", breaker.error_permille, 0.001, 1),
    FIELD(WORK_YAML_SECONDS_MS, "cooldown", breaker.cooldown_ms, 0.001,
          YEAR_S),
    FIELD(WORK_YAML_SECONDS_MS, "max_cooldown", breaker.max_cooldown_ms,
          0.001, YEAR_S),
    INT("probes", breaker.probes, 1, 1000),
    { .key = "off", .kind = WORK_YAML_BOOL,
      .offset = offsetof(config_file_t, breaker_off) },
    { .key = NULL }
};

static const work_yaml_field_t  hedge_keys[] = {
    TIME("delay", hedge_us, 0.001, YEAR_S),
    FIELD(WORK_YAML_PERMILLE, "budget", hedge_permille, 0, 1),
    { .key = NULL }
};

static const char *const  gossip_kinds[] = {
    [GATEWAY_GOSSIP_DELAY] = "delay", [GATEWAY_GOSSIP_SWIM] = "swim", NULL
};

static const work_yaml_field_t  gossip_keys[] = {
    { .key = "kind", .kind = WORK_YAML_WORD, .table = gossip_kinds,
      .offset = offsetof(config_file_t, config.gossip.kind) },
    TIME("delay", gossip.delay_us, 0, 60),
    TIME("jitter", gossip.jitter_us, 0, 60),
    FIELD(WORK_YAML_PERMILLE, "loss", gossip.loss_permille, 0, 0.9),
    TIME("detect", gossip.detect_us, 0.001, YEAR_S),
    TIME("period", gossip.period_us, 0.01, YEAR_S),
    { .key = NULL }
};

static const work_yaml_field_t  update_keys[] = {
    TIME("at", update.at_us, 0, YEAR_S),
    TIME("drain", update.drain_us, 0.001, YEAR_S),
    TIME("restart", update.restart_us, 0.001, YEAR_S),
    INT("parallel", update.parallel, 1, 65535),
    { .key = NULL }
};

static const char *const  fault_kinds[] = {
    [GATEWAY_CRASH] = "crash", [GATEWAY_DIE] = "die",
    [GATEWAY_STALL] = "stall", [GATEWAY_SLOW] = "slow",
    [GATEWAY_DRAIN] = "drain", NULL
};

#define FAULT(kind_, key_, field, least, most)                                \
    { .key = key_, .kind = kind_, .min = least, .max = most,                  \
      .offset = offsetof(gateway_fault_t, field) }

static const work_yaml_field_t  fault_keys[] = {
    { .key = "kind", .kind = WORK_YAML_WORD, .table = fault_kinds,
      .offset = offsetof(gateway_fault_t, kind),
      .present = offsetof(gateway_fault_t, has_kind) },
    FAULT(WORK_YAML_UINT32, "replica", replica, 0, 65534),
    FAULT(WORK_YAML_UINT32, "count", count, 1, 65535),
    FAULT(WORK_YAML_SECONDS_US, "at", at_us, 0, YEAR_S),
    FAULT(WORK_YAML_SECONDS_US, "for", for_us, 0, YEAR_S),
    FAULT(WORK_YAML_SECONDS_US, "every", every_us, 0.001, YEAR_S),
    FAULT(WORK_YAML_DOUBLE, "factor", factor, 0.001, 1000000),
    { .key = NULL }
};

static const work_yaml_field_t  file_keys[] = {
    INT("gateways", gateways, 1, GATEWAY_MAX_GATEWAYS),
    INT("capacity", capacity, 0, 1000000),
    INT("key_tokens", key_tokens, 1, 1 << 30),
    INT("vnodes", vnodes, 1, 10000),
    FIELD(WORK_YAML_PERMILLE, "load_factor", load_factor_permille, 1, 1000),
    INT("min_load", min_load, 0, 1000000),
    INT("tries", tries, 1, 100),
    INT("failovers", failovers, 0, 1000000),
    TIME("connect_timeout", connect_us, 0.001, YEAR_S),
    TIME("first_token_timeout", first_token_us, 0.001, YEAR_S),
    TIME("token_timeout", token_us, 0.001, YEAR_S),
    TIME("network", network_us, 0, 10),
    { .key = "policy", .kind = WORK_YAML_TEXT,
      .offset = offsetof(config_file_t, policy) },
    TIME("facts", facts_us, 0, 10),
    INNER("queue", queue_keys),
    INNER("breaker", breaker_keys),
    INNER("hedge", hedge_keys),
    INNER("gossip", gossip_keys),
    { .key = "update", .kind = WORK_YAML_INNER, .table = update_keys,
      .present = offsetof(config_file_t, config.update.is_on) },
    { .key = "faults", .kind = WORK_YAML_LIST, .table = fault_keys,
      .size = sizeof(gateway_fault_t),
      .offset = offsetof(config_file_t, faults) },
    { .key = NULL }
};


void
gateway_config_init(gateway_config_t *config)
{
    *config = (gateway_config_t) {
        .gateways = 1,
        .queue_size = 1000,
        .queue_us = 30000000,
        .key_tokens = 16,
        .policy.ranker.policy = LLMGW_RANK_AFFINITY,
        .facts_us = 200000,
        .vnodes = 150,
        .load_factor_permille = 1250,
        .min_load = 8,
        .breaker = {
            .window_ms = 10000, .min_requests = 5, .error_permille = 500,
            .cooldown_ms = 5000, .max_cooldown_ms = 60000, .probes = 1,
            .enabled = 1
        },
        .hedge_permille = 50,
        .tries = 3,
        .failovers = LLMGW_RESUME_FAILOVERS,
        .connect_us = 1000000,
        .first_token_us = 60000000,
        .token_us = 10000000,
        .network_us = 100,
        .gossip = {
            .delay_us = 1000, .detect_us = 5000000, .period_us = 500000
        },
        .update = {
            .drain_us = 60000000, .restart_us = 10000000, .parallel = 1
        }
    };
}


static int
config_fault(gateway_fault_t *fault, uint32_t replicas, const char *path,
    work_error_t *error)
{
    size_t  line = fault->at.line;

    fault->count = fault->count == 0 ? 1 : fault->count;

    if (!fault->has_kind) {
        return work_fail(error, path, line, "a fault has a kind");
    }

    if (fault->replica + fault->count > replicas) {
        return work_fail(error, path, line, "replicas %u to %u of %u",
                         fault->replica, fault->replica + fault->count - 1,
                         replicas);
    }

    if ((fault->kind == GATEWAY_SLOW) != (fault->factor > 0)) {
        return work_fail(error, path, line, "a fault has a factor if it is "
                         "slow, and only then");
    }

    return 0;
}


static int
config_faults(config_file_t *file, uint32_t replicas, const char *path,
    work_error_t *error)
{
    size_t             i;
    gateway_config_t  *config = &file->config;

    config->faults = file->faults.items;
    config->nfaults = file->faults.n;

    if (config->nfaults > GATEWAY_MAX_FAULTS) {
        return work_fail(error, path,
                         config->faults[GATEWAY_MAX_FAULTS].at.line,
                         "more than %d faults", GATEWAY_MAX_FAULTS);
    }

    for (i = 0; i < config->nfaults; i++) {
        if (config_fault(&config->faults[i], replicas, path, error) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Reads "NAME", "weighted PROFILE" or "weighted SCORER:WEIGHT,...". */
static int
config_policy(config_file_t *file, const char *path, work_error_t *error)
{
    char             why[CONFIG_WHY_BYTES];
    size_t           len;
    const char      *weights;
    fleet_policy_t  *policy = &file->config.policy;

    if (file->policy == NULL) {
        return 0;
    }

    len = strcspn(file->policy, " ");
    weights = file->policy + len + strspn(file->policy + len, " ");

    if (fleet_policy_find(policy, file->policy, len) != 0) {
        return work_fail(error, path, file->at.line, "unknown policy \"%.*s\"",
                         (int) len, file->policy);
    }

    if (policy->ranker.policy != LLMGW_RANK_WEIGHTED) {
        return *weights == '\0'
               ? 0 : work_fail(error, path, file->at.line, "only the policy "
                               "\"weighted\" has weights");
    }

    weights = *weights == '\0' ? "default" : weights;

    if (llmgw_weighted_parse(&policy->ranker.weighted, fleet_scorers,
                             weights, strlen(weights), why, sizeof(why)) != 0)
    {
        return work_fail(error, path, file->at.line, "policy: %s", why);
    }

    return 0;
}


int
gateway_config_read(gateway_config_t *config, const char *path,
    uint32_t replicas, work_arena_t *arena, work_error_t *error)
{
    config_file_t  file = { .config = *config };

    if (work_yaml_read(file_keys, &file, path, arena, error) != 0
        || config_policy(&file, path, error) != 0
        || config_faults(&file, replicas, path, error) != 0)
    {
        return -1;
    }

    *config = file.config;
    config->breaker.enabled = !file.breaker_off;

    return 0;
}

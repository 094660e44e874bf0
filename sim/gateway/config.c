
/* The settings' defaults, and their file. */

#include <stddef.h>
#include <string.h>

#include "core/resume.h"
#include "sim/fleet/policy/scorers.h"
#include "sim/gateway/config.h"
#include "sim/work/yaml.h"


#define SECOND_US   1e6
#define YEAR_S      31536000.0

#define CONFIG_WHY_BYTES  256

/* As they stand in the file: times in seconds. */

typedef struct {
    work_yaml_t   at;
    int64_t       size;
    int           has_size;
    double        timeout;
    double        hold;
} file_queue_t;

typedef struct {
    work_yaml_t   at;
    double        window;
    int64_t       min_requests;
    double        error_rate;
    double        cooldown;
    double        max_cooldown;
    int64_t       probes;
    int           off;
} file_breaker_t;

typedef struct {
    work_yaml_t   at;
    double        delay;
    double        budget;
    int           has_budget;
} file_hedge_t;

typedef struct {
    work_yaml_t   at;
    const char   *kind;
    double        delay;
    int           has_delay;
    double        jitter;
    double        loss;
    double        detect;
    double        period;
} file_gossip_t;

typedef struct {
    work_yaml_t   at_file;
    const char   *kind;
    int64_t       replica;
    int64_t       count;
    double        at;
    double        lasts;
    double        every;
    double        factor;
} file_fault_t;

typedef struct {
    work_yaml_t   at_file;
    double        at;
    double        drain;
    double        restart;
    int64_t       parallel;
} file_update_t;

typedef struct {
    work_yaml_t        at;
    int64_t            gateways;
    int64_t            capacity;
    int64_t            key_tokens;
    int64_t            vnodes;
    double             load_factor;
    int64_t            min_load;
    int64_t            tries;
    int64_t            failovers;
    double             connect_timeout;
    double             first_token_timeout;
    double             token_timeout;
    double             network;
    const char        *policy;
    double             facts;
    file_queue_t      *queue;
    file_breaker_t    *breaker;
    file_hedge_t      *hedge;
    file_gossip_t     *gossip;
    file_update_t     *update;
    work_yaml_list_t   faults;
} file_t;

#define INT(type, key_, field, least, most)                                   \
    { .key = key_, .kind = WORK_YAML_INT, .offset = offsetof(type, field),    \
      .min = least, .max = most }
#define TIME(type, key_, field, least)                                        \
    { .key = key_, .kind = WORK_YAML_DOUBLE, .offset = offsetof(type, field), \
      .min = least, .max = YEAR_S }
#define NUMBER(type, key_, field, least, most)                                \
    { .key = key_, .kind = WORK_YAML_DOUBLE, .offset = offsetof(type, field), \
      .min = least, .max = most }
#define TEXT(type, key_, field)                                               \
    { .key = key_, .kind = WORK_YAML_TEXT, .offset = offsetof(type, field) }
#define MAP(key_, field, table_, type)                                        \
    { .key = key_, .kind = WORK_YAML_MAP, .offset = offsetof(file_t, field),  \
      .table = table_, .size = sizeof(type) }

static const work_yaml_field_t  queue_keys[] = {
    { .key = "size", .kind = WORK_YAML_INT,
      .offset = offsetof(file_queue_t, size), .min = 0, .max = 1000000,
      .present = offsetof(file_queue_t, has_size) },
    TIME(file_queue_t, "timeout", timeout, 0.001),
    TIME(file_queue_t, "hold", hold, 0),
    { .key = NULL }
};

static const work_yaml_field_t  breaker_keys[] = {
    TIME(file_breaker_t, "window", window, 0.01),
    INT(file_breaker_t, "min_requests", min_requests, 1, 1000000),
    NUMBER(file_breaker_t, "error_rate", error_rate, 0.001, 1),
    TIME(file_breaker_t, "cooldown", cooldown, 0.001),
    TIME(file_breaker_t, "max_cooldown", max_cooldown, 0.001),
    INT(file_breaker_t, "probes", probes, 1, 1000),
    { .key = "off", .kind = WORK_YAML_BOOL,
      .offset = offsetof(file_breaker_t, off) },
    { .key = NULL }
};

static const work_yaml_field_t  hedge_keys[] = {
    TIME(file_hedge_t, "delay", delay, 0.001),
    { .key = "budget", .kind = WORK_YAML_DOUBLE,
      .offset = offsetof(file_hedge_t, budget), .min = 0, .max = 1,
      .present = offsetof(file_hedge_t, has_budget) },
    { .key = NULL }
};

static const work_yaml_field_t  gossip_keys[] = {
    TEXT(file_gossip_t, "kind", kind),
    { .key = "delay", .kind = WORK_YAML_DOUBLE,
      .offset = offsetof(file_gossip_t, delay), .min = 0, .max = 60,
      .present = offsetof(file_gossip_t, has_delay) },
    NUMBER(file_gossip_t, "jitter", jitter, 0, 60),
    NUMBER(file_gossip_t, "loss", loss, 0, 0.9),
    TIME(file_gossip_t, "detect", detect, 0.001),
    TIME(file_gossip_t, "period", period, 0.01),
    { .key = NULL }
};

static const work_yaml_field_t  fault_keys[] = {
    TEXT(file_fault_t, "kind", kind),
    INT(file_fault_t, "replica", replica, 0, 65534),
    INT(file_fault_t, "count", count, 1, 65535),
    TIME(file_fault_t, "at", at, 0),
    TIME(file_fault_t, "for", lasts, 0),
    TIME(file_fault_t, "every", every, 0.001),
    NUMBER(file_fault_t, "factor", factor, 0.001, 1000000),
    { .key = NULL }
};

static const work_yaml_field_t  update_keys[] = {
    TIME(file_update_t, "at", at, 0),
    TIME(file_update_t, "drain", drain, 0.001),
    TIME(file_update_t, "restart", restart, 0.001),
    INT(file_update_t, "parallel", parallel, 1, 65535),
    { .key = NULL }
};

static const work_yaml_field_t  file_keys[] = {
    INT(file_t, "gateways", gateways, 1, GATEWAY_MAX_GATEWAYS),
    INT(file_t, "capacity", capacity, 0, 1000000),
    INT(file_t, "key_tokens", key_tokens, 1, 1 << 30),
    INT(file_t, "vnodes", vnodes, 1, 10000),
    NUMBER(file_t, "load_factor", load_factor, 1, 1000),
    INT(file_t, "min_load", min_load, 0, 1000000),
    INT(file_t, "tries", tries, 1, 100),
    INT(file_t, "failovers", failovers, 0, 1000000),
    TIME(file_t, "connect_timeout", connect_timeout, 0.001),
    TIME(file_t, "first_token_timeout", first_token_timeout, 0.001),
    TIME(file_t, "token_timeout", token_timeout, 0.001),
    NUMBER(file_t, "network", network, 0, 10),
    TEXT(file_t, "policy", policy),
    NUMBER(file_t, "facts", facts, 0, 10),
    MAP("queue", queue, queue_keys, file_queue_t),
    MAP("breaker", breaker, breaker_keys, file_breaker_t),
    MAP("hedge", hedge, hedge_keys, file_hedge_t),
    MAP("gossip", gossip, gossip_keys, file_gossip_t),
    MAP("update", update, update_keys, file_update_t),
    { .key = "faults", .kind = WORK_YAML_LIST,
      .offset = offsetof(file_t, faults), .table = fault_keys,
      .size = sizeof(file_fault_t) },
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
        }
    };
}


static int64_t
config_us(double seconds)
{
    return (int64_t) (seconds * SECOND_US);
}


/* Of a value that is not in the file the default stays. */
static void
config_time(int64_t *us, double seconds)
{
    if (seconds > 0) {
        *us = config_us(seconds);
    }
}


static void
config_breaker(llmgw_breaker_conf_t *breaker, const file_breaker_t *file)
{
    int64_t  window_us = (int64_t) breaker->window_ms * 1000;
    int64_t  cooldown_us = (int64_t) breaker->cooldown_ms * 1000;
    int64_t  max_us = (int64_t) breaker->max_cooldown_ms * 1000;

    config_time(&window_us, file->window);
    config_time(&cooldown_us, file->cooldown);
    config_time(&max_us, file->max_cooldown);

    breaker->window_ms = (uint64_t) window_us / 1000;
    breaker->cooldown_ms = (uint64_t) cooldown_us / 1000;
    breaker->max_cooldown_ms = (uint64_t) max_us / 1000;
    breaker->enabled = !file->off;

    if (file->min_requests != 0) {
        breaker->min_requests = (uint32_t) file->min_requests;
    }

    if (file->error_rate > 0) {
        breaker->error_permille = (uint32_t) (file->error_rate * 1000);
    }

    if (file->probes != 0) {
        breaker->probes = (uint32_t) file->probes;
    }
}


static int
config_gossip(gateway_gossip_t *gossip, const file_gossip_t *file,
    const char *path, work_error_t *error)
{
    if (file->kind != NULL && strcmp(file->kind, "swim") == 0) {
        gossip->kind = GATEWAY_GOSSIP_SWIM;

    } else if (file->kind != NULL && strcmp(file->kind, "delay") != 0) {
        return work_fail(error, path, file->at.line, "gossip is \"delay\" or "
                         "\"swim\", not \"%s\"", file->kind);
    }

    if (file->has_delay) {
        gossip->delay_us = config_us(file->delay);
    }

    gossip->jitter_us = config_us(file->jitter);
    gossip->loss_permille = (uint32_t) (file->loss * 1000);
    config_time(&gossip->detect_us, file->detect);
    config_time(&gossip->period_us, file->period);

    return 0;
}


static int
config_fault(gateway_fault_t *fault, const file_fault_t *file,
    uint32_t replicas, const char *path, work_error_t *error)
{
    size_t                    k;
    static const char *const  kinds[] = {
        [GATEWAY_CRASH] = "crash", [GATEWAY_DIE] = "die",
        [GATEWAY_STALL] = "stall", [GATEWAY_SLOW] = "slow",
        [GATEWAY_DRAIN] = "drain"
    };

    for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (file->kind != NULL && strcmp(file->kind, kinds[k]) == 0) {
            break;
        }
    }

    if (k == sizeof(kinds) / sizeof(kinds[0])) {
        return work_fail(error, path, file->at_file.line, "a fault is crash, "
                         "die, stall, slow or drain, not \"%s\"",
                         file->kind == NULL ? "" : file->kind);
    }

    *fault = (gateway_fault_t) {
        .kind = (gateway_fault_kind_t) k,
        .replica = (uint32_t) file->replica,
        .count = file->count == 0 ? 1 : (uint32_t) file->count,
        .at_us = config_us(file->at),
        .for_us = config_us(file->lasts),
        .every_us = config_us(file->every),
        .factor = file->factor
    };

    if (fault->replica + fault->count > replicas) {
        return work_fail(error, path, file->at_file.line, "replicas %u to %u "
                         "of %u", fault->replica,
                         fault->replica + fault->count - 1, replicas);
    }

    if ((fault->kind == GATEWAY_SLOW) != (fault->factor > 0)) {
        return work_fail(error, path, file->at_file.line, "a fault has a "
                         "factor if it is slow, and only then");
    }

    return 0;
}


static int
config_faults(gateway_config_t *config, const work_yaml_list_t *list,
    uint32_t replicas, const char *path, work_arena_t *arena,
    work_error_t *error)
{
    size_t               i;
    const file_fault_t  *files = list->items;

    if (list->n > GATEWAY_MAX_FAULTS) {
        return work_fail(error, path, files[GATEWAY_MAX_FAULTS].at_file.line,
                         "more than %d faults", GATEWAY_MAX_FAULTS);
    }

    config->faults = work_arena_alloc(arena, (list->n + 1)
                                             * sizeof(gateway_fault_t));
    config->nfaults = list->n;

    for (i = 0; i < list->n; i++) {
        if (config_fault(&config->faults[i], &files[i], replicas, path, error)
            != 0)
        {
            return -1;
        }
    }

    return 0;
}


static void
config_update(gateway_update_t *update, const file_update_t *file)
{
    *update = (gateway_update_t) {
        .is_on = 1, .at_us = config_us(file->at), .drain_us = 60000000,
        .restart_us = 10000000,
        .parallel = file->parallel == 0 ? 1 : (uint32_t) file->parallel
    };

    config_time(&update->drain_us, file->drain);
    config_time(&update->restart_us, file->restart);
}


/* "NAME", or "weighted PROFILE" and "weighted SCORER:WEIGHT,...". */
static int
config_policy(gateway_config_t *config, const file_t *file, const char *path,
    work_error_t *error)
{
    char         why[CONFIG_WHY_BYTES];
    size_t       len;
    const char  *weights;

    if (file->policy == NULL) {
        return 0;
    }

    len = strcspn(file->policy, " ");
    weights = file->policy + len + strspn(file->policy + len, " ");

    if (fleet_policy_find(&config->policy, file->policy, len) != 0) {
        return work_fail(error, path, file->at.line, "unknown policy \"%.*s\"",
                         (int) len, file->policy);
    }

    if (config->policy.ranker.policy != LLMGW_RANK_WEIGHTED) {
        return *weights == '\0'
               ? 0 : work_fail(error, path, file->at.line, "only the policy "
                               "\"weighted\" has weights");
    }

    weights = *weights == '\0' ? "default" : weights;

    if (llmgw_weighted_parse(&config->policy.ranker.weighted, fleet_scorers,
                             weights, strlen(weights), why, sizeof(why)) != 0)
    {
        return work_fail(error, path, file->at.line, "policy: %s", why);
    }

    return 0;
}


/* What the file's defaults are: those of the settings. */
static file_t
config_file(const gateway_config_t *config)
{
    return (file_t) {
        .gateways = config->gateways,
        .capacity = config->capacity,
        .key_tokens = config->key_tokens,
        .vnodes = config->vnodes,
        .load_factor = config->load_factor_permille / 1000.0,
        .min_load = config->min_load,
        .tries = config->tries,
        .failovers = config->failovers,
        .network = (double) config->network_us / SECOND_US,
        .facts = (double) config->facts_us / SECOND_US
    };
}


static void
config_take(gateway_config_t *config, const file_t *file)
{
    config->gateways = (uint32_t) file->gateways;
    config->capacity = (uint32_t) file->capacity;
    config->key_tokens = (uint32_t) file->key_tokens;
    config->vnodes = (uint32_t) file->vnodes;
    config->load_factor_permille = (uint32_t) (file->load_factor * 1000 + .5);
    config->min_load = (uint32_t) file->min_load;
    config->tries = (uint32_t) file->tries;
    config->failovers = (uint32_t) file->failovers;
    config->network_us = config_us(file->network);
    config->facts_us = config_us(file->facts);
    config_time(&config->connect_us, file->connect_timeout);
    config_time(&config->first_token_us, file->first_token_timeout);
    config_time(&config->token_us, file->token_timeout);

    if (file->queue != NULL) {
        config->queue_size = file->queue->has_size
                             ? (uint32_t) file->queue->size
                             : config->queue_size;
        config_time(&config->queue_us, file->queue->timeout);
        config_time(&config->hold_us, file->queue->hold);
    }

    if (file->breaker != NULL) {
        config_breaker(&config->breaker, file->breaker);
    }

    if (file->hedge != NULL) {
        config_time(&config->hedge_us, file->hedge->delay);
        config->hedge_permille = file->hedge->has_budget
                                 ? (uint32_t) (file->hedge->budget * 1000 + .5)
                                 : config->hedge_permille;
    }

    if (file->update != NULL) {
        config_update(&config->update, file->update);
    }
}


int
gateway_config_read(gateway_config_t *config, const char *path,
    uint32_t replicas, work_arena_t *arena, work_error_t *error)
{
    file_t  file = config_file(config);

    if (work_yaml_read(file_keys, &file, path, arena, error) != 0) {
        return -1;
    }

    config_take(config, &file);

    if (config_policy(config, &file, path, error) != 0) {
        return -1;
    }

    if (file.gossip != NULL
        && config_gossip(&config->gossip, file.gossip, path, error) != 0)
    {
        return -1;
    }

    return config_faults(config, &file.faults, replicas, path, arena, error);
}

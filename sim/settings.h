
/*
 * The settings that all commands that simulate a fleet share: BLIS's flags,
 * with their names and defaults, and our own.
 *
 * A command's struct holds a sim_settings_t, and its option table the rows of
 * SIM_SETTINGS_OPTIONS.  A plan is made from them: names are looked up, files
 * read, figures checked.
 */

#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "common/options.h"
#include "sim/fleet/config.h"
#include "sim/work/arena.h"


/* A number that was not given; a text that was not given is NULL. */
#define SIM_UNSET       (-1)
#define SIM_SEED_UNSET  INT64_MIN

typedef struct {
    int64_t   seed;
    int64_t   horizon_us;
    char     *ignored;                  /* BLIS's flags without effect here */

    char     *model;
    char     *model_folder;
    char     *hardware;
    char     *hardware_file;
    int64_t   tp;
    int64_t   dp;
    char     *latency_model;
    char     *alpha;
    char     *beta;
    double    gpu_memory_utilization;
    int64_t   block_tokens;
    int64_t   total_blocks;
    int64_t   cpu_blocks;
    int64_t   max_model_len;
    int64_t   max_seqs;
    int64_t   max_batched_tokens;
    int64_t   long_prefill_threshold;
    char     *scheduler;
    char     *preemption;

    int64_t   replicas;
    char     *policy_config;
    char     *gateway;
    char     *admission;
    int64_t   admission_latency_us;
    double    bucket_capacity;
    double    bucket_rate;
    char     *routing;
    char     *scorers;
    int64_t   routing_latency_us;
    int64_t   snapshot_us;
    int64_t   cache_us;

    int       flow_control;
    char     *detector;
    char     *order;
    char     *fairness;
    char     *targets;
    int64_t   queue_size;
    int64_t   band_size;
    double    queue_threshold;
    double    kv_threshold;
    int64_t   max_concurrency;
    double    usage_limit;
    int64_t   ttl_us;
    int64_t   tick_us;
    int       shedding;
    int       evicts;

    int64_t   prefill;
    int64_t   decode;
    int64_t   both;
    int64_t   encode;
    char     *decider;
    int64_t   split_tokens;
    double    bandwidth_gbps;
    double    base_ms;
    int       contention;
    char     *prefill_scorers;
    char     *decode_scorers;
    int64_t   prefill_tp;
    int64_t   decode_tp;
    char     *prefill_hardware;
    char     *decode_hardware;
    char     *prefill_latency_model;
    char     *decode_latency_model;
    int64_t   prefill_max_model_len;
    int64_t   decode_max_model_len;

    char     *semantics;
    char     *signal;
    char     *dispatch;
    int       check;
} sim_settings_t;


#define SIM_AT(type, member, field)                                           \
    (offsetof(type, member) + offsetof(sim_settings_t, field))

#define SIM_TEXT(name, type, member, field, metavar, help)                    \
    { name, OPTION_STRING, SIM_AT(type, member, field), NULL, metavar, help,  \
      0, 0, 0 }
#define SIM_INT(name, type, member, field, value, min, help)                  \
    { name, OPTION_INT, SIM_AT(type, member, field), value, NULL, help,       \
      min, 9e18, 0 }
#define SIM_US(name, type, member, field, value, help)                        \
    { name, OPTION_INT, SIM_AT(type, member, field), value, NULL, help,       \
      0, 9e15, 0 }
#define SIM_DOUBLE(name, type, member, field, value, help)                    \
    { name, OPTION_DOUBLE, SIM_AT(type, member, field), value, NULL, help,    \
      0, 1e18, 0 }
#define SIM_FLAG(name, type, member, field, help)                             \
    { name, OPTION_FLAG, SIM_AT(type, member, field), NULL, NULL, help,       \
      0, 0, 0 }

#define SIM_RUN_OPTIONS(t, m)                                                 \
    SIM_INT("seed", t, m, seed, NULL, -9e18,                                  \
            "seed of all random draws (42)"),                                 \
    { "horizon", OPTION_INT, SIM_AT(t, m, horizon_us), NULL, "US",            \
      "end of the simulated time", 1, 9.3e18, 0 },                            \
    SIM_TEXT("log", t, m, ignored, "LEVEL", NULL),                            \
    SIM_TEXT("defaults-filepath", t, m, ignored, "FILE", NULL),               \
    SIM_TEXT("semantics", t, m, semantics, "page|newest",                     \
             "follow BLIS's architecture page, or its newest code"),          \
    SIM_FLAG("check", t, m, check,                                            \
             "check invariants; exit status 1 if one is broken")

#define SIM_REPLICA_OPTIONS(t, m)                                             \
    SIM_TEXT("model", t, m, model, "NAME", "what the replicas serve"),        \
    SIM_TEXT("model-config-folder", t, m, model_folder, "DIR",                \
             "has config.json, if the model is no preset"),                   \
    SIM_TEXT("hardware", t, m, hardware, "GPU", "H100, A100-SXM, L40S, ..."), \
    SIM_TEXT("hardware-config", t, m, hardware_file, "FILE",                  \
             "JSON that describes other GPUs"),                               \
    SIM_INT("tp", t, m, tp, "0", 0, "GPUs of a replica; 0: 1"),               \
    SIM_INT("dp", t, m, dp, "1", 1, NULL),                                    \
    SIM_TEXT("latency-model", t, m, latency_model, "NAME",                    \
             "trained-physics, roofline or linear"),                          \
    SIM_TEXT("alpha-coeffs", t, m, alpha, "X,...", "costs of a request"),     \
    SIM_TEXT("beta-coeffs", t, m, beta, "X,...", "costs of a step"),          \
    { "gpu-memory-utilization", OPTION_DOUBLE,                                \
      SIM_AT(t, m, gpu_memory_utilization), "0.9", NULL,                      \
      "share of GPU memory to use, if KV blocks are not given",               \
      1e-9, 1, 0 },                                                           \
    SIM_INT("block-size-in-tokens", t, m, block_tokens, "16", 1,              \
            "tokens of a KV block"),                                          \
    { "total-kv-blocks", OPTION_INT, SIM_AT(t, m, total_blocks), NULL, "N",   \
      "KV blocks of a replica (what its GPUs hold)", 1, 1e9, 0 },             \
    SIM_INT("kv-cpu-blocks", t, m, cpu_blocks, "0", 0, NULL),                 \
    { "max-model-len", OPTION_INT, SIM_AT(t, m, max_model_len), NULL, "N",    \
      "tokens of a prompt and its answer (the model's)",                      \
      0, 1e9, 0 },                                                            \
    SIM_INT("max-num-seqs", t, m, max_seqs, "256",                            \
            1, "requests of a batch"),                                        \
    SIM_INT("max-num-running-reqs", t, m, max_seqs, NULL, 1, NULL),           \
    SIM_INT("max-num-batched-tokens", t, m, max_batched_tokens, "2048", 1,    \
            "tokens of a step"),                                              \
    SIM_INT("max-num-scheduled-tokens", t, m, max_batched_tokens, NULL, 1,    \
            NULL),                                                            \
    SIM_INT("long-prefill-token-threshold", t, m, long_prefill_threshold,     \
            "0", 0, "tokens of a prompt in one step; 0: all"),                \
    SIM_TEXT("scheduler", t, m, scheduler, "NAME",                            \
             "fcfs, priority-fcfs, sjf or reverse-priority"),                 \
    SIM_TEXT("preemption-policy", t, m, preemption, "NAME",                   \
             "fcfs or priority")

#define SIM_GATEWAY_OPTIONS(t, m)                                             \
    SIM_INT("num-instances", t, m, replicas, "1", 1, "replicas"),             \
    SIM_TEXT("policy-config", t, m, policy_config, "FILE",                    \
             "YAML of policies; these options override it"),                  \
    SIM_TEXT("gateway", t, m, gateway, "FILE",                                \
             "YAML: llmgw's gateway instead of BLIS's, and faults")

/* Options of BLIS's gateway. */
#define SIM_BLIS_OPTIONS(t, m)                                                \
    SIM_TEXT("admission-policy", t, m, admission, "NAME",                     \
             "always-admit, reject-all, token-bucket, tier-shed or "          \
             "gaie-legacy"),                                                  \
    SIM_US("admission-latency",                                               \
           t, m, admission_latency_us, "0", "time in us"),                    \
    { "token-bucket-capacity", OPTION_DOUBLE,                                 \
      SIM_AT(t, m, bucket_capacity), NULL, NULL, "tokens (10000)", 0, 1e18,   \
      0 },                                                                    \
    { "token-bucket-refill-rate", OPTION_DOUBLE, SIM_AT(t, m, bucket_rate),   \
      NULL, NULL, "tokens a second (1000)", 0, 1e18, 0 },                     \
    SIM_TEXT("routing-policy", t, m, routing, "NAME",                         \
             "affinity, round-robin, least-loaded, always-busiest, weighted"), \
    SIM_TEXT("routing-scorers", t, m, scorers, "NAME:WEIGHT,...",             \
             "scorers of the policy weighted"),                               \
    SIM_US("routing-latency",                                                 \
           t, m, routing_latency_us, "0", "time in us"),                      \
    { "snapshot-refresh-interval", OPTION_INT, SIM_AT(t, m, snapshot_us),     \
      NULL, "US", "age of replicas' facts (50000)", 0, 9e15, 0 },             \
    { "cache-signal-delay", OPTION_INT, SIM_AT(t, m, cache_us), NULL, "US",   \
      "age of what is known of replicas' caches (50000)",                     \
      0, 9e15, 0 },                                                           \
    SIM_TEXT("queue-depth-signal", t, m, signal, "queue|effective",           \
             "number that the scorer queue-depth reads")

/* Options of its queue, which exists only with --flow-control. */
#define SIM_QUEUE_OPTIONS(t, m)                                               \
    SIM_TEXT("saturation-detector", t, m, detector, "NAME",                   \
             "never, utilization or concurrency"),                            \
    SIM_TEXT("dispatch-order", t, m, order, "NAME",                           \
             "fifo, priority or slo-deadline"),                               \
    SIM_TEXT("fairness-policy", t, m, fairness, "NAME",                       \
             "global-strict or round-robin"),                                 \
    SIM_TEXT("slo-targets", t, m, targets, "CLASS=US,...",                    \
             "target to first token, for slo-deadline"),                      \
    SIM_INT("max-gateway-queue-depth", t, m, queue_size, "0", 0,              \
            "0: no limit"),                                                   \
    SIM_INT("per-band-capacity", t, m, band_size, "0", 0, "0: no limit"),     \
    SIM_DOUBLE("queue-depth-threshold", t, m, queue_threshold, "5",           \
               "requests waiting at a replica, for utilization"),             \
    SIM_DOUBLE("kv-cache-util-threshold", t, m, kv_threshold, "0.8",          \
               "share of the KV cache in use, for utilization"),              \
    SIM_INT("max-concurrency", t, m, max_concurrency, "100", 1,               \
            "requests of a replica, for concurrency"),                        \
    SIM_DOUBLE("usage-limit-threshold", t, m, usage_limit, "1",               \
               "saturation up to which the lowest priority is dispatched"),   \
    SIM_US("request-ttl", t, m, ttl_us, "0",                                  \
           "longest time in the queue, in us; 0: no limit"),                  \
    SIM_US("dispatch-tick-interval",                                          \
           t, m, tick_us, "1000", "time in us"),                              \
    SIM_TEXT("dispatch", t, m, dispatch, "tick|completion",                   \
             "when requests leave the queue"),                                \
    SIM_FLAG("queue-shedding", t, m, shedding,                                \
             "a full queue drops its least important request"),               \
    SIM_FLAG("in-flight-eviction", t, m, evicts,                              \
             "and a full fleet evicts its least important one")

#define SIM_FLOW_OPTIONS(t, m)                                                \
    SIM_FLAG("flow-control", t, m, flow_control, "the gateway's queue"),      \
    SIM_QUEUE_OPTIONS(t, m)

#define SIM_POOL_OPTIONS(t, m)                                                \
    SIM_INT("prefill-instances", t, m, prefill, "0", 0,                       \
            "replicas that only prefill"),                                    \
    SIM_INT("decode-instances", t, m, decode, "0", 0,                         \
            "replicas that only decode"),                                     \
    SIM_INT("prefill-decode-instances", t, m, both, "0", 0,                   \
            "replicas that do both"),                                         \
    SIM_INT("encode-instances", t, m, encode, "0", 0, NULL),                  \
    SIM_TEXT("pd-decider", t, m, decider, "NAME",                             \
             "never, always or prefix-threshold"),                            \
    SIM_INT("pd-prefix-threshold", t, m, split_tokens, "16", 0, "tokens"),    \
    SIM_DOUBLE("pd-transfer-bandwidth", t, m, bandwidth_gbps, "25",           \
               "GB a second"),                                                \
    SIM_DOUBLE("pd-transfer-base-latency", t, m, base_ms, "0.05", "ms"),      \
    SIM_FLAG("pd-transfer-contention", t, m, contention,                      \
             "transfers share the bandwidth"),                                \
    SIM_TEXT("prefill-routing-scorers", t, m, prefill_scorers, NULL,          \
             "scorers of the prefill pool"),                                  \
    SIM_TEXT("decode-routing-scorers", t, m, decode_scorers, NULL,            \
             "scorers of the decode pool"),                                   \
    SIM_INT("prefill-tp", t, m, prefill_tp, "0", 0,                           \
            "GPUs of a replica of the prefill pool"),                         \
    SIM_INT("decode-tp", t, m, decode_tp, "0", 0,                             \
            "GPUs of a replica of the decode pool"),                          \
    SIM_TEXT("prefill-hardware", t, m, prefill_hardware, NULL,                \
             "GPU of the prefill pool"),                                      \
    SIM_TEXT("decode-hardware", t, m, decode_hardware, NULL,                  \
             "GPU of the decode pool"),                                       \
    SIM_TEXT("prefill-latency-model", t, m, prefill_latency_model, NULL,      \
             "latency model of the prefill pool"),                            \
    SIM_TEXT("decode-latency-model", t, m, decode_latency_model, NULL,        \
             "latency model of the decode pool"),                             \
    SIM_INT("prefill-max-model-len", t, m, prefill_max_model_len, "0", 0,     \
            "max-model-len of the prefill pool"),                             \
    SIM_INT("decode-max-model-len", t, m, decode_max_model_len, "0", 0,       \
            "max-model-len of the decode pool")

/* Rows of a table whose struct `t` holds a sim_settings_t as `m`. */
#define SIM_SETTINGS_OPTIONS(t, m)                                            \
    SIM_RUN_OPTIONS(t, m), SIM_REPLICA_OPTIONS(t, m),                         \
    SIM_GATEWAY_OPTIONS(t, m), SIM_BLIS_OPTIONS(t, m),                        \
    SIM_FLOW_OPTIONS(t, m), SIM_POOL_OPTIONS(t, m)


/* To be called before options_parse(). */
void sim_settings_init(sim_settings_t *settings);

/* The seed as given, or BLIS's default. */
int64_t sim_seed(const sim_settings_t *settings);


/*
 * The first option of the table whose value differs from `unset`, the struct as
 * it was before options_parse(); NULL: there is none.
 */
const char *sim_given(const option_t *table, const void *values,
    const void *unset);


/* A run's input, made from settings; texts in it live as long as the plan. */
typedef struct {
    fleet_config_t   fleet;
    model_config_t   prefill_model;
    model_config_t   decode_model;
    work_arena_t     arena;
    char             error[512];
} sim_plan_t;

/*
 * 0; or -1 and one line in plan->error, to be printed after "llmgw-sim: ".
 * Notes go to stderr.  plan->fleet.horizon_us is that of the settings, or
 * INT64_MAX.
 */
int sim_plan_make(sim_plan_t *plan, const sim_settings_t *settings);
void sim_plan_done(sim_plan_t *plan);

#endif /* SIM_SETTINGS_H */

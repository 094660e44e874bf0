
/*
 * vLLM, as of 0.10.2 (return_token_ids) and later.
 *
 * Chats and completions show ids in each event and the prompt's in the first.
 * /tokenize renders a chat's messages by the server's own template.  A
 * completion then takes the ids; it knows the sampling parameters of a chat by
 * the same names and has the same defaults, but for max_tokens, which a chat
 * need not have.
 */

#include "replica/engine/dialect/dialect_inner.h"
#include "replica/engine/dialect/facts.h"


#define VLLM_KV_STEPS  1001        /* of kv_permille */


static const prom_name_t  vllm_names[] = {
    { "vllm:num_requests_running", FACTS_RUNNING, PROM_SUM, NULL },
    { "vllm:num_requests_waiting", FACTS_WAITING, PROM_SUM, NULL },
    { "vllm:kv_cache_usage_perc", FACTS_KV, PROM_MAX, NULL },
    { "vllm:gpu_cache_usage_perc", FACTS_KV, PROM_MAX, NULL },
    { "vllm:cache_config_info", FACTS_BLOCKS, PROM_SUM, "num_gpu_blocks" },
    { "vllm:prefix_cache_hits_total", FACTS_HITS, PROM_SUM, NULL },
    { "vllm:prefix_cache_queries_total", FACTS_LOOKED_UP, PROM_SUM, NULL },
    { "vllm:gpu_prefix_cache_hits_total", FACTS_HITS, PROM_SUM, NULL },
    { "vllm:gpu_prefix_cache_queries_total", FACTS_LOOKED_UP, PROM_SUM, NULL },
    { "vllm:iteration_tokens_total_count", FACTS_PROGRESS, PROM_SUM, NULL },
    { NULL, 0, PROM_SUM, NULL }
};


/* A 503 means that the engine behind the server is dead. */
static int
vllm_learn_health(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    return facts_health(facts, status, DIALECT_DOWN);
}


/*
 * The server counts steps that gave a token.  Steps for chunks of a long prompt
 * are not counted, but each takes more of the cache.
 */
static int
vllm_learn_metrics(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    if (facts_metrics(facts, status, body, len, vllm_names) != 0) {
        return -1;
    }

    if (facts->progress >= 0 && facts->kv_permille >= 0
        && facts->progress < INT64_MAX / VLLM_KV_STEPS - 1)
    {
        facts->progress = facts->progress * VLLM_KV_STEPS + facts->kv_permille;
    }

    return 0;
}


static int
vllm_learn_version(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    llmgw_json_t  object;

    if (facts_object(status, body, len, &object) != 0) {
        return -1;
    }

    llmgw_json_copy(llmgw_json_member(object, "version"), facts->version,
                    sizeof(facts->version));

    return 0;
}


static const dialect_probe_t  vllm_probes[] = {
    { "/health", DIALECT_OFTEN, 0, vllm_learn_health },
    { "/metrics", DIALECT_OFTEN, 1, vllm_learn_metrics },
    { "/v1/models", DIALECT_ONCE, 0, facts_models },
    { "/version", DIALECT_ONCE, 0, vllm_learn_version },
    { NULL, DIALECT_ONCE, 0, NULL }
};

static const dialect_ops_t  vllm_ops = {
    .keys = KEYS_VLLM,
    .render_path = "/tokenize",
    .completion_path = "/v1/completions",
    .detokenize_path = "/detokenize",
    .detokenized = "prompt",
    .priority = -1,
    .completion_tokens = 16,
    .has_ids = 1,
    .has_chat_ids = 1,
    .continues = 1,
    .has_min_tokens = 1,
    .holds_stops = 1,
    .assembles = 1,
    .says_context = 1
};

const dialect_t  dialect_vllm = {
    "vllm", vllm_probes, 500, &vllm_ops, 0
};

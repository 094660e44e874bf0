
/*
 * SGLang.
 *
 * Only the stream of a completion shows ids.  So a chat that is to be resumed
 * by ids is rendered first and requested as a completion, if that gives the
 * same answer: if the server runs no parser for thoughts, and takes its default
 * sampling parameters from OpenAI's API (`--sampling-defaults openai`); by
 * default a chat takes them from the model's files, and a completion does not.
 * Otherwise a chat is resumed by text.
 *
 * Of its counters only realtime_tokens_total moves while a request runs (with
 * each prefill and each step); the others count what has ended.  Its gauges are
 * those of the last prefill or fortieth step: an idle server reports running
 * requests for half a minute.
 *
 * Its stream withholds text that may be the beginning of a stop string, so what
 * was sent is not all that was matched: requests with stop strings cannot be
 * resumed.
 */

#include "replica/engine/dialect/dialect_inner.h"
#include "replica/engine/dialect/facts.h"


static const prom_name_t  sglang_names[] = {
    { "sglang:num_running_reqs", FACTS_RUNNING, PROM_SUM, NULL },
    { "sglang:num_queue_reqs", FACTS_WAITING, PROM_SUM, NULL },
    { "sglang:token_usage", FACTS_KV, PROM_MAX, NULL },
    { "sglang:cache_hit_rate", FACTS_HIT_SHARE, PROM_MAX, NULL },
    { "sglang:realtime_tokens_total", FACTS_PROGRESS, PROM_SUM, NULL },
    { NULL, 0, PROM_SUM, NULL }
};


/* The server answers 503 while it starts, and again while it finishes its
   requests before it ends. */
static int
sglang_learn_health(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    return facts_health(facts, status, status == 503 ? DIALECT_UNWILLING
                                                     : DIALECT_DOWN);
}


static int
sglang_learn_metrics(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    return facts_metrics(facts, status, body, len, sglang_names);
}


/* The order of priorities, as in dialect_facts_t.  0 if the server does not
   schedule by them: it may be configured to refuse one then. */
static int
sglang_priority(llmgw_json_t server)
{
    if (llmgw_json_member(server, "enable_priority_scheduling").kind
        != LLMGW_JSON_TRUE)
    {
        return 0;
    }

    return llmgw_json_member(server, "schedule_low_priority_values_first").kind
           == LLMGW_JSON_TRUE ? -1 : 1;
}


static int
sglang_learn_server(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    uint64_t      running, engines;
    llmgw_json_t  object, parser, defaults;

    static const char *const  mixed[] = {
        "model_path", "revision", "dtype", "quantization", "kv_cache_dtype",
        "tp_size", "ep_size", "attention_backend", "sampling_backend",
        "enable_deterministic_inference", "chat_template",
        "speculative_algorithm", NULL
    };

    if (facts_object(status, body, len, &object) != 0) {
        return -1;
    }

    if (llmgw_json_uint(llmgw_json_member(object, "dp_size"), 1000, &engines)
        != 0)
    {
        engines = 1;
    }

    if (llmgw_json_uint(llmgw_json_member(object, "max_running_requests"),
                        1000000, &running) == 0)
    {
        facts->capacity = (int32_t) (running * (engines == 0 ? 1 : engines));
    }

    llmgw_json_copy(llmgw_json_member(object, "version"), facts->version,
                    sizeof(facts->version));
    facts->numerics[FACTS_OF_SERVER] = 0;
    facts_mix_all(&facts->numerics[FACTS_OF_SERVER], mixed, object);
    parser = llmgw_json_member(object, "reasoning_parser");
    defaults = llmgw_json_member(object, "sampling_defaults");
    facts->chat_is_text = llmgw_json_is_null(parser)
                          && llmgw_json_is(defaults, "openai");
    facts->priority = sglang_priority(object);

    return 0;
}


static const dialect_probe_t  sglang_probes[] = {
    { "/health", DIALECT_OFTEN, 0, sglang_learn_health },
    { "/metrics", DIALECT_OFTEN, 1, sglang_learn_metrics },
    { "/v1/models", DIALECT_ONCE, 0, facts_models },
    { "/server_info", DIALECT_ONCE, 0, sglang_learn_server },
    { NULL, DIALECT_ONCE, 0, NULL }
};

static const dialect_ops_t  sglang_ops = {
    .keys = KEYS_SGLANG,
    .render_path = "/tokenize",
    .completion_path = "/v1/completions",
    .detokenize_path = "/detokenize",
    .detokenized = "text",
    .completion_tokens = 16,
    .context_margin = 2,
    .has_ids = 1,
    .continues = 1,
    .has_min_tokens = 1,
    .assembles = 1
};

const dialect_t  dialect_sglang = {
    "sglang", sglang_probes, 500, &sglang_ops, 1
};

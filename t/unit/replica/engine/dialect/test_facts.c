
/*
 * What engines say about themselves, as their pages look: vLLM 0.11, SGLang
 * 0.5, llama.cpp b6900.
 */

#include "t/unit/replica/engine/dialect/played.h"


static const char  vllm_metrics[] =
    "# HELP vllm:num_requests_running Number of requests.\n"
    "# TYPE vllm:num_requests_running gauge\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"a}\\\"b\"} 3.0\n"
    "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\r\n"
    "vllm:num_requests_waiting_by_reason{engine=\"0\"} 77\n"
    "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
    "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} .5 1395066363000\n"
    "vllm:cache_config_info{block_size=\"16\",cpu=\"a,\\\"=\\\"1\","
    "engine=\"0\",num_gpu_blocks=\"7000\",num_gpu_blocks_override=\"None\"} 1\n"
    "vllm:cache_config_info{num_gpu_blocks=\"1001\"} 1.0\n"
    "vllm:prefix_cache_queries_total{engine=\"0\"} 1000\n"
    "vllm:prefix_cache_queries_total{engine=\"1\"} 1000\n"
    "vllm:prefix_cache_hits_total{engine=\"0\"} 300\n"
    "vllm:prefix_cache_hits_total{engine=\"1\"} 1.0\n"
    "vllm:iteration_tokens_total_bucket{engine=\"0\",le=\"1.0\"} 9\n"
    "vllm:iteration_tokens_total_count{engine=\"0\"} 1.5e+03";


static const dialect_probe_t *
probe(const char *dialect, const char *path)
{
    const dialect_probe_t  *p;

    for (p = dialect_find(dialect)->probes; p->path != NULL; p++) {
        if (strcmp(p->path, path) == 0) {
            return p;
        }
    }

    fail_msg("%s has no %s", dialect, path);

    return NULL;
}


static int
learn(dialect_facts_t *facts, const char *dialect, const char *path,
    unsigned status, const char *body)
{
    char    *copy;
    int      rc;
    size_t   len;

    len = strlen(body);
    copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, body, len);
    rc = dialect_learn(probe(dialect, path), facts, status, copy, len);
    free(copy);

    return rc;
}


/*
 * The free blocks by a page with this line of vLLM's, whose cache is half
 * used.
 */
static int64_t
free_blocks_of(const char *line)
{
    char             page[512];
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    snprintf(page, sizeof(page), "vllm:kv_cache_usage_perc 0.5\n%s", line);
    assert_int_equal(learn(&facts, "vllm", "/metrics", 200, page), 0);

    return facts.kv_free_blocks;
}


static void
a_number_may_be_that_of_a_label(void **state)
{
    size_t  i;

    static const struct {
        const char  *labels;
        int64_t      blocks;
    } cases[] = {
        { "{num_gpu_blocks=\"10\"} 1", 5 },
        { "{num_gpu_blocks=\"10\",} 1", 5 },
        { "{a=\"num_gpu_blocks=\", num_gpu_blocks=\"10\"} 1", 5 },
        { "{a=\"\\\\\",num_gpu_blocks=\"10\"} 1", 5 },
        { "{a=\"\\\"}\",num_gpu_blocks=\"10\"} 1", 5 },
        { "{num_gpu_blocks=\"1000000000\"} 1", 500000000 },
        { "{num_gpu_blocks=\"1000000001\"} 1", -1 },
        { "{num_gpu_blocks=\"None\"} 1", -1 },
        { "{num_gpu_blocks=\"\"} 1", -1 },
        { "{num_gpu_blocks=\"10} 1", -1 },
        { "{num_gpu_blocks=10} 1", -1 },
        { "{num_gpu_blocks=\"10\\", -1 },
        { "{xnum_gpu_blocks=\"10\"} 1", -1 },
        { "{} 1", -1 },
        { " 10", -1 },
        { "", -1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  line[256];

        snprintf(line, sizeof(line), "vllm:cache_config_info%s",
                 cases[i].labels);

        if (free_blocks_of(line) != cases[i].blocks) {
            fail_msg("%s: %d", line, (int) free_blocks_of(line));
        }
    }
}


static void
metrics_are_read(void **state)
{
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "vllm", "/metrics", 200, vllm_metrics), 0);
    assert_int_equal(facts.running, 7);
    assert_int_equal(facts.waiting, 2);
    assert_int_equal(facts.kv_permille, 500);
    assert_int_equal(facts.progress, 1500 * 1001 + 500);
    assert_int_equal(facts.kv_free_blocks, 8001 - 4000);
    assert_int_equal(facts.looked_up, 2000);
    assert_int_equal(facts.hits, 301);
    assert_int_equal(facts.hit_permille, -1);

    /* No step gave a token, but more of the cache is used: chunks of a prompt.
       */
    assert_int_equal(learn(&facts, "vllm", "/metrics", 200,
                           "vllm:iteration_tokens_total_count 1500\n"
                           "vllm:kv_cache_usage_perc 0.502\n"), 0);
    assert_int_equal(facts.progress, 1500 * 1001 + 502);
    assert_int_equal(facts.kv_free_blocks, -1);
    assert_int_equal(facts.looked_up, -1);
    assert_int_equal(facts.hits, -1);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "vllm", "/metrics", 200,
                           "vllm:iteration_tokens_total_count 1e15\n"
                           "vllm:iteration_tokens_total_count 9e15\n"
                           "vllm:kv_cache_usage_perc 1\n"), 0);
    assert_true(facts.progress > 0);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "vllm", "/metrics", 200,
                           "vllm:gpu_cache_usage_perc 1.5\n"), 0);
    assert_int_equal(facts.kv_permille, 1000);
    assert_int_equal(facts.running, -1);
    assert_int_equal(facts.progress, -1);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "sglang", "/metrics", 200,
                           "sglang:num_running_reqs{tp_rank=\"0\"} 5\n"
                           "sglang:num_queue_reqs{tp_rank=\"0\"} 1\n"
                           "sglang:token_usage 0.125\n"
                           "sglang:cache_hit_rate 0.875\n"
                           "sglang:generation_tokens_total 7\n"
                           "sglang:realtime_tokens_total{mode=\"a\"} 2345\n"
                           "sglang:realtime_tokens_total{mode=\"b\"} 10000\n"
                           ), 0);
    assert_int_equal(facts.running, 5);
    assert_int_equal(facts.waiting, 1);
    assert_int_equal(facts.kv_permille, 125);
    assert_int_equal(facts.hit_permille, 875);
    assert_int_equal(facts.kv_free_blocks, -1);
    assert_int_equal(facts.hits, -1);
    assert_int_equal(facts.progress, 12345);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "llamacpp", "/metrics", 200,
                           "llamacpp:requests_processing 1\n"
                           "llamacpp:requests_deferred 0\n"
                           "llamacpp:n_decode_total 99\n"), 0);
    assert_int_equal(facts.running, 1);
    assert_int_equal(facts.waiting, 0);
    assert_int_equal(facts.kv_permille, -1);
    assert_int_equal(facts.progress, 99);

    /* llama.cpp writes counters with six digits: a larger one says nothing. */
    assert_int_equal(learn(&facts, "llamacpp", "/metrics", 200,
                           "llamacpp:n_decode_total 999999\n"), 0);
    assert_int_equal(facts.progress, 999999);
    assert_int_equal(learn(&facts, "llamacpp", "/metrics", 200,
                           "llamacpp:n_decode_total 1e+06\n"), 0);
    assert_int_equal(facts.progress, -1);
}


static void
bad_metrics_change_nothing(void **state)
{
    size_t                    i;
    dialect_facts_t           facts;

    static const char *const  bad[] = {
        "", "\n\n", "# nothing\n", "other:metric 5\n",
        "vllm:num_requests_running\n", "vllm:num_requests_running {\n",
        "vllm:num_requests_running{a=\"b} 5\n",
        "vllm:num_requests_running{a=\"\\", "vllm:num_requests_running -3\n",
        "vllm:num_requests_running NaN\n", "vllm:num_requests_running +Inf\n",
        "vllm:num_requests_running 1e300\n", "vllm:num_requests_running 1x\n",
        "vllm:num_requests_running "
        "1111111111111111111111111111111111111111111111111111111111111111111"
    };

    dialect_facts_init(&facts);
    facts.running = 42;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(learn(&facts, "vllm", "/metrics", 200, bad[i]), -1);
        assert_int_equal(facts.running, 42);
    }

    assert_int_equal(learn(&facts, "vllm", "/metrics", 500, vllm_metrics), -1);
    assert_int_equal(facts.running, 42);
}


static void
health_is_a_state(void **state)
{
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    assert_int_equal(facts.state, DIALECT_DOWN);

    assert_int_equal(learn(&facts, "vllm", "/health", 200, ""), 0);
    assert_int_equal(facts.state, DIALECT_READY);
    assert_int_equal(learn(&facts, "vllm", "/health", 404, ""), -1);
    assert_int_equal(facts.state, DIALECT_READY);
    assert_int_equal(learn(&facts, "vllm", "/health", 503, ""), 0);
    assert_int_equal(facts.state, DIALECT_DOWN);

    assert_int_equal(learn(&facts, "llamacpp", "/health", 503,
                           "{\"error\":{\"code\":503,\"message\":\"Loading"
                           " model\",\"type\":\"unavailable_error\"}}"), 0);
    assert_int_equal(facts.state, DIALECT_STARTING);
    assert_int_equal(learn(&facts, "llamacpp", "/health", 200, "{}"), 0);
    assert_int_equal(facts.state, DIALECT_READY);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "sglang", "/health", 503, ""), 0);
    assert_int_equal(facts.state, DIALECT_UNWILLING);
    assert_int_equal(learn(&facts, "sglang", "/health", 200, ""), 0);
    assert_int_equal(facts.state, DIALECT_READY);
    assert_int_equal(learn(&facts, "sglang", "/health", 503, ""), 0);
    assert_int_equal(facts.state, DIALECT_UNWILLING);
    assert_int_equal(learn(&facts, "sglang", "/health", 500, ""), 0);
    assert_int_equal(facts.state, DIALECT_DOWN);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "openai", "/v1/models", 200,
                           "{\"data\":[{\"id\":\"m\"}]}"), 0);
    assert_int_equal(facts.state, DIALECT_READY);
    assert_int_equal(learn(&facts, "openai", "/v1/models", 500, "x"), 0);
    assert_int_equal(facts.state, DIALECT_DOWN);
    assert_int_equal(learn(&facts, "openai", "/v1/models", 502, "x"), 0);
    assert_int_equal(facts.state, DIALECT_UNWILLING);
    assert_string_equal(facts.models, "m");
}


static void
base_models_come_first(void **state)
{
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200,
        "{\"object\":\"list\",\"data\":["
        "{\"id\":\"lora\",\"owned_by\":\"vllm\",\"parent\":\"base\"},"
        "{\"id\":\"base\",\"owned_by\":\"vllm\",\"root\":\"/w/base\","
        "\"parent\":null,\"max_model_len\":4096}]}"), 0);
    assert_int_equal(facts.nmodels, 2);
    assert_memory_equal(facts.models, "base\0lora", 10);
    assert_int_equal(facts.models_bytes, 10);

    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200,
                           "{\"data\":[{\"id\":\"b\",\"max_model_len\":4096,"
                           "\"root\":\"/w/b\"}]}"), 0);
    assert_int_equal(facts.nmodels, 1);
    assert_int_equal(facts.context, 4096);

    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200, "{}"), -1);
    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200, "[]"), -1);
    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200,
                           "{\"data\":[{\"id\":7},{\"id\":\"\"},5]}"), -1);
    assert_int_equal(facts.nmodels, 1);
}


static void
models_have_limits(void **state)
{
    char             body[DIALECT_MAX_MODELS * 40 + 4096], name[300];
    size_t           len, i;
    dialect_facts_t  facts;

    len = (size_t) sprintf(body, "{\"data\":[");

    for (i = 0; i < DIALECT_MAX_MODELS + 2; i++) {
        len += (size_t) sprintf(body + len, "%s{\"id\":\"model%zu\"}",
                                i == 0 ? "" : ",", i);
    }

    strcpy(body + len, "]}");
    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200, body), 0);
    assert_int_equal(facts.nmodels, DIALECT_MAX_MODELS);

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    sprintf(body, "{\"data\":[{\"id\":\"%s\"},{\"id\":\"m\"}]}", name);
    assert_int_equal(learn(&facts, "vllm", "/v1/models", 200, body), 0);
    assert_int_equal(facts.nmodels, 1);
    assert_string_equal(facts.models, "m");
}


static void
capacity_and_context_are_told(void **state)
{
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "sglang", "/server_info", 200,
        "{\"max_running_requests\":128,\"dp_size\":2,\"version\":\"0.5.4\","
        "\"reasoning_parser\":null,\"sampling_defaults\":\"openai\","
        "\"enable_priority_scheduling\":true}"), 0);
    assert_int_equal(facts.priority, 1);
    assert_int_equal(facts.capacity, 256);
    assert_string_equal(facts.version, "0.5.4");
    assert_true(facts.chat_is_text);

    assert_int_equal(learn(&facts, "sglang", "/server_info", 200,
        "{\"sampling_defaults\":\"model\","
        "\"enable_priority_scheduling\":true,"
        "\"schedule_low_priority_values_first\":true}"), 0);
    assert_int_equal(facts.priority, -1);
    assert_false(facts.chat_is_text);
    assert_int_equal(learn(&facts, "sglang", "/server_info", 200,
        "{\"sampling_defaults\":\"openai\",\"reasoning_parser\":\"qwen3\"}"),
        0);
    assert_int_equal(facts.priority, 0);
    assert_false(facts.chat_is_text);

    dialect_facts_init(&facts);
    assert_int_equal(learn(&facts, "llamacpp", "/props", 200,
        "{\"default_generation_settings\":{\"n_ctx\":8192},\"total_slots\":4,"
        "\"chat_template\":\"{{ messages }}\",\"build_info\":\"b6900\"}"), 0);
    assert_int_equal(facts.capacity, 4);
    assert_int_equal(facts.context, 8192);
    assert_string_equal(facts.version, "b6900");
    assert_true(facts.chat_is_text);

    assert_int_equal(learn(&facts, "llamacpp", "/props", 200,
        "{\"total_slots\":4,\"chat_template\":\"<think>\"}"), 0);
    assert_false(facts.chat_is_text);
    assert_int_equal(learn(&facts, "llamacpp", "/props", 200, "{"), -1);
}


static void
a_group_is_a_model_and_what_computes_it(void **state)
{
    char             a[DIALECT_GROUP_BYTES], b[DIALECT_GROUP_BYTES];
    dialect_facts_t  facts;

    dialect_facts_init(&facts);
    dialect_group(dialect_find("llamacpp"), &facts, a);
    assert_string_equal(a, "");

    learn(&facts, "llamacpp", "/v1/models", 200,
          "{\"data\":[{\"id\":\"m\",\"meta\":{\"size\":5}}]}");
    learn(&facts, "llamacpp", "/props", 200, "{\"build_info\":\"b1\"}");
    dialect_group(dialect_find("llamacpp"), &facts, a);
    assert_int_equal(strncmp(a, "llamacpp-", 9), 0);

    /* The facts are learnt again, and in another order. */
    learn(&facts, "llamacpp", "/props", 200,
          "{\"total_slots\":9,\"build_info\":\"b1\"}");
    learn(&facts, "llamacpp", "/v1/models", 200,
          "{\"data\":[{\"meta\":{\"size\":5},\"id\":\"m\"}]}");
    dialect_group(dialect_find("llamacpp"), &facts, b);
    assert_string_equal(a, b);

    dialect_group(dialect_find("vllm"), &facts, b);
    assert_string_not_equal(a, b);

    learn(&facts, "llamacpp", "/props", 200, "{\"build_info\":\"b2\"}");
    dialect_group(dialect_find("llamacpp"), &facts, b);
    assert_string_not_equal(a, b);

    learn(&facts, "llamacpp", "/props", 200, "{\"build_info\":\"b1\"}");
    learn(&facts, "llamacpp", "/v1/models", 200,
          "{\"data\":[{\"id\":\"m\",\"meta\":{\"size\":6}}]}");
    dialect_group(dialect_find("llamacpp"), &facts, b);
    assert_string_not_equal(a, b);
}


static void
assert_detected(const char *path, const char *body, const char *name)
{
    const dialect_t  *found;

    found = dialect_detect(path, 200, body, strlen(body));
    assert_string_equal(found == NULL ? "" : found->name, name);
    assert_null(dialect_detect(path, 404, body, strlen(body)));
}


static void
an_engine_is_known_by_its_answers(void **state)
{
    assert_detected("/v1/models",
                    "{\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\"}]}",
                    "vllm");
    assert_detected("/v1/models",
                    "{\"data\":[{\"id\":\"m\",\"owned_by\":\"sglang\"}]}",
                    "sglang");
    assert_detected("/v1/models",
                    "{\"data\":[{\"id\":\"m\",\"owned_by\":\"llamacpp\"}]}",
                    "llamacpp");
    assert_detected("/v1/models",
                    "{\"data\":[{\"id\":\"m\",\"owned_by\":\"me\"}]}", "");
    assert_detected("/v1/models", "{\"data\":[]}", "");
    assert_detected("/v1/models", "nothing", "");
    assert_detected("/props", "{\"total_slots\":4}", "llamacpp");
    assert_detected("/props", "{}", "");
    assert_detected("/version", "{\"version\":\"0.11.0\"}", "vllm");
    assert_detected("/version", "{\"version\":5}", "");

    assert_null(dialect_find("auto"));
    assert_null(dialect_find(""));
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_number_may_be_that_of_a_label),
        cmocka_unit_test(metrics_are_read),
        cmocka_unit_test(bad_metrics_change_nothing),
        cmocka_unit_test(health_is_a_state),
        cmocka_unit_test(base_models_come_first),
        cmocka_unit_test(models_have_limits),
        cmocka_unit_test(capacity_and_context_are_told),
        cmocka_unit_test(a_group_is_a_model_and_what_computes_it),
        cmocka_unit_test(an_engine_is_known_by_its_answers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * What is read from a valid body: its members, where they are, and what they
 * ask for.
 */

#include "t/unit/core/openai/openai_scene.h"


#define CHATS(json)  "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"," \
                     "\"content\":\"hi\"}]," json "}"
#define PROMPTS(json) "{\"model\":\"m\",\"prompt\":\"hi\"," json "}"


static void
positions_are_those_of_key_and_value(void **state)
{
    size_t                       i;
    llmgw_openai_body_t          body;
    const llmgw_openai_member_t  *m;
    const char  *text =
        "\n{ \"model\" :\"a\\\"}\" , \"\\u006d\\\"x\"\t:[1,{\"b\":\"]\"}] ,"
        "\"messages\":[ {\"role\":\"user\"}], \"\":-1e5 ,\"z\":null} ";
    static const struct {
        const char  *key, *raw_key, *value;
    } expected[] = {
        { "model", "\"model\"", "\"a\\\"}\"" },
        { "m\"x", "\"\\u006d\\\"x\"", "[1,{\"b\":\"]\"}]" },
        { "messages", "\"messages\"", "[ {\"role\":\"user\"}]" },
        { "", "\"\"", "-1e5" },
        { "z", "\"z\"", "null" },
    };

    scene_well(&body, CHAT, text);
    assert_int_equal(body.nmembers, 5);
    assert_string_equal(body.model, "a\"}");

    for (i = 0; i < body.nmembers; i++) {
        m = &body.members[i];
        assert_string_equal(m->key, expected[i].key);
        assert_memory_equal(text + m->begin, expected[i].raw_key,
                            strlen(expected[i].raw_key));
        assert_int_equal(m->end - m->value, strlen(expected[i].value));
        assert_memory_equal(text + m->value, expected[i].value,
                            m->end - m->value);
    }

    assert_int_equal(body.messages.begin, body.members[2].value);
    assert_int_equal(body.messages.end, body.members[2].end);
    assert_int_equal(body.tools.end, 0);
    scene_done(&body);
}


/*
 * jansson reads the text at each member's place, and finds there the value
 * that the member has in the whole body.
 */
static void
assert_members(const llmgw_openai_body_t *body, json_t *whole)
{
    size_t                        i;
    json_t                       *value;
    json_error_t                  error;
    const llmgw_openai_member_t  *m;

    assert_int_equal(body->nmembers, json_object_size(whole));

    for (i = 0; i < body->nmembers; i++) {
        m = &body->members[i];
        value = json_loadb((const char *) body->bytes + m->value,
                           m->end - m->value, JSON_DECODE_ANY, &error);
        assert_non_null(value);
        assert_true(json_equal(value, json_object_get(whole, m->key)));
        json_decref(value);

        value = json_loadb((const char *) body->bytes + m->begin,
                           m->value - m->begin, JSON_DECODE_ANY
                           | JSON_DISABLE_EOF_CHECK, &error);
        assert_non_null(value);
        assert_string_equal(json_string_value(value), m->key);
        json_decref(value);
    }
}


static void
positions_hold_however_a_body_is_written(void **state)
{
    char                 *text;
    json_t               *whole;
    unsigned              seed;
    json_error_t          error;
    llmgw_openai_body_t   body;
    const char           *plain =
        "{\"model\":\"a/b \u00e9\",\"messages\":[{\"role\":\"system\","
        "\"content\":\"\\\"quoted\\\" \\\\ / \\n\\u0001 \u20ac \U0001f600\"},"
        "{\"content\":"
        "[{\"type\":\"text\",\"text\":\"{[,:]}\"}],\"role\":\"user\"}],"
        "\"stream\":true,\"\\\"\":[[],{},[{}],\"\"],\"\\\\\":{\"a\":{\"b\":"
        "[null,false]}},\"\U0001f600\":-12,\"tools\":[]}";

    whole = json_loads(plain, 0, &error);
    assert_non_null(whole);

    for (seed = 0; seed < 300; seed++) {
        text = scene_json(whole, seed);
        scene_well(&body, CHAT, text);
        assert_members(&body, whole);
        assert_string_equal(body.model, "a/b \u00e9");
        assert_int_equal(body.stream, 1);
        assert_int_equal(body.features, FEATURE(UNKNOWN));
        scene_done(&body);
        free(text);
    }

    json_decref(whole);
}


static void
last_of_equal_keys_counts(void **state)
{
    llmgw_openai_body_t  body;

    scene_well(&body, CHAT, CHATS("\"model\":\"b\",\"stream\":1,\"n\":\"x\","
                                  "\"stream\":true,\"n\":2,\"\\u006e\":3,"
                                  "\"max_tokens\":-1,\"max_tokens\":null"));

    assert_string_equal(body.model, "b");
    assert_int_equal(body.stream, 1);
    assert_int_equal(body.n, 3);
    assert_int_equal(body.max_tokens, 0);
    assert_int_equal(body.nmembers, 10);
    scene_done(&body);
}


static void
what_engines_take_passes(void **state)
{
    size_t               i;
    llmgw_openai_body_t  body;
    static const char   *const texts[] = {
        CHATS("\"a\":1e400,\"b\":123456789012345678901234567890,\"c\":-0.0"),
        CHATS("\"a\":\"\\u0000\",\"b\":{\"\\u0000\":1}"),
        CHATS("\"a\":\"\\ud83d\\ude00\""),
        CHATS("\"stream\":null,\"n\":null,\"tools\":null,\"stop\":null,"
              "\"stream_options\":null,\"temperature\":null,\"seed\":null"),
        CHATS("\"a\":\"\x7f \xc2\x80 \xf4\x8f\xbf\xbf\",\"\\/\":1E+2"),
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        scene_well(&body, CHAT, texts[i]);
        scene_done(&body);
    }
}


static void
max_completion_tokens_goes_first(void **state)
{
    llmgw_openai_body_t  body;

    scene_well(&body, CHAT, CHATS("\"max_tokens\":7.00"));
    assert_int_equal(body.max_tokens, 7);
    scene_done(&body);

    scene_well(&body, CHAT, CHATS("\"max_completion_tokens\":2147483647,"
                                  "\"max_tokens\":7"));
    assert_int_equal(body.max_tokens, 2147483647);
    scene_done(&body);

    /* the log probabilities of the prompt alone */
    scene_well(&body, COMPLETIONS, PROMPTS("\"max_tokens\":0,\"echo\":true"));
    assert_int_equal(body.max_tokens, 0);
    assert_int_equal(body.features, FEATURE(ECHO));
    scene_done(&body);
}


static void
usage_is_asked_for_in_stream_options(void **state)
{
    llmgw_openai_body_t  body;

    scene_well(&body, CHAT, CHATS("\"stream_options\":{\"a\":{\"include_usage\""
                                  ":false},\"include_usage\":true}"));
    assert_int_equal(body.include_usage, 1);
    assert_int_equal(body.stream, 0);
    scene_done(&body);

    scene_well(&body, CHAT, CHATS("\"stream_options\":{\"include_usage\":"
                                  "null}"));
    assert_int_equal(body.include_usage, 0);
    scene_done(&body);
}


static void
features_are_what_the_members_ask_for(void **state)
{
    size_t               i;
    char                 text[4096];
    llmgw_openai_body_t  body;
    static const struct {
        Llmgateway__Api   api;
        const char       *json;
        uint32_t          features;
    } asks[] = {
        { CHAT, "\"temperature\":0.5,\"top_p\":1,\"user\":\"u\"", 0 },
        { CHAT, "\"tools\":[{}]", FEATURE(TOOLS) },
        { CHAT, "\"tools\":[]", 0 },
        { CHAT, "\"tools\":[{}],\"tool_choice\":\"none\"", 0 },
        { CHAT, "\"tools\":[{}],\"tool_choice\":\"auto\"", FEATURE(TOOLS) },
        { CHAT, "\"tool_choice\":{\"type\":\"function\"},\"tools\":[{}]",
          FEATURE(TOOLS) },
        { CHAT, "\"functions\":[{}]", FEATURE(TOOLS) },
        { CHAT, "\"functions\":[{}],\"function_call\":\"none\"", 0 },
        { CHAT, "\"functions\":[{}],\"tool_choice\":\"none\"",
          FEATURE(TOOLS) },
        { CHAT, "\"response_format\":{\"type\":\"text\"}", 0 },
        { CHAT, "\"response_format\":{\"type\":\"json_object\"}",
          FEATURE(FORMAT) },
        { CHAT, "\"response_format\":{}", FEATURE(FORMAT) },
        { CHAT, "\"guided_json\":{\"type\":\"object\"}", FEATURE(FORMAT) },
        { CHAT, "\"guided_regex\":\"\"", 0 },
        { CHAT, "\"structured_outputs\":{\"regex\":\"a\"}", FEATURE(FORMAT) },
        { CHAT, "\"grammar\":\"root ::= x\"", FEATURE(FORMAT) },
        { CHAT, "\"logprobs\":true,\"top_logprobs\":2", FEATURE(LOGPROBS) },
        { CHAT, "\"logprobs\":false,\"top_logprobs\":0", 0 },
        { COMPLETIONS, "\"logprobs\":0", FEATURE(LOGPROBS) },
        { COMPLETIONS, "\"logprobs\":null", 0 },
        { CHAT, "\"prompt_logprobs\":0", FEATURE(LOGPROBS) },
        { CHAT, "\"n\":2", FEATURE(CHOICES) },
        { CHAT, "\"n\":1", 0 },
        { COMPLETIONS, "\"best_of\":3", FEATURE(CHOICES) },
        { COMPLETIONS, "\"best_of\":1.0", 0 },
        { COMPLETIONS, "\"prompt_embeds\":\"x\"", FEATURE(IDS_PROMPT) },
        { CHAT, "\"best_of\":3", FEATURE(UNKNOWN) },
        { CHAT, "\"stop\":\"\\n\"", FEATURE(STOP) },
        { CHAT, "\"stop\":[\"a\",\"b\"]", FEATURE(STOP) },
        { CHAT, "\"stop\":[]", 0 },
        { CHAT, "\"stop_token_ids\":[1]", 0 },
        { CHAT, "\"presence_penalty\":0.0,\"frequency_penalty\":-0", 0 },
        { CHAT, "\"presence_penalty\":0.10", FEATURE(PENALTY) },
        { CHAT, "\"frequency_penalty\":-2", FEATURE(PENALTY) },
        { CHAT, "\"repetition_penalty\":1.0", 0 },
        { CHAT, "\"repetition_penalty\":1.05", FEATURE(PENALTY) },
        { CHAT, "\"repetition_penalty\":-1", FEATURE(PENALTY) },
        { CHAT, "\"min_tokens\":0", 0 },
        { CHAT, "\"min_tokens\":4", FEATURE(MIN_TOKENS) },
        { COMPLETIONS, "\"suffix\":\"x\"", FEATURE(ECHO) },
        { CHAT, "\"return_token_ids\":true", FEATURE(UNKNOWN) },
        { CHAT, "\"Stream\":true", FEATURE(UNKNOWN) },
    };

    for (i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        sprintf(text, "{\"model\":\"m\",%s,%s}", asks[i].api == CHAT
                ? "\"messages\":[{\"role\":\"user\"}]" : "\"prompt\":\"p\"",
                asks[i].json);
        scene_well(&body, asks[i].api, text);

        if (body.features != asks[i].features) {
            fail_msg("%s: %u", asks[i].json, body.features);
        }

        scene_done(&body);
    }
}


/* A key that is out of order in the table would not be found. */
static void
known_keys_are_found(void **state)
{
    char                *p, text[8192];
    size_t               i;
    llmgw_openai_body_t  body;
    static const char   *const keys[] = {
        "add_generation_prompt", "add_special_tokens", "allowed_token_ids",
        "bad_words", "cache_prompt", "cache_salt", "chat_template",
        "chat_template_kwargs", "continue_final_message", "dimensions",
        "documents", "dry_allowed_length", "dry_base", "dry_multiplier",
        "dry_penalty_last_n", "dry_sequence_breakers", "dynatemp_exponent",
        "dynatemp_range", "ebnf", "encoding_format", "frequency_penalty",
        "function_call", "functions", "grammar", "guided_choice",
        "guided_decoding_backend", "guided_grammar", "guided_json",
        "guided_regex", "guided_whitespace_pattern", "id_slot", "ignore_eos",
        "include_reasoning", "include_stop_str_in_output", "json_schema",
        "length_penalty", "logit_bias", "logprobs", "max_completion_tokens",
        "max_tokens", "metadata", "min_keep", "min_p", "min_tokens",
        "mirostat", "mirostat_eta", "mirostat_tau", "mm_processor_kwargs", "n",
        "n_keep", "n_probs", "parallel_tool_calls", "presence_penalty",
        "priority", "prompt_cache_key", "prompt_cache_retention",
        "prompt_logprobs", "reasoning", "reasoning_effort", "reasoning_format",
        "regex", "repeat_last_n", "repeat_penalty", "repetition_penalty",
        "request_id", "response_format", "safety_identifier", "samplers",
        "seed", "separate_reasoning", "service_tier", "skip_special_tokens",
        "spaces_between_special_tokens", "stop", "stop_token_ids", "store",
        "stream", "stream_options", "stream_reasoning", "structured_outputs",
        "t_max_predict_ms", "temperature", "tool_choice", "tools", "top_k",
        "top_logprobs", "top_n_sigma", "top_p", "truncate_prompt_tokens",
        "typical_p", "use_beam_search", "user", "verbosity", "xtc_probability",
        "xtc_threshold",
    };

    p = text + sprintf(text, "%s", CHATS("\"n\":1"));

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        p += sprintf(p - 1, ",\"%s\":null}", keys[i]) - 1;
    }

    scene_well(&body, CHAT, text);
    assert_int_equal(body.features, 0);
    scene_done(&body);
}


static void
prompts_are_counted(void **state)
{
    size_t               i;
    char                 text[1024];
    llmgw_openai_body_t  body;
    static const struct {
        const char  *prompt;
        uint32_t     prompts, features;
    } forms[] = {
        { "\"\"", 1, 0 },
        { "[\"a\"]", 1, 0 },
        { "[\"a\",\"b\",\"c\"]", 3, FEATURE(CHOICES) },
        { "[1,2,3]", 1, FEATURE(IDS_PROMPT) },
        { "[[1,2,3]]", 1, FEATURE(IDS_PROMPT) },
        { "[[1,2],[3]]", 2, FEATURE(IDS_PROMPT) | FEATURE(CHOICES) },
        { "[\"a\",17,18]", 1, FEATURE(IDS_PROMPT) },
    };

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        sprintf(text, "{\"model\":\"m\",\"prompt\":%s}", forms[i].prompt);
        scene_well(&body, COMPLETIONS, text);
        assert_int_equal(body.prompts, forms[i].prompts);
        assert_int_equal(body.features, forms[i].features);
        scene_done(&body);
    }

    scene_well(&body, COMPLETIONS, "{\"model\":\"m\",\"prompt_embeds\":\"x\"}");
    assert_int_equal(body.features, FEATURE(IDS_PROMPT));
    scene_done(&body);
}


/*
 * Bodies of other APIs are passed on: what the gateway does not need is left
 * to the engine.
 */
static void
other_apis_are_judged_by_what_is_needed(void **state)
{
    llmgw_openai_body_t  body;

    scene_well(&body, EMBEDDINGS, "{\"model\":\"m\",\"input\":[\"a\",\"b\"],"
                                  "\"dimensions\":8}");
    assert_int_equal(body.prompts, 2);
    scene_done(&body);

    scene_well(&body, EMBEDDINGS, "{\"model\":\"m\",\"messages\":[{\"role\":"
                                  "\"user\"}]}");
    scene_done(&body);

    scene_well(&body, RESPONSES, "{\"model\":\"m\",\"prompt\":{\"id\":\"p\"},"
               "\"instructions\":\"i\",\"input\":[{\"type\":\"x\"}],"
               "\"max_output_tokens\":9,\"stream\":true}");
    assert_int_equal(body.max_tokens, 9);
    assert_true(body.system.end > 0 && body.prompt.end > 0);
    scene_done(&body);

    scene_well(&body, RESPONSES, "{\"model\":\"m\"}");
    scene_done(&body);

    scene_well(&body, MESSAGES, "{\"model\":\"m\",\"max_tokens\":5,\"system\":"
               "[{\"type\":\"text\",\"text\":\"s\"}],\"messages\":[{\"role\":"
               "\"user\",\"content\":\"c\"}],\"stop_sequences\":[\"x\"]}");
    assert_int_equal(body.features, FEATURE(STOP));
    scene_done(&body);

    scene_well(&body, LLMGW_OPENAI_ANY_API, "{\"input\":[],\"prompt\":\"p\"}");
    assert_int_equal(body.model_len, 0);
    scene_done(&body);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(positions_are_those_of_key_and_value),
        cmocka_unit_test(positions_hold_however_a_body_is_written),
        cmocka_unit_test(last_of_equal_keys_counts),
        cmocka_unit_test(what_engines_take_passes),
        cmocka_unit_test(max_completion_tokens_goes_first),
        cmocka_unit_test(usage_is_asked_for_in_stream_options),
        cmocka_unit_test(features_are_what_the_members_ask_for),
        cmocka_unit_test(known_keys_are_found),
        cmocka_unit_test(prompts_are_counted),
        cmocka_unit_test(other_apis_are_judged_by_what_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

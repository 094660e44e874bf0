
/*
 * A vLLM continues a stream that was lost at another replica.
 */

#include "t/unit/replica/engine/dialect/played_vllm.h"


/* The hash that the first message has for the ids 1, 2, 3. */
static uint64_t
prompt_hash(void)
{
    uint64_t                             hash;
    played_t                             p;
    const Llmgateway__GenerateResponse  *m;

    static const char  text[] = CHUNK(DELTA("{\"content\":\"a\"}", "null",
                                            "[7]"), "");

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, PLAYED_VLLM_CHAT);
    played_start(&p, "vllm");
    played_stream(&p);
    played_event(&p, ROLE);
    dialect_event(p.call, text, sizeof(text) - 1);
    m = dialect_take(p.call);
    assert_non_null(m);
    assert_non_null(m->prompt);
    hash = m->prompt->hash;
    played_end(&p);

    return hash;
}


static uint32_t  given[] = { 7, 8, 9 };


static void
lost(played_t *p, const char *body)
{
    played_init(p);
    played_openai(p, LLMGATEWAY__API__API_CHAT, body);
    p->request.delivered = &p->delivered;
    p->request.tokens_already_generated = 3;
    p->delivered.token_ids = given;
    p->delivered.n_token_ids = 3;
    p->delivered.prompt_tokens = 3;
    p->delivered.prompt_hash = prompt_hash();
    p->delivered.cached_tokens = 2;
    p->openai.max_tokens = 10;
    p->openai.include_usage = 1;
}


#define LOST \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"," \
    "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]," \
    "\"stream\":true,\"max_tokens\":10,\"min_tokens\":4.0,\"seed\":1," \
    "\"chat_template_kwargs\":{\"a\":1},\"n\":1,\"tool_choice\":\"none\"," \
    "\"stream_options\":{\"include_usage\":true}}"


static void
it_goes_on_behind_the_ids(void **state)
{
    played_t  p;

    lost(&p, LOST);
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/detokenize", "{\"model\":\"m\",\"tokens\":[7,8,9]}");
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"abc\"}"),
                     DIALECT_ASK);
    played_asks(&p, "/tokenize",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}],"
                "\"chat_template_kwargs\":{\"a\":1}}");
    assert_true(dialect_needs_request(p.call));
    assert_int_equal(played_answer(&p, 200,
                     "{\"count\":3,\"max_model_len\":4096,"
                     "\"tokens\":[1, 2,3],\"token_strs\":null}"), DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"model\":\"m\",\"seed\":1,\"prompt\":[1, 2,3,7,8,9],"
                "\"max_tokens\":7,\"min_tokens\":1,\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true},"
                "\"return_token_ids\":true}");
    assert_false(dialect_needs_request(p.call));

    /* The call gives no role, and no chunk of a completion: the front writes
       them. */
    played_stream(&p);
    played_event(&p, "{\"id\":\"cmpl-1\",\"object\":\"text_completion\","
                     "\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,"
                     "\"text\":\"d\",\"logprobs\":null,\"finish_reason\":null,"
                     "\"stop_reason\":null,\"prompt_token_ids\":[1,2,3,7,8,9],"
                     "\"token_ids\":[10]}],\"usage\":null}");
    played_said(&p, "'d' #10");
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"\","
                     "\"finish_reason\":\"stop\",\"token_ids\":[2]}]}");
    played_said(&p, "#2 finish0=stop");
    played_event(&p, "{\"choices\":[],\"usage\":{\"prompt_tokens\":6,"
                     "\"completion_tokens\":2,\"total_tokens\":8,"
                     "\"prompt_tokens_details\":{\"cached_tokens\":6},"
                     "\"completion_tokens_details\":"
                     "{\"reasoning_tokens\":2}}}");
    played_said(&p, "usage=3+5(2)");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_end(&p);
}


static void
half_a_character_is_generated_again(void **state)
{
    played_t  p;

    lost(&p, LOST);
    played_start(&p, "vllm");
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"ab\\ufffd\"}"),
                     DIALECT_ASK);
    played_asks(&p, "/detokenize", "{\"model\":\"m\",\"tokens\":[7,8]}");
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"ab\"}"),
                     DIALECT_ASK);
    assert_int_equal(played_answer(&p, 200, "{\"tokens\":[1,2,3]}"),
                     DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"model\":\"m\",\"seed\":1,\"prompt\":[1,2,3,7,8],"
                "\"max_tokens\":8,\"min_tokens\":2,\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true},"
                "\"return_token_ids\":true}");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"c\","
                     "\"token_ids\":[9,10]}]}");
    played_said(&p, "'c' #9 #10 resume_by=2");
    played_end(&p);
}


static void
an_engine_without_detokenize_goes_on(void **state)
{
    played_t  p;

    lost(&p, LOST);
    played_start(&p, "vllm");
    assert_int_equal(played_answer(&p, 404, "{\"detail\":\"Not Found\"}"),
                     DIALECT_ASK);
    assert_string_equal(dialect_http(p.call)->path, "/tokenize");
    assert_int_equal(played_answer(&p, 404, "{\"detail\":\"Not Found\"}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call),
                     LLMGW_GRPC_FAILED_PRECONDITION);
    played_end(&p);
}


static void
other_prompt_ids_are_refused(void **state)
{
    size_t                    i;
    played_t                  p;

    static const char *const  other[] = {
        "{\"tokens\":[1,2,4]}", "{\"tokens\":[1,2]}", "{\"tokens\":[1,2,3,3]}"
    };

    for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        lost(&p, LOST);
        played_start(&p, "vllm");
        played_answer(&p, 200, "{\"prompt\":\"abc\"}");
        assert_int_equal(played_answer(&p, 200, other[i]), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call),
                         LLMGW_GRPC_FAILED_PRECONDITION);
        assert_non_null(strstr(dialect_call_why(p.call), "other ids"));
        played_end(&p);
    }
}


static void
what_cannot_go_on_is_refused(void **state)
{
    size_t              i;
    played_t            p;

    static const struct {
        uint32_t     feature;
        const char  *more;
        const char  *why;
    } cases[] = {
        { LLMGATEWAY__FEATURE__FEATURE_TOOLS, "", "tools" },
        { LLMGATEWAY__FEATURE__FEATURE_FORMAT, "", "format" },
        { LLMGATEWAY__FEATURE__FEATURE_LOGPROBS, "", "log prob" },
        { LLMGATEWAY__FEATURE__FEATURE_CHOICES, ",\"n\":2", "choices" },
        { LLMGATEWAY__FEATURE__FEATURE_STOP, ",\"stop\":\"x\"", "stop" },
        { LLMGATEWAY__FEATURE__FEATURE_PENALTY, "", "penalty" },
        { LLMGATEWAY__FEATURE__FEATURE_ECHO, "", "echo" },
        { 0, ",\"use_beam_search\":true", "a key" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  body[300];

        snprintf(body, sizeof(body), "{\"messages\":[{\"role\":\"user\","
                 "\"content\":\"a\"}]%s}", cases[i].more);
        lost(&p, body);
        p.openai.features = cases[i].feature;
        assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call),
                         LLMGW_GRPC_FAILED_PRECONDITION);
        assert_non_null(strstr(dialect_call_why(p.call), cases[i].why));
        played_end(&p);
    }

    lost(&p, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
             "\"image_url\",\"image_url\":{\"url\":\"data:\"}}]}]}");
    assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
    assert_non_null(strstr(dialect_call_why(p.call), "only text"));
    played_end(&p);

    lost(&p, LOST);
    p.delivered.prompt_hash = 0;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
    played_end(&p);

    lost(&p, LOST);
    p.delivered.n_token_ids = 0;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
    played_end(&p);
}


static void
nothing_is_left_to_generate(void **state)
{
    played_t  p;

    lost(&p, LOST);
    p.openai.max_tokens = 3;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_DONE);
    played_said(&p, "finish0=length usage=3+3(2)|final");
    played_end(&p);

    /* Tokens not counted by ids, or of an unknown prompt, are left out. */

    lost(&p, LOST);
    p.openai.max_tokens = 3;
    p.delivered.prompt_tokens = 0;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_DONE);
    played_said(&p, "finish0=length|final");
    played_end(&p);

    lost(&p, LOST);
    p.openai.max_tokens = 3;
    p.delivered.n_token_ids = 0;
    p.delivered.text.data = (uint8_t *) "abc";
    p.delivered.text.len = 3;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_DONE);
    played_said(&p, "finish0=length|final");
    played_end(&p);
}


static void
a_chat_without_a_limit_gets_the_context(void **state)
{
    played_t  p;

    lost(&p, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    p.openai.max_tokens = 0;
    played_start(&p, "vllm");
    played_answer(&p, 200, "{\"prompt\":\"abc\"}");
    assert_int_equal(played_answer(&p, 200, "{\"tokens\":[1,2,3],"
                                            "\"max_model_len\":100}"),
                     DIALECT_ASK);
    assert_true(played_asks_for(&p, "\"max_tokens\":94,"));
    played_end(&p);

    lost(&p, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    p.openai.max_tokens = 0;
    played_start(&p, "vllm");
    played_answer(&p, 200, "{\"prompt\":\"abc\"}");
    assert_int_equal(played_answer(&p, 200, "{\"tokens\":[1,2,3]}"),
                     DIALECT_FAILED);
    played_end(&p);
}


static void
it_goes_on_behind_the_text(void **state)
{
    played_t  p;

    lost(&p, LOST);
    p.delivered.n_token_ids = 0;
    p.delivered.text.data = (uint8_t *) "a\"b";
    p.delivered.text.len = 3;
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_STOP
                        | LLMGATEWAY__FEATURE__FEATURE_TOOLS;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/v1/chat/completions",
                "{\"model\":\"m\",\"seed\":1,"
                "\"chat_template_kwargs\":{\"a\":1},\"n\":1,"
                "\"tool_choice\":\"none\",\"stream_options\":"
                "{\"include_usage\":true},\"stream\":true,\"max_tokens\":7,"
                "\"min_tokens\":1,\"continue_final_message\":true,"
                "\"add_generation_prompt\":false,"
                "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                "\"text\",\"text\":\"hi\"}]},{\"role\":\"assistant\","
                "\"content\":\"a\\\"b\"}]}");
    played_stream(&p);
    played_event(&p, ROLE);
    played_event(&p, CHUNK(DELTA("{\"content\":\"c\"}", "\"stop\"", "null"),
                           ""));
    played_said(&p, "'c' finish0=stop " OURS(
                "{\"index\":0,\"delta\":{\"content\":\"c\"},"
                "\"logprobs\":null,\"finish_reason\":\"stop\"}"));
    played_event(&p, CHUNK("", ",\"usage\":{\"prompt_tokens\":6,"
                               "\"completion_tokens\":1,\"total_tokens\":7}"));
    played_said(&p, "usage=3+4(2) {\"id\":\"chatcmpl-1\","
                "\"created\":1700000000,\"model\":\"alias\","
                "\"object\":\"chat.completion.chunk\",\"choices\":[],"
                "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,"
                "\"total_tokens\":7,\"prompt_tokens_details\":"
                "{\"cached_tokens\":2}}}");
    played_end(&p);
}


static void
a_completion_goes_on_behind_its_text(void **state)
{
    played_t  p;

    lost(&p, "{\"prompt\":\"once\\n\",\"stream\":true}");
    p.openai.api = LLMGATEWAY__API__API_COMPLETIONS;
    p.delivered.n_token_ids = 0;
    p.delivered.text.data = (uint8_t *) " up\n";
    p.delivered.text.len = 4;
    p.openai.max_tokens = 0;
    p.openai.include_usage = 0;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                "\"max_tokens\":13,\"prompt\":\"once\\n up\\n\"}");
    played_end(&p);
}


static void
a_prompt_of_ids_needs_no_rendering(void **state)
{
    played_t  p;

    lost(&p, "{\"prompt\":[ 1,2, 3 ],\"stream\":true,\"max_tokens\":10}");
    p.openai.api = LLMGATEWAY__API__API_COMPLETIONS;
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_IDS_PROMPT;
    played_start(&p, "vllm");
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"abc\"}"),
                     DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"prompt\":[ 1,2, 3 ,7,8,9],\"max_tokens\":7,"
                "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                "\"return_token_ids\":true}");
    played_end(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(it_goes_on_behind_the_ids),
        cmocka_unit_test(half_a_character_is_generated_again),
        cmocka_unit_test(an_engine_without_detokenize_goes_on),
        cmocka_unit_test(other_prompt_ids_are_refused),
        cmocka_unit_test(what_cannot_go_on_is_refused),
        cmocka_unit_test(nothing_is_left_to_generate),
        cmocka_unit_test(a_chat_without_a_limit_gets_the_context),
        cmocka_unit_test(it_goes_on_behind_the_text),
        cmocka_unit_test(a_completion_goes_on_behind_its_text),
        cmocka_unit_test(a_prompt_of_ids_needs_no_rendering)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * vLLM's dialect: what is asked, and what its stream becomes.
 */

#include "t/unit/replica/engine/dialect/played_vllm.h"


static void
a_chat_is_asked_with_ids(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  " { \"model\" : \"alias\", \"messages\":[{\"role\":\"user\","
                  "\"content\":\"a\\u00e9\"}],\"seed\": 1e400,"
                  "\"stream\":true, \"stream_options\":{}}  ");
    p.openai.engine_model = (char *) "m";

    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/v1/chat/completions",
                "{\"messages\":[{\"role\":\"user\","
                "\"content\":\"a\\u00e9\"}],\"seed\": 1e400,"
                "\"model\":\"m\",\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true},"
                "\"return_token_ids\":true}");
    assert_false(dialect_needs_request(p.call));
    played_end(&p);
}


static void
chunks_are_ours_and_ids_wait_for_their_text(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, PLAYED_VLLM_CHAT);
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_stream(&p);

    assert_int_equal(played_event(&p, ROLE), DIALECT_MORE);
    played_said(&p, "");

    played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "null", "[7]"), ""));
    played_said(&p, "prompt=3 #7 " OURS(
                "{\"index\":0,\"delta\":{\"role\":\"assistant\","
                "\"content\":\"a\"},\"logprobs\":null,"
                "\"finish_reason\":null}"));

    played_event(&p, CHUNK(DELTA("{\"content\":\"\"}", "null", "[8]"), ""));
    played_said(&p, "");

    played_event(&p, CHUNK(DELTA("{\"content\":\"\\u00e9\"}", "null", "[9]"),
                           ""));
    played_said(&p, "#8 #9 " OURS(
                "{\"index\":0,\"delta\":{\"content\":\"\\u00e9\"},"
                "\"logprobs\":null,\"finish_reason\":null}"));

    played_event(&p, CHUNK(DELTA("{\"content\":\"\"}", "\"stop\"", "[2]"),
                           ",\"usage\":null"));
    played_said(&p, "#2 finish0=stop " OURS(
                "{\"index\":0,\"delta\":{\"content\":\"\"},"
                "\"logprobs\":null,\"finish_reason\":\"stop\"}"));

    played_event(&p, CHUNK("", ",\"usage\":{\"prompt_tokens\":3,"
                           "\"total_tokens\":7,\"completion_tokens\":4,"
                           "\"prompt_tokens_details\":{\"cached_tokens\":2}}"));
    played_said(&p, "usage=3+4(2)");

    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_said(&p, "final");
    played_end(&p);
}


static void
infer_is_a_completion(void **state)
{
    played_t  p;

    played_init(&p);
    strcpy(p.facts.models, "base");
    p.facts.nmodels = 1;
    p.request.prompt.data = (uint8_t *) "hi";
    p.request.prompt.len = 2;
    p.request.max_tokens = 5;
    p.request.want = WANT_IDS;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"model\":\"base\",\"prompt\":\"hi\",\"max_tokens\":5,"
                "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                "\"return_token_ids\":true}");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"a\","
                     "\"prompt_token_ids\":[1,2],\"token_ids\":[5]}]}");
    played_said(&p, "prompt=2 'a' #5");
    played_end(&p);

    /* A stream resumes by what was delivered, never by position alone. */
    p.request.tokens_already_generated = 1;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
    played_end(&p);
}


static void
the_lower_priority_is_the_earlier(void **state)
{
    size_t    i;
    played_t  p;

    static const struct {
        int32_t      value;
        const char  *body;
    } asked[] = {
        { 5, "{\"prompt\":\"a\",\"priority\":-5}" },
        { -7, "{\"prompt\":\"a\",\"priority\":7}" },
        { 0, "{\"prompt\":\"a\"}" }      /* nor the client's */
    };

    for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_COMPLETIONS,
                      "{\"priority\":99,\"prompt\":\"a\"}");
        played_priority(&p, asked[i].value);
        p.openai.features = LLMGATEWAY__FEATURE__FEATURE_UNKNOWN;
        assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
        played_asks(&p, "/v1/completions", asked[i].body);
        played_end(&p);
    }
}


static void
a_pass_that_has_no_priority_is_told_none(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_EMBEDDINGS,
                  "{\"input\":\"a\",\"priority\":99}");
    played_priority(&p, 5);
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_asks(&p, "/v1/embeddings", "{\"input\":\"a\"}");
    played_end(&p);
}


static void
infer_has_a_priority(void **state)
{
    played_t  p;

    played_init(&p);
    p.request.prompt.data = (uint8_t *) "hi";
    p.request.prompt.len = 2;
    p.request.max_tokens = 5;
    played_priority(&p, 5);
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    assert_true(played_asks_for(&p, "{\"priority\":-5,\"prompt\":\"hi\""));
    played_end(&p);
}


static void
a_plain_caller_gets_plain_tokens(void **state)
{
    played_t  p;

    played_init(&p);
    p.request.prompt.data = (uint8_t *) "hi";
    p.request.prompt.len = 2;
    p.request.max_tokens = 5;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"a\","
                     "\"finish_reason\":\"length\"}]}");
    played_event(&p, "{\"choices\":[],\"usage\":{\"prompt_tokens\":1,"
                     "\"completion_tokens\":1}}");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_said(&p, "'a'|final");
    played_end(&p);
}


static void
a_prompt_that_is_no_utf8_is_refused(void **state)
{
    played_t  p;

    played_init(&p);
    p.request.prompt.data = (uint8_t *) "a\xff";
    p.request.prompt.len = 2;
    p.request.max_tokens = 5;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_INVALID_ARGUMENT);
    played_end(&p);
}


static void
thoughts_and_tools_end_the_resume(void **state)
{
    size_t                    i;
    played_t                  p;

    static const char *const  deltas[] = {
        CHUNK(DELTA("{\"reasoning_content\":\"hm\"}", "null", "[7]"), ""),
        CHUNK(DELTA("{\"reasoning\":\"hm\"}", "null", "[7]"), ""),
        CHUNK(DELTA("{\"tool_calls\":[{\"index\":0}]}", "null", "[7]"), "")
    };

    for (i = 0; i < sizeof(deltas) / sizeof(deltas[0]); i++) {
        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_CHAT, PLAYED_VLLM_CHAT);
        played_start(&p, "vllm");
        played_stream(&p);
        played_event(&p, deltas[i]);
        assert_int_equal(strncmp(p.said, "#7 resume_by=2 {", 16), 0);
        p.said[0] = '\0';
        played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "null", "[8]"),
                               ""));
        assert_null(strstr(p.said, "resume_by"));
        assert_null(strstr(p.said, "role"));
        played_end(&p);
    }
}


static void
ids_that_do_not_come_are_not_waited_for(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, PLAYED_VLLM_CHAT);
    played_start(&p, "vllm");
    played_stream(&p);
    played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "null", "null"), ""));
    assert_int_equal(strncmp(p.said, "'a' resume_by=2 {", 17), 0);
    played_end(&p);
}


static void
an_answer_is_assembled_from_texts(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                  "\"stream\":false}");
    p.request.want = WANT_IDS;
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    assert_true(played_asks_for(&p, "\"stream\":true"));
    played_stream(&p);
    played_event(&p, ROLE);
    played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "null", "[7]"), ""));
    played_said(&p, "prompt=3 'a' #7");
    played_end(&p);
}


static void
an_answer_with_thoughts_is_put_together_here(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    played_start(&p, "vllm");
    played_stream(&p);
    played_event(&p, CHUNK(DELTA("{\"reasoning\":\"hm\"}", "null", "[7]"),
                           ""));
    played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "\"stop\"", "[8]"),
                           ""));
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_said(&p, "raw=200 application/json {\"id\":\"chatcmpl-1\","
                "\"object\":\"chat.completion\",\"created\":1700000000,"
                "\"model\":\"alias\",\"choices\":[{\"index\":0,\"message\":{"
                "\"role\":\"assistant\",\"content\":\"a\","
                "\"reasoning\":\"hm\"},\"logprobs\":null,"
                "\"finish_reason\":\"stop\"}]}|final");
    played_end(&p);
}


/* Of each key the answer has the last value that is not null. */
static void
what_an_engine_adds_stands_in_the_answer(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    played_start(&p, "vllm");
    played_stream(&p);
    played_event(&p, CHUNK("{\"index\":0,\"delta\":{\"content\":\"a\"},"
                           "\"finish_reason\":null,\"stop_reason\":null}",
                           ",\"metadata\":{\"v\":1},\"tier\":null"));
    played_event(&p, CHUNK("{\"index\":0,\"delta\":{},"
                           "\"finish_reason\":\"stop\",\"stop_reason\":7}",
                           ",\"metadata\":null,\"tier\":\"a\""));
    played_event(&p, CHUNK("", ",\"tier\":\"bc\",\"usage\":{"
                           "\"prompt_tokens\":3,\"completion_tokens\":1,"
                           "\"reasoning_tokens\":0,\"x\":[]}"));
    p.said[0] = '\0';
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_said(&p, "extra={,\"metadata\":{\"v\":1},\"tier\":\"bc\"}"
                "{,\"stop_reason\":7}{\"prompt_tokens\":3,"
                "\"completion_tokens\":1,\"reasoning_tokens\":0,\"x\":[]} "
                "final");
    played_end(&p);
}


/* At the limits of members and of bytes, and one beyond each. */
static void
what_an_engine_adds_is_bounded(void **state)
{
    int       i, n;
    char      event[32768], *q;
    played_t  p;

    for (n = 32; n <= 33; n++) {
        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_CHAT,
                      "{\"messages\":[{\"role\":\"user\","
                      "\"content\":\"a\"}]}");
        played_start(&p, "vllm");
        played_stream(&p);
        q = event + sprintf(event, "{\"choices\":[{\"index\":0,\"delta\":"
                            "{\"content\":\"a\"},\"finish_reason\":"
                            "\"stop\"}]");

        for (i = 1; i <= n; i++) {
            q += sprintf(q, ",\"m%d\":1", i);
        }

        strcpy(q, "}");
        played_event(&p, event);

        q = event + sprintf(event, "{\"choices\":[],\"m1\":\"");
        memset(q, 'x', 16384);
        strcpy(q + 16384, "\",\"m2\":2}");
        played_event(&p, event);
        p.said[0] = '\0';

        assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
        assert_non_null(strstr(p.said, ",\"m1\":1,\"m2\":2,"));
        assert_non_null(strstr(p.said, ",\"m32\":1}"));
        assert_null(strstr(p.said, "m33"));
        played_end(&p);
    }
}


static void
the_clients_own_ids_are_left_in(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                  "\"stream\":true,\"return_token_ids\":true}");
    played_start(&p, "vllm");
    played_stream(&p);
    played_event(&p, CHUNK(DELTA("{\"content\":\"a\"}", "null", "[7]"), ""));
    assert_non_null(strstr(p.said, "\"token_ids\":[7]"));
    played_end(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_chat_is_asked_with_ids),
        cmocka_unit_test(chunks_are_ours_and_ids_wait_for_their_text),
        cmocka_unit_test(infer_is_a_completion),
        cmocka_unit_test(the_lower_priority_is_the_earlier),
        cmocka_unit_test(a_pass_that_has_no_priority_is_told_none),
        cmocka_unit_test(infer_has_a_priority),
        cmocka_unit_test(a_plain_caller_gets_plain_tokens),
        cmocka_unit_test(a_prompt_that_is_no_utf8_is_refused),
        cmocka_unit_test(thoughts_and_tools_end_the_resume),
        cmocka_unit_test(ids_that_do_not_come_are_not_waited_for),
        cmocka_unit_test(an_answer_is_assembled_from_texts),
        cmocka_unit_test(an_answer_with_thoughts_is_put_together_here),
        cmocka_unit_test(what_an_engine_adds_stands_in_the_answer),
        cmocka_unit_test(what_an_engine_adds_is_bounded),
        cmocka_unit_test(the_clients_own_ids_are_left_in)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

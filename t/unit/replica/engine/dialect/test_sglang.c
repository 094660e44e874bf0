
/*
 * SGLang's dialect: events in the form of 0.5.
 */

#include "t/unit/replica/engine/dialect/played.h"


#define CHAT \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
    "\"tools\":[],\"reasoning_effort\":\"low\",\"stream\":true," \
    "\"temperature\":0.5}"

#define CHUNK(delta, reason) \
    "{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1," \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" delta "," \
    "\"logprobs\":null,\"finish_reason\":" reason ",\"matched_stop\":null}]," \
    "\"usage\":null}"


static void
chat(played_t *p)
{
    played_init(p);
    p->facts.chat_is_text = 1;
    p->facts.context = 100;
    played_openai(p, LLMGATEWAY__API__API_CHAT, CHAT);
}


static void
a_chat_is_asked_as_its_completion(void **state)
{
    played_t  p;

    chat(&p);
    assert_int_equal(played_start(&p, "sglang"), DIALECT_ASK);
    played_asks(&p, "/tokenize",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                "\"content\":\"hi\"}],\"tools\":[],"
                "\"reasoning_effort\":\"low\"}");
    assert_int_equal(played_answer(&p, 200, "{\"tokens\":[1,2,3],\"count\":3,"
                                            "\"max_model_len\":1e30}"),
                     DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"model\":\"m\",\"temperature\":0.5,\"prompt\":[1,2,3],"
                "\"max_tokens\":95,\"stream\":true,\"stream_options\":"
                "{\"include_usage\":true},\"return_token_ids\":true}");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"a\","
                     "\"token_ids\":[7],\"prompt_token_ids\":[1,2,3]}]}");
    played_said(&p, "prompt=3 'a' #7");
    played_event(&p, "{\"choices\":[{\"index\":0,\"text\":\"\","
                     "\"finish_reason\":\"length\",\"token_ids\":[]}]}");
    played_said(&p, "finish0=length");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_end(&p);
}


static void
a_chat_that_cannot_be_rendered_goes_on_by_text(void **state)
{
    played_t  p;

    chat(&p);
    played_start(&p, "sglang");
    assert_int_equal(played_answer(&p, 400, "{\"message\":\"no prompt\"}"),
                     DIALECT_ASK);
    assert_string_equal(dialect_http(p.call)->path, "/v1/chat/completions");
    played_stream(&p);
    played_event(&p, CHUNK("{\"role\":\"assistant\",\"content\":\"\","
                           "\"reasoning_content\":null,\"tool_calls\":null}",
                           "null"));
    played_said(&p, "");
    played_event(&p, CHUNK("{\"role\":null,\"content\":\"a\","
                           "\"tool_calls\":null}", "null"));
    played_said(&p, "'a' resume_by=1 {\"id\":\"chatcmpl-1\","
                "\"created\":1700000000,\"model\":\"alias\","
                "\"object\":\"chat.completion.chunk\",\"choices\":[{"
                "\"index\":0,\"delta\":{\"role\":\"assistant\","
                "\"content\":\"a\",\"tool_calls\":null},\"logprobs\":null,"
                "\"finish_reason\":null,\"matched_stop\":null}]}");
    played_event(&p, CHUNK("{\"role\":null,\"content\":null}", "\"stop\""));
    played_said(&p, "finish0=stop {\"id\":\"chatcmpl-1\","
                "\"created\":1700000000,\"model\":\"alias\","
                "\"object\":\"chat.completion.chunk\",\"choices\":[{"
                "\"index\":0,\"delta\":{\"content\":null},\"logprobs\":null,"
                "\"finish_reason\":\"stop\",\"matched_stop\":null}]}");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_end(&p);
}


static void
a_chat_with_other_defaults_is_not_rendered(void **state)
{
    played_t  p;

    chat(&p);
    p.facts.chat_is_text = 0;
    assert_int_equal(played_start(&p, "sglang"), DIALECT_ASK);
    assert_string_equal(dialect_http(p.call)->path, "/v1/chat/completions");
    assert_false(played_asks_for(&p, "return_token_ids"));
    played_end(&p);
}


/*
 * A rendered chat has its priority, too; a server that does not schedule by
 * priority gets none.
 */
static void
the_priority_is_as_the_server_schedules(void **state)
{
    int       sign;
    played_t  p;
    char      part[32];

    for (sign = -1; sign <= 1; sign++) {
        chat(&p);
        p.facts.priority = sign;
        played_priority(&p, 5);
        assert_int_equal(played_start(&p, "sglang"), DIALECT_ASK);
        assert_false(played_asks_for(&p, "priority"));
        assert_int_equal(played_answer(&p, 200, "{\"tokens\":[1,2,3]}"),
                         DIALECT_ASK);
        snprintf(part, sizeof(part), "\"priority\":%d,", sign * 5);
        assert_int_equal(played_asks_for(&p, part), sign != 0);
        assert_int_equal(played_asks_for(&p, "priority"), sign != 0);
        played_end(&p);
    }
}


static void
stop_strings_end_the_resume(void **state)
{
    played_t  p;

    chat(&p);
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_STOP;
    played_start(&p, "sglang");
    played_stream(&p);
    played_event(&p, CHUNK("{\"content\":\"a\"}", "null"));
    assert_int_equal(strncmp(p.said, "'a' resume_by=2 {", 17), 0);
    played_end(&p);
}


static void
an_aborted_generation_is_no_end(void **state)
{
    played_t  p;

    chat(&p);
    p.facts.chat_is_text = 0;
    played_start(&p, "sglang");
    played_stream(&p);
    played_event(&p, CHUNK("{\"content\":\"a\"}", "null"));
    p.said[0] = '\0';
    assert_int_equal(played_event(&p, CHUNK("{\"content\":null}",
                                            "\"abort\"")), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_said(&p, "");
    played_end(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_chat_is_asked_as_its_completion),
        cmocka_unit_test(a_chat_that_cannot_be_rendered_goes_on_by_text),
        cmocka_unit_test(a_chat_with_other_defaults_is_not_rendered),
        cmocka_unit_test(the_priority_is_as_the_server_schedules),
        cmocka_unit_test(stop_strings_end_the_resume),
        cmocka_unit_test(an_aborted_generation_is_no_end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

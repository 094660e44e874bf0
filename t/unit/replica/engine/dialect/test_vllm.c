
/*
 * vLLM's dialect: events in the form of 0.11.
 */

#include "t/unit/replica/engine/dialect/played.h"


#define CHUNK(choice, more) \
    "{\"id\":\"chatcmpl-x\",\"object\":\"chat.completion.chunk\"," \
    "\"created\":5,\"model\":\"m\",\"choices\":[" choice "]" more "}"

#define DELTA(delta, reason, ids) \
    "{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":" \
    reason ",\"token_ids\":" ids "}"

#define OURS(choice) \
    "{\"id\":\"chatcmpl-1\",\"created\":1700000000,\"model\":\"alias\"," \
    "\"object\":\"chat.completion.chunk\",\"choices\":[" choice "]}"

#define ROLE  CHUNK(DELTA("{\"role\":\"assistant\",\"content\":\"\"}", \
                          "null", "null"), \
                    ",\"prompt_token_ids\":[1,2,3]")


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
    assert_int_equal(dialect_call_tokens(p.call), 4);
    played_end(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_chat_is_asked_with_ids),
        cmocka_unit_test(chunks_are_ours_and_ids_wait_for_their_text)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

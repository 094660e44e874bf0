
/*
 * llama.cpp's dialect: events in the form of b6900 and 0.5.0.
 */

#include "t/unit/replica/engine/dialect/played.h"


#define CHAT \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
    "\"stream\":true,\"temperature\":0}"

#define EVENT(content, tokens, predicted) \
    "{\"index\":0,\"content\":\"" content "\",\"tokens\":[" tokens "]," \
    "\"stop\":false,\"id_slot\":0,\"tokens_predicted\":" predicted \
    ",\"tokens_evaluated\":5}"

#define LAST(kind, predicted, evaluated) \
    "{\"index\":0,\"content\":\"\",\"tokens\":[],\"id_slot\":0,\"stop\":true," \
    "\"model\":\"m\",\"tokens_predicted\":" predicted \
    ",\"tokens_evaluated\":" evaluated ",\"generation_settings\":{}," \
    "\"prompt\":\"\",\"truncated\":false,\"stop_type\":\"" kind "\"," \
    "\"timings\":{\"cache_n\":2,\"prompt_n\":3}}"


static uint32_t  given[] = { 11, 12 };


static void
a_chat_is_rendered_and_shows_ids(void **state)
{
    played_t  p;

    played_init(&p);
    p.facts.chat_is_text = 1;
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_asks(&p, "/apply-template", CHAT);
    assert_true(dialect_needs_request(p.call));

    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"<u>hi\\n\"}"),
                     DIALECT_ASK);
    played_asks(&p, "/completion",
                "{\"model\":\"m\",\"temperature\":0,"
                "\"prompt\":\"<u>hi\\n\",\"n_predict\":-1,\"stream\":true,"
                "\"return_tokens\":true}");
    assert_false(dialect_needs_request(p.call));

    played_stream(&p);
    played_event(&p, EVENT("a", "11", "1"));
    played_said(&p, "prompt=5 'a' #11");
    played_event(&p, EVENT(" b", "12", "2"));
    played_said(&p, "' b' #12");
    assert_int_equal(played_event(&p, LAST("eos", "3", "5")), DIALECT_DONE);
    played_said(&p, "finish0=stop usage=5+3(2)|final");
    played_end(&p);
}


static void
stream(played_t *p)
{
    played_init(p);
    p->facts.chat_is_text = 1;
    played_openai(p, LLMGATEWAY__API__API_CHAT, CHAT);
    played_start(p, "llamacpp");
    played_answer(p, 200, "{\"prompt\":\"p\"}");
    played_stream(p);
}


static void
ids_that_are_held_back_become_pieces(void **state)
{
    played_t  p;

    stream(&p);
    played_event(&p, EVENT("a", "11", "1"));
    played_said(&p, "prompt=5 'a' #11");

    played_event(&p, EVENT("\xc3\xa9", "13", "3"));
    played_said(&p, "'\xc3\xa9' #2147483881 #13");

    /* A blank comes before it: the text has one id more than characters. */
    played_event(&p, EVENT(" \xf0\x9f\x99\x82", "14", "6"));
    played_said(&p, "' \xf0\x9f\x99\x82' #2214721090 #2147483648 #14");

    played_event(&p, EVENT("c", "15", "7"));
    played_said(&p, "'c' #15");
    played_event(&p, LAST("limit", "7", "5"));
    played_said(&p, "finish0=length usage=5+7(2)|final");
    played_end(&p);
}


static void
text_that_fits_no_pieces_ends_the_way_by_ids(void **state)
{
    played_t  p;

    stream(&p);
    played_event(&p, EVENT("abc\xc3\xa9", "13", "2"));
    played_said(&p, "prompt=5 'abc\xc3\xa9' #13 resume_by=2");
    played_event(&p, EVENT("c", "14", "3"));
    played_said(&p, "'c'");
    played_end(&p);
}


static uint64_t
prompt_hash(const char *rendered)
{
    char                                 body[200];
    uint64_t                             hash;
    played_t                             p;
    const Llmgateway__GenerateResponse  *m;

    played_init(&p);
    p.facts.chat_is_text = 1;
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    played_start(&p, "llamacpp");
    snprintf(body, sizeof(body), "{\"prompt\":\"%s\"}", rendered);
    played_answer(&p, 200, body);
    played_stream(&p);
    dialect_event(p.call, EVENT("a", "11", "1"), strlen(EVENT("a", "11", "1")));
    m = dialect_take(p.call);
    assert_non_null(m);
    assert_non_null(m->prompt);
    hash = m->prompt->hash;
    played_end(&p);

    return hash;
}


static void
resume(played_t *p, const char *body, uint64_t hash)
{
    played_init(p);
    p->facts.chat_is_text = 1;
    played_openai(p, LLMGATEWAY__API__API_CHAT, body);
    p->request.delivered = &p->delivered;
    p->request.tokens_already_generated = 2;
    p->delivered.token_ids = given;
    p->delivered.n_token_ids = 2;
    p->delivered.prompt_tokens = 5;
    p->delivered.prompt_hash = hash;
    p->delivered.cached_tokens = 1;
}


static void
it_goes_on_behind_the_ids(void **state)
{
    played_t  p;

    resume(&p, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
               "\"max_tokens\":9,\"stream\":true}", prompt_hash("p"));
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"p\"}"),
                     DIALECT_ASK);
    played_asks(&p, "/completion",
                "{\"prompt\":[\"p\",11,12],\"n_predict\":-1,\"stream\":true,"
                "\"return_tokens\":true}");
    played_stream(&p);
    played_event(&p, "{\"index\":0,\"content\":\"c\",\"tokens\":[13],"
                     "\"stop\":false,\"tokens_predicted\":1,"
                     "\"tokens_evaluated\":7}");
    played_said(&p, "'c' #13");
    played_event(&p, LAST("limit", "2", "7"));
    played_said(&p, "finish0=length usage=5+4(1)|final");
    played_end(&p);
}


static uint32_t  pieces[] = {
    11, 0x80000000u | 0xe9, 13, 12, 0x80000000u | ' ' << 21 | 0x1f642,
    0x80000000u, 14
};


static dialect_do_t
resume_pieces(played_t *p, size_t n, const char *answer)
{
    resume(p, CHAT, prompt_hash("p"));
    p->delivered.token_ids = pieces;
    p->delivered.n_token_ids = n;
    p->request.tokens_already_generated = (int32_t) n;
    assert_int_equal(played_start(p, "llamacpp"), DIALECT_ASK);
    assert_string_equal(dialect_http(p->call)->path, "/tokenize");

    return answer == NULL ? DIALECT_MORE : played_answer(p, 200, answer);
}


static void
pieces_become_ids_again(void **state)
{
    played_t  p;

    resume_pieces(&p, 7, NULL);
    played_asks(&p, "/tokenize",
                "{\"content\":[\"\\u00e9\",0,\"\\u0020\\ud83d\\ude42\"],"
                "\"add_special\":false,\"parse_special\":false}");
    assert_int_equal(played_answer(&p, 200, "{\"tokens\":[99,13,0,7,8,14]}"),
                     DIALECT_ASK);
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"p\"}"),
                     DIALECT_ASK);
    assert_true(played_asks_for(&p, "[\"p\",11,99,13,12,7,8,14]"));
    played_end(&p);
}


static void
pieces_that_become_other_ids_are_refused(void **state)
{
    size_t                    i;
    played_t                  p;

    static const char *const  other[] = {
        "{\"tokens\":[99,12,0,7,8,14]}", "{\"tokens\":[99,13,1,7,8,14]}",
        "{\"tokens\":[99,13,0,7,8,15]}", "{\"tokens\":[99,13,0,7,14]}",
        "{\"tokens\":[99,13,0,7,8,14,1]}", "{\"tokens\":[13]}",
        "{\"tokens\":[]}", "{\"tokens\":5}", "{}"
    };

    for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        assert_int_equal(resume_pieces(&p, 7, other[i]), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call),
                         LLMGW_GRPC_FAILED_PRECONDITION);
        played_end(&p);
    }

    /* A piece without its last id is none of the delivered text. */
    assert_int_equal(resume_pieces(&p, 6, "{\"tokens\":[99,13,0,7,8]}"),
                     DIALECT_FAILED);
    played_end(&p);
}


static void
another_prompt_is_refused(void **state)
{
    played_t  p;

    resume(&p, CHAT, prompt_hash("p"));
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    assert_int_equal(played_answer(&p, 200, "{\"prompt\":\"q\"}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call),
                     LLMGW_GRPC_FAILED_PRECONDITION);
    played_end(&p);

    /* The text is the same, but the ids differ. */
    resume(&p, CHAT, prompt_hash("p"));
    played_start(&p, "llamacpp");
    played_answer(&p, 200, "{\"prompt\":\"p\"}");
    played_stream(&p);
    assert_int_equal(played_event(&p, "{\"content\":\"c\",\"tokens\":[13],"
                                      "\"tokens_evaluated\":8}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call),
                     LLMGW_GRPC_FAILED_PRECONDITION);
    played_said(&p, "");
    played_end(&p);
}


static void
a_chat_with_thoughts_goes_on_by_text(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_asks(&p, "/v1/chat/completions",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                "\"content\":\"hi\"}],\"temperature\":0,\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true}}");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"finish_reason\":null,\"index\":0,"
                     "\"delta\":{\"content\":\"a\"}}],\"created\":9,"
                     "\"id\":\"x\",\"model\":\"m\"}");
    played_said(&p, "'a' resume_by=1 {\"id\":\"chatcmpl-1\","
                "\"created\":1700000000,\"model\":\"alias\",\"choices\":["
                "{\"finish_reason\":null,\"index\":0,\"delta\":"
                "{\"role\":\"assistant\",\"content\":\"a\"}}]}");
    played_end(&p);

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    p.request.delivered = &p.delivered;
    p.request.tokens_already_generated = 1;
    p.delivered.text.data = (uint8_t *) "a";
    p.delivered.text.len = 1;
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_asks(&p, "/v1/chat/completions",
                "{\"model\":\"m\",\"temperature\":0,\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true},\"messages\":["
                "{\"role\":\"user\",\"content\":\"hi\"},"
                "{\"role\":\"assistant\",\"content\":\"a\"}]}");
    played_end(&p);
}


static void
infer_goes_the_same_way(void **state)
{
    played_t  p;

    played_init(&p);
    p.request.prompt.data = (uint8_t *) "a\"b";
    p.request.prompt.len = 3;
    p.request.max_tokens = 7;
    p.request.want = WANT_IDS;
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_asks(&p, "/completion",
                "{\"prompt\":\"a\\\"b\",\"n_predict\":7,\"stream\":true,"
                "\"return_tokens\":true}");
    played_end(&p);
}


static void
a_whole_answer_is_a_stream_that_is_put_together(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                  "\"tools\":[]}");
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_TOOLS;
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"role\":\"assistant\",\"content\":null},"
                     "\"finish_reason\":null}]}");
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"reasoning_content\":\"hm\"},"
                     "\"finish_reason\":null}]}");
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"content\":\"a\\u00e9\"},\"finish_reason\":null}]}");
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{"
                     "\"index\":0,\"id\":\"c1\",\"type\":\"function\","
                     "\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}");
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{"
                     "\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]}");
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":{},"
                     "\"finish_reason\":\"tool_calls\"}]}");
    played_event(&p, "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
                     "\"completion_tokens\":4,\"completion_tokens_details\":"
                     "{\"reasoning_tokens\":1}}}");
    played_said(&p, "");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_DONE);
    played_said(&p, "raw=200 application/json {\"id\":\"chatcmpl-1\","
        "\"object\":\"chat.completion\",\"created\":1700000000,"
        "\"model\":\"alias\",\"choices\":[{\"index\":0,\"message\":"
        "{\"role\":\"assistant\",\"content\":\"a\xc3\xa9\","
        "\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}],"
        "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,"
        "\"completion_tokens_details\":{\"reasoning_tokens\":1}}}"
        "|usage=3+4(0) thought=1|final");
    played_end(&p);
}


/* A stream of llama.cpp lacks some of the log probabilities. */
static void
log_probabilities_are_asked_whole(void **state)
{
    played_t  p;

    static const char  body[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
        "\"logprobs\":true}";

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_LOGPROBS;
    assert_int_equal(played_start(&p, "llamacpp"), DIALECT_ASK);
    played_asks(&p, "/v1/chat/completions", body);
    played_end(&p);
}


#define CHUNK(index, text, finish) \
    "{\"id\":\"x\",\"object\":\"text_completion\",\"choices\":[{\"index\":" \
    index ",\"text\":\"" text "\",\"finish_reason\":" finish "}]"

#define COUNTED(index, prompt, completion) \
    CHUNK(index, "", "\"length\"") ",\"usage\":{\"prompt_tokens\":" prompt \
    ",\"completion_tokens\":" completion ",\"total_tokens\":9," \
    "\"prompt_tokens_details\":{\"cached_tokens\":2}," \
    "\"completion_tokens_details\":{\"reasoning_tokens\":1}}}"


/*
 * Two prompts, each twice: each choice has its own usage, and the second
 * prompt begins with an event that is null.
 */
static void
usage_of_choices_is_added(void **state)
{
    played_t  p;

    played_init(&p);
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_CHOICES;
    p.openai.include_usage = 1;
    played_openai(&p, LLMGATEWAY__API__API_COMPLETIONS,
                  "{\"model\":\"m\",\"prompt\":[\"a\",\"b\"],\"n\":2,"
                  "\"stream\":true}");
    played_start(&p, "llamacpp");
    played_stream(&p);
    assert_int_equal(played_event(&p, "null"), DIALECT_MORE);
    played_said(&p, "");
    played_event(&p, COUNTED("0", "3", "5"));
    assert_null(strstr(p.said, "usage"));
    played_event(&p, COUNTED("1", "3", "6"));
    played_event(&p, COUNTED("2", "4", "7"));
    assert_null(strstr(p.said, "usage"));
    p.said[0] = '\0';
    played_event(&p, COUNTED("3", "4", "8"));
    assert_non_null(strstr(p.said, "usage=7+26(4) thought=4"));
    assert_non_null(strstr(p.said, "\"usage\":{\"prompt_tokens\":7,"
                                   "\"completion_tokens\":26,"));
    played_end(&p);
}


static void
bad_json_is_the_requests_fault(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    played_start(&p, "llamacpp");
    assert_int_equal(played_answer(&p, 500, "{\"error\":{\"code\":500,"
        "\"message\":\"[json.exception.type_error.302] type must be array\","
        "\"type\":\"server_error\"}}"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_INVALID_ARGUMENT);
    played_said(&p, "failure=400 {\"error\":{\"message\":"
                "\"[json.exception.type_error.302] type must be array\","
                "\"type\":\"invalid_request_error\",\"param\":null,"
                "\"code\":null}}");
    played_end(&p);

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    played_start(&p, "llamacpp");
    assert_int_equal(played_answer(&p, 500, "{\"error\":{\"message\":\"x\"}}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_said(&p, "");
    played_end(&p);
}


static void
events_of_another_form_are_refused(void **state)
{
    size_t                    i;
    played_t                  p;

    static const char *const  bad[] = {
        "5", "[]", "\"a\"", "{", "{\"content\":5}", "{\"tokens\":[1]}",
        "{\"content\":\"a\",\"tokens\":5}",
        "{\"content\":\"a\",\"tokens\":[4294967296]}",
        "{\"content\":\"a\",\"tokens\":[-1]}",
        "{\"content\":\"a\",\"tokens\":[\"1\"]}"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        played_init(&p);
        p.facts.chat_is_text = 1;
        played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
        played_start(&p, "llamacpp");
        played_answer(&p, 200, "{\"prompt\":\"p\"}");
        played_stream(&p);
        assert_int_equal(played_event(&p, bad[i]), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
        played_said(&p, "");
        played_end(&p);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_chat_is_rendered_and_shows_ids),
        cmocka_unit_test(ids_that_are_held_back_become_pieces),
        cmocka_unit_test(text_that_fits_no_pieces_ends_the_way_by_ids),
        cmocka_unit_test(pieces_become_ids_again),
        cmocka_unit_test(pieces_that_become_other_ids_are_refused),
        cmocka_unit_test(it_goes_on_behind_the_ids),
        cmocka_unit_test(another_prompt_is_refused),
        cmocka_unit_test(a_chat_with_thoughts_goes_on_by_text),
        cmocka_unit_test(infer_goes_the_same_way),
        cmocka_unit_test(a_whole_answer_is_a_stream_that_is_put_together),
        cmocka_unit_test(log_probabilities_are_asked_whole),
        cmocka_unit_test(usage_of_choices_is_added),
        cmocka_unit_test(bad_json_is_the_requests_fault),
        cmocka_unit_test(events_of_another_form_are_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

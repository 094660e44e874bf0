
/*
 * Any OpenAI server: streams, whole answers, passes, and errors of all shapes.
 */

#include "t/unit/replica/engine/dialect/played.h"


#define CHAT \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
    "\"stream\":true}"


static void
start(played_t *p, Llmgateway__Api api, const char *body)
{
    played_init(p);
    played_openai(p, api, body);
    assert_int_equal(played_start(p, "openai"), DIALECT_ASK);
}


static void
start_stream(played_t *p)
{
    start(p, LLMGATEWAY__API__API_CHAT, CHAT);
    played_stream(p);
}


static void
each_choice_has_one_role(void **state)
{
    size_t    i;
    played_t  p;

    static const char *const  events[] = {
        "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
        "\"content\":\"\"}},{\"index\":1,\"delta\":{\"role\":\"assistant\"}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"},"
        "\"finish_reason\":\"stop\"}]}"
    };

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[],\"n\":2,\"stream\":true}");
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_CHOICES;
    played_start(&p, "openai");
    played_stream(&p);

    for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        played_event(&p, events[i]);
    }

#define HEAD  "{\"id\":\"chatcmpl-1\",\"created\":1700000000," \
              "\"model\":\"alias\",\"choices\":["

    played_said(&p,
        "'b' resume_by=2 " HEAD "{\"index\":1,\"delta\":{\"role\":"
        "\"assistant\",\"content\":\"b\"}}]}"
        "|'a' " HEAD "{\"index\":0,\"delta\":{\"role\":\"assistant\","
        "\"content\":\"a\"}}]}"
        "|'b' finish1=stop " HEAD "{\"index\":1,\"delta\":{"
        "\"content\":\"b\"},\"finish_reason\":\"stop\"}]}");

    /* One of two choices has ended, but not all. */
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_end(&p);
}


/* The gateway accepts such an n, and so do engines. */
static void
n_may_have_a_fraction_of_zeros(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[],\"n\":2.0,\"stream\":true}");
    p.openai.features = LLMGATEWAY__FEATURE__FEATURE_CHOICES;
    played_start(&p, "openai");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"},"
                     "\"finish_reason\":\"stop\"}]}");
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_FAILED);
    played_end(&p);
}


static void
an_end_needs_a_finish_reason(void **state)
{
    played_t  p;

    start_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"content\":\"a\"}}]}");
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    assert_null(strstr(p.said, "final"));
    played_end(&p);

    start_stream(&p);
    assert_int_equal(played_event(&p, "[DONE]"), DIALECT_FAILED);
    played_end(&p);

    /* A stream without [DONE] ends, too, once its choices have. */
    start_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":{},"
                     "\"finish_reason\":\"stop\"}]}");
    p.said[0] = '\0';
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_DONE);
    played_said(&p, "final");
    played_end(&p);
}


static void
what_says_nothing_is_not_sent(void **state)
{
    size_t                    i;
    played_t                  p;

    static const char *const  idle[] = {
        "", "{}", "{\"choices\":[]}", "{\"type\":\"ping\"}",
        "{\"choices\":[{\"index\":0,\"delta\":{}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":null}]}",
        "{\"choices\":[{\"index\":0,\"text\":\"\"}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":null,"
        "\"tool_calls\":[]}}],\"usage\":null}",
    };

    start_stream(&p);

    for (i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
        assert_int_equal(played_event(&p, idle[i]), DIALECT_MORE);
        played_said(&p, "");
    }

    played_end(&p);
}


static void
events_of_another_form_are_refused(void **state)
{
    size_t                    i;
    char                      deep[2 * LLMGW_JSON_MAX_DEPTH + 40];
    played_t                  p;

    static const char *const  bad[] = {
        "5", "[]", "nonsense", "{", "{\"choices\":5}",
        "{\"choices\":{}}", "{\"choices\":[],\"choices\":[]}",
        "{\"choices\":[5]}", "{\"choices\":[null]}",
        "{\"choices\":[{}]}", "{\"choices\":[{\"index\":-1}]}",
        "{\"choices\":[{\"index\":128}]}", "{\"choices\":[{\"index\":\"0\"}]}",
        "{\"choices\":[{\"index\":99999999999999999999}]}",
        "{\"choices\":[{\"index\":0,\"delta\":5}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":5}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":[1]}}]}",
        "{\"choices\":[{\"index\":0,\"text\":{\"a\":1}}]}",
        "{\"choices\":[{\"index\":0,\"finish_reason\":5}]}",
        "{\"choices\":[{\"index\":0,\"prompt_token_ids\":5}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]} x",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\"}}]}"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        start_stream(&p);
        assert_int_equal(played_event(&p, bad[i]), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
        played_said(&p, "");
        played_end(&p);
    }

    for (i = 0; i <= LLMGW_JSON_MAX_DEPTH; i++) {
        memset(deep + i, '[', 1);
    }

    deep[i] = '\0';
    start_stream(&p);
    assert_int_equal(played_event(&p, deep), DIALECT_FAILED);
    played_end(&p);
}


static void
too_many_ends_in_one_event_are_refused(void **state)
{
    char      event[2000];
    size_t    i, n, len;
    played_t  p;

    for (n = 16; n <= 17; n++) {
        len = (size_t) sprintf(event, "{\"choices\":[");

        for (i = 0; i < n; i++) {
            len += (size_t) sprintf(event + len, "%s{\"index\":%zu,\"text\":"
                                    "\"\",\"finish_reason\":\"stop\"}",
                                    i == 0 ? "" : ",", i);
        }

        strcpy(event + len, "]}");
        start_stream(&p);
        assert_int_equal(played_event(&p, event),
                         n == 16 ? DIALECT_MORE : DIALECT_FAILED);
        played_end(&p);
    }
}


static void
assert_refused(unsigned status, const char *body, int grpc, const char *said)
{
    played_t  p;

    start(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    assert_int_equal(played_answer(&p, status, body), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), grpc);
    assert_int_equal(dialect_call_denies_model(p.call),
                     strstr(said, "model_not_found") != NULL);
    played_said(&p, said);
    played_end(&p);
}


static void
errors_get_one_shape(void **state)
{
    assert_refused(400, "{\"error\":{\"message\":\"m\",\"type\":\"t\","
                   "\"param\":\"p\",\"code\":\"c\"}}",
                   LLMGW_GRPC_INVALID_ARGUMENT,
                   "failure=400 {\"error\":{\"message\":\"m\",\"type\":\"t\","
                   "\"param\":\"p\",\"code\":\"c\"}}");
    assert_refused(422, "{\"object\":\"error\",\"message\":\"m\\\"\\n\","
                   "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
                   LLMGW_GRPC_INVALID_ARGUMENT,
                   "failure=422 {\"error\":{\"message\":\"m\\\"\\n\","
                   "\"type\":\"BadRequestError\",\"param\":null,"
                   "\"code\":null}}");
    assert_refused(422, "{\"detail\":[{\"loc\":[1],\"msg\":\"field\"}]}",
                   LLMGW_GRPC_INVALID_ARGUMENT,
                   "failure=422 {\"error\":{\"message\":\"field\",\"type\":"
                   "\"invalid_request_error\",\"param\":null,\"code\":null}}");
    assert_refused(404, "{\"error\":\"The model `x` does not exist.\"}",
                   LLMGW_GRPC_NOT_FOUND,
                   "failure=404 {\"error\":{\"message\":\"The model `x` does"
                   " not exist.\",\"type\":\"not_found_error\",\"param\":null,"
                   "\"code\":\"model_not_found\"}}");
    assert_refused(403, "no, never\r\nmore", LLMGW_GRPC_PERMISSION_DENIED,
                   "failure=403 {\"error\":{\"message\":\"no, never\",\"type\":"
                   "\"permission_error\",\"param\":null,\"code\":null}}");
    assert_refused(413, "\xff\xfe\x80", LLMGW_GRPC_INVALID_ARGUMENT,
                   "failure=413 {\"error\":{\"message\":\"no reason was"
                   " given\",\"type\":\"invalid_request_error\",\"param\":null,"
                   "\"code\":null}}");
    assert_refused(501, "", LLMGW_GRPC_INVALID_ARGUMENT,
                   "failure=501 {\"error\":{\"message\":\"no reason was"
                   " given\",\"type\":\"not_supported_error\",\"param\":null,"
                   "\"code\":null}}");
}


static void
other_answers_are_the_engines_fault(void **state)
{
    assert_refused(401, "{\"error\":{\"message\":\"key\"}}",
                   LLMGW_GRPC_UNAUTHENTICATED, "");
    assert_refused(429, "{\"error\":{\"message\":\"m\"}}",
                   LLMGW_GRPC_RESOURCE_EXHAUSTED, "");
    assert_refused(503, "<html>", LLMGW_GRPC_RESOURCE_EXHAUSTED, "");
    assert_refused(500, "", LLMGW_GRPC_UNAVAILABLE, "");
    assert_refused(502, "x", LLMGW_GRPC_UNAVAILABLE, "");
    assert_refused(302, "x", LLMGW_GRPC_UNAVAILABLE, "");
    assert_refused(200, "{\"choices\":[]}", LLMGW_GRPC_UNAVAILABLE, "");
    assert_refused(200, "", LLMGW_GRPC_UNAVAILABLE, "");
}


static void
a_long_error_is_cut(void **state)
{
    size_t    i;
    char      piece[1000];
    played_t  p;

    memset(piece, 'x', sizeof(piece));
    start(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    dialect_head(p.call, 400, NULL);

    for (i = 0; i <= 2 * DIALECT_ERROR_BYTES; i += sizeof(piece)) {
        assert_int_equal(dialect_bytes(p.call, piece, sizeof(piece)),
                         DIALECT_MORE);
    }

    assert_int_equal(dialect_end(p.call), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_INVALID_ARGUMENT);
    assert_true(strlen(dialect_call_why(p.call)) < DIALECT_WHY_BYTES);
    played_end(&p);
}


static void
an_early_error_in_the_stream_is_an_answer(void **state)
{
    played_t  p;

    start_stream(&p);
    assert_int_equal(played_event(&p, "{\"error\":{\"message\":\"too long\","
        "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"),
        DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_INVALID_ARGUMENT);
    played_said(&p, "failure=400 {\"error\":{\"message\":\"too long\","
                "\"type\":\"BadRequestError\",\"param\":null,\"code\":null}}");
    played_end(&p);

    start_stream(&p);
    assert_int_equal(played_event(&p, "{\"object\":\"error\",\"message\":"
                                      "\"oops\",\"code\":500}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_said(&p, "");
    played_end(&p);

    start_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"content\":\"a\"}}]}");
    p.said[0] = '\0';
    assert_int_equal(played_event(&p, "{\"error\":{\"message\":\"m\","
                                      "\"code\":400}}"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_said(&p, "");
    played_end(&p);
}


static void
a_whole_answer_is_the_engines_own(void **state)
{
    played_t  p;

    start(&p, LLMGATEWAY__API__API_CHAT,
          "{\"model\":\"alias\",\"messages\":[],\"stream\":false}");
    assert_int_equal(played_answer(&p, 200,
        "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":1,"
        "\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
        "\"assistant\",\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
        "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,"
        "\"reasoning_tokens\":1}}"), DIALECT_DONE);   /* where SGLang has it */
    played_said(&p, "raw=200 application/json {\"id\":\"chatcmpl-1\","
        "\"created\":1700000000,\"model\":\"alias\","
        "\"object\":\"chat.completion\",\"choices\":[{\"index\":0,"
        "\"message\":{\"role\":\"assistant\",\"content\":\"a\"},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,"
        "\"completion_tokens\":2,\"reasoning_tokens\":1}}"
        "|usage=1+2(0) thought=1|final");
    played_end(&p);

    start(&p, LLMGATEWAY__API__API_CHAT, "{\"messages\":[]}");
    assert_int_equal(played_answer(&p, 200, "{\"choices\":[{"
                                            "\"finish_reason\":\"error\"}]}"),
                     DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_end(&p);

    start(&p, LLMGATEWAY__API__API_CHAT, "{\"messages\":[]}");
    assert_int_equal(played_answer(&p, 200, "{\"choices\":["), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call), LLMGW_GRPC_UNAVAILABLE);
    played_end(&p);
}


static void
a_long_whole_answer_comes_in_pieces(void **state)
{
    size_t                               bytes, total, len;
    char                                *text;
    played_t                             p;
    const Llmgateway__GenerateResponse  *m;

    len = 3 * DIALECT_PIECE_BYTES;
    text = malloc(len + 20);
    assert_non_null(text);
    bytes = (size_t) sprintf(text, "{\"a\":\"");
    memset(text + bytes, 'x', len);
    strcpy(text + bytes + len, "\"}");

    start(&p, LLMGATEWAY__API__API_CHAT, "{\"messages\":[]}");
    dialect_head(p.call, 200, "application/json");
    assert_int_equal(dialect_bytes(p.call, text, strlen(text)), DIALECT_MORE);
    assert_int_equal(dialect_end(p.call), DIALECT_DONE);

    for (total = 0; (m = dialect_take(p.call)) != NULL && m->raw != NULL; ) {
        assert_true(m->raw->data.len <= DIALECT_PIECE_BYTES);
        assert_int_equal(m->raw->status, total == 0 ? 200 : 0);
        total += m->raw->data.len;
    }

    assert_true(total > len);
    assert_true(m->is_final);
    played_end(&p);
    free(text);
}


static void
a_whole_answer_has_a_limit(void **state)
{
    size_t     fed;
    char      *piece;
    played_t   p;

    piece = calloc(1, 1 << 20);
    assert_non_null(piece);
    start(&p, LLMGATEWAY__API__API_CHAT, "{\"messages\":[]}");
    dialect_head(p.call, 200, "application/json");

    for (fed = 0; fed < DIALECT_WHOLE_BYTES; fed += 1 << 20) {
        assert_int_equal(dialect_bytes(p.call, piece, 1 << 20), DIALECT_MORE);
    }

    assert_int_equal(dialect_bytes(p.call, piece, 1), DIALECT_FAILED);
    played_end(&p);
    free(piece);
}


static void
a_pass_goes_through_as_it_is(void **state)
{
    played_t  p;

    start(&p, LLMGATEWAY__API__API_RESPONSES, "{\"input\":\"a\"}");
    assert_string_equal(dialect_http(p.call)->path, "/v1/responses");
    dialect_head(p.call, 200, "text/event-stream");
    assert_false(dialect_reads_events(p.call));
    played_take(&p, dialect_bytes(p.call, "event: a\nda", 11));
    played_take(&p, dialect_bytes(p.call, "ta: x\n\n", 7));
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_DONE);
    played_said(&p, "raw=200 text/event-stream event: a\nda"
                    "|raw=0  ta: x\n\n|final");
    played_end(&p);

    /* A refusal passes, too: this API gives it a shape of its own. */
    start(&p, LLMGATEWAY__API__API_MESSAGES, "{\"a\":1}");
    dialect_head(p.call, 400, "application/json");
    played_take(&p, dialect_bytes(p.call, "{\"type\":\"error\"}", 16));
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_DONE);
    played_said(&p, "raw=400 application/json {\"type\":\"error\"}|final");
    played_end(&p);

    start(&p, LLMGATEWAY__API__API_EMBEDDINGS, "{\"a\":1}");
    dialect_head(p.call, 200, NULL);
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_DONE);
    played_said(&p, "raw=200  |final");
    played_end(&p);

    /* An engine's answer that it has no such API passes as well. */
    start(&p, LLMGATEWAY__API__API_EMBEDDINGS, "{\"a\":1}");
    dialect_open(p.call, 1);
    dialect_head(p.call, 501, NULL);
    assert_int_equal(played_take(&p, dialect_end(p.call)), DIALECT_DONE);
    played_said(&p, "raw=501 open  |final");
    played_end(&p);

    start(&p, LLMGATEWAY__API__API_EMBEDDINGS, "{\"a\":1}");
    assert_int_equal(played_answer(&p, 503, "{}"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call),
                     LLMGW_GRPC_RESOURCE_EXHAUSTED);
    played_end(&p);
}


static void
a_chat_goes_on_only_if_its_operator_says_so(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, CHAT);
    p.request.want = WANT_CHUNKS | WANT_IDS | WANT_TEXT;
    p.request.delivered = &p.delivered;
    p.request.tokens_already_generated = 1;
    p.delivered.text.data = (uint8_t *) "a";
    p.delivered.text.len = 1;
    assert_int_equal(played_start(&p, "openai"), DIALECT_ASK);
    assert_false(played_asks_for(&p, "continue_final"));
    played_end(&p);

    p.request.want = WANT_CHUNKS | WANT_IDS;
    assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
    assert_int_equal(dialect_call_status(p.call),
                     LLMGW_GRPC_FAILED_PRECONDITION);
    played_end(&p);

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT,
                  "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}],"
                  "\"stream\":true}");
    p.request.want = WANT_CHUNKS | WANT_IDS | WANT_TEXT;
    played_start(&p, "openai");
    played_stream(&p);
    played_event(&p, "{\"choices\":[{\"index\":0,\"delta\":"
                     "{\"content\":\"a\"}}]}");
    assert_int_equal(strncmp(p.said, "'a' resume_by=2 ", 16), 0);
    played_end(&p);
}


/*
 * More choices are refused here: an index beyond those that are kept would be
 * taken for a malformed chunk.
 */
static void
more_choices_than_are_kept_are_the_requests_fault(void **state)
{
    size_t    i, k, len;
    char      text[2048];
    played_t  p;

    static const struct {
        const char  *prompt;
        size_t       prompts, n;
        int          is_good;
    } forms[] = {
        { "\"a\"", 128, 1, 1 }, { "\"a\"", 129, 1, 0 },
        { "\"a\"", 2, 64, 1 }, { "\"a\"", 2, 65, 0 },
        { "[7]", 129, 1, 0 }, { "7", 200, 128, 1 },
        { "\"a\"", 1, 129, 0 }, { "\"a\"", 1, 4294967295, 0 }
    };

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        len = sprintf(text, "{\"model\":\"m\",\"stream\":true,\"n\":%zu,"
                      "\"prompt\":[%s", forms[i].n, forms[i].prompt);

        for (k = 1; k < forms[i].prompts; k++) {
            len += sprintf(text + len, ",%s", forms[i].prompt);
        }

        sprintf(text + len, "]}");
        played_init(&p);
        p.openai.features = LLMGATEWAY__FEATURE__FEATURE_CHOICES;
        played_openai(&p, LLMGATEWAY__API__API_COMPLETIONS, text);

        if (forms[i].is_good) {
            assert_int_equal(played_start(&p, "openai"), DIALECT_ASK);

        } else {
            assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
            assert_int_equal(dialect_call_status(p.call),
                             LLMGW_GRPC_INVALID_ARGUMENT);
        }

        played_end(&p);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(more_choices_than_are_kept_are_the_requests_fault),
        cmocka_unit_test(each_choice_has_one_role),
        cmocka_unit_test(n_may_have_a_fraction_of_zeros),
        cmocka_unit_test(an_end_needs_a_finish_reason),
        cmocka_unit_test(what_says_nothing_is_not_sent),
        cmocka_unit_test(events_of_another_form_are_refused),
        cmocka_unit_test(too_many_ends_in_one_event_are_refused),
        cmocka_unit_test(errors_get_one_shape),
        cmocka_unit_test(other_answers_are_the_engines_fault),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(an_early_error_in_the_stream_is_an_answer),
        cmocka_unit_test(a_whole_answer_is_the_engines_own),
        cmocka_unit_test(a_long_whole_answer_comes_in_pieces),
        cmocka_unit_test(a_whole_answer_has_a_limit),
        cmocka_unit_test(a_pass_goes_through_as_it_is),
        cmocka_unit_test(a_chat_goes_on_only_if_its_operator_says_so)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

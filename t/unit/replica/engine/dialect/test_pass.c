
/*
 * What is found in an answer that is passed on, while its bytes stay as they
 * are: cut at each byte, with line ends of each kind.
 */

#include "t/unit/replica/engine/dialect/played.h"


#define JSON       "application/json"
#define EVENTS     "text/event-stream; charset=utf-8"

#define EMBEDDINGS  LLMGATEWAY__API__API_EMBEDDINGS
#define RESPONSES   LLMGATEWAY__API__API_RESPONSES
#define MESSAGES    LLMGATEWAY__API__API_MESSAGES
#define OTHER       LLMGATEWAY__API__API_PASS

#define PASSED_BYTES  4096


typedef struct {
    played_t  p;
    char      bytes[PASSED_BYTES];
    size_t    len;
    uint32_t  tokens;
    char      facts[256];       /* prompts and usages, as they came */
} passed_t;


static void
begin(passed_t *a, Llmgateway__Api api, unsigned status, const char *type)
{
    memset(a, 0, sizeof(*a));
    played_init(&a->p);
    played_openai(&a->p, api, "{\"a\":1}");
    a->p.openai.path = (char *) "/rerank";
    assert_int_equal(played_start(&a->p, "openai"), DIALECT_ASK);
    dialect_head(a->p.call, status, type);
}


static void
say(passed_t *a, const char *format, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(a->facts);
    va_start(args, format);
    vsnprintf(a->facts + len, sizeof(a->facts) - len, format, args);
    va_end(args);
}


static void
take(passed_t *a)
{
    const Llmgateway__Usage             *u;
    const Llmgateway__GenerateResponse  *m;

    while ((m = dialect_take(a->p.call)) != NULL) {

        if (m->raw != NULL) {
            assert_true(a->len + m->raw->data.len <= sizeof(a->bytes));
            memcpy(a->bytes + a->len, m->raw->data.data, m->raw->data.len);
            a->len += m->raw->data.len;
            assert_true(m->raw_tokens <= m->raw->data.len);
        }

        a->tokens += m->raw_tokens;
        u = m->usage;

        if (m->prompt != NULL) {
            assert_int_equal(m->prompt->hash, 0);
            say(a, "prompt=%u ", m->prompt->tokens);
        }

        if (u != NULL) {
            say(a, "usage=%u+%u(%u,%u) ", u->prompt_tokens,
                u->completion_tokens, u->cached_tokens, u->reasoning_tokens);
        }
    }
}


static void
feed(passed_t *a, const char *text, size_t len)
{
    char  *copy;

    copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, text, len);
    assert_int_equal(dialect_bytes(a->p.call, copy, len), DIALECT_MORE);
    take(a);
    assert_true(len == 0 || a->bytes[a->len - 1] == text[len - 1]);
    free(copy);
}


static void
end(passed_t *a, const char *text, uint32_t tokens, const char *facts)
{
    assert_int_equal(dialect_end(a->p.call), DIALECT_DONE);
    take(a);
    assert_int_equal(a->len, strlen(text));
    assert_memory_equal(a->bytes, text, a->len);
    assert_int_equal(a->tokens, tokens);
    assert_string_equal(a->facts, facts);
    played_end(&a->p);
}


static void
passed(Llmgateway__Api api, const char *type, const char *text,
    uint32_t tokens, const char *facts)
{
    size_t    i, len;
    passed_t  a;

    len = strlen(text);

    for (i = 0; i <= len; i++) {
        begin(&a, api, 200, type);
        feed(&a, text, i);
        feed(&a, text + i, len - i);
        end(&a, text, tokens, facts);
    }

    begin(&a, api, 200, type);

    for (i = 0; i < len; i++) {
        feed(&a, text + i, 1);
    }

    end(&a, text, tokens, facts);
}


static void
whole_answers_say_their_usage(void **state)
{
    passed(EMBEDDINGS, JSON,
           "{\"object\":\"list\",\"data\":[{\"embedding\":[0.5,-1e-3],"
           "\"usage\":{\"prompt_tokens\":1}}],"
           "\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}",
           0, "usage=7+0(0,0) ");

    passed(RESPONSES, NULL,
           "{\"usage\":{\"input_tokens\":120,\"output_tokens\":31,"
           "\"input_tokens_details\":{\"cached_tokens\":96},"
           "\"output_tokens_details\":{\"reasoning_tokens\":20}},"
           "\"output\":[{\"text\":\"{\\\"usage\\\":{}}\"}],"
           "\"type\":\"response.created\",\"delta\":\"a\"}\n",
           0, "usage=120+31(96,20) ");

    /* Anthropic's API counts as input only what was in no cache. */
    passed(MESSAGES, JSON,
           "{\"type\":\"message\",\"usage\":{\"input_tokens\":10,"
           "\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":48,"
           "\"output_tokens\":4,\"cache_creation\":{\"input_tokens\":9}}}",
           0, "usage=63+4(48,0) ");
}


static void
other_answers_say_what_they_can(void **state)
{
    passed(OTHER, JSON, "{\"usage\":{\"total_tokens\":56}}", 0,
           "usage=56+0(0,0) ");
    passed(OTHER, JSON, "{\"usage\":{\"completion_tokens\":4,"
           "\"total_tokens\":56}}", 0, "usage=52+4(0,0) ");
    passed(OTHER, JSON, "{\"usage\":{\"input_tokens\":50,"
           "\"output_tokens\":6,\"total_tokens\":56,"
           "\"input_tokens_details\":{\"cached_tokens\":10}}}", 0,
           "usage=50+6(10,0) ");
    passed(OTHER, JSON, "{\"usage\":{\"type\":\"duration\",\"seconds\":3}}",
           0, "");
    passed(OTHER, JSON, "{\"input_tokens\":9,\"tokens\":[1]}", 0, "");
    passed(OTHER, EVENTS,
           "data: {\"type\":\"transcript.text.delta\",\"delta\":\"a\"}\n\n"
           "data: {\"type\":\"transcript.text.done\",\"usage\":{"
           "\"input_tokens\":3,\"output_tokens\":1}}\n\n", 1,
           "usage=3+1(0,0) ");
}


static void
refused(unsigned status, const char *said, int is_denial)
{
    passed_t      a;
    dialect_do_t  next;

    begin(&a, EMBEDDINGS, status, JSON);
    assert_int_equal(dialect_bytes(a.p.call, said, strlen(said)),
                     DIALECT_MORE);
    take(&a);
    next = dialect_end(a.p.call);
    assert_int_equal(next, is_denial ? DIALECT_FAILED : DIALECT_DONE);
    assert_int_equal(dialect_call_denies_model(a.p.call), is_denial);

    if (is_denial) {
        assert_int_equal(dialect_call_status(a.p.call), LLMGW_GRPC_NOT_FOUND);

    } else {
        take(&a);
        assert_int_equal(a.len, strlen(said));
        assert_memory_equal(a.bytes, said, a.len);
    }

    played_end(&a.p);
}


/* A 404 for a model is held back, as another replica may know the model. */
static void
refusals_pass_but_for_a_model_that_is_not_known(void **state)
{
    refused(404, "{\"error\":{\"message\":\"The model `x` does not exist.\","
                 "\"type\":\"NotFoundError\",\"code\":404}}", 1);
    refused(404, "{\"error\":{\"message\":\"gone\","
                 "\"code\":\"model_not_found\"}}", 1);
    refused(404, "{\"detail\":\"Not Found\"}", 0);
    refused(404, "{\"error\":{\"message\":\"this model has no response of that "
                 "id\",\"code\":\"response_not_found\"}}", 0);
    refused(404, "", 0);
    refused(405, "{\"detail\":\"no such model\"}", 0);
    refused(400, "{\"error\":{\"code\":\"model_not_found\"}}", 0);
}


static void
another_pass_has_a_path_of_its_own(void **state)
{
    size_t    i;
    char      path[1100];
    played_t  p;

    static const char *const  bad[] = {
        "", "rerank", "/a b", "/a?b", "/a/../b", "/.", "/a\r\nb: c", "/a%2e",
        "http://host/"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        played_init(&p);
        played_openai(&p, OTHER, "{\"a\":1}");
        p.openai.path = (char *) bad[i];
        assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
        assert_int_equal(dialect_call_status(p.call),
                         LLMGW_GRPC_UNIMPLEMENTED);
        played_end(&p);
    }

    memset(path, 'a', sizeof(path));
    path[0] = '/';

    for (i = 1024; i <= 1025; i++) {
        path[i] = '\0';
        played_init(&p);
        played_openai(&p, OTHER, "{\"a\":1}");
        p.openai.path = path;
        assert_int_equal(played_start(&p, "openai"),
                         i == 1024 ? DIALECT_ASK : DIALECT_FAILED);
        played_end(&p);
        path[i] = 'a';
    }

    played_init(&p);
    played_openai(&p, OTHER, "{\"a\":1}");
    p.openai.path = (char *) "/v2/rerank";
    assert_int_equal(played_start(&p, "vllm"), DIALECT_ASK);
    assert_string_equal(dialect_http(p.call)->path, "/v2/rerank");
    played_end(&p);
}


#define RESPONSE(event, usage)                                                \
    "event: response." event "\ndata: {\"type\":\"response." event "\","      \
    "\"response\":{\"id\":\"r\",\"usage\":" usage "}}\n\n"
#define USED  "{\"input_tokens\":12,\"output_tokens\":3," \
              "\"input_tokens_details\":{\"cached_tokens\":8}," \
              "\"output_tokens_details\":{\"reasoning_tokens\":1}}"
#define ZERO  "{\"input_tokens\":0,\"output_tokens\":0}"

static void
events_of_responses_are_counted(void **state)
{
    size_t  i;
    char    text[PASSED_BYTES];

    static const char *const  ends[] = {
        RESPONSE("completed", USED), RESPONSE("incomplete", USED),
        RESPONSE("failed", USED)
    };

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(text, sizeof(text), "%s%s%s",
            RESPONSE("created", "null") RESPONSE("in_progress", ZERO)
            "data: {\"delta\":\"so\","
            "\"type\":\"response.reasoning_text.delta\"}\n\n"
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n"
            "data: {\"type\":\"response.output_text.delta\","
            "\"delta\":\"a\\n\\ndata: b\",\"logprobs\":[{\"delta\":1}]}\n\n"
            "data: {\"type\":\"response.function_call_arguments.delta\","
            "\"delta\":\"{\\\"delta\\\":\"}\n\n"
            "data: {\"type\":\"response.output_text.done\",\"text\":\"a\"}\n\n",
            ends[i], "data: [DONE]\n\n");
        passed(RESPONSES, EVENTS, text, 3, "usage=12+3(8,1) ");
    }
}


static void
only_the_end_of_a_response_has_its_usage(void **state)
{
    passed(RESPONSES, EVENTS,
           RESPONSE("created", USED) RESPONSE("in_progress", USED)
           "data: {\"type\":\"response.completed\",\"usage\":" USED "}\n\n"
           "data: {\"usage\":" USED ",\"response\":{}}\n\n", 0, "");
}


#define START(usage) \
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":" \
    "{\"type\":\"message\",\"content\":[],\"usage\":{" usage "}}}\n\n"
#define DELTA(type, text) \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"," \
    "\"index\":0,\"delta\":{\"type\":\"" type "\"," text "}}\n\n"
#define DELTAS \
    DELTA("thinking_delta", "\"thinking\":\"hm\"") \
    DELTA("signature_delta", "\"signature\":\"c2ln\"") \
    DELTA("text_delta", "\"text\":\"\"") DELTA("text_delta", "\"text\":\"a\"") \
    DELTA("input_json_delta", "\"partial_json\":\"{}\"")
#define STOP(usage) \
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":" \
    "{\"stop_reason\":\"end_turn\"},\"usage\":{" usage "}}\n\n" \
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

static void
events_of_messages_are_counted(void **state)
{
    passed(MESSAGES, EVENTS,
           START("\"input_tokens\":10,\"cache_read_input_tokens\":48,"
                 "\"output_tokens\":1")
           "event: ping\ndata: {\"type\":\"ping\"}\n\n"
           DELTAS STOP("\"output_tokens\":9"), 3,
           "prompt=58 usage=58+9(48,0) ");

    /* What the end reports of the prompt replaces all that the start reported.
       */
    passed(MESSAGES, EVENTS,
           START("\"input_tokens\":60,\"cache_read_input_tokens\":48")
           DELTAS STOP("\"input_tokens\":60,\"output_tokens\":9"), 3,
           "prompt=108 usage=60+9(0,0) ");

    passed(MESSAGES, EVENTS,
           START("\"input_tokens\":0,\"output_tokens\":0")
           DELTAS STOP("\"input_tokens\":8,\"output_tokens\":9"), 3,
           "usage=8+9(0,0) ");

    passed(MESSAGES, EVENTS,
           "data: {\"type\":\"message_start\",\"message\":{\"id\":\"a\"},"
           "\"usage\":{\"input_tokens\":8,\"output_tokens\":0}}\n\n", 0,
           "prompt=8 ");
}


/*
 * All line ends, comments, other fields, data in several lines, and no blank
 * line at the end.
 */
static void
lines_of_events_are_of_any_form(void **state)
{
    char  text[PASSED_BYTES], *p;

    static const char  form[] =
        ": {\"type\":\"x\",\"delta\":\"no\"}\n\n:\nid: 1\nretry: 10\n"
        "data:{\ndata:\"type\":\ndata: \"response.output_text.delta\",\n"
        "unknown: }\ndata\ndata: \"delta\": \"a\"\ndata:}\nid\n\n"
        "datax: {\"delta\":\"a\"}\n data: {\"delta\":\"a\"}\n\n"
        "dat: {\"delta\":\"a\"}\ndata data: {\"delta\":\"a\"}\n\n"
        "data: {\"type\":\"response.completed\",\n\n"       /* cut off */
        "data: {\"delta\":\"b\"}\n\n"
        "data: x\n\ndata: {\"delta\":\"c\"}\n\n"
        "data: {\"type\":\"response.completed\",\"response\":{\"usage\":" USED
        "}}";

    passed(RESPONSES, EVENTS, form, 3, "usage=12+3(8,1) ");

    strcpy(text, form);

    while ((p = strchr(text, '\n')) != NULL) {
        *p = '\r';
    }

    passed(RESPONSES, EVENTS, text, 3, "usage=12+3(8,1) ");

    for (p = text; (p = strchr(p, '\r')) != NULL; p += 2) {
        memmove(p + 1, p, strlen(p) + 1);
        p[1] = '\n';
    }

    passed(RESPONSES, EVENTS, text, 3, "usage=12+3(8,1) ");
}


/*
 * A value that is no number gives no usage; no part is larger than its whole.
 */
static void
what_is_wrong_is_left_out(void **state)
{
    size_t  i;
    char    text[PASSED_BYTES];

    static const char *const  numbers[] = {
        "null", "\"3\"", "-1", "3.5", "3e0", "true", "[3]", "{\"a\":3}",
        "1073741825", "99999999999999999999", "0"
    };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(text, sizeof(text), "{\"usage\":{\"input_tokens\":%s,"
                 "\"output_tokens\":3}}", numbers[i]);
        passed(RESPONSES, JSON, text, 0, "");
        passed(MESSAGES, JSON, text, 0, "");
        snprintf(text, sizeof(text), "{\"usage\":{\"prompt_tokens\":%s}}",
                 numbers[i]);
        passed(EMBEDDINGS, JSON, text, 0, "");
    }

    passed(EMBEDDINGS, JSON, "{\"usage\":{\"prompt_tokens\":3,"
           "\"prompt_tokens\":null}}", 0, "");
    passed(RESPONSES, JSON, "{\"usage\":{\"input_tokens\":1073741824,"
           "\"output_tokens\":1073741824}}", 0,
           "usage=1073741824+1073741824(0,0) ");
    passed(MESSAGES, JSON, "{\"usage\":{\"input_tokens\":1073741824,"
           "\"cache_read_input_tokens\":1,\"output_tokens\":1}}", 0, "");
    passed(RESPONSES, JSON, "{\"usage\":{\"input_tokens\":4,"
           "\"input_tokens_details\":{\"cached_tokens\":5},"
           "\"output_tokens\":3,"
           "\"output_tokens_details\":{\"reasoning_tokens\":4}}}", 0,
           "usage=4+3(0,0) ");
    passed(RESPONSES, JSON, "{\"usage\":{\"input_tokens\":4}}", 0,
           "prompt=4 ");
}


static void
answers_without_usage_have_none(void **state)
{
    size_t  i;

    static const char *const  texts[] = {
        "", "{}", "[]", "null", "\"usage\"", "no JSON", "{\"usage\":null}",
        "{\"usage\":{}}", "{\"usage\":[{\"prompt_tokens\":3}]}",
        "[{\"usage\":{\"prompt_tokens\":3}}]",
        "{\"a\":{\"usage\":{\"prompt_tokens\":3}}}",
        "{\"usage\":{\"a\":{\"prompt_tokens\":3}}}",
        "{\"usage.prompt_tokens\":3}",
        "{\"usage\":{\"prompt_tokens\":3}",         /* cut off */
        "{\"usage\":{\"prompt_tokens\":3}]"
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        passed(EMBEDDINGS, JSON, texts[i], 0, "");
        passed(EMBEDDINGS, EVENTS, texts[i], 0, "");
    }
}


static void
refusals_are_not_read(void **state)
{
    passed_t           a;
    static const char  text[] = "{\"usage\":{\"prompt_tokens\":3}}";

    begin(&a, EMBEDDINGS, 400, JSON);
    feed(&a, text, sizeof(text) - 1);
    end(&a, text, 0, "");
}


/* A slice of many events is cut into pieces, and each token counts once. */
static void
large_slices_are_counted_once(void **state)
{
    char                                *slice;
    size_t                               i, len;
    uint32_t                             tokens, pieces;
    passed_t                             a;
    const Llmgateway__GenerateResponse  *m;

    static const char  event[] =
        "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";

    len = sizeof(event) - 1;
    slice = malloc(4000 * len);
    assert_non_null(slice);

    for (i = 0; i < 4000; i++) {
        memcpy(slice + i * len, event, len);
    }

    begin(&a, RESPONSES, 200, EVENTS);
    dialect_bytes(a.p.call, slice, 4000 * len);

    for (tokens = 0, pieces = 0; (m = dialect_take(a.p.call)) != NULL; ) {
        tokens += m->raw_tokens;
        pieces++;
    }

    assert_int_equal(tokens, 4000);
    assert_int_equal(pieces, 4000 * len / DIALECT_PIECE_BYTES + 1);
    played_end(&a.p);
    free(slice);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole_answers_say_their_usage),
        cmocka_unit_test(other_answers_say_what_they_can),
        cmocka_unit_test(refusals_pass_but_for_a_model_that_is_not_known),
        cmocka_unit_test(another_pass_has_a_path_of_its_own),
        cmocka_unit_test(events_of_responses_are_counted),
        cmocka_unit_test(only_the_end_of_a_response_has_its_usage),
        cmocka_unit_test(events_of_messages_are_counted),
        cmocka_unit_test(lines_of_events_are_of_any_form),
        cmocka_unit_test(what_is_wrong_is_left_out),
        cmocka_unit_test(answers_without_usage_have_none),
        cmocka_unit_test(refusals_are_not_read),
        cmocka_unit_test(large_slices_are_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Bodies that are refused: status, code, and the parameter that is named. */

#include "t/unit/core/openai/openai_scene.h"


#define OK_MESSAGES  "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define WITH(json)   "{\"model\":\"m\"," OK_MESSAGES "," json "}"
#define PROMPT(json) "{\"model\":\"m\",\"prompt\":\"hi\"," json "}"

typedef struct {
    Llmgateway__Api   api;
    const char       *text;
    const char       *code;         /* NULL: none */
    const char       *param;
    const char       *says;         /* a part of the message */
} bad_t;

static const bad_t  bad[] = {

    /* no JSON */
    { CHAT, "", NULL, "", "is empty" },
    { CHAT, " \n", "invalid_json", "", "unexpected end." },
    { CHAT, "hello", "invalid_json", "", "at byte 0: expected a value." },
    { CHAT, "{\"model\":\"m\"", "invalid_json", "",
      "at byte 12: unexpected end." },
    { CHAT, "{\"model\":\"m", "invalid_json", "",
      "at byte 11: unexpected end." },
    { CHAT, "{\"model\":\"m\",}", "invalid_json", "",
      "at byte 13: expected a key" },
    { CHAT, "{\"model\" \"m\"}", "invalid_json", "",
      "at byte 9: expected ':'" },
    { CHAT, "{'model':'m'}", "invalid_json", "", "at byte 1: expected a key" },
    { CHAT, "{model:\"m\"}", "invalid_json", "", "at byte 1: expected a key" },
    { CHAT, WITH("\"a\":[1,]"), "invalid_json", "", "expected a value" },
    { CHAT, WITH("\"a\":01"), "invalid_json", "", "expected ',' or '}'" },
    { CHAT, WITH("\"a\":1."), "invalid_json", "", "expected a digit" },
    { CHAT, WITH("\"a\":+1"), "invalid_json", "", "expected a value" },
    { CHAT, WITH("\"a\":NaN"), "invalid_json", "", "expected a value" },
    { CHAT, WITH("\"a\":tru"), "invalid_json", "", "expected a value" },
    { CHAT, WITH("\"a\":\"\n\""), "invalid_json", "", "control character" },
    { CHAT, WITH("\"a\":\"\x01\""), "invalid_json", "", "control character" },
    { CHAT, WITH("\"a\":\"\\x\""), "invalid_json", "", "invalid escape" },
    { CHAT, WITH("\"a\":\"\\u12g4\""), "invalid_json", "", "invalid escape" },
    { CHAT, WITH("\"a\":/* b */1"), "invalid_json", "", "expected a value" },
    { CHAT, WITH("\v\"a\":1"), "invalid_json", "", "expected a key" },
    { CHAT, WITH("\f\"a\":1"), "invalid_json", "", "expected a key" },
    { CHAT, WITH("\"a\":1") "x", "invalid_json", "", "after the value" },
    { CHAT, WITH("\"a\":1") WITH("\"a\":1"), "invalid_json", "", "after the" },
    { CHAT, WITH("\"a\":1") " \"x", "invalid_json", "", "after the value" },
    { CHAT, WITH("\"a\":1") " 1", "invalid_json", "", "after the value" },
    { CHAT, "\xef\xbb\xbf{}", "invalid_json", "",
      "at byte 0: expected a value" },

    /* no text */
    { CHAT, "{\"model\":\"\xff\"}", "invalid_json", "",
      "at byte 10: invalid UTF-8." },
    { CHAT, WITH("\"a\":\"\xc0\xaf\""), "invalid_json", "", "invalid UTF-8" },
    { CHAT, WITH("\"a\":\"\xed\xa0\x80\""), "invalid_json", "", "UTF-8" },
    { CHAT, WITH("\"a\":\"\xf4\x90\x80\x80\""), "invalid_json", "", "UTF-8" },
    { CHAT, WITH("\"a\":\"\xe2\x82\""), "invalid_json", "", "invalid UTF-8" },
    { CHAT, "{\"model\":\"\\ud83d\"}", "invalid_json", "",
      "at byte 10: half a surrogate pair." },
    { CHAT, WITH("\"a\":\"\\ud83dx\""), "invalid_json", "", "surrogate" },
    { CHAT, WITH("\"a\":\"\\ud83d\\n\""), "invalid_json", "", "surrogate" },
    { CHAT, WITH("\"a\":\"\\ude00\""), "invalid_json", "", "surrogate" },
    { CHAT, WITH("\"a\":\"\\ud83d\\ud83d\\ude00\""), "invalid_json", "",
      "surrogate" },
    { CHAT, WITH("\"a\":\"\\\\\\ud83d\""), "invalid_json", "", "surrogate" },

    /* no object, keys */
    { CHAT, "[]", NULL, "", "must be a JSON object" },
    { CHAT, "null", NULL, "", "must be a JSON object" },
    { CHAT, "1e400", NULL, "", "must be a JSON object" },
    { CHAT, "\"{}\"", NULL, "", "must be a JSON object" },
    { CHAT, WITH("\"stream\\u0000\":true"), NULL, "", "contains NUL" },

    /* missing */
    { CHAT, "{}", "missing_required_parameter", "model", "'model'" },
    { CHAT, "{\"model\":null," OK_MESSAGES "}",
      "missing_required_parameter", "model", "'model'" },
    { CHAT, "{\"model\":\"m\"}", "missing_required_parameter", "messages", "" },
    { CHAT, "{\"model\":\"m\",\"messages\":null}",
      "missing_required_parameter", "messages", "" },
    { COMPLETIONS, "{\"model\":\"m\"}", "missing_required_parameter",
      "prompt", "" },
    { EMBEDDINGS, "{\"model\":\"m\"}", "missing_required_parameter",
      "input", "" },
    { MESSAGES, "{\"model\":\"m\"}", "missing_required_parameter",
      "messages", "" },
    { RESPONSES, "{}", "missing_required_parameter", "model", "" },
    { CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"},{}]}",
      "missing_required_parameter", "messages[1].role", "messages[1].role" },

    /* types */
    { CHAT, "{\"model\":1," OK_MESSAGES "}", "invalid_type", "model",
      "expected a string, but got a number instead" },
    { CHAT, "{\"model\":{}," OK_MESSAGES "}", "invalid_type", "model",
      "got an object" },
    { CHAT, "{\"model\":\"m\",\"messages\":\"hi\"}", "invalid_type",
      "messages", "expected an array, but got a string" },
    { CHAT, "{\"model\":\"m\",\"messages\":{}}", "invalid_type", "messages",
      "" },
    { CHAT, "{\"model\":\"m\",\"messages\":[\"hi\"]}", "invalid_type",
      "messages[0]", "expected an object" },
    { CHAT, "{\"model\":\"m\",\"messages\":[null]}", "invalid_type",
      "messages[0]", "got null" },
    { CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":1}]}", "invalid_type",
      "messages[0].role", "" },
    { CHAT, WITH("\"stream\":\"true\""), "invalid_type", "stream",
      "expected a boolean, but got a string" },
    { CHAT, WITH("\"stream\":1"), "invalid_type", "stream", "" },
    { CHAT, WITH("\"stream_options\":true"), "invalid_type",
      "stream_options", "expected an object, but got a boolean" },
    { CHAT, WITH("\"stream_options\":{\"include_usage\":\"yes\"}"),
      "invalid_type", "stream_options.include_usage", "" },
    { CHAT, WITH("\"n\":\"1\""), "invalid_type", "n",
      "expected a number, but got a string" },
    { CHAT, WITH("\"max_tokens\":1.5"), "invalid_type", "max_tokens",
      "expected an integer, but got a decimal number" },
    { CHAT, WITH("\"max_tokens\":1e2"), "invalid_type", "max_tokens", "" },
    { CHAT, WITH("\"max_tokens\":\"9\""), "invalid_type", "max_tokens", "" },
    { CHAT, WITH("\"tools\":{}"), "invalid_type", "tools", "" },
    { CHAT, WITH("\"tool_choice\":1"), "invalid_type", "tool_choice",
      "a string or an object" },
    { CHAT, WITH("\"stop\":1"), "invalid_type", "stop",
      "a string or an array" },
    { CHAT, WITH("\"temperature\":\"hot\""), "invalid_type", "temperature",
      "" },
    { CHAT, WITH("\"logprobs\":\"yes\""), "invalid_type", "logprobs",
      "a boolean or a number" },
    { CHAT, WITH("\"response_format\":\"json\""), "invalid_type",
      "response_format", "" },
    { COMPLETIONS, "{\"model\":\"m\",\"prompt\":1}", "invalid_type", "prompt",
      "" },
    { COMPLETIONS, PROMPT("\"echo\":1"), "invalid_type", "echo", "" },
    { EMBEDDINGS, "{\"model\":\"m\",\"input\":{}}", "invalid_type", "input",
      "" },

    /* values */
    { CHAT, "{\"model\":\"\"," OK_MESSAGES "}", "invalid_value", "model",
      "must not be empty" },
    { CHAT, "{\"model\":\"a\\u0000b\"," OK_MESSAGES "}", "invalid_value",
      "model", "control character" },
    { CHAT, "{\"model\":\"a\\nb\"," OK_MESSAGES "}", "invalid_value",
      "model", "control character" },
    { CHAT, "{\"model\":\"a\\u007f\"," OK_MESSAGES "}", "invalid_value",
      "model", "control character" },
    { CHAT, "{\"model\":\"m\",\"messages\":[]}", "invalid_value", "messages",
      "must not be empty" },
    { CHAT, WITH("\"n\":0"), "invalid_value", "n", "at least 1" },
    { CHAT, WITH("\"n\":-1"), "invalid_value", "n", "at least 1" },
    { CHAT, WITH("\"n\":129"), "invalid_value", "n", "at most 128" },
    { CHAT, WITH("\"max_tokens\":0"), "invalid_value", "max_tokens",
      "at least 1" },
    { CHAT, WITH("\"max_tokens\":-5"), "invalid_value", "max_tokens",
      "at least 1" },
    { CHAT, WITH("\"max_tokens\":-0"), "invalid_value", "max_tokens", "" },
    { CHAT, WITH("\"max_tokens\":2147483648"), "invalid_value", "max_tokens",
      "at most 2147483647" },
    { CHAT, WITH("\"max_tokens\":18446744073709551617"), "invalid_value",
      "max_tokens", "at most" },
    { CHAT, WITH("\"max_completion_tokens\":-1"), "invalid_value",
      "max_completion_tokens", "" },
    { COMPLETIONS, "{\"model\":\"m\",\"prompt\":[]}", "invalid_value",
      "prompt", "" },
    { EMBEDDINGS, "{\"model\":\"m\",\"input\":[]}", "invalid_value", "input",
      "" },

    /* the last one of several counts */
    { CHAT, WITH("\"stream\":true,\"stream\":\"true\""), "invalid_type",
      "stream", "" },
    { CHAT, "{\"model\":\"m\"," OK_MESSAGES ",\"\\u006dodel\":\"\"}",
      "invalid_value", "model", "" },
};


static void
assert_bad(const bad_t *b, const char *text, size_t len)
{
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;

    if (scene_read(&body, b->api, text, len, &error) == 0) {
        fail_msg("accepted: %.80s", text);
    }

    if (error.status != 400 || strstr(error.message, b->says) == NULL
        || strcmp(error.param, b->param) != 0
        || strcmp(error.code ? error.code : "", b->code ? b->code : "") != 0)
    {
        fail_msg("%.80s: %u, code %s, param \"%s\", \"%s\"", text,
                 error.status, error.code ? error.code : "-", error.param,
                 error.message);
    }

    assert_string_equal(error.type, "invalid_request_error");
}


static void
bad_body_is_refused_with_its_reason(void **state)
{
    size_t  i;

    assert_true(sizeof(bad) / sizeof(bad[0]) >= 40);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_bad(&bad[i], bad[i].text, strlen(bad[i].text));
    }
}


/* The bound of n holds for n times the prompts, too. */
static void
more_than_128_choices_are_refused(void **state)
{
    size_t                i, k, len;
    char                  text[4096];
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;
    static const bad_t    many = { COMPLETIONS, NULL, "invalid_value",
                                   "prompt", "at most 128" };
    static const struct {
        const char  *prompt;
        size_t       prompts, n;
        int          is_good;
    } forms[] = {
        { "\"a\"", 128, 1, 1 }, { "\"a\"", 129, 1, 0 },
        { "\"a\"", 64, 2, 1 }, { "\"a\"", 65, 2, 0 },
        { "[7]", 128, 1, 1 }, { "[7]", 129, 1, 0 },
        { "7", 1000, 128, 1 },          /* ids: one prompt */
    };

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        len = sprintf(text, "{\"model\":\"m\",\"n\":%zu,\"prompt\":[%s",
                      forms[i].n, forms[i].prompt);

        for (k = 1; k < forms[i].prompts; k++) {
            len += sprintf(text + len, ",%s", forms[i].prompt);
        }

        len += sprintf(text + len, "]}");

        if (!forms[i].is_good) {
            assert_bad(&many, text, len);
            continue;
        }

        assert_int_equal(scene_read(&body, COMPLETIONS, text, len, &error),
                         0);
        scene_done(&body);
    }
}


static void
raw_nul_is_refused(void **state)
{
    static const char   text[] = "{\"model\":\"a\0b\"}";
    static const char   after[] = "{\"model\":\"m\"}\0";
    static const bad_t  in_string = { CHAT, NULL, "invalid_json", "",
                                      "at byte 11: control character" };
    static const bad_t  behind = { CHAT, NULL, "invalid_json", "",
                                   "after the value" };

    assert_bad(&in_string, text, sizeof(text) - 1);
    assert_bad(&behind, after, sizeof(after) - 1);
}


/* `depth` arrays within the body's object. */
static size_t
nested(char *text, size_t depth)
{
    size_t  i;
    char   *p = text;

    p += sprintf(p, "{\"model\":\"m\"," OK_MESSAGES ",\"a\":");

    for (i = 0; i < depth; i++) {
        *p++ = i % 2 ? '[' : '{';
        p += i % 2 ? 0 : sprintf(p, "\"b\":");
    }

    *p++ = '1';

    for (i = depth; i > 0; i--) {
        *p++ = i % 2 ? '}' : ']';
    }

    *p++ = '}';

    return p - text;
}


static void
depth_has_a_limit(void **state)
{
    char                  text[100000];
    size_t                len;
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;
    static const bad_t    deep = { CHAT, NULL, "invalid_json", "",
                                   "more than 64 levels" };

    len = nested(text, LLMGW_JSON_MAX_DEPTH - 1);
    assert_int_equal(scene_read(&body, CHAT, text, len, &error), 0);
    scene_done(&body);

    len = nested(text, LLMGW_JSON_MAX_DEPTH);
    assert_bad(&deep, text, len);

    len = nested(text, 10000);
    assert_bad(&deep, text, len);
}


static void
members_have_a_limit(void **state)
{
    char                 *p, *text;
    size_t                i;
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;
    static const bad_t    many = { CHAT, NULL, NULL, "", "too many keys" };

    text = malloc(64 * 1024);
    p = text + sprintf(text, "{\"model\":\"m\"," OK_MESSAGES);

    for (i = 2; i < LLMGW_OPENAI_MAX_MEMBERS; i++) {
        p += sprintf(p, ",\"key%zu\":%zu", i, i);
    }

    strcpy(p, "}");
    assert_int_equal(scene_read(&body, CHAT, text, p + 1 - text, &error), 0);
    assert_int_equal(body.nmembers, LLMGW_OPENAI_MAX_MEMBERS);
    assert_string_equal(body.members[LLMGW_OPENAI_MAX_MEMBERS - 1].key,
                        "key1023");
    scene_done(&body);

    strcpy(p, ",\"a\":1}");
    assert_bad(&many, text, strlen(text));
    free(text);
}


static void
model_has_a_limit(void **state)
{
    char                  text[4096], name[LLMGW_OPENAI_MAX_MODEL + 2];
    llmgw_openai_body_t   body;
    static const bad_t    longer = { CHAT, NULL, "invalid_value", "model",
                                     "too long" };

    memset(name, 'x', sizeof(name));
    name[LLMGW_OPENAI_MAX_MODEL] = '\0';
    sprintf(text, "{\"model\":\"%s\"," OK_MESSAGES "}", name);
    scene_well(&body, CHAT, text);
    assert_int_equal(body.model_len, LLMGW_OPENAI_MAX_MODEL);
    assert_string_equal(body.model, name);
    scene_done(&body);

    sprintf(text, "{\"model\":\"%sx\"," OK_MESSAGES "}", name);
    assert_bad(&longer, text, strlen(text));

    sprintf(text, "{\"model\":\"%s\\n\"," OK_MESSAGES "}", name);
    assert_bad(&longer, text, strlen(text));
}


static void
size_has_a_limit(void **state)
{
    char                  byte = '{';
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;

    assert_int_equal(llmgw_openai_body_read(&body, CHAT, &byte,
                                            LLMGW_OPENAI_MAX_BYTES + 1u,
                                            &scene_memory, &error), -1);
    assert_int_equal(error.status, 413);
}


static void
number_of_400_digits_is_no_max_tokens(void **state)
{
    char                text[1024], zeros[401];
    static const bad_t  large = { CHAT, NULL, "invalid_value", "max_tokens",
                                  "at most 2147483647" };

    memset(zeros, '0', 400);
    zeros[400] = '\0';
    sprintf(text, "{\"model\":\"m\"," OK_MESSAGES ",\"max_tokens\":1%s}",
            zeros);
    assert_bad(&large, text, strlen(text));
}


/* Each allocation fails once. */
static void
lack_of_memory_is_told(void **state)
{
    size_t                 i;
    llmgw_openai_body_t    body;
    llmgw_openai_error_t   error;
    const char            *text = WITH("\"a\":1");

    for (i = 0; i < 2; i++) {
        scene_left = i;
        assert_int_equal(scene_read(&body, CHAT, text, strlen(text), &error),
                         -1);
        assert_int_equal(error.status, 500);
        assert_string_equal(error.type, "server_error");
    }

    scene_left = 2;
    assert_int_equal(scene_read(&body, CHAT, text, strlen(text), &error), 0);
    scene_done(&body);

    scene_left = SIZE_MAX;
}


static void
memory_is_bounded_by_the_body(void **state)
{
    char                  *text;
    size_t                 len;
    llmgw_openai_body_t    body;
    llmgw_openai_error_t   error;

    text = malloc(1000100);
    len = sprintf(text, "{\"model\":\"m\"," OK_MESSAGES ",\"a\":\"");
    memset(text + len, 'x', 1000000);

    scene_largest = 0;
    assert_int_equal(scene_read(&body, CHAT, text, len + 1000000, &error), -1);
    assert_int_equal(scene_largest, 0);

    strcpy(text + len + 1000000, "\"}");
    scene_largest = 0;
    assert_int_equal(scene_read(&body, CHAT, text, len + 1000002, &error), 0);
    assert_in_range(scene_largest, 1, 4096);
    scene_done(&body);

    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(bad_body_is_refused_with_its_reason),
        cmocka_unit_test(more_than_128_choices_are_refused),
        cmocka_unit_test(raw_nul_is_refused),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(members_have_a_limit),
        cmocka_unit_test(model_has_a_limit),
        cmocka_unit_test(size_has_a_limit),
        cmocka_unit_test(number_of_400_digits_is_no_max_tokens),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(memory_is_bounded_by_the_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

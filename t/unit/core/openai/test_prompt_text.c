
/* The text of a body, for replicas that read a prompt alone. */

#include "t/unit/core/openai/openai_scene.h"

#include "core/openai/prompt_text.h"


static void
assert_text(Llmgateway__Api api, const char *json, const char *expected)
{
    char                *text;
    size_t               len;
    llmgw_openai_body_t  body;

    scene_well(&body, api, json);
    text = llmgw_openai_text(&body, &len);

    if (expected == NULL) {
        assert_null(text);

    } else {
        assert_non_null(text);

        if (len != strlen(expected) || memcmp(text, expected, len) != 0) {
            fail_msg("%s: \"%.*s\"", json, (int) len, text);
        }

        scene_resize(NULL, text, 0);
    }

    scene_done(&body);
}


static void
messages_are_lines_of_role_and_text(void **state)
{
    assert_text(CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\","
                "\"content\":\"Be\\nbrief.\"},{\"content\":\"\\u00e9\\ud83d"
                "\\ude00\\\"\",\"role\":\"user\"}]}",
                "system: Be\nbrief.\nuser: \u00e9\U0001f600\"\nassistant:");

    assert_text(CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"a\"}]}",
                "a: \nassistant:");
}


static void
parts_with_text_count(void **state)
{
    assert_text(CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                "\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":"
                "\"image_url\",\"image_url\":{\"text\":\"no\"}},{\"text\":"
                "\"two\",\"type\":\"text\"},{\"text\":null},7,\"x\"]},"
                "{\"role\":\"tool\",\"content\":null}]}",
                "user: one\ntwo\ntool: \nassistant:");
}


static void
prompts_are_themselves(void **state)
{
    assert_text(COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"a\\tb\"}", "a\tb");
    assert_text(COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"\"}", "");
    assert_text(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[\"a\",\"b\"]}",
                "a");
    assert_text(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[1,2]}", NULL);
    assert_text(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[[1,2]]}", NULL);
    assert_text(RESPONSES, "{\"model\":\"m\"}", NULL);
}


static void
system_prompt_of_other_apis_stands_first(void **state)
{
    assert_text(MESSAGES, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                "\"content\":\"hi\"}],\"system\":\"s\"}",
                "system: s\nuser: hi\nassistant:");
    assert_text(RESPONSES, "{\"model\":\"m\",\"input\":\"hi\","
                "\"instructions\":\"i\"}", "system: i\nhi");
    assert_text(RESPONSES, "{\"model\":\"m\",\"input\":[{},{},1,2,3,{}]}",
                ": \n: \n: \nassistant:");
}


/* What a string holds comes out whole, wherever its pieces end. */
static void
long_text_comes_whole(void **state)
{
    char                *plain, *json, *text, *p;
    size_t               i, len;
    unsigned             seed;
    scene_out_t          out;
    llmgw_openai_body_t  body;
    const char          *words[] = { "a", "\"", "\\", "\n", "\u00e9",
                                     "\u20ac", "\U0001f600", "/" };

    plain = malloc(100000);
    json = malloc(1000000);

    for (seed = 1; seed < 40; seed++) {
        out.seed = seed;

        for (p = plain, i = 0; i < 10000; i++) {
            p = stpcpy(p, words[scene_chance(&out, 8)]);
        }

        out.p = json + sprintf(json, "{\"model\":\"m\",\"prompt\":");
        scene_string(&out, plain);
        strcpy(out.p, "}");

        scene_well(&body, COMPLETIONS, json);
        text = llmgw_openai_text(&body, &len);
        assert_int_equal(len, p - plain);
        assert_memory_equal(text, plain, len);
        scene_resize(NULL, text, 0);
        scene_done(&body);
    }

    free(plain);
    free(json);
}


static void
nul_and_lack_of_memory(void **state)
{
    char                *text;
    size_t               len;
    llmgw_openai_body_t  body;

    scene_well(&body, COMPLETIONS, "{\"model\":\"m\",\"prompt\":"
                                   "\"a\\u0000b\"}");
    text = llmgw_openai_text(&body, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 3);
    scene_resize(NULL, text, 0);

    scene_left = 0;
    assert_null(llmgw_openai_text(&body, &len));
    scene_left = SIZE_MAX;
    scene_done(&body);
}


static void
assert_bytes(Llmgateway__Api api, const char *json, size_t expected)
{
    llmgw_openai_body_t  body;

    scene_well(&body, api, json);

    if (llmgw_openai_text_bytes(&body) != expected) {
        fail_msg("%s: %zu bytes", json, llmgw_openai_text_bytes(&body));
    }

    scene_done(&body);
}


/* Roles and images do not count; of a prompt of ids their number counts. */
static void
bytes_of_text_are_counted(void **state)
{
    const char  *nothing = "{\"model\":\"m\",\"messages\":[{\"role\":\"a\"}]}";

    assert_bytes(CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\","
                 "\"content\":\"12345\"},{\"role\":\"user\",\"content\":"
                 "[{\"type\":\"text\","
                 "\"text\":\"123\"},{\"type\":\"image_url\",\"image_url\":"
                 "{\"url\":\"data:long\"}},{\"text\":\"12\"}]},"
                 "{\"role\":\"tool\",\"content\":null}]}", 10);
    assert_bytes(COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"12\\n45\"}", 6);
    assert_bytes(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[\"12\",\"345\"]}",
                 5);
    assert_bytes(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[1,22,333]}", 12);
    assert_bytes(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[[1,2],[3]]}", 12);
    assert_bytes(CHAT, nothing, strlen(nothing));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(messages_are_lines_of_role_and_text),
        cmocka_unit_test(parts_with_text_count),
        cmocka_unit_test(prompts_are_themselves),
        cmocka_unit_test(system_prompt_of_other_apis_stands_first),
        cmocka_unit_test(long_text_comes_whole),
        cmocka_unit_test(nul_and_lack_of_memory),
        cmocka_unit_test(bytes_of_text_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * The affinity key: what of a body enters it, and what does not matter.
 */

#include "t/unit/core/openai/random_body.h"

#include "core/openai/affinity_key.h"


#define PREFIX  1024


static uint64_t
key_by(Llmgateway__Api api, const char *json, size_t prefix,
    llmgw_openai_by_t by)
{
    uint64_t             key;
    llmgw_openai_body_t  body;

    scene_well(&body, api, json);
    key = llmgw_openai_affinity_key(&body, prefix, by);
    scene_done(&body);

    return key;
}


static uint64_t
key_of(Llmgateway__Api api, const char *json)
{
    return key_by(api, json, PREFIX, LLMGW_OPENAI_BY_PROMPT);
}


static uint64_t
chat_key(const char *messages)
{
    char  json[4096];

    sprintf(json, "{\"model\":\"m\",\"messages\":[%s]}", messages);

    return key_of(CHAT, json);
}


#define SYSTEM   "{\"role\":\"system\",\"content\":\"be brief\"}"
#define USER     "{\"role\":\"user\",\"content\":\"hello\"}"
#define ANSWER   "{\"role\":\"assistant\",\"content\":\"hi\"}"


static void
second_turn_has_the_key_of_the_first(void **state)
{
    uint64_t  key;

    key = chat_key(SYSTEM "," USER);

    assert_true(key == chat_key(SYSTEM "," USER "," ANSWER));
    assert_true(key == chat_key(SYSTEM "," USER "," ANSWER ","
                                "{\"role\":\"user\",\"content\":\"more\"}"));
    assert_true(key == chat_key(SYSTEM "," USER "," ANSWER "," SYSTEM));
    assert_true(key != chat_key(USER));
    assert_true(key != chat_key(SYSTEM "," SYSTEM "," USER));
    assert_true(key != chat_key(SYSTEM ",{\"role\":\"user\",\"content\":"
                                "\"hell\"}"));
    assert_true(key != chat_key("{\"role\":\"developer\",\"content\":"
                                "\"be brief\"}," USER));
}


static void
what_is_not_hashed_does_not_matter(void **state)
{
    uint64_t  key;

    key = key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER "]}");

    assert_true(key == key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER
                              "],\"temperature\":1,\"stream\":true,\"user\":"
                              "\"u\",\"prompt_cache_key\":\"k\",\"n\":2}"));
    assert_true(key != key_of(CHAT, "{\"model\":\"n\",\"messages\":[" USER
                              "]}"));
    assert_true(key != key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER
                              "],\"cache_salt\":\"s\"}"));
    assert_true(key != key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER
                              "],\"tools\":[{}]}"));
    assert_true(key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER
                       "],\"tools\":[{}]}")
                != key_of(CHAT, "{\"model\":\"m\",\"messages\":[" USER
                          "],\"functions\":[{}]}"));
}


/*
 * The key takes the first `prefix` bytes of the user message, and the whole of
 * the system message.
 */
static void
user_message_counts_up_to_the_prefix(void **state)
{
    size_t     i;
    char       text[200], json[2][1000];
    const char *format = "{\"model\":\"m\",\"messages\":[{\"role\":\"%s\","
                         "\"content\":\"%s\"},{\"role\":\"user\",\"content\":"
                         "\"%s\"}]}";

    memset(text, 'x', sizeof(text));
    text[199] = '\0';
    sprintf(json[0], format, "system", text, text);

    for (i = 0; i < 199; i++) {
        text[i] = 'y';
        sprintf(json[1], format, "system",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", text);
        assert_int_equal(key_by(CHAT, json[0], 100, 0)
                         == key_by(CHAT, json[1], 100, 0), i >= 100);

        sprintf(json[1], format, "system", text,
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        assert_true(key_by(CHAT, json[0], 100, 0)
                    != key_by(CHAT, json[1], 100, 0));
        text[i] = 'x';
    }
}


static void
parts_are_the_same_as_their_text(void **state)
{
    uint64_t  key;

    key = chat_key(USER);

    assert_true(key == chat_key("{\"role\":\"user\",\"content\":[{\"type\":"
                                "\"text\",\"text\":\"hello\"}]}"));
    assert_true(key == chat_key("{\"content\":[{\"text\":\"hel\",\"type\":"
                                "\"text\"},{\"type\":\"text\",\"text\":\"lo\"}]"
                                ",\"role\":\"user\"}"));
    assert_true(key != chat_key("{\"role\":\"user\",\"content\":[{\"type\":"
                                "\"text\",\"text\":\"hello\"},{\"type\":"
                                "\"image_url\",\"image_url\":{\"url\":\"a\"}}]"
                                "}"));
    assert_true(chat_key("{\"role\":\"user\",\"content\":[{\"type\":"
                         "\"image_url\",\"image_url\":{\"url\":\"a\"}}]}")
                != chat_key("{\"role\":\"user\",\"content\":[{\"type\":"
                            "\"image_url\",\"image_url\":{\"url\":\"b\"}}]}"));
}


static void
types_are_told_apart(void **state)
{
    size_t       i, j;
    char         json[2][200];
    const char  *values[] = { "1", "\"1\"", "[1]", "{\"1\":1}", "[]", "{}",
                              "\"\"", "null", "\"null\"", "true", "false",
                              "[[]]", "[1,[]]", "[[1]]", "{\"a\":{\"b\":1}}",
                              "{\"b\":{\"a\":1}}", "{\"a\":1,\"b\":2}",
                              "{\"a\":2,\"b\":1}", "[1,2]", "[2,1]" };

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
            sprintf(json[0], "{\"model\":\"m\",\"messages\":[{\"role\":\"user\""
                    "}],\"tools\":[%s]}", values[i]);
            sprintf(json[1], "{\"model\":\"m\",\"messages\":[{\"role\":\"user\""
                    "}],\"tools\":[%s]}", values[j]);
            assert_int_equal(key_of(CHAT, json[0]) == key_of(CHAT, json[1]),
                             i == j);
        }
    }
}


static void
other_members_replace_it_where_asked(void **state)
{
    size_t             i;
    uint64_t           key;
    char               json[2][500];
    const char        *names[] = { "prompt_cache_key", "user" };
    llmgw_openai_by_t  by[] = { LLMGW_OPENAI_BY_CACHE_KEY,
                                LLMGW_OPENAI_BY_USER };

    for (i = 0; i < 2; i++) {
        sprintf(json[0], "{\"model\":\"m\",\"messages\":[" USER "],\"%s\":"
                "\"a/b\"}", names[i]);
        sprintf(json[1], "{\"model\":\"n\",\"messages\":[" ANSWER "],\"%s\":"
                "\"\\u0061\\/b\"}", names[i]);

        key = key_by(CHAT, json[0], PREFIX, by[i]);
        assert_true(key == key_by(CHAT, json[1], PREFIX, by[i]));
        assert_true(key != key_of(CHAT, json[0]));
        assert_true(key_by(CHAT, json[0], PREFIX, by[1 - i])
                    == key_of(CHAT, json[0]));

        sprintf(json[1], "{\"model\":\"m\",\"messages\":[" USER "],\"%s\":"
                "\"\"}", names[i]);
        assert_true(key_by(CHAT, json[1], PREFIX, by[i])
                    == key_of(CHAT, json[1]));
    }
}


static void
every_api_has_a_key(void **state)
{
    uint64_t  key;

    key = key_of(COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"ab\"}");
    assert_true(key == key_of(COMPLETIONS, "{\"model\":\"m\",\"prompt\":"
                                           "[\"ab\"]}"));
    assert_true(key != key_of(COMPLETIONS, "{\"model\":\"m\",\"prompt\":"
                                           "\"ac\"}"));
    assert_true(key == key_of(EMBEDDINGS, "{\"input\":\"ab\",\"model\":"
                                          "\"m\"}"));
    assert_true(key_of(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[1,23]}")
                != key_of(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[12,3]}"));
    assert_true(key_by(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[[10,11]]}",
                       6, LLMGW_OPENAI_BY_PROMPT)
                == key_by(COMPLETIONS, "{\"model\":\"m\",\"prompt\":[10,11,"
                          "12]}", 6, LLMGW_OPENAI_BY_PROMPT));

    key = key_of(RESPONSES, "{\"model\":\"m\",\"input\":\"hi\"}");
    assert_true(key == key_of(RESPONSES, "{\"model\":\"m\",\"input\":[{\"role\""
                              ":\"user\",\"content\":[{\"type\":\"input_text\","
                              "\"text\":\"hi\"}]},{\"type\":\"x\"}]}"));
    assert_true(key != key_of(RESPONSES, "{\"model\":\"m\",\"input\":\"hi\","
                                         "\"instructions\":\"i\"}"));
    assert_true(key_of(RESPONSES, "{\"model\":\"m\",\"input\":[{\"a\":1}]}")
                != key_of(RESPONSES, "{\"model\":\"m\",\"input\":"
                                     "[{\"a\":2}]}"));

    key = key_of(MESSAGES, "{\"model\":\"m\",\"system\":\"s\",\"messages\":["
                           USER "]}");
    assert_true(key != key_of(MESSAGES, "{\"model\":\"m\",\"messages\":["
                                        USER "]}"));
    assert_true(key == key_of(MESSAGES, "{\"messages\":[" USER "," ANSWER
                              "],\"system\":\"s\",\"model\":\"m\"}"));
}


/* --- however a body is written */


static uint64_t
tree_key(json_t *tree, unsigned seed)
{
    char      *json;
    uint64_t   key;

    json = scene_json(tree, seed);
    key = key_of(CHAT, json);
    free(json);

    return key;
}


/*
 * Changes one thing that the key hashes, or message 3 or `k`, which it does
 * not.
 */
static void
change(json_t *body, unsigned which)
{
    json_t  *message;

    message = json_array_get(json_object_get(body, "messages"), which % 4);

    switch (which) {

    case 0:
    case 1:
    case 2:
    case 3:
        json_object_set_new(message, "content", json_string("changed"));
        break;
    case 4:
    case 5:
        json_object_set_new(message, "more", json_integer(1));
        break;
    case 6:
        json_array_append_new(json_object_get(body, "tools"), json_null());
        break;
    case 7:
        json_object_set_new(body, "model", json_string("m"));
        break;
    case 8:
        json_object_set_new(body, "cache_salt", json_integer(1));
        break;
    default:
        json_object_set_new(body, "k", json_string("changed"));
    }
}


static void
spelling_does_not_matter_and_content_does(void **state)
{
    json_t       *body, *other;
    unsigned      seed, which;
    uint64_t      key;
    scene_out_t   chance;

    for (seed = 1; seed < 150; seed++) {
        chance.seed = seed;
        body = random_body(&chance);
        key = tree_key(body, 0);

        for (which = 1; which < 8; which++) {
            assert_true(key == tree_key(body, seed * 8 + which));
        }

        for (which = 0; which < 10; which++) {
            other = json_deep_copy(body);
            change(other, which);
            assert_int_equal(key == tree_key(other, seed + which),
                             which == 3 || which == 9);
            json_decref(other);
        }

        json_decref(body);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(second_turn_has_the_key_of_the_first),
        cmocka_unit_test(what_is_not_hashed_does_not_matter),
        cmocka_unit_test(user_message_counts_up_to_the_prefix),
        cmocka_unit_test(parts_are_the_same_as_their_text),
        cmocka_unit_test(types_are_told_apart),
        cmocka_unit_test(other_members_replace_it_where_asked),
        cmocka_unit_test(every_api_has_a_key),
        cmocka_unit_test(spelling_does_not_matter_and_content_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

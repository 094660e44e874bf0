
/*
 * The blocks of a request: which requests share them, and what does not
 * matter.
 */

#include "t/unit/core/openai/random_body.h"

#include "core/openai/body_blocks.h"


#define BYTES  16
#define MAX    4096

typedef struct {
    uint32_t  n;
    uint64_t  hashes[MAX];
} blocks_t;


static void
blocks_of(blocks_t *blocks, Llmgateway__Api api, const char *json)
{
    llmgw_openai_body_t  body;

    scene_well(&body, api, json);
    blocks->n = llmgw_openai_blocks(&body, BYTES, blocks->hashes, MAX);
    scene_done(&body);
}


static void
chat(blocks_t *blocks, const char *messages)
{
    char  json[8192];

    sprintf(json, "{\"model\":\"m\",\"messages\":[%s]}", messages);
    blocks_of(blocks, CHAT, json);
}


/* How many blocks two requests share from the first on. */
static uint32_t
common(const blocks_t *a, const blocks_t *b)
{
    uint32_t  i;

    for (i = 0; i < a->n && i < b->n && a->hashes[i] == b->hashes[i]; i++) {
        /* void */
    }

    return i;
}


static int
same(const blocks_t *a, const blocks_t *b)
{
    return a->n == b->n && common(a, b) == a->n;
}


static int
same_chat(const char *a, const char *b)
{
    blocks_t  of_a, of_b;

    chat(&of_a, a);
    chat(&of_b, b);
    assert_true(of_a.n > 0);

    return same(&of_a, &of_b);
}


#define LONG     "a sentence of some length, so that it fills several blocks. "
#define SYSTEM   "{\"role\":\"system\",\"content\":\"be brief\"}"
#define USER     "{\"role\":\"user\",\"content\":\"" LONG "\"}"
#define ANSWER   "{\"role\":\"assistant\",\"content\":\"" LONG LONG "\"}"
#define MORE     "{\"role\":\"user\",\"content\":\"go on, please: " LONG "\"}"


static void
each_turn_has_all_blocks_of_the_one_before(void **state)
{
    blocks_t  first, second, third;

    chat(&first, SYSTEM "," USER);
    chat(&second, SYSTEM "," USER "," ANSWER "," MORE);
    chat(&third, SYSTEM "," USER "," ANSWER "," MORE "," ANSWER "," USER);

    assert_true(first.n >= 4);
    assert_true(second.n >= first.n + 12);
    assert_true(third.n >= second.n + 12);
    assert_int_equal(common(&first, &second), first.n);
    assert_int_equal(common(&second, &third), second.n);
}


/* The blocks up to the change are shared, and none after it. */
static void
what_is_said_later_changes_no_earlier_block(void **state)
{
    blocks_t  a, b;

    chat(&a, SYSTEM "," USER "," ANSWER "," MORE);
    chat(&b, SYSTEM "," USER "," MORE "," ANSWER);

    assert_int_equal(a.n, b.n);
    assert_in_range(common(&a, &b), 5, 6);
}


static void
parts_are_the_same_as_their_text(void **state)
{
    assert_true(same_chat(
        USER, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\""
        LONG "\"}]}"));
    assert_true(same_chat(
        "{\"role\":\"user\",\"content\":\"" LONG "\\n" LONG "\"}",
        "{\"content\":[{\"text\":\"" LONG "\",\"type\":\"text\"},"
        "{\"type\":\"input_text\",\"text\":\"" LONG "\"}],\"role\":\"user\"}"));
    assert_false(same_chat(
        "{\"role\":\"user\",\"content\":[{\"image\":\"a\"},{\"text\":\"" LONG
        "\"}]}",
        "{\"role\":\"user\",\"content\":[{\"image\":\"b\"},{\"text\":\"" LONG
        "\"}]}"));
}


/* Clients mark the newest part alone, so the mark moves. */
static void
mark_of_the_cache_that_moves_does_not_matter(void **state)
{
    assert_true(same_chat(
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"" LONG
        "\"},{\"type\":\"image\",\"source\":1}]}",
        "{\"role\":\"user\",\"cache_control\":{\"type\":\"ephemeral\"},"
        "\"content\":[{\"type\":\"text\",\"cache_control\":{},\"text\":\""
        LONG "\"},{\"type\":\"image\",\"source\":1,"
        "\"cache_control\":{\"type\":\"ephemeral\"}}]}"));
}


static void
every_member_of_a_message_counts_but_null(void **state)
{
    assert_false(same_chat(
        ANSWER "," USER,
        "{\"role\":\"assistant\",\"content\":\"" LONG LONG
        "\",\"tool_calls\":[{\"id\":\"1\"}]}," USER));
    assert_false(same_chat(
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\"}]}," USER,
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"2\"}]}," USER));
    assert_false(same_chat(
        "{\"role\":\"user\",\"content\":\"" LONG "\"}",
        "{\"role\":\"system\",\"content\":\"" LONG "\"}"));
    assert_true(same_chat(
        ANSWER, "{\"role\":\"assistant\",\"refusal\":null,\"content\":\"" LONG
        LONG "\",\"function_call\":null}"));
}


static void
seed_tells_models_tools_and_salts_apart(void **state)
{
    size_t       i;
    blocks_t     plain, other;
    const char  *others[] = {
        "{\"model\":\"n\",\"messages\":[" USER "]}",
        "{\"model\":\"m\",\"messages\":[" USER "],\"cache_salt\":\"s\"}",
        "{\"model\":\"m\",\"messages\":[" USER "],\"tools\":[{}]}",
        "{\"model\":\"m\",\"messages\":[" USER "],\"functions\":[{}]}"
    };

    chat(&plain, USER);

    for (i = 0; i < 4; i++) {
        blocks_of(&other, CHAT, others[i]);
        assert_int_equal(other.n, plain.n);
        assert_int_equal(common(&plain, &other), 0);
    }

    blocks_of(&other, CHAT, "{\"n\":2,\"user\":\"u\",\"messages\":[" USER
              "],\"stream\":true,\"model\":\"m\",\"prompt_cache_key\":\"k\"}");
    assert_true(same(&plain, &other));
}


static void
every_api_has_blocks(void **state)
{
    blocks_t  a, b;

    /* a separate system text counts as the first message */
    chat(&a, "{\"role\":\"system\",\"content\":\"" LONG "\"}," USER);
    blocks_of(&b, MESSAGES, "{\"model\":\"m\",\"max_tokens\":9,\"messages\":["
              USER "],\"system\":[{\"type\":\"text\",\"text\":\"" LONG
              "\"}]}");
    assert_true(same(&a, &b));
    blocks_of(&b, RESPONSES, "{\"model\":\"m\",\"instructions\":\"" LONG
              "\",\"input\":[" USER "]}");
    assert_true(same(&a, &b));

    /* an input that is a string is a user message */
    chat(&a, USER);
    blocks_of(&b, RESPONSES, "{\"model\":\"m\",\"input\":\"" LONG "\"}");
    assert_true(same(&a, &b));

    blocks_of(&a, COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"" LONG "\"}");
    blocks_of(&b, COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"" LONG LONG
              "\"}");
    assert_int_equal(common(&a, &b), a.n);
    assert_true(a.n > 0 && b.n > a.n);

    blocks_of(&a, COMPLETIONS, "{\"model\":\"m\",\"prompt\":[1,2,3,4,5,66,77,"
              "88,99,10]}");
    blocks_of(&b, COMPLETIONS, "{\"model\":\"m\",\"prompt\":[1,2,3,4,5,66,77,"
              "88,99,10,11,12,13,14,15,16,17]}");
    assert_int_equal(common(&a, &b), a.n);
    assert_true(a.n == 1 && b.n == 3);
}


/* Nothing is read after the message that fills the last block. */
static void
blocks_are_bounded(void **state)
{
    char                 json[4096];
    uint64_t             hashes[4] = { 0, 0, 0, 42 };
    blocks_t             all;
    llmgw_openai_body_t  body;

    sprintf(json, "{\"model\":\"m\",\"messages\":[%s]}", USER "," ANSWER);
    blocks_of(&all, CHAT, json);

    scene_well(&body, CHAT, json);
    assert_int_equal(llmgw_openai_blocks(&body, BYTES, hashes, 3), 3);
    scene_done(&body);
    assert_memory_equal(hashes, all.hashes, 3 * sizeof(uint64_t));
    assert_int_equal(hashes[3], 42);
}


/* Native passes read bodies that were not validated. */
static void
bodies_of_any_kind_do_no_harm(void **state)
{
    size_t                i;
    uint32_t              n;
    uint64_t              hashes[MAX];
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;
    const char           *bodies[] = {
        "{}", "{\"messages\":[{}]}",
        "{\"messages\":[{},[1,[\"a\"],{}],null,\"x\",{\"content\":7}]}",
        "{\"messages\":[{\"role\":{},\"content\":{\"text\":\"x\"}}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[[],null,1,\"x\"",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud8",
        "{\"prompt\":[[[[1,\"x\"]],{}]]}", "{\"input\":{\"a\":1}}"
    };

    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        if (scene_read(&body, LLMGW_OPENAI_ANY_API, bodies[i],
                       strlen(bodies[i]), &error) == 0)
        {
            n = llmgw_openai_blocks(&body, BYTES, hashes, MAX);
            assert_in_range(n, 0, 9);
            scene_done(&body);
        }
    }
}


static void
tree_blocks(blocks_t *blocks, json_t *tree, unsigned seed)
{
    char  *json;

    json = scene_json(tree, seed);
    blocks_of(blocks, CHAT, json);
    free(json);
}


static void
spelling_does_not_matter_and_content_does(void **state)
{
    json_t       *body, *message;
    blocks_t      plain, other;
    unsigned      seed, which;
    scene_out_t   chance;

    for (seed = 1; seed < 150; seed++) {
        chance.seed = seed;
        body = random_body(&chance);
        tree_blocks(&plain, body, 0);

        for (which = 1; which < 8; which++) {
            tree_blocks(&other, body, seed * 8 + which);
            assert_true(same(&plain, &other));
        }

        message = json_array_get(json_object_get(body, "messages"), 0);
        json_object_set_new(message, "content",
                            json_string("changed: " LONG));
        tree_blocks(&other, body, seed);
        assert_in_range(common(&plain, &other), 0, 1);

        json_decref(body);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_turn_has_all_blocks_of_the_one_before),
        cmocka_unit_test(what_is_said_later_changes_no_earlier_block),
        cmocka_unit_test(parts_are_the_same_as_their_text),
        cmocka_unit_test(mark_of_the_cache_that_moves_does_not_matter),
        cmocka_unit_test(every_member_of_a_message_counts_but_null),
        cmocka_unit_test(seed_tells_models_tools_and_salts_apart),
        cmocka_unit_test(every_api_has_blocks),
        cmocka_unit_test(blocks_are_bounded),
        cmocka_unit_test(bodies_of_any_kind_do_no_harm),
        cmocka_unit_test(spelling_does_not_matter_and_content_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

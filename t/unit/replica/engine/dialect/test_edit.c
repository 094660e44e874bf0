
/*
 * Edits of a body: members are dropped and written, and all else stays as it
 * is, byte for byte; a Member that does not fit the body is an error.
 */

#include "t/unit/replica/engine/dialect/played.h"


static const char  body[] =
    "{\"model\": \"m\" ,\n \"x\":{\"y\":[1e999]},\"stream\":false,"
    "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}] }";


static dialect_do_t
start_with(played_t *p, size_t member, uint32_t begin, uint32_t value,
    uint32_t end)
{
    dialect_do_t  next;

    played_init(p);
    played_openai(p, LLMGATEWAY__API__API_CHAT, body);
    p->members[member].begin += begin;
    p->members[member].value += value;
    p->members[member].end += end;
    next = played_start(p, "openai");

    if (next == DIALECT_FAILED) {
        assert_int_equal(dialect_call_status(p->call),
                         LLMGW_GRPC_INVALID_ARGUMENT);
    }

    played_end(p);

    return next;
}


static void
members_that_do_not_fit_are_refused(void **state)
{
    size_t    i;
    played_t  p;

    assert_int_equal(start_with(&p, 0, 0, 0, 0), DIALECT_ASK);

    for (i = 0; i < 4; i++) {
        assert_int_equal(start_with(&p, i, 1, 0, 0), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, -1u, 0, 0), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, 0, -1u, 0), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, 0, 0, 1), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, 0, 0, -1u), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, 0, 0, 1u << 31), DIALECT_FAILED);
        assert_int_equal(start_with(&p, i, 1u << 31, 1u << 31, 1u << 31),
                         DIALECT_FAILED);
    }
}


static void
each_missing_or_doubled_member_is_noticed(void **state)
{
    size_t    i;
    played_t  p;

    for (i = 0; i < 4; i++) {
        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
        memmove(p.list + i, p.list + i + 1, (3 - i) * sizeof(p.list[0]));
        p.openai.n_members--;
        assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
        played_end(&p);

        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
        p.list[i == 0 ? 1 : i - 1] = p.list[i];
        assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
        played_end(&p);
    }

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
    p.openai.n_members = 0;
    assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
    played_end(&p);
}


static void
every_cut_of_the_body_is_refused(void **state)
{
    char     *copy;
    size_t    len;
    played_t  p;

    for (len = 0; len < sizeof(body) - 1; len++) {
        copy = malloc(len == 0 ? 1 : len);
        assert_non_null(copy);
        memcpy(copy, body, len);
        played_init(&p);
        played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
        p.openai.body.data = (uint8_t *) copy;
        p.openai.body.len = len;
        assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
        played_end(&p);
        free(copy);
    }
}


static void
bytes_of_zero_are_no_space(void **state)
{
    char      copy[sizeof(body) + 1];
    played_t  p;

    memcpy(copy, body, sizeof(body));       /* without its NUL */
    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_CHAT, body);
    p.openai.body.data = (uint8_t *) copy;
    p.openai.body.len = sizeof(body);
    assert_int_equal(played_start(&p, "openai"), DIALECT_FAILED);
    played_end(&p);
}


static void
what_is_not_changed_stays_as_it_was(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_EMBEDDINGS, body);
    assert_int_equal(played_start(&p, "openai"), DIALECT_ASK);
    played_asks(&p, "/v1/embeddings",
                "{\"model\": \"m\",\"x\":{\"y\":[1e999]},\"stream\":false,"
                "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    played_end(&p);

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_MESSAGES, " {} ");
    p.openai.engine_model = (char *) "a\"b";
    assert_int_equal(played_start(&p, "openai"), DIALECT_ASK);
    played_asks(&p, "/v1/messages", "{\"model\":\"a\\\"b\"}");
    played_end(&p);
}


static void
a_duplicate_is_dropped_with_its_like(void **state)
{
    played_t  p;

    played_init(&p);
    played_openai(&p, LLMGATEWAY__API__API_COMPLETIONS,
                  "{\"stream\":true,\"prompt\":\"a\",\"stream\":true,"
                  "\"str\\u0065am\":false}");
    assert_int_equal(played_start(&p, "openai"), DIALECT_ASK);
    played_asks(&p, "/v1/completions",
                "{\"prompt\":\"a\",\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true}}");
    played_end(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_that_do_not_fit_are_refused),
        cmocka_unit_test(each_missing_or_doubled_member_is_noticed),
        cmocka_unit_test(every_cut_of_the_body_is_refused),
        cmocka_unit_test(bytes_of_zero_are_no_space),
        cmocka_unit_test(what_is_not_changed_stays_as_it_was),
        cmocka_unit_test(a_duplicate_is_dropped_with_its_like)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Errors as sent to a client, and as logged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/openai/error.h"


static void
message_of_control_characters_stays_one_line(void **state)
{
    llmgw_openai_error_t  error;

    llmgw_openai_error_set(&error, 404, NULL, NULL, "no `%s`",
                           "a\n2026/11/24 [alert]\r\t\x1b[2J\x7f\x01z");
    assert_string_equal(error.message, "no `a 2026/11/24 [alert]   [2J  z`");

    llmgw_openai_error_set(&error, 404, NULL, NULL, "%s",
                           "gr\xc3\xbc\xc3\x9f dich ~ !");
    assert_string_equal(error.message, "gr\xc3\xbc\xc3\x9f dich ~ !");
}


static void
long_message_is_cut(void **state)
{
    char                  text[400];
    llmgw_openai_error_t  error;

    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    llmgw_openai_error_set(&error, 404, NULL, NULL, "%s", text);
    assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
    assert_int_equal(strspn(error.message, " "), sizeof(error.message) - 1);
}


static void
every_status_has_words(void **state)
{
    unsigned              status;
    llmgw_openai_error_t  error;

    for (status = 400; status < 600; status++) {
        llmgw_openai_error_of_status(&error, status);
        assert_int_equal(error.status, status);
        assert_true(error.message[0] != '\0');

        if (status != 429 && status != 504) {
            assert_string_equal(error.type, status < 500
                                ? "invalid_request_error" : "server_error");
        }
    }

    assert_int_equal(llmgw_openai_status(429)->retry,
                     LLMGW_OPENAI_RETRY_SOON);
    assert_int_equal(llmgw_openai_status(507)->retry,
                     LLMGW_OPENAI_RETRY_BY_STATUS);
    assert_int_equal(llmgw_openai_status(418)->status, 0);

    assert_int_equal(llmgw_openai_status(404)->outcome,
                     LLMGW_OUTCOME_NOT_FOUND);
    assert_int_equal(llmgw_openai_status(418)->outcome,
                     LLMGW_OUTCOME_BAD_REQUEST);
    assert_int_equal(llmgw_openai_status(507)->outcome,
                     LLMGW_OUTCOME_INTERNAL);
}


static void
messages_have_anthropics_types(void **state)
{
    size_t  i;

    static const struct {
        unsigned     status;
        const char  *type;
    } types[] = {
        { 400, "invalid_request_error" }, { 401, "authentication_error" },
        { 403, "permission_error" }, { 404, "not_found_error" },
        { 413, "request_too_large" }, { 429, "rate_limit_error" },
        { 500, "api_error" }, { 502, "api_error" },
        { 503, "overloaded_error" }, { 529, "overloaded_error" }
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_string_equal(llmgw_anthropic_type(types[i].status),
                            types[i].type);
    }

    assert_true(llmgw_anthropic_has("/messages", 9));
    assert_true(llmgw_anthropic_has("/any/v1/messages", 16));
    assert_true(llmgw_anthropic_has("/v1/messages/count_tokens", 25));
    assert_false(llmgw_anthropic_has("/messages/batches", 17));
    assert_false(llmgw_anthropic_has("/count_tokens", 13));
    assert_false(llmgw_anthropic_has("messages", 8));
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_of_control_characters_stays_one_line),
        cmocka_unit_test(long_message_is_cut),
        cmocka_unit_test(every_status_has_words),
        cmocka_unit_test(messages_have_anthropics_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

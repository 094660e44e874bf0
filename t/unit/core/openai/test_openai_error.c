
/* What a client is told of its request, and what the log shows of it. */

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

    llmgw_openai_error_set(&error, 404, LLMGW_OPENAI_INVALID_REQUEST, NULL,
                           NULL, "no `%s`",
                           "a\n2026/11/24 [alert]\r\t\x1b[2J\x7f\x01z");
    assert_string_equal(error.message, "no `a 2026/11/24 [alert]   [2J  z`");

    llmgw_openai_error_set(&error, 404, LLMGW_OPENAI_INVALID_REQUEST, NULL,
                           NULL, "%s", "gr\xc3\xbc\xc3\x9f dich ~ !");
    assert_string_equal(error.message, "gr\xc3\xbc\xc3\x9f dich ~ !");
}


static void
long_message_is_cut(void **state)
{
    char                  text[400];
    llmgw_openai_error_t  error;

    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    llmgw_openai_error_set(&error, 404, LLMGW_OPENAI_INVALID_REQUEST, NULL,
                           NULL, "%s", text);
    assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
    assert_int_equal(strspn(error.message, " "), sizeof(error.message) - 1);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_of_control_characters_stays_one_line),
        cmocka_unit_test(long_message_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

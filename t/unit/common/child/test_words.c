
/* Command lines as people write them, and the values that are put into them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/child/words.h"


static void
version_is_put_wherever_it_is_wanted(void **state)
{
    char         **words;
    char *const    wants[] = { "run", "--v={version}",
                               "{version}-{version}", "{version", "", NULL };
    char *const    does_not[] = { "run", "{versions}", NULL };

    assert_true(words_have(wants, WORDS_VERSION));
    assert_false(words_have(does_not, WORDS_VERSION));

    words = words_fill(wants, WORDS_VERSION, "v2.1-rc");
    assert_string_equal(words[0], "run");
    assert_string_equal(words[1], "--v=v2.1-rc");
    assert_string_equal(words[2], "v2.1-rc-v2.1-rc");
    assert_string_equal(words[3], "{version");
    assert_string_equal(words[4], "");
    assert_null(words[5]);
    words_destroy(words);

    words = words_fill(wants, WORDS_VERSION, "1");
    assert_string_equal(words[2], "1-1");
    words_destroy(words);
}


/* Checks the words of a text; expected has "|" after each. */
static void
check(const char *text, const char *expected)
{
    char    **words, found[256], error[WORDS_ERROR_BYTES];
    size_t    i, n;

    words = words_split(text, error);
    assert_non_null(words);

    for (i = n = 0; words[i] != NULL; i++) {
        n += (size_t) snprintf(found + n, sizeof(found) - n, "%s|", words[i]);
    }

    assert_string_equal(found, expected);
    words_destroy(words);
}


static void
a_command_is_split_at_blanks_outside_quotes(void **state)
{
    check("vllm serve m", "vllm|serve|m|");
    check("  a \t b  ", "a|b|");
    check("sh -c 'exec a \"b\" $C'", "sh|-c|exec a \"b\" $C|");
    check("a \"b \\\" c\" d\\ e", "a|b \" c|d e|");
    check("--x='1 2'3 ''", "--x=1 23||");
    check("'a\\b'", "a\\b|");
}


static void
a_command_that_does_not_end_is_refused(void **state)
{
    size_t        i;
    char          error[WORDS_ERROR_BYTES];
    static const char *const  bad[] = {
        "", "  ", "a 'b", "a \"b", "a \"b\\\"", "a \\"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error[0] = '\0';
        assert_null(words_split(bad[i], error));
        assert_true(error[0] != '\0');
    }
}


static void
a_command_has_a_bounded_number_of_words(void **state)
{
    char    text[2 * WORDS_MAX + 3], error[WORDS_ERROR_BYTES];
    char  **words;

    memset(text, 'a', sizeof(text));

    for (size_t i = 1; i < sizeof(text); i += 2) {
        text[i] = ' ';
    }

    text[2 * WORDS_MAX] = '\0';
    words = words_split(text, error);
    assert_non_null(words);
    words_destroy(words);

    text[2 * WORDS_MAX] = 'a';
    text[2 * WORDS_MAX + 1] = '\0';
    assert_null(words_split(text, error));
    assert_string_equal(error, "more than 1024 words");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(version_is_put_wherever_it_is_wanted),
        cmocka_unit_test(a_command_is_split_at_blanks_outside_quotes),
        cmocka_unit_test(a_command_that_does_not_end_is_refused),
        cmocka_unit_test(a_command_has_a_bounded_number_of_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

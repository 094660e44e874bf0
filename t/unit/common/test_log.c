
/* The log's lines, read back from a file that stands in for stderr. */

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/log.h"


static char    line[8192];
static FILE   *file;
static int     saved;


static void
divert(void)
{
    fflush(stderr);
    file = tmpfile();
    saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
}


static const char *
restore(void)
{
    size_t  n;

    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    n = fread(line, 1, sizeof(line) - 1, file);
    line[n] = '\0';
    fclose(file);

    return line;
}


static int
matches(const char *text, const char *pattern)
{
    int      rc;
    regex_t  re;

    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED), 0);
    rc = regexec(&re, text, 0, NULL, 0);
    regfree(&re);

    return rc == 0;
}


#define STAMP  "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}[.][0-9]{3}Z "


static void
a_line_has_time_level_program_and_id(void **state)
{
    log_t  log = { "prog", "r1", LOG_INFO };

    divert();
    log_write(&log, LOG_WARN, "member \"%s\" is suspect", "r2");
    assert_true(matches(restore(),
                STAMP "warn prog r1: member \"r2\" is suspect\n$"));

    log.id = NULL;
    divert();
    log_write(&log, LOG_ERROR, "x");
    assert_true(matches(restore(), STAMP "error prog: x\n$"));
}


static void
what_is_above_the_level_is_not_written(void **state)
{
    log_t  log = { "prog", NULL, LOG_WARN };

    divert();
    log_write(&log, LOG_INFO, "quiet");
    log_write(&log, LOG_DEBUG, "quieter");
    assert_string_equal(restore(), "");
}


static void
control_bytes_cannot_forge_a_line(void **state)
{
    log_t  log = { "prog", NULL, LOG_INFO };

    divert();
    log_write(&log, LOG_INFO, "got \"%s\"", "a\nb\033[1m\x7f\xc3\xa9");
    assert_true(matches(restore(), STAMP "info prog: got \"a[?]b[?]\\[1m"
                                   "[?]\xc3\xa9\"\n$"));

    divert();
    log_write(&log, LOG_INFO, "got \"%s\"", "\xc2\x9b" "1m\x9b" "2m\xc3");
    assert_true(matches(restore(), STAMP "info prog: got "
                                   "\"[?][?]1m[?]2m[?]\"\n$"));
}


static void
a_long_line_is_cut_and_stays_one_line(void **state)
{
    char   text[5000];
    log_t  log = { "prog", NULL, LOG_INFO };

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    divert();
    log_write(&log, LOG_INFO, "%s", text);
    restore();
    assert_int_equal(strlen(line), 2048);
    assert_int_equal(line[2047], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + 2047);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_line_has_time_level_program_and_id),
        cmocka_unit_test(what_is_above_the_level_is_not_written),
        cmocka_unit_test(control_bytes_cannot_forge_a_line),
        cmocka_unit_test(a_long_line_is_cut_and_stays_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Durations: valid ones, and what people get wrong. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "common/duration.h"


static void
each_unit_is_understood(void **state)
{
    size_t    i;
    uint64_t  ms;

    static const struct {
        const char  *text;
        uint64_t     ms;
    } cases[] = {
        { "0", 0 }, { "0ms", 0 }, { "0h", 0 }, { "1ms", 1 },
        { "50ms", 50 }, { "2s", 2000 }, { "007s", 7000 }, { "1m", 60000 },
        { "3h", 10800000 }, { "8760h", DURATION_MAX_MS },
        { "31536000000ms", DURATION_MAX_MS }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ms = 12345;
        assert_int_equal(duration_parse(cases[i].text, &ms), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}


static void
anything_else_is_refused_and_changes_nothing(void **state)
{
    size_t    i;
    uint64_t  ms;

    static const char *const  bad[] = {
        "", "5", "ms", "s", "-1s", "+1s", "1.5s", " 1s", "1s ", "1 s", "1S",
        "1d", "1sec", "1ms2", "1m30s", "0x10ms", "8761h", "31536000001ms",
        "99999999999999999999999999ms", "18446744073709551617ms"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ms = 12345;
        assert_int_equal(duration_parse(bad[i], &ms), -1);
        assert_int_equal(ms, 12345);
    }
}


static void
the_shortest_exact_form_is_written(void **state)
{
    char    buf[24];
    size_t  i;

    static const struct {
        uint64_t     ms;
        const char  *text;
    } cases[] = {
        { 0, "0" }, { 1, "1ms" }, { 999, "999ms" }, { 1000, "1s" },
        { 1500, "1500ms" }, { 60000, "1m" }, { 90000, "90s" },
        { 3600000, "1h" }, { DURATION_MAX_MS, "8760h" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        duration_format(buf, cases[i].ms);
        assert_string_equal(buf, cases[i].text);
    }
}


static void
what_is_written_is_read_back(void **state)
{
    char      buf[24];
    uint64_t  ms, back;

    for (ms = 0; ms < 10000000; ms = ms * 3 + 1) {
        duration_format(buf, ms);
        assert_int_equal(duration_parse(buf, &back), 0);
        assert_int_equal(back, ms);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_unit_is_understood),
        cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
        cmocka_unit_test(the_shortest_exact_form_is_written),
        cmocka_unit_test(what_is_written_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

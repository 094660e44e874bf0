
/* Latency targets of classes, and the requests that met them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "sim/report/figure/goodput.h"


static void
durations_are_those_of_go(void **state)
{
    size_t  i;

    static const struct {
        const char  *text;
        int64_t      ns;
    } cases[] = {
        { "100ms", 100000000 }, { "1.5s", 1500000000 }, { "1s500ms",
        1500000000 }, { "2m", 120000000000 }, { "1h", 3600000000000 },
        { "7us", 7000 }, { "7\xc2\xb5s", 7000 }, { "9ns", 9 },
        { ".5s", 500000000 }, { "+1s", 1000000000 },
        { "", -1 }, { "1", -1 }, { "s", -1 }, { "1 s", -1 }, { "-1s", -1 },
        { "0s", -1 }, { "1d", -1 }, { "1.s.", -1 }, { "99999999h", -1 },
        { "99999999999999999999s", -1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(report_duration_ns(cases[i].text,
                                            strlen(cases[i].text)),
                         cases[i].ns);
    }
}


static void
targets_are_kept_by_class(void **state)
{
    char              error[160];
    report_targets_t  t;

    memset(&t, 0, sizeof(t));

    assert_int_equal(report_targets_parse(&t, REPORT_TTFT,
                         "standard=60ms, critical = 55ms", error,
                         sizeof(error)), 0);
    assert_int_equal(report_targets_parse(&t, REPORT_E2E, "critical=1.5s",
                                          error, sizeof(error)), 0);
    assert_int_equal(report_targets_parse(&t, REPORT_ITL, "", error,
                                          sizeof(error)), 0);

    assert_int_equal(t.n, 2);
    assert_string_equal(t.list[0].slo_class, "critical");
    assert_true(t.list[0].ms[REPORT_TTFT] == 55);
    assert_true(t.list[0].ms[REPORT_E2E] == 1500);
    assert_true(t.list[1].ms[REPORT_TTFT] == 60);
    assert_true(t.list[1].ms[REPORT_E2E] == 0);

    assert_null(report_target_find(&t, ""));
    assert_non_null(report_target_of(&t, "default", 7));
    assert_ptr_equal(report_target_find(&t, ""), &t.list[1]);
}


static void
what_is_no_target_is_named(void **state)
{
    size_t            i;
    char              error[160];
    report_targets_t  t;

    static const char *const  cases[][2] = {
        { "critical", "\"critical\" is not CLASS=TIME" },
        { "=5ms", "\"=5ms\" names no class" },
        { "a=5ms,", "\"\" is empty" },
        { "a=5", "\"a=5\" is not CLASS=TIME with a time above 0, as 100ms or"
                 " 1.5s" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&t, 0, sizeof(t));
        assert_int_equal(report_targets_parse(&t, REPORT_TTFT, cases[i][0],
                                              error, sizeof(error)), -1);
        assert_string_equal(error, cases[i][1]);
    }
}


static void
there_is_a_limit_of_classes_and_of_their_names(void **state)
{
    char              name[REPORT_CLASS_BYTES + 1];
    size_t            i;
    report_targets_t  t;

    memset(&t, 0, sizeof(t));
    memset(name, 'x', sizeof(name));

    assert_null(report_target_of(&t, name, REPORT_CLASS_BYTES));
    assert_non_null(report_target_of(&t, name, REPORT_CLASS_BYTES - 1));

    for (i = 1; i < REPORT_MAX_TARGETS; i++) {
        assert_non_null(report_target_of(&t, name, i > 62 ? 1 : i));
        name[0] = (char) ('!' + i);
    }

    name[0] = '~';
    assert_int_equal(t.n, REPORT_MAX_TARGETS);
    assert_null(report_target_of(&t, name, 5));
}


static void
a_request_is_good_if_it_meets_all_targets(void **state)
{
    report_target_t    target = { .ms = { 50, 0, 1000 } };
    report_attained_t  a;

    memset(&a, 0, sizeof(a));

    report_attain(&target, &a, (double[]) { 50, NAN, 1000 });
    report_attain(&target, &a, (double[]) { 51, 1, 999 });
    report_attain(&target, &a, (double[]) { NAN, 1, 999 });

    assert_int_equal(a.good, 1);
    assert_int_equal(a.seen[REPORT_TTFT], 3);
    assert_int_equal(a.met[REPORT_TTFT], 1);
    assert_int_equal(a.seen[REPORT_ITL], 0);
    assert_int_equal(a.met[REPORT_E2E], 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(durations_are_those_of_go),
        cmocka_unit_test(targets_are_kept_by_class),
        cmocka_unit_test(what_is_no_target_is_named),
        cmocka_unit_test(there_is_a_limit_of_classes_and_of_their_names),
        cmocka_unit_test(a_request_is_good_if_it_meets_all_targets)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

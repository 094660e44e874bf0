
/* How often each name came, for names up to the limit and beyond it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/report/log/tally.h"


static void
names_come_by_how_often(void **state)
{
    report_tally_t  t = { 0 };

    assert_int_equal(report_tally(&t, "b"), 0);
    assert_int_equal(report_tally(&t, "a"), 0);
    assert_int_equal(report_tally(&t, "c"), 0);
    assert_int_equal(report_tally(&t, "c"), 0);
    report_tally_sort(&t);

    assert_int_equal(t.n, 3);
    assert_string_equal(t.rows[0].name, "c");
    assert_int_equal(t.rows[0].n, 2);
    assert_string_equal(t.rows[1].name, "a");
    assert_string_equal(t.rows[2].name, "b");
    report_tally_done(&t);
}


static void
names_beyond_the_limit_are_one(void **state)
{
    char            name[32];
    size_t          i;
    report_tally_t  t = { 0 };

    for (i = 0; i < REPORT_TALLY_MAX; i++) {
        snprintf(name, sizeof(name), "name %zu", i);
        assert_int_equal(report_tally(&t, name), 0);
    }

    assert_int_equal(t.n, REPORT_TALLY_MAX);
    assert_int_equal(report_tally(&t, "one more"), 0);
    assert_int_equal(report_tally(&t, "and one"), 0);
    assert_int_equal(report_tally(&t, "name 7"), 0);
    assert_int_equal(t.n, REPORT_TALLY_MAX + 1);

    report_tally_sort(&t);
    assert_string_equal(t.rows[0].name, "(others)");
    assert_int_equal(t.rows[0].n, 2);
    assert_string_equal(t.rows[1].name, "name 7");
    report_tally_done(&t);
}


static void
a_long_name_is_cut(void **state)
{
    char            name[2 * REPORT_TALLY_BYTES];
    report_tally_t  t = { 0 };

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';

    assert_int_equal(report_tally(&t, name), 0);
    assert_int_equal(report_tally(&t, name), 0);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.rows[0].n, 2);
    assert_int_equal(strlen(t.rows[0].name), REPORT_TALLY_BYTES - 1);
    report_tally_done(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(names_come_by_how_often),
        cmocka_unit_test(names_beyond_the_limit_are_one),
        cmocka_unit_test(a_long_name_is_cut)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* How long a replica that refuses is left alone, on the tests' clock. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/full.h"


static void
mark_doubles_up_to_a_second(void **state)
{
    size_t        i;
    uint64_t      now_ms = 5000;
    llmgw_full_t  full = { 0 };

    static const uint32_t  holds[] = { 100, 200, 400, 800, 1000, 1000 };

    assert_false(llmgw_full_stands(&full, now_ms));
    assert_false(llmgw_full_is_known(&full));

    for (i = 0; i < sizeof(holds) / sizeof(holds[0]); i++) {
        llmgw_full_refused(&full, 0, now_ms);
        assert_true(llmgw_full_is_known(&full));
        assert_true(llmgw_full_stands(&full, now_ms + holds[i] - 1));
        assert_false(llmgw_full_stands(&full, now_ms + holds[i]));
        now_ms += holds[i];
    }
}


/* A burst of attempts that began before the mark counts as one refusal. */
static void
refusals_while_marked_say_nothing_new(void **state)
{
    llmgw_full_t  full = { 0 };

    llmgw_full_refused(&full, 0, 5000);
    llmgw_full_refused(&full, 0, 5000);
    llmgw_full_refused(&full, 0, 5099);
    assert_false(llmgw_full_stands(&full, 5100));

    llmgw_full_refused(&full, 0, 5100);
    assert_true(llmgw_full_stands(&full, 5299));
    assert_false(llmgw_full_stands(&full, 5300));
}


static void
first_token_ends_the_mark(void **state)
{
    llmgw_full_t  full = { 0 };

    llmgw_full_refused(&full, 0, 5000);
    llmgw_full_refused(&full, 0, 5100);
    llmgw_full_serves(&full);
    assert_false(llmgw_full_stands(&full, 5100));
    assert_false(llmgw_full_is_known(&full));

    llmgw_full_refused(&full, 0, 5200);
    assert_false(llmgw_full_stands(&full, 5300));
}


static void
less_load_ends_the_mark(void **state)
{
    llmgw_full_t  full = { 0 };

    llmgw_full_refused(&full, 7, 5000);
    llmgw_full_reports(&full, 7);
    assert_true(llmgw_full_stands(&full, 5000));
    llmgw_full_reports(&full, 9);       /* the report was old */
    assert_true(llmgw_full_stands(&full, 5000));
    llmgw_full_reports(&full, 8);
    assert_false(llmgw_full_stands(&full, 5000));

    llmgw_full_reports(&full, 3);
    assert_false(llmgw_full_is_known(&full));
}


static void
request_stays_away_as_long_as_it_is_told(void **state)
{
    size_t  i;

    static const struct {
        int64_t   said_ms;
        uint32_t  refusals, ms;
    } cases[] = {
        { 7000, 1, 7000 }, { 7000, 9, 7000 }, { 10000, 1, 10000 },
        { 10001, 1, 10000 }, { INT64_MAX, 1, 10000 }, { -1, 1, 10000 },
        { 0, 1, 100 }, { 99, 5, 100 }, { 101, 1, 101 },
        { LLMGW_PUSHBACK_NONE, 1, 100 }, { LLMGW_PUSHBACK_NONE, 2, 200 },
        { LLMGW_PUSHBACK_NONE, 4, 800 }, { LLMGW_PUSHBACK_NONE, 5, 1000 },
        { LLMGW_PUSHBACK_NONE, UINT32_MAX, 1000 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(llmgw_full_pushback_ms(cases[i].said_ms,
                                                cases[i].refusals),
                         cases[i].ms);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(mark_doubles_up_to_a_second),
        cmocka_unit_test(refusals_while_marked_say_nothing_new),
        cmocka_unit_test(first_token_ends_the_mark),
        cmocka_unit_test(less_load_ends_the_mark),
        cmocka_unit_test(request_stays_away_as_long_as_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* The queue of news: least sent first, and each often enough. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/spread.h"


static void
limit_is_three_times_the_log(void **state)
{
    assert_int_equal(spread_limit(1), 3);
    assert_int_equal(spread_limit(2), 6);
    assert_int_equal(spread_limit(3), 6);
    assert_int_equal(spread_limit(4), 9);
    assert_int_equal(spread_limit(20), 15);
    assert_int_equal(spread_limit(1000), 30);
    assert_int_equal(spread_limit(4096), 39);
    assert_int_equal(spread_limit(SIZE_MAX / 2), SPREAD_MAX_SENDS);
}


static void
update_is_sent_its_number_of_times(void **state)
{
    unsigned  sends;
    member_t  member;
    spread_t  spread;

    memset(&member, 0, sizeof(member));
    spread_init(&spread);
    spread_add(&spread, &member);

    for (sends = 0; sends < 15; sends++) {
        assert_ptr_equal(spread_next(&spread, NULL), &member);
        assert_null(spread_next(&spread, &member));
        assert_int_equal(spread.n, 1);
        spread_sent(&spread, &member, 15);
    }

    assert_null(spread_next(&spread, NULL));
    assert_int_equal(spread.n, 0);

    /* Out of the queue it is nobody's business. */
    spread_sent(&spread, &member, 15);
    spread_remove(&spread, &member);
    assert_int_equal(spread.n, 0);
}


static void
least_sent_go_first_and_news_start_anew(void **state)
{
    member_t  members[3];
    spread_t  spread;

    memset(members, 0, sizeof(members));
    spread_init(&spread);

    spread_add(&spread, &members[0]);
    spread_sent(&spread, &members[0], 9);
    spread_sent(&spread, &members[0], 9);
    spread_add(&spread, &members[1]);
    spread_sent(&spread, &members[1], 9);
    spread_add(&spread, &members[2]);

    assert_ptr_equal(spread_next(&spread, NULL), &members[2]);
    assert_ptr_equal(spread_next(&spread, &members[2]), &members[1]);
    assert_ptr_equal(spread_next(&spread, &members[1]), &members[0]);
    assert_null(spread_next(&spread, &members[0]));

    spread_add(&spread, &members[0]);
    assert_int_equal(spread.n, 3);
    assert_ptr_equal(spread_next(&spread, NULL), &members[2]);
    assert_ptr_equal(spread_next(&spread, &members[2]), &members[0]);

    spread_remove(&spread, &members[0]);
    assert_ptr_equal(spread_next(&spread, &members[2]), &members[1]);
    assert_int_equal(spread.n, 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(limit_is_three_times_the_log),
        cmocka_unit_test(update_is_sent_its_number_of_times),
        cmocka_unit_test(least_sent_go_first_and_news_start_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

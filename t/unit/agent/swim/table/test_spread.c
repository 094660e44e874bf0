
/* The queue of news: least sent first, and each often enough. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "swim/table/spread.h"


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


/* What the first n places of the next datagram hold: indexes, as a number. */
static unsigned
first(const spread_t *spread, const member_t *members, size_t n)
{
    size_t           i;
    unsigned         said;
    spread_walk_t    walk;
    const member_t  *member;

    said = 0;
    spread_walk(spread, &walk);

    for (i = 0; i < n; i++) {
        member = spread_next(&walk);
        said = said * 10 + (member ? member - members : 9);
    }

    return said;
}


static void
update_is_sent_its_number_of_times(void **state)
{
    unsigned  sends;
    member_t  member;
    spread_t  spread;

    memset(&member, 0, sizeof(member));
    spread_init(&spread);
    spread_add(&spread, &member, SPREAD_JOIN);

    for (sends = 0; sends < 15; sends++) {
        assert_int_equal(first(&spread, &member, 2), 9);
        assert_int_equal(spread.n, 1);
        spread_sent(&spread, &member, 15);
    }

    assert_int_equal(first(&spread, &member, 1), 9);
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

    spread_add(&spread, &members[0], SPREAD_JOIN);
    spread_sent(&spread, &members[0], 9);
    spread_sent(&spread, &members[0], 9);
    spread_add(&spread, &members[1], SPREAD_JOIN);
    spread_sent(&spread, &members[1], 9);
    spread_add(&spread, &members[2], SPREAD_JOIN);
    assert_int_equal(first(&spread, members, 4), 2109);

    spread_add(&spread, &members[0], SPREAD_JOIN);
    assert_int_equal(spread.n, 3);
    assert_int_equal(first(&spread, members, 4), 2019);

    spread_remove(&spread, &members[0]);
    assert_int_equal(first(&spread, members, 3), 219);
    assert_int_equal(spread.n, 2);
}


/* 0..2 joined, 3..5 are in doubt, 6..8 gone; the oldest of each goes first. */
static void
each_class_has_its_share_and_what_others_leave(void **state)
{
    size_t    i;
    member_t  members[9];
    spread_t  spread;

    memset(members, 0, sizeof(members));
    spread_init(&spread);

    for (i = 0; i < 3; i++) {
        spread_add(&spread, &members[i], SPREAD_JOIN);
        spread_add(&spread, &members[3 + i], SPREAD_DOUBT);
        spread_add(&spread, &members[6 + i], SPREAD_GONE);
    }

    assert_int_equal(first(&spread, members, 9), 637048512);

    spread_remove(&spread, &members[6]);
    spread_remove(&spread, &members[7]);
    spread_remove(&spread, &members[8]);
    assert_int_equal(first(&spread, members, 7), 3450129);

    /* A refutation is of another class than the suspicion was. */
    spread_add(&spread, &members[4], SPREAD_GONE);
    assert_int_equal(first(&spread, members, 7), 4350129);
}


/* A join that others tell of is known; a death is told to the end. */
static void
what_others_tell_of_is_told_less_but_for_deaths(void **state)
{
    member_t  members[2];
    spread_t  spread;

    memset(members, 0, sizeof(members));
    spread_init(&spread);
    spread_add(&spread, &members[0], SPREAD_JOIN);
    spread_add(&spread, &members[1], SPREAD_GONE);

    spread_heard(&spread, &members[0], 15);
    spread_heard(&spread, &members[1], 15);
    assert_int_equal(members[0].spread.sends, 4);
    assert_int_equal(members[1].spread.sends, 0);

    spread_heard(&spread, &members[0], 15);
    spread_heard(&spread, &members[0], 15);
    assert_int_equal(spread.n, 2);
    spread_heard(&spread, &members[0], 15);
    assert_int_equal(spread.n, 1);

    /* It is not queued any more. */
    spread_heard(&spread, &members[0], 15);
    assert_int_equal(spread.n, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(limit_is_three_times_the_log),
        cmocka_unit_test(update_is_sent_its_number_of_times),
        cmocka_unit_test(least_sent_go_first_and_news_start_anew),
        cmocka_unit_test(each_class_has_its_share_and_what_others_leave),
        cmocka_unit_test(what_others_tell_of_is_told_less_but_for_deaths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

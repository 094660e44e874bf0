
/* The queue of updates: those sent least come first, and each is sent often
   enough. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "swim/table/broadcast.h"


static void
limit_is_three_times_the_log(void **state)
{
    assert_int_equal(broadcast_limit(1), 3);
    assert_int_equal(broadcast_limit(2), 6);
    assert_int_equal(broadcast_limit(3), 6);
    assert_int_equal(broadcast_limit(4), 9);
    assert_int_equal(broadcast_limit(20), 15);
    assert_int_equal(broadcast_limit(1000), 30);
    assert_int_equal(broadcast_limit(4096), 39);
    assert_int_equal(broadcast_limit(SIZE_MAX / 2), BROADCAST_MAX_SENDS);
}


/* The first n updates of the next datagram: their indexes, as
   decimal digits. */
static unsigned
first(const broadcast_t *queue, const member_t *members, size_t n)
{
    size_t            i;
    unsigned          said;
    broadcast_walk_t  walk;
    const member_t   *member;

    said = 0;
    broadcast_walk(queue, &walk);

    for (i = 0; i < n; i++) {
        member = broadcast_next(&walk);
        said = said * 10 + (member ? member - members : 9);
    }

    return said;
}


static void
update_is_sent_its_number_of_times(void **state)
{
    unsigned     sends;
    member_t     member;
    broadcast_t  queue;

    memset(&member, 0, sizeof(member));
    broadcast_init(&queue);
    broadcast_add(&queue, &member, BROADCAST_JOIN);

    for (sends = 0; sends < 15; sends++) {
        assert_int_equal(first(&queue, &member, 2), 9);
        assert_int_equal(queue.n, 1);
        broadcast_sent(&queue, &member, 15);
    }

    assert_int_equal(first(&queue, &member, 1), 9);
    assert_int_equal(queue.n, 0);

    /* For a member that is not queued, these calls have no effect. */
    broadcast_sent(&queue, &member, 15);
    broadcast_remove(&queue, &member);
    assert_int_equal(queue.n, 0);
}


static void
least_sent_go_first_and_updates_start_anew(void **state)
{
    member_t     members[3];
    broadcast_t  queue;

    memset(members, 0, sizeof(members));
    broadcast_init(&queue);

    broadcast_add(&queue, &members[0], BROADCAST_JOIN);
    broadcast_sent(&queue, &members[0], 9);
    broadcast_sent(&queue, &members[0], 9);
    broadcast_add(&queue, &members[1], BROADCAST_JOIN);
    broadcast_sent(&queue, &members[1], 9);
    broadcast_add(&queue, &members[2], BROADCAST_JOIN);
    assert_int_equal(first(&queue, members, 4), 2109);

    broadcast_add(&queue, &members[0], BROADCAST_JOIN);
    assert_int_equal(queue.n, 3);
    assert_int_equal(first(&queue, members, 4), 2019);

    broadcast_remove(&queue, &members[0]);
    assert_int_equal(first(&queue, members, 3), 219);
    assert_int_equal(queue.n, 2);
}


/* 0..2 joined, 3..5 are suspects, 6..8 are gone; within each class the oldest
   update is first. */
static void
each_class_has_its_share_and_what_others_leave(void **state)
{
    size_t       i;
    member_t     members[9];
    broadcast_t  queue;

    memset(members, 0, sizeof(members));
    broadcast_init(&queue);

    for (i = 0; i < 3; i++) {
        broadcast_add(&queue, &members[i], BROADCAST_JOIN);
        broadcast_add(&queue, &members[3 + i], BROADCAST_SUSPICION);
        broadcast_add(&queue, &members[6 + i], BROADCAST_GONE);
    }

    assert_int_equal(first(&queue, members, 9), 637048512);

    broadcast_remove(&queue, &members[6]);
    broadcast_remove(&queue, &members[7]);
    broadcast_remove(&queue, &members[8]);
    assert_int_equal(first(&queue, members, 7), 3450129);

    /* A refutation and the suspicion before it are of different classes. */
    broadcast_add(&queue, &members[4], BROADCAST_GONE);
    assert_int_equal(first(&queue, members, 7), 4350129);
}


/* A join that others spread is dropped early; a death is sent all its times. */
static void
what_others_tell_of_is_told_less_but_for_deaths(void **state)
{
    member_t     members[2];
    broadcast_t  queue;

    memset(members, 0, sizeof(members));
    broadcast_init(&queue);
    broadcast_add(&queue, &members[0], BROADCAST_JOIN);
    broadcast_add(&queue, &members[1], BROADCAST_GONE);

    broadcast_received(&queue, &members[0], 15);
    broadcast_received(&queue, &members[1], 15);
    assert_int_equal(members[0].broadcast.sends, 4);
    assert_int_equal(members[1].broadcast.sends, 0);

    broadcast_received(&queue, &members[0], 15);
    broadcast_received(&queue, &members[0], 15);
    assert_int_equal(queue.n, 2);
    broadcast_received(&queue, &members[0], 15);
    assert_int_equal(queue.n, 1);

    /* For a member that is not queued, the call has no effect. */
    broadcast_received(&queue, &members[0], 15);
    assert_int_equal(queue.n, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(limit_is_three_times_the_log),
        cmocka_unit_test(update_is_sent_its_number_of_times),
        cmocka_unit_test(least_sent_go_first_and_updates_start_anew),
        cmocka_unit_test(each_class_has_its_share_and_what_others_leave),
        cmocka_unit_test(what_others_tell_of_is_told_less_but_for_deaths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

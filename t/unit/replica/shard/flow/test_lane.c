
/* What is remembered of shards. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replica/shard/flow/lane.h"

#define MS  1000000ULL


static void
a_step_has_twenty_times_the_mean_of_its_kind(void **state)
{
    lane_t  lane = { 0 };

    assert_int_equal(lane_bound_ns(&lane, 1), 10000 * MS);
    assert_int_equal(lane_bound_ns(&lane, 32), 10000 * MS);

    /* rows of a chunk say nothing of a row alone */
    assert_int_equal(lane_took(&lane, 32, 320 * MS), 10 * MS);
    assert_int_equal(lane_bound_ns(&lane, 32), 6400 * MS);
    assert_int_equal(lane_bound_ns(&lane, 6), 1200 * MS);
    assert_int_equal(lane_bound_ns(&lane, 1), 10000 * MS);

    lane_took(&lane, 1, 100 * MS);
    assert_int_equal(lane_bound_ns(&lane, 1), 2000 * MS);
}


static void
a_step_has_at_least_a_second(void **state)
{
    lane_t  lane = { 0 };

    lane_took(&lane, 1, 1000);
    assert_int_equal(lane_bound_ns(&lane, 1), 1000 * MS);
}


static void
a_mean_follows_what_is_measured(void **state)
{
    int     i;
    lane_t  lane = { 0 };

    lane_took(&lane, 1, 1000 * MS);

    for (i = 0; i < 100; i++) {
        lane_took(&lane, 1, 200 * MS);
    }

    assert_in_range(lane_bound_ns(&lane, 1), 4000 * MS, 4050 * MS);
}


/* Those in use are never forgotten. */
static void
shards_come_and_go_within_a_limit(void **state)
{
    int          i;
    lane_t      *kept, *lane;
    lanes_t      lanes = { 0 };
    fleet_hop_t  hop = { .first = 3, .last = 5 };

    snprintf(hop.id, sizeof(hop.id), "kept");
    kept = lanes_enter(&lanes, &hop);
    assert_ptr_equal(lanes_enter(&lanes, &hop), kept);
    lane_leave(kept);

    for (i = 0; i < 1000; i++) {
        snprintf(hop.id, sizeof(hop.id), "s%d", i);
        lane = lanes_enter(&lanes, &hop);
        assert_non_null(lane);
        lane_leave(lane);
        assert_in_range(lanes.n, 2, LANES_UNUSED_MAX + 2);
    }

    assert_ptr_equal(lanes_find(&lanes, "kept"), kept);
    assert_non_null(lanes_find(&lanes, "s999"));
    assert_null(lanes_find(&lanes, "s900"));
    lane_leave(kept);
    lanes_done(&lanes);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_step_has_twenty_times_the_mean_of_its_kind),
        cmocka_unit_test(a_step_has_at_least_a_second),
        cmocka_unit_test(a_mean_follows_what_is_measured),
        cmocka_unit_test(shards_come_and_go_within_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * What flows remember of shards.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replica/shard/flow/shards.h"

#define MS  1000000ULL


static void
a_step_has_twenty_times_the_mean_of_its_kind(void **state)
{
    flow_shard_t  shard = { 0 };

    assert_int_equal(flow_shard_bound_ns(&shard, 1), 10000 * MS);
    assert_int_equal(flow_shard_bound_ns(&shard, 32), 10000 * MS);

    /* the time of a chunk's rows does not give that of a row alone */
    assert_int_equal(flow_shard_took(&shard, 32, 320 * MS), 10 * MS);
    assert_int_equal(flow_shard_bound_ns(&shard, 32), 6400 * MS);
    assert_int_equal(flow_shard_bound_ns(&shard, 6), 1200 * MS);
    assert_int_equal(flow_shard_bound_ns(&shard, 1), 10000 * MS);

    flow_shard_took(&shard, 1, 100 * MS);
    assert_int_equal(flow_shard_bound_ns(&shard, 1), 2000 * MS);
}


static void
a_step_has_at_least_a_second(void **state)
{
    flow_shard_t  shard = { 0 };

    flow_shard_took(&shard, 1, 1000);
    assert_int_equal(flow_shard_bound_ns(&shard, 1), 1000 * MS);
}


static void
a_mean_follows_what_is_measured(void **state)
{
    int           i;
    flow_shard_t  shard = { 0 };

    flow_shard_took(&shard, 1, 1000 * MS);

    for (i = 0; i < 100; i++) {
        flow_shard_took(&shard, 1, 200 * MS);
    }

    assert_in_range(flow_shard_bound_ns(&shard, 1), 4000 * MS, 4050 * MS);
}


/* Shards that are in use are never forgotten. */
static void
shards_come_and_go_within_a_limit(void **state)
{
    int             i;
    flow_shard_t   *kept, *shard;
    flow_shards_t   shards = { 0 };
    fleet_hop_t     hop = { .first = 3, .last = 5 };

    snprintf(hop.id, sizeof(hop.id), "kept");
    kept = flow_shards_enter(&shards, &hop);
    assert_ptr_equal(flow_shards_enter(&shards, &hop), kept);
    flow_shard_leave(kept);

    for (i = 0; i < 1000; i++) {
        snprintf(hop.id, sizeof(hop.id), "s%d", i);
        shard = flow_shards_enter(&shards, &hop);
        assert_non_null(shard);
        flow_shard_leave(shard);
        assert_in_range(shards.n, 2, FLOW_SHARDS_UNUSED_MAX + 2);
    }

    assert_ptr_equal(flow_shards_find(&shards, "kept"), kept);
    assert_non_null(flow_shards_find(&shards, "s999"));
    assert_null(flow_shards_find(&shards, "s900"));
    flow_shard_leave(kept);
    flow_shards_done(&shards);
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


/*
 * Several faults concern one replica at the same time, and its gateway has a
 * steady load: the end of each fault ends what that fault began, and nothing
 * else.
 */

#include "t/unit/sim/gateway/gateway_scene.h"


#define SECOND  1000000


/* 4 replicas; a request comes every 5 ms for 15 s, and each takes 200 ms. */
static void
scene_init(gateway_scene_t *scene)
{
    gateway_scene_init(scene, 4);
    gateway_scene_ask(scene, 3000, 5000, 100, 20);
}


/* How many completed requests the replica got that came after from_us. */
static size_t
sent(const gateway_scene_t *scene, uint32_t replica, int64_t from_us)
{
    size_t                  i, n;
    const fleet_outcome_t  *outcome;

    n = 0;

    for (i = 0; i < scene->result.n; i++) {
        outcome = &scene->result.outcomes[i];
        n += outcome->replica == replica && outcome->route_us > from_us
             && outcome->status == FLEET_COMPLETED;
    }

    return n;
}


/* How many requests that came between the two times waited until until_us. */
static size_t
waited(const gateway_scene_t *scene, int64_t from_us, int64_t to_us,
    int64_t until_us)
{
    size_t   i, n;
    int64_t  came_us;

    n = 0;

    for (i = 0; i < scene->result.n; i++) {
        came_us = work_at(&scene->work, i)->arrival_us;
        n += came_us > from_us && came_us < to_us
             && came_us + scene->result.outcomes[i].ttft_us > until_us;
    }

    return n;
}


static void
a_crash_for_good_outlives_the_end_of_another(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND, 0);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 2 * SECOND, SECOND);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(sent(&scene, 0, 1100000), 0);
    assert_true(sent(&scene, 1, 4 * SECOND) > 100);
    gateway_scene_done(&scene);
}


static void
a_machine_that_dies_in_an_update_stays_dead(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    scene.config.update = (gateway_update_t) {
        .is_on = 1, .at_us = SECOND, .drain_us = SECOND / 2,
        .restart_us = SECOND, .parallel = 1
    };
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 1800000, 0);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(scene.counts.updated, 4);
    assert_int_equal(sent(&scene, 0, 1100000), 0);
    assert_true(sent(&scene, 3, 8 * SECOND) > 100);
    gateway_scene_done(&scene);
}


static void
an_update_keeps_a_replica_down_that_a_short_crash_gives_back(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    scene.config.update = (gateway_update_t) {
        .is_on = 1, .at_us = SECOND, .drain_us = SECOND / 2,
        .restart_us = 8 * (int64_t) SECOND, .parallel = 1
    };
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 2 * SECOND, SECOND / 2);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(sent(&scene, 0, 1100000),
                     sent(&scene, 0, 9 * (int64_t) SECOND));
    gateway_scene_done(&scene);
}


static void
a_drain_outlives_a_restart(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    gateway_scene_fault(&scene, GATEWAY_DRAIN, 0, 1, SECOND, 0);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 2 * SECOND, SECOND);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(sent(&scene, 0, 1100000), 0);
    gateway_scene_done(&scene);
}


/*
 * The replica hangs from 1 s to 10 s, which is known 3 s after the beginning.
 */
static void
the_end_of_a_stall_leaves_another_one_alone(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    gateway_scene_fault(&scene, GATEWAY_STALL, 0, 1, SECOND, 4 * SECOND);
    gateway_scene_fault(&scene, GATEWAY_STALL, 0, 1, 2 * SECOND,
                        8 * (int64_t) SECOND);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(waited(&scene, 5 * (int64_t) SECOND,
                            9 * (int64_t) SECOND, 10 * (int64_t) SECOND), 0);
    assert_true(sent(&scene, 0, 10100000) > 100);
    gateway_scene_done(&scene);
}


/*
 * It hangs again at 2.5 s: that is known at 5.5 s, not 3 s after the first
 * time.
 */
static void
each_stall_is_known_after_its_own_time(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene);
    gateway_scene_fault(&scene, GATEWAY_STALL, 0, 1, SECOND, SECOND);
    gateway_scene_fault(&scene, GATEWAY_STALL, 0, 1, 2500000, 6 * SECOND);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_true(waited(&scene, 2500000, 3900000, 5500000) > 5);
    gateway_scene_done(&scene);
}


/*
 * The machine is dead from 1 to 2 s, and from 3 s on: gossip declares it dead
 * 5 s after 3 s, not 5 s after 1 s.
 */
static void
each_death_is_found_out_after_its_own_time(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 2);
    gateway_scene_ask(&scene, 400, 10000, 100, 100);
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, SECOND, SECOND);
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 3500000, 0);
    scene.config.token_us = 60 * (int64_t) SECOND;
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 400);
    assert_true(scene.counts.failed[LLMGW_CAUSE_MEMBER_DEAD] > 0);
    assert_int_equal(scene.counts.news_max_us, 5 * SECOND);
    assert_true(scene.result.clock_us > 8500000);
    gateway_scene_done(&scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_crash_for_good_outlives_the_end_of_another),
        cmocka_unit_test(a_machine_that_dies_in_an_update_stays_dead),
        cmocka_unit_test(
            an_update_keeps_a_replica_down_that_a_short_crash_gives_back),
        cmocka_unit_test(a_drain_outlives_a_restart),
        cmocka_unit_test(the_end_of_a_stall_leaves_another_one_alone),
        cmocka_unit_test(each_stall_is_known_after_its_own_time),
        cmocka_unit_test(each_death_is_found_out_after_its_own_time)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * The result of a call that no process accepts: the connections between a
 * simulated gateway and its replicas, and the back-off.
 */

#include "t/unit/sim/gateway/gateway_scene.h"


#define SECOND  1000000


/* A request comes every 10 ms for 20 s, and each takes 200 ms. */
static void
scene_init(gateway_scene_t *scene, uint32_t replicas)
{
    gateway_scene_init(scene, replicas);
    gateway_scene_ask(scene, 2000, 10000, 100, 20);
    scene->config.breaker.enabled = 0;
}


/* The longest time to a first token. */
static int64_t
slowest_us(const gateway_scene_t *scene)
{
    size_t   i;
    int64_t  most = 0;

    for (i = 0; i < scene->result.n; i++) {
        if (scene->result.outcomes[i].ttft_us > most) {
            most = scene->result.outcomes[i].ttft_us;
        }
    }

    return most;
}


/*
 * The machine is suspected after 2.5 s and declared dead after 5 s; no
 * connection is refused.
 */
static void
call_to_a_dead_machine_hears_nothing_until_gossip_speaks(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 4);
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 2 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_CONNECT], 0);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_RESET], 0);
    assert_true(scene.counts.failed[LLMGW_CAUSE_MEMBER_DEAD] > 0);
    assert_in_range(slowest_us(&scene), 4 * SECOND, 51 * SECOND / 10);
    gateway_scene_done(&scene);
}


/*
 * Requests go to replicas in turn, so that load does not keep them away from
 * one: a dead machine gets them until it is suspected, and a process that
 * hangs until its agent reports that.
 */
static void
requests_go_to_a_replica_until_its_fault_is_known(void **state)
{
    size_t               i;
    gateway_scene_t      scene;
    static const struct {
        gateway_fault_kind_t  kind;
        int64_t               known_us;
    }                    cases[] = {
        { GATEWAY_DIE, 5 * SECOND / 2 }, { GATEWAY_STALL, 3 * SECOND + 1000 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_init(&scene, 4);
        scene.config.policy.ranker.policy = LLMGW_RANK_ROUND_ROBIN;
        gateway_scene_fault(&scene, cases[i].kind, 0, 1, 2 * SECOND, 0);
        gateway_scene_run(&scene);

        assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
        assert_in_range(scene.counts.misrouted, cases[i].known_us / 40000 - 1,
                        cases[i].known_us / 40000 + 1);
        assert_in_range(scene.counts.misrouted_max_us,
                        cases[i].known_us - 40000, cases[i].known_us);
        gateway_scene_done(&scene);
    }
}


static void
without_gossip_tcp_gives_a_dead_machine_up(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 4);
    scene.config.gossip.detect_us = 600 * (int64_t) SECOND;
    scene.config.token_us = 60 * (int64_t) SECOND;
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 2 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_RESET] > 0);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT], 0);
    assert_in_range(slowest_us(&scene), 19 * SECOND, 21 * SECOND);
    gateway_scene_done(&scene);
}


/*
 * A timer ends the attempt; the next call opens a connection, and fails after
 * 1 s.
 */
static void
without_gossip_a_timer_gives_the_connection_up(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 4);
    scene.config.gossip.detect_us = 600 * (int64_t) SECOND;
    scene.config.first_token_us = 3 * SECOND;
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 2 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT] > 0);
    assert_true(scene.counts.failed[LLMGW_CAUSE_CONNECT] > 0);
    assert_in_range(slowest_us(&scene), 3 * SECOND, 5 * SECOND);
    gateway_scene_done(&scene);
}


static void
machine_that_comes_back_resets_what_it_does_not_know(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 4);
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 2 * SECOND, SECOND);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_RESET] > 0);
    assert_in_range(slowest_us(&scene), SECOND / 2, 11 * SECOND / 10);
    gateway_scene_done(&scene);
}


/*
 * The gateway has a connection to one of the two, and needs a new one to the
 * other.
 */
static void
process_that_hangs_takes_no_new_connection(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 2);
    gateway_scene_fault(&scene, GATEWAY_STALL, 0, 1, 1, 0);
    scene.config.gossip.delay_us = 60 * (int64_t) SECOND;
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_CONNECT] > 0);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT], 0);
    gateway_scene_done(&scene);
}


/*
 * Gossip does not report that the replica is down: it is tried after 50, 100,
 * 200, ... and then every 2000 ms.
 */
static void
replica_that_refuses_is_tried_ever_less_often(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 2);
    scene.config.gossip.delay_us = 60 * (int64_t) SECOND;
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_in_range(scene.counts.failed[LLMGW_CAUSE_CONNECT], 12, 16);
    gateway_scene_done(&scene);
}


/*
 * A hundred calls wait for the same connection, which fails after 1 s: that is
 * one failure, so the next one is tried after 50 ms and not after 2 s.
 */
static void
calls_that_wait_for_one_connection_fail_once(void **state)
{
    gateway_scene_t  scene;

    scene_init(&scene, 1);
    scene.config.gossip.delay_us = 60 * (int64_t) SECOND;
    scene.config.gossip.detect_us = 600 * (int64_t) SECOND;
    gateway_scene_fault(&scene, GATEWAY_DIE, 0, 1, 1, 3 * SECOND / 2);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_CONNECT] > 100);
    assert_in_range(slowest_us(&scene), 21 * SECOND / 10, 5 * SECOND / 2);
    gateway_scene_done(&scene);
}


/* The replica is tried again as soon as its new process is known. */
static void
new_process_ends_the_back_off(void **state)
{
    size_t                  i, n;
    gateway_scene_t         scene;
    const fleet_outcome_t  *outcome;

    scene_init(&scene, 2);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND,
                        19 * SECOND / 10);
    gateway_scene_run(&scene);
    n = 0;

    for (i = 0; i < scene.result.n; i++) {
        outcome = &scene.result.outcomes[i];
        n += outcome->replica == 0 && outcome->route_us > 2901000
             && outcome->route_us < 3 * SECOND;
    }

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(n > 0);
    gateway_scene_done(&scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(
            call_to_a_dead_machine_hears_nothing_until_gossip_speaks),
        cmocka_unit_test(requests_go_to_a_replica_until_its_fault_is_known),
        cmocka_unit_test(without_gossip_tcp_gives_a_dead_machine_up),
        cmocka_unit_test(without_gossip_a_timer_gives_the_connection_up),
        cmocka_unit_test(machine_that_comes_back_resets_what_it_does_not_know),
        cmocka_unit_test(process_that_hangs_takes_no_new_connection),
        cmocka_unit_test(replica_that_refuses_is_tried_ever_less_often),
        cmocka_unit_test(calls_that_wait_for_one_connection_fail_once),
        cmocka_unit_test(new_process_ends_the_back_off)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * What a member publishes about itself, on a fake network: its replica's
 * service, its load, its end.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


static void
leaver_is_LEFT_at_all_at_once(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(10, 9);
    node_leave(cluster->hosts[4].node);
    assert_false(swim_has_left(node_swim(cluster->hosts[4].node)));
    cluster_run_ms(cluster, 5);
    assert_true(swim_has_left(node_swim(cluster->hosts[4].node)));
    assert_true(cluster_all_see(cluster, 4, LLMGW_LIVENESS_LEFT));

    cluster_crash(cluster, 4);
    cluster_run_ms(cluster, 20000);
    assert_true(cluster_all_see(cluster, 4, LLMGW_LIVENESS_LEFT));

    cluster_start(cluster, 4, LLMGW_ROLE_REPLICA, 0);
    assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 1000)
                != UINT64_MAX);
    cluster_destroy(cluster);
}


static void
leaver_whom_nobody_hears_is_gone_after_a_second(void **state)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_formed(4, 10);

    for (i = 0; i < 4; i++) {
        fake_net_cut(cluster->net, 2, i, FAKE_ALL);
    }

    node_leave(cluster->hosts[2].node);
    cluster_run_ms(cluster, 899);
    assert_false(swim_has_left(node_swim(cluster->hosts[2].node)));
    cluster_run_ms(cluster, 102);
    assert_true(swim_has_left(node_swim(cluster->hosts[2].node)));
    cluster_destroy(cluster);
}


static void
down_reaches_the_gateway_in_one_flight_and_is_no_death(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(8, 12);
    cluster_set_service(cluster, 3, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 2000);
    assert_int_equal(cluster_facts(cluster, 7, 3)->service,
                     LLMGW_SERVICE_READY);

    cluster_set_service(cluster, 3, LLMGW_SERVICE_DOWN);
    cluster_run_ms(cluster, 1);
    assert_int_equal(cluster_facts(cluster, 0, 3)->service,
                     LLMGW_SERVICE_DOWN);

    cluster_run_ms(cluster, 20000);
    assert_int_equal(cluster_facts(cluster, 7, 3)->service,
                     LLMGW_SERVICE_DOWN);
    assert_int_equal(cluster_facts(cluster, 7, 3)->liveness,
                     LLMGW_LIVENESS_ALIVE);

    cluster_set_service(cluster, 3, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 1);
    assert_int_equal(cluster_facts(cluster, 0, 3)->service,
                     LLMGW_SERVICE_READY);
    cluster_destroy(cluster);
}


static void
down_is_repeated_until_a_lossy_gateway_acks(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(3, 13);
    cluster_set_service(cluster, 1, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 2000);

    fake_net_cut(cluster->net, 1, 0, FAKE_ALL);
    fake_net_cut(cluster->net, 1, 2, FAKE_ALL);
    cluster_set_service(cluster, 1, LLMGW_SERVICE_DOWN);
    cluster_run_ms(cluster, 45);
    assert_int_equal(cluster_facts(cluster, 0, 1)->service,
                     LLMGW_SERVICE_READY);

    fake_net_cut(cluster->net, 1, 0, 0);
    cluster_run_ms(cluster, 11);
    assert_int_equal(cluster_facts(cluster, 0, 1)->service,
                     LLMGW_SERVICE_DOWN);
    cluster_destroy(cluster);
}


static void
gateway_hears_load_at_once_and_once_a_second(void **state)
{
    size_t           i;
    uint64_t         first_ms;
    cluster_t       *cluster;
    const member_t  *member;

    cluster = cluster_formed(6, 15);
    cluster_set_service(cluster, 2, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 1000);
    cluster_set_load(cluster, 2, 0);
    cluster_run_ms(cluster, 1000);
    cluster_set_load(cluster, 2, 5);
    cluster_run_ms(cluster, 1);
    member = cluster_view(cluster, 0, 2);
    assert_int_equal(member->load.active_requests, 5);

    /* A second change waits for the next interval. */
    cluster_set_load(cluster, 2, 10);
    cluster_run_ms(cluster, 50);
    assert_int_equal(member->load.active_requests, 5);
    cluster_run_ms(cluster, 50);
    assert_int_equal(member->load.active_requests, 10);

    /* Figures that do not change are still sent, so that they stay fresh. */
    first_ms = member->load.reported_ms;

    for (i = 0; i < 30; i++) {
        cluster_set_load(cluster, 2, 10);
        cluster_run_ms(cluster, 100);
        assert_true(fake_net_now_us(cluster->net) / 1000
                    - member->load.reported_ms <= 1100);
    }

    assert_true(member->load.reported_ms >= first_ms + 2000);
    cluster_destroy(cluster);
}


static void
hear_engine(cluster_t *cluster, uint32_t waiting, uint16_t kv_permille,
    uint64_t run_ms)
{
    cluster->hosts[2].engine = (llmgw_engine_load_t) {
        .waiting = waiting, .kv_permille = kv_permille,
        .reported = LLMGW_ENGINE_WAITING | LLMGW_ENGINE_KV
    };
    cluster_set_load(cluster, 2, 5);
    cluster_run_ms(cluster, run_ms);
}


static void
gateway_hears_an_engines_queue_at_once(void **state)
{
    cluster_t        *cluster;
    const member_t   *member;

    cluster = cluster_formed(6, 15);
    cluster_set_service(cluster, 2, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 1000);
    hear_engine(cluster, 0, 0, 200);
    member = cluster_view(cluster, 0, 2);

    hear_engine(cluster, 1, 0, 1);
    assert_int_equal(member->load.engine.waiting, 1);

    /* A queue that grows further is published with the next interval. */
    hear_engine(cluster, 100, 0, 50);
    assert_int_equal(member->load.engine.waiting, 1);
    cluster_run_ms(cluster, 50);
    assert_int_equal(member->load.engine.waiting, 100);
    cluster_run_ms(cluster, 101);

    /* Published at once: a twentieth of the KV cache more is in use. */
    hear_engine(cluster, 100, 50, 1);
    assert_int_equal(member->load.engine.kv_permille, 50);
    cluster_destroy(cluster);
}


static void
gateway_is_never_listed_as_a_replica(void **state)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_formed(5, 15);
    cluster_run_ms(cluster, 5000);

    for (i = 0; i < 5; i++) {
        assert_int_equal(cluster_facts(cluster, i, 0)->role,
                         LLMGW_ROLE_GATEWAY);
        assert_string_equal(cluster_facts(cluster, i, 0)->grpc, "");
    }

    cluster_destroy(cluster);
}


/* A gateway's agent dies; its successor begins with what is in the segment. */
static void
restored_view_serves_at_once_and_its_dead_are_found(void **state)
{
    uint64_t              past_epoch;
    cluster_t            *cluster;
    llmgw_members_view_t  view;

    cluster = cluster_formed(6, 24);
    cluster_set_service(cluster, 3, LLMGW_SERVICE_READY);
    cluster_run_ms(cluster, 100);
    cluster_segment(cluster, 0, &view);

    view.loads[3].active_requests = 2;
    view.members[0].epoch += 3600000000ULL;     /* its clock was set back */
    past_epoch = view.members[0].epoch;
    view.members[5].liveness = LLMGW_LIVENESS_DEAD;
    cluster_crash(cluster, 0);
    cluster_crash(cluster, 4);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[0].node, &view);
    llmgw_members_view_done(&view);

    assert_int_equal(cluster_facts(cluster, 0, 3)->service,
                     LLMGW_SERVICE_READY);
    assert_int_equal(cluster_view(cluster, 0, 3)->load.active_requests, 2);
    assert_int_equal(cluster_facts(cluster, 0, 4)->liveness,
                     LLMGW_LIVENESS_ALIVE);
    assert_int_equal(cluster_facts(cluster, 0, 5)->liveness,
                     LLMGW_LIVENESS_DEAD);
    assert_true(cluster_facts(cluster, 0, 0)->epoch > past_epoch);
    assert_int_equal(swim_backlog(node_swim(cluster->hosts[0].node)), 0);

    /* The agent needs no seed either: it knows which members to ping. */
    cluster_run_ms(cluster, 2000);
    assert_int_equal(cluster_facts(cluster, 0, 5)->liveness,
                     LLMGW_LIVENESS_ALIVE);
    assert_int_equal(cluster_facts(cluster, 1, 0)->epoch,
                     cluster_facts(cluster, 0, 0)->epoch);
    cluster_run_ms(cluster, 6000);
    assert_true(cluster_all_see_dead(cluster, 4));
    cluster_destroy(cluster);
}


/* nginx counts the members that are gone, so they are restored, too; since
   when they are gone, other members report. */
static void
restored_view_has_those_that_are_gone(void **state)
{
    size_t                i;
    cluster_t            *cluster;
    const member_t       *restored, *known;
    llmgw_members_view_t  view;

    cluster = cluster_formed(6, 25);
    node_leave(cluster->hosts[4].node);
    cluster_run_ms(cluster, 1000);
    cluster_crash(cluster, 4);
    cluster_crash(cluster, 5);
    cluster_run_ms(cluster, 60000);

    cluster_segment(cluster, 0, &view);
    cluster_crash(cluster, 0);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[0].node, &view);
    llmgw_members_view_done(&view);

    assert_int_equal(cluster_facts(cluster, 0, 4)->liveness,
                     LLMGW_LIVENESS_LEFT);
    assert_int_equal(cluster_facts(cluster, 0, 5)->liveness,
                     LLMGW_LIVENESS_DEAD);
    assert_int_equal(swim_backlog(cluster_swim(cluster, 0)), 0);
    assert_false(swim_is_isolated(cluster_swim(cluster, 0)));
    cluster_run_ms(cluster, 1000);

    for (i = 4; i < 6; i++) {
        restored = cluster_view(cluster, 0, i);
        known = cluster_view(cluster, 1, i);
        assert_in_range(restored->since_us + 1000000,
                        known->since_us, known->since_us + 3000000);
    }

    cluster_settles(cluster, 20000);
    cluster_destroy(cluster);
}


/* Members that a segment has as dead have been dead at least since it was last
   written. */
static void
those_of_an_old_segment_are_forgotten(void **state)
{
    cluster_t            *cluster;
    llmgw_members_view_t  view;

    cluster = cluster_formed(3, 26);
    cluster_crash(cluster, 2);
    cluster_run_ms(cluster, 60000);
    cluster_segment(cluster, 0, &view);
    cluster_crash(cluster, 0);
    cluster_run_ms(cluster, 300000);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[0].node, &view);
    llmgw_members_view_done(&view);

    assert_non_null(cluster_view(cluster, 0, 1));
    assert_null(cluster_view(cluster, 0, 2));
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(leaver_is_LEFT_at_all_at_once),
        cmocka_unit_test(leaver_whom_nobody_hears_is_gone_after_a_second),
        cmocka_unit_test(
            down_reaches_the_gateway_in_one_flight_and_is_no_death),
        cmocka_unit_test(down_is_repeated_until_a_lossy_gateway_acks),
        cmocka_unit_test(gateway_hears_load_at_once_and_once_a_second),
        cmocka_unit_test(gateway_hears_an_engines_queue_at_once),
        cmocka_unit_test(gateway_is_never_listed_as_a_replica),
        cmocka_unit_test(restored_view_serves_at_once_and_its_dead_are_found),
        cmocka_unit_test(restored_view_has_those_that_are_gone),
        cmocka_unit_test(those_of_an_old_segment_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

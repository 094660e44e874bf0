
/*
 * The protocol on a fake network and a fake clock: whole clusters of the same
 * code that the agent runs.  Time limits are asserted from both sides.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  5


static void
each_of_twenty_joiners_is_known_to_all_in_300_ms(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    for (seed = 1; seed <= SEEDS; seed++) {
        cluster = cluster_create(20, seed);
        cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);

        for (i = 1; i < 20; i++) {
            cluster_start(cluster, i, LLMGW_ROLE_REPLICA, 0);
            assert_false(cluster_is_whole(cluster, 0));
            assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 300)
                        != UINT64_MAX);
        }

        cluster_destroy(cluster);
    }
}


static void
two_that_name_each_other_come_together(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_create(2, 7);
    cluster_start(cluster, 0, LLMGW_ROLE_REPLICA, 1);
    cluster_run_ms(cluster, 5000);
    assert_true(swim_is_alone(node_swim(cluster->hosts[0].node)));

    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 100)
                != UINT64_MAX);
    cluster_run_ms(cluster, 1100);
    assert_false(swim_is_alone(node_swim(cluster->hosts[0].node)));
    assert_false(swim_is_alone(node_swim(cluster->hosts[1].node)));

    cluster_destroy(cluster);
}


static void
starter_waits_for_a_seed_that_comes_late(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_create(3, 3);
    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 30000);
    assert_null(cluster_view(cluster, 1, 2));

    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 1500)
                != UINT64_MAX);

    cluster_destroy(cluster);
}


static void
count_to_first(void *data, const char *what, size_t from, size_t to,
    const uint8_t *bytes, size_t len)
{
    uint64_t  *n = data;

    *n += to == 0 && strcmp(what, "sent") == 0;
}


/* At last the seed is asked every ten seconds, and not more often. */
static void
seed_that_starts_last_is_found_by_those_who_have_met_without_it(void **state)
{
    uint64_t    ms, asked;
    cluster_t  *cluster;

    cluster = cluster_create(3, 4);
    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 1);
    cluster_run_ms(cluster, 60000);
    assert_true(cluster_is_whole(cluster, 0));
    assert_false(swim_is_alone(node_swim(cluster->hosts[1].node)));

    fake_net_tap(cluster->net, count_to_first, &asked);
    asked = 0;
    cluster_run_ms(cluster, 30000);
    assert_in_range(asked, 2, 4);

    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    ms = cluster_run_until(cluster, cluster_is_whole, 0, 10100);
    assert_int_not_equal(ms, UINT64_MAX);

    cluster_destroy(cluster);
}


/*
 * In each period every member is pinged by some other one (swim/schedule.c),
 * at the pinging member's moment: the next ping comes within two periods, and
 * fails one period later.
 */
static void
crash_is_found_within_its_bounds(void **state)
{
    size_t      nsoon;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    nsoon = 0;

    for (seed = 1; seed <= 40; seed++) {
        cluster = cluster_formed(20, seed);
        cluster_run_ms(cluster, 5000 + seed * 137);
        cluster_crash(cluster, 11);

        /* No member can suspect before a whole period has passed. */
        ms = cluster_run_until(cluster, cluster_any_suspects, 11, 3000);
        assert_in_range(ms, CLUSTER_PERIOD_MS, 3 * CLUSTER_PERIOD_MS + 1);
        nsoon += ms <= 1100;

        /* All see it dead 2 s x log10(20) after the first suspicion, and not
           before. */
        ms = cluster_run_until(cluster, cluster_all_see_dead, 11, 4000);
        assert_in_range(ms, 2600, 3100);
        assert_int_equal(cluster_false_deaths(cluster), 0);

        cluster_destroy(cluster);
    }

    assert_true(nsoon >= 30);
}


/* Clocks that are off by up to six hours: the round robins do not mesh, and a
   member is pinged by chance, as in SWIM. */
static void
crash_is_found_by_members_whose_clocks_differ(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    for (seed = 1; seed <= 40; seed++) {
        cluster = cluster_create(20, seed);

        for (i = 0; i < 20; i++) {
            fake_net_set_wall(cluster->net, i, (int64_t) i * i * 60000001);
        }

        cluster_start_all(cluster);
        cluster_run_ms(cluster, 5000 + seed * 137);
        assert_true(cluster_is_whole(cluster, 0));
        cluster_crash(cluster, 11);
        ms = cluster_run_until(cluster, cluster_any_suspects, 11, 6000);
        assert_in_range(ms, CLUSTER_PERIOD_MS, 6000);
        assert_int_equal(cluster_false_deaths(cluster), 0);
        cluster_destroy(cluster);
    }
}


/* With two of five gone, three are left to find them, since the dead no longer
   ping each other. */
static void
two_at_once_are_both_found(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    for (seed = 1; seed <= 20; seed++) {
        cluster = cluster_formed(5, seed);
        cluster_crash(cluster, 2);
        cluster_crash(cluster, 3);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 2, 7000);
        assert_in_range(ms, 2500, 7000);
        assert_int_not_equal(cluster_run_until(cluster, cluster_all_see_dead,
                                               3, 7000 - ms), UINT64_MAX);
        assert_true(cluster_all_see_alive(cluster, 1));
        assert_int_equal(cluster_false_deaths(cluster), 0);
        cluster_destroy(cluster);
    }
}


static void
joiner_learns_of_the_dead_and_revives_none(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_create(6, 6);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
    cluster_start(cluster, 3, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 2000);
    cluster_crash(cluster, 2);
    cluster_crash(cluster, 3);
    cluster_run_ms(cluster, 60000);

    cluster_start(cluster, 5, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 1000);
    assert_true(cluster_all_see_dead(cluster, 2));
    assert_true(cluster_all_see_dead(cluster, 3));
    assert_true(cluster_is_whole(cluster, 0));

    cluster_run_ms(cluster, 60000);
    assert_true(cluster_all_see_dead(cluster, 2));
    cluster_destroy(cluster);
}


/* Member 4 is cut off for a moment, long enough to be suspected. */
static void
false_suspicion_is_refuted(void **state)
{
    size_t      i;
    uint64_t    ms;
    cluster_t  *cluster;

    cluster = cluster_formed(8, 21);
    cluster_run_ms(cluster, 5000);

    for (i = 0; i < 8; i++) {
        fake_net_cut(cluster->net, 4, i, FAKE_ALL);
    }

    assert_true(cluster_run_until(cluster, cluster_any_suspects, 4, 3000)
                != UINT64_MAX);
    assert_int_equal(cluster_facts(cluster, 4, 4)->incarnation, 0);

    for (i = 0; i < 8; i++) {
        fake_net_cut(cluster->net, 4, i, 0);
    }

    ms = cluster_run_until(cluster, cluster_all_see_alive, 4, 2000);
    assert_true(ms <= 1000);
    cluster_run_ms(cluster, 5000);
    assert_true(cluster_all_see_alive(cluster, 4));
    assert_in_range(cluster_facts(cluster, 0, 4)->incarnation, 1, 3);
    assert_int_equal(cluster_false_deaths(cluster), 0);

    cluster_destroy(cluster);
}


static void
nobody_dies_of_five_percent_loss_in_a_minute(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    for (seed = 1; seed <= SEEDS; seed++) {
        cluster = cluster_formed(20, seed);
        fake_net_weather(cluster->net)->loss_permille = 50;
        fake_net_weather(cluster->net)->double_permille = 50;
        fake_net_weather(cluster->net)->jitter_us = 20000;
        cluster_run_ms(cluster, 60000);
        assert_int_equal(cluster_false_deaths(cluster), 0);

        memset(fake_net_weather(cluster->net), 0, sizeof(fake_weather_t));
        cluster_run_ms(cluster, 3000);
        assert_true(cluster_is_whole(cluster, 0));
        cluster_destroy(cluster);
    }
}


static void
restart_supersedes_whether_noticed_or_not(void **state)
{
    uint64_t    dead_ms[] = { 100, 300, 700, 1500, 8000 }, old, ms;
    size_t      i;
    cluster_t  *cluster;

    for (i = 0; i < 5; i++) {
        cluster = cluster_formed(6, 60 + i);
        old = cluster->hosts[3].epoch;
        cluster_crash(cluster, 3);
        cluster_run_ms(cluster, dead_ms[i]);

        cluster_start(cluster, 3, LLMGW_ROLE_REPLICA, 0);
        ms = cluster_run_until(cluster, cluster_is_whole, 0, 1000);
        assert_true(ms != UINT64_MAX);
        cluster_run_ms(cluster, 1000);
        assert_true(cluster_facts(cluster, 5, 3)->epoch > old);
        assert_int_equal(cluster_facts(cluster, 5, 3)->epoch,
                         cluster->hosts[3].epoch);
        assert_int_equal(
            swim_table(node_swim(cluster->hosts[5].node))->n, 6);

        /* A ping that the old process missed does not count against the new. */
        cluster_run_ms(cluster, 20000);
        assert_true(cluster_is_whole(cluster, 0));
        assert_int_equal(cluster_facts(cluster, 5, 3)->incarnation, 0);
        assert_int_equal(cluster_false_deaths(cluster), 0);
        cluster_destroy(cluster);
    }
}


static void
stalled_observer_accuses_nobody(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(5, 16);
    cluster_run_ms(cluster, 3000);
    fake_net_stall(cluster->net, 1, fake_net_now_us(cluster->net) + 1500000);
    cluster_run_ms(cluster, 10000);

    assert_int_equal(
        swim_counters(node_swim(cluster->hosts[1].node))->suspicions, 0);
    assert_true(
        swim_counters(node_swim(cluster->hosts[1].node))->late_ticks >= 1);
    assert_int_equal(cluster_false_deaths(cluster), 0);
    assert_true(cluster_is_whole(cluster, 0));
    cluster_destroy(cluster);
}


static void
halves_of_a_cut_network_find_each_other_again(void **state)
{
    size_t      i, j;
    cluster_t  *cluster;

    cluster = cluster_formed(10, 17);

    for (i = 0; i < 5; i++) {
        for (j = 5; j < 10; j++) {
            fake_net_cut(cluster->net, i, j, FAKE_ALL);
            fake_net_cut(cluster->net, j, i, FAKE_ALL);
        }
    }

    cluster_run_ms(cluster, 60000);
    assert_int_equal(cluster_facts(cluster, 1, 7)->liveness,
                     LLMGW_LIVENESS_DEAD);
    assert_int_equal(cluster_facts(cluster, 7, 1)->liveness,
                     LLMGW_LIVENESS_DEAD);
    assert_int_equal(cluster_facts(cluster, 1, 2)->liveness,
                     LLMGW_LIVENESS_ALIVE);

    for (i = 0; i < 5; i++) {
        for (j = 5; j < 10; j++) {
            fake_net_cut(cluster->net, i, j, 0);
            fake_net_cut(cluster->net, j, i, 0);
        }
    }

    assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 20000)
                != UINT64_MAX);
    cluster_destroy(cluster);
}


static void
tombstones_are_forgotten_by_all_and_stay_so(void **state)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_formed(5, 18);
    cluster_crash(cluster, 4);
    cluster_run_ms(cluster, 595000);
    assert_true(cluster_all_see_dead(cluster, 4));
    cluster_run_ms(cluster, 60000);

    for (i = 0; i < 4; i++) {
        assert_null(cluster_view(cluster, i, 4));
    }

    cluster_destroy(cluster);
}


/* Updates alone would miss member 3: no other member announces it while it
   joins. */
static void
comparing_tables_fills_what_loss_left_open(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_create(4, 19);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 2000);

    fake_net_cut(cluster->net, 0, 2, FAKE_ALL);
    fake_net_cut(cluster->net, 1, 2, FAKE_ALL);
    fake_net_cut(cluster->net, 3, 2, FAKE_ALL);
    cluster_start(cluster, 3, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 2500);
    assert_null(cluster_view(cluster, 2, 3));

    fake_net_cut(cluster->net, 0, 2, 0);
    fake_net_cut(cluster->net, 1, 2, 0);
    fake_net_cut(cluster->net, 3, 2, 0);
    assert_true(cluster_run_until(cluster, cluster_is_whole, 0, 15000)
                != UINT64_MAX);
    cluster_destroy(cluster);
}


static void
queues_run_empty_and_a_quiet_member_sends_little(void **state)
{
    size_t      i;
    uint64_t    bytes;
    cluster_t  *cluster;

    cluster = cluster_formed(20, 20);
    cluster_run_ms(cluster, 15000);
    bytes = fake_net_bytes(cluster->net);
    cluster_run_ms(cluster, 60000);
    bytes = (fake_net_bytes(cluster->net) - bytes) / 60 / 20;
    assert_in_range(bytes, 100, 700);

    for (i = 0; i < 20; i++) {
        assert_int_equal(swim_backlog(node_swim(cluster->hosts[i].node)), 0);
    }

    cluster_destroy(cluster);
}


/* The member's clock was set back: its own old record, which is DEAD by now,
   has a higher epoch. */
static void
starter_with_an_older_clock_goes_on_above_its_past(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(4, 23);
    cluster_crash(cluster, 2);
    cluster_run_ms(cluster, 6000);
    assert_true(cluster_all_see_dead(cluster, 2));

    cluster_start_at(cluster, 2, LLMGW_ROLE_REPLICA, 0, 1000);
    cluster_run_ms(cluster, 3000);
    assert_true(cluster_is_whole(cluster, 0));
    assert_true(cluster_counters(cluster, 2)->conflicts >= 1);
    assert_int_equal(cluster->hosts[2].nconflicts, 0);
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_of_twenty_joiners_is_known_to_all_in_300_ms),
        cmocka_unit_test(two_that_name_each_other_come_together),
        cmocka_unit_test(starter_waits_for_a_seed_that_comes_late),
        cmocka_unit_test(
            seed_that_starts_last_is_found_by_those_who_have_met_without_it),
        cmocka_unit_test(crash_is_found_within_its_bounds),
        cmocka_unit_test(crash_is_found_by_members_whose_clocks_differ),
        cmocka_unit_test(two_at_once_are_both_found),
        cmocka_unit_test(joiner_learns_of_the_dead_and_revives_none),
        cmocka_unit_test(false_suspicion_is_refuted),
        cmocka_unit_test(nobody_dies_of_five_percent_loss_in_a_minute),
        cmocka_unit_test(restart_supersedes_whether_noticed_or_not),
        cmocka_unit_test(stalled_observer_accuses_nobody),
        cmocka_unit_test(halves_of_a_cut_network_find_each_other_again),
        cmocka_unit_test(tombstones_are_forgotten_by_all_and_stay_so),
        cmocka_unit_test(comparing_tables_fills_what_loss_left_open),
        cmocka_unit_test(queues_run_empty_and_a_quiet_member_sends_little),
        cmocka_unit_test(starter_with_an_older_clock_goes_on_above_its_past),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

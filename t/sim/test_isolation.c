
/* Whether other members died, or this agent is cut off. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define N      10


static int
is_isolated(const cluster_t *cluster, size_t host)
{
    return swim_is_isolated(cluster_swim(cluster, host));
}


static int
is_not_isolated(const cluster_t *cluster, size_t host)
{
    return !is_isolated(cluster, host);
}


/* Scenario 31, second half: only the gossip port is cut, not nginx's
   connections. */
static void
cut_off_gateway_is_isolated_until_it_heals(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 40000);
        fake_net_part(cluster->net, 0, 1, FAKE_ALL);
        ms = cluster_run_until(cluster, is_isolated, 0, 60000);
        holds(cluster, ms >= 2500 && ms <= 55000);

        /* The gateway keeps all members, however long the cut lasts. */
        cluster_run_ms(cluster, seed == 1 ? 700000 : 60000);
        holds(cluster, is_isolated(cluster, 0));
        holds(cluster, swim_table(cluster_swim(cluster, 0))->n == N);

        for (i = 1; i < N; i++) {
            holds(cluster, !is_isolated(cluster, i));
        }

        fake_net_part(cluster->net, 0, 1, 0);
        ms = cluster_run_until(cluster, is_not_isolated, 0, 12000);
        holds(cluster, ms <= 12000);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* If fewer than half of the members die, no agent is isolated. */
static void
half_of_a_cluster_may_die_without_isolation(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 40000);

        for (i = 6; i < N; i++) {
            cluster_crash(cluster, i);
        }

        cluster_run_ms(cluster, 20000);
        holds(cluster, cluster_all_see_dead(cluster, 6));
        holds(cluster, !is_isolated(cluster, 0));
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


static int
finds_all_dead(const cluster_t *cluster, size_t host)
{
    return swim_table(cluster_swim(cluster, host))->npresent == 1;
}


static int
all_see_dead_from(const cluster_t *cluster, size_t first)
{
    size_t  i;

    for (i = first; i < cluster->n; i++) {
        if (!cluster_all_see_dead(cluster, i)) {
            return 0;
        }
    }

    return 1;
}


/* Crashes host first and all after it, and waits until all see them dead,
   which takes long if they are the majority. */
static void
crash_from(cluster_t *cluster, size_t first)
{
    size_t  i;

    for (i = first; i < cluster->n; i++) {
        cluster_crash(cluster, i);
    }

    holds(cluster, cluster_run_until(cluster, all_see_dead_from, first, 120000)
                   != UINT64_MAX);
}


/* An agent need not have run for half a minute to be isolated. */
static void
gateway_of_a_young_cluster_is_isolated_too(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        fake_net_part(cluster->net, 0, 1, FAKE_ALL);
        ms = cluster_run_until(cluster, is_isolated, 0, 55000);
        holds(cluster, ms >= 2500 && ms <= 55000);
        cluster_run_ms(cluster, 60000);
        holds(cluster, is_isolated(cluster, 0));
        fake_net_part(cluster->net, 0, 1, 0);
        ms = cluster_run_until(cluster, is_not_isolated, 0, 2000);
        holds(cluster, ms <= 2000);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* An agent that starts learns of deaths that it has not seen itself. */
static void
what_others_know_to_be_dead_isolates_nobody(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        crash_from(cluster, 3);
        cluster_crash(cluster, 0);
        cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, 1);
        cluster_run_ms(cluster, 10000);
        holds(cluster, cluster_view(cluster, 0, 3) != NULL);
        holds(cluster, !is_isolated(cluster, 0));
        cluster_destroy(cluster);
    }
}


static void
restart_from_segment(cluster_t *cluster, size_t host)
{
    llmgw_members_view_t  view;

    cluster_segment(cluster, host, &view);
    cluster_crash(cluster, host);
    cluster_start(cluster, host, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[host].node, &view);
    llmgw_members_view_done(&view);
}


/* The gateway's agent restarts, and nginx loses no replica by that. */
static void
isolation_outlives_the_agent(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        fake_net_part(cluster->net, 0, 1, FAKE_ALL);
        ms = cluster_run_until(cluster, finds_all_dead, 0, 120000);
        holds(cluster, ms <= 120000);

        for (i = 0; i < 2; i++) {
            restart_from_segment(cluster, 0);
            holds(cluster, is_isolated(cluster, 0));
            holds(cluster, cluster_facts(cluster, 0, 4)->liveness
                           == LLMGW_LIVENESS_DEAD);
            cluster_run_ms(cluster, seed == 1 ? 700000 : 40000);
            holds(cluster, is_isolated(cluster, 0));
            holds(cluster, swim_table(cluster_swim(cluster, 0))->n == N);
        }

        /* The agent needs no seed: it pings the dead members. */
        fake_net_part(cluster->net, 0, 1, 0);
        ms = cluster_run_until(cluster, is_not_isolated, 0, 12000);
        holds(cluster, ms <= 12000);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* Members that had left before do not count, neither before nor after a
   restart. */
static void
isolation_outlives_the_agent_whoever_had_left(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);

        for (i = 3; i < N; i++) {
            node_leave(cluster->hosts[i].node);
            cluster_run_ms(cluster, 1000);
            cluster_crash(cluster, i);
        }

        cluster_run_ms(cluster, 40000);
        fake_net_part(cluster->net, 0, 1, FAKE_ALL);
        ms = cluster_run_until(cluster, is_isolated, 0, 60000);
        holds(cluster, ms <= 60000);
        restart_from_segment(cluster, 0);
        holds(cluster, is_isolated(cluster, 0));
        cluster_run_ms(cluster, 5000);
        holds(cluster, is_isolated(cluster, 0));

        fake_net_part(cluster->net, 0, 1, 0);
        ms = cluster_run_until(cluster, is_not_isolated, 0, 12000);
        holds(cluster, ms <= 12000);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* If the members are really dead, the isolation ends when their
   tombstones do. */
static void
restored_isolation_ends_with_the_tombstones(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        crash_from(cluster, 4);
        holds(cluster, is_isolated(cluster, 0));
        restart_from_segment(cluster, 0);
        cluster_run_ms(cluster, 20000);
        holds(cluster, is_isolated(cluster, 0));
        ms = cluster_run_until(cluster, is_not_isolated, 0, 620000);
        holds(cluster, ms <= 620000);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(cut_off_gateway_is_isolated_until_it_heals),
        cmocka_unit_test(half_of_a_cluster_may_die_without_isolation),
        cmocka_unit_test(gateway_of_a_young_cluster_is_isolated_too),
        cmocka_unit_test(what_others_know_to_be_dead_isolates_nobody),
        cmocka_unit_test(isolation_outlives_the_agent),
        cmocka_unit_test(isolation_outlives_the_agent_whoever_had_left),
        cmocka_unit_test(restored_isolation_ends_with_the_tombstones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Cuts of paths, in one direction and in both: of a few members, and between
   the halves of a cluster. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define N      10


/* Scenario 5.  Other members reach both, so neither stays
   suspected for long. */
static void
cut_pair(uint64_t seed, unsigned one_way, unsigned other_way)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, seed);
    fake_net_cut(cluster->net, 3, 4, one_way);
    fake_net_cut(cluster->net, 4, 3, other_way);
    cluster_run_ms(cluster, 60000);
    holds(cluster, cluster_false_deaths(cluster) == 0);
    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 1000)
                   != UINT64_MAX);
    cluster_settles(cluster, 12000);
    cluster_destroy(cluster);
}


static void
suspicion_of_a_cut_pair_does_not_stay(void **state)
{
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        cut_pair(seed, FAKE_DATAGRAMS, 0);
        cut_pair(seed, FAKE_ALL, 0);
        cut_pair(seed, FAKE_ALL, FAKE_ALL);
    }
}


static void
cut_from_all(cluster_t *cluster, size_t host, int is_out)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        fake_net_cut(cluster->net, is_out ? host : i, is_out ? i : host,
                     FAKE_ALL);
    }
}


/* Scenario 6: a member that no other hears is found dead by all,
   and returns. */
static void
who_is_heard_by_none_dies_alone(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cut_from_all(cluster, 4, 1);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 4, 10000);
        holds(cluster, ms >= 2400 && ms <= 7000);
        cluster_run_ms(cluster, 30000);
        holds(cluster, cluster_false_deaths(cluster)
                       == cluster->hosts[4].ndeaths
                          + cluster->hosts[4].nverdicts);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* A member that hears no other finds them all dead; no other member does. */
static void
who_hears_none_kills_nobody(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cut_from_all(cluster, 4, 0);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 4, 10000);
        holds(cluster, ms >= 2400 && ms <= 7000);
        cluster_run_ms(cluster, 60000);
        holds(cluster, cluster->hosts[4].nverdicts > 0);
        holds(cluster, cluster_false_deaths(cluster)
                       == cluster->hosts[4].ndeaths
                          + cluster->hosts[4].nverdicts);
        cluster_settles(cluster, 20000);
        cluster_destroy(cluster);
    }
}


/* Scenario 7. */
static void
part_for(uint64_t seed, size_t first, size_t n, uint64_t ms)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, seed);
    fake_net_part(cluster->net, first, n, FAKE_ALL);
    cluster_run_ms(cluster, ms);

    if (ms >= 60000) {
        holds(cluster, !cluster_is_whole(cluster, 0));
    }

    if (ms >= 60000 && ms < 300000) {
        holds(cluster, cluster_facts(cluster, first, first ? 0 : N - 1)
                       ->liveness == LLMGW_LIVENESS_DEAD);
        holds(cluster, cluster_facts(cluster, first ? 0 : N - 1, first)
                       ->liveness == LLMGW_LIVENESS_DEAD);
    }

    cluster_settles(cluster, 40000);
    cluster_destroy(cluster);
}


static void
parts_come_together_after_any_time(void **state)
{
    size_t    i;
    uint64_t  seed;
    static const uint64_t  times_ms[] = { 5000, 60000, 700000 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
            part_for(seed, 5, 5, times_ms[i]);
            part_for(seed, 9, 1, times_ms[i]);
            part_for(seed, 0, 1, times_ms[i]);
        }
    }
}


/* Scenario 31, first half: pings over TCP keep the gateway alive. */
static void
gateway_without_datagrams_is_alive_by_tcp(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 40000);
        fake_net_part(cluster->net, 0, 1, FAKE_DATAGRAMS);
        cluster_run_ms(cluster, 60000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        holds(cluster, !swim_is_isolated(cluster_swim(cluster, 0)));
        holds(cluster, cluster_counters(cluster, 0)->stream_pings > 0);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(suspicion_of_a_cut_pair_does_not_stay),
        cmocka_unit_test(who_is_heard_by_none_dies_alone),
        cmocka_unit_test(who_hears_none_kills_nobody),
        cmocka_unit_test(parts_come_together_after_any_time),
        cmocka_unit_test(gateway_without_datagrams_is_alive_by_tcp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

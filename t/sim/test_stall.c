
/* Machines that stop for a while. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define N      20


static void
stall(cluster_t *cluster, size_t host, uint64_t ms)
{
    fake_net_stall(cluster->net, host,
                   fake_net_now_us(cluster->net) + ms * 1000);
}


/* Scenario 18.  Stalls of up to 3 s kill no member; after a longer one it is
   declared dead, and comes back. */
static void
stalled_member_comes_back(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;
    static const uint64_t  stalls_ms[] = { 1000, 3000, 8000, 20000 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(stalls_ms) / sizeof(stalls_ms[0]); i++) {
            cluster = cluster_formed(N, seed);
            cluster_run_ms(cluster, 3000);
            stall(cluster, 5, stalls_ms[i]);
            cluster_run_ms(cluster, stalls_ms[i] - 1);

            if (stalls_ms[i] <= 3000) {
                holds(cluster, cluster->hosts[5].ndeaths == 0);

            } else {
                holds(cluster, cluster_all_see_dead(cluster, 5));
            }

            /* Within two periods, stretched by its local health, all is well
               again. */
            cluster_run_ms(cluster, 1);
            holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0,
                                             3000) != UINT64_MAX);
            holds(cluster, cluster->hosts[5].nverdicts == 0);
            holds(cluster, cluster_false_deaths(cluster)
                           == cluster->hosts[5].ndeaths);
            cluster_settles(cluster, 12000);
            cluster_destroy(cluster);
        }
    }
}


/* Scenario 19. */
static void
stalled_observer_accuses_nobody(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 2000 + seed * 13);
        stall(cluster, 1, 1500);
        cluster_run_ms(cluster, 1501);
        holds(cluster, cluster_counters(cluster, 1)->late_ticks >= 1);
        holds(cluster, swim_local_health(cluster_swim(cluster, 1)) >= 1);
        cluster_run_ms(cluster, 10000);
        holds(cluster, cluster_counters(cluster, 1)->suspicions == 0);
        holds(cluster, cluster_counters(cluster, 1)->accusations == 0);
        holds(cluster, swim_local_health(cluster_swim(cluster, 1)) == 0);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


/* Scenario 20. */
static void
three_that_stall_at_once_accuse_nobody_else(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 3000);

        for (i = 5; i < 8; i++) {
            stall(cluster, i, 2500);
        }

        cluster_run_ms(cluster, 20000);
        holds(cluster, cluster_false_deaths(cluster) == 0);

        for (i = 8; i < N; i++) {
            holds(cluster, !cluster_any_suspects(cluster, i));
        }

        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


/* All members see a wrong suspicion refuted within two periods. */
static void
injected_suspicion_is_refuted_in_two_periods(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(5, seed);
        cluster_run_ms(cluster, 3000);
        holds(cluster, node_inject_suspect(cluster->hosts[2].node, "m4")
                       == 0);
        holds(cluster, node_inject_suspect(cluster->hosts[2].node, "m4")
                       == -1);
        holds(cluster, node_inject_suspect(cluster->hosts[2].node, "m2")
                       == -1);
        holds(cluster, cluster_facts(cluster, 2, 4)->liveness
                       == LLMGW_LIVENESS_SUSPECT);
        ms = cluster_run_until(cluster, cluster_is_whole, 0, 1000);
        holds(cluster, ms >= 1 && ms <= 1000);
        cluster_run_ms(cluster, 5000);
        holds(cluster, cluster_facts(cluster, 1, 4)->incarnation == 1);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 1000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(stalled_member_comes_back),
        cmocka_unit_test(stalled_observer_accuses_nobody),
        cmocka_unit_test(three_that_stall_at_once_accuse_nobody_else),
        cmocka_unit_test(injected_suspicion_is_refuted_in_two_periods),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

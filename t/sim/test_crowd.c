
/* Many members and many changes: every change reaches all in O(log n). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20


/* Scenario 15, a joiner every 2 ms: returns the bytes sent per joiner. */
static uint64_t
join_all(size_t n, uint64_t seed, uint64_t step_ms, uint64_t max_ms)
{
    size_t      i;
    uint64_t    ms, bytes;
    cluster_t  *cluster;

    cluster = cluster_create(n, seed);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);

    for (i = 1; i < n; i++) {
        cluster_start(cluster, i, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, 2);
    }

    for (ms = 0; ms < max_ms
                 && !cluster_is_whole(cluster, 0); ms += step_ms) {
        cluster_run_ms(cluster, step_ms);
    }

    holds(cluster, cluster_is_whole(cluster, 0));
    holds(cluster, cluster_false_deaths(cluster) == 0);
    cluster_settles(cluster, 20000);
    bytes = fake_net_bytes(cluster->net) / n;
    cluster_destroy(cluster);

    return bytes;
}


static void
many_joiners_at_once_are_all_known_soon(void **state)
{
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        join_all(60, seed, 10, 1500);
    }
}


/* In the end every member has pinged every other, which alone takes 200 KB. */
static void
a_thousand_joiners_are_all_known_soon(void **state)
{
    uint64_t  seed;

    cluster_each_seed(seed, 1) {
        assert_in_range(join_all(1000, seed, 100, 1000), 200000, 700000);
    }
}


/* Scenario 16. */
static void
all_change_while_one_dies(void **state)
{
    size_t      i, round;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        cluster_run_ms(cluster, 3000);
        cluster_crash(cluster, 7);

        for (round = 0; round < 20; round++) {
            for (i = 1; i < 20; i++) {
                if (i != 7) {
                    cluster_set_service(cluster, i, round % 2
                                        ? LLMGW_SERVICE_READY
                                        : LLMGW_SERVICE_STALLED);
                }
            }

            cluster_run_ms(cluster, 100);
        }

        ms = cluster_run_until(cluster, cluster_all_see_dead, 7, 5000);
        holds(cluster, ms >= 600 && ms <= 4000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 3000);
        cluster_destroy(cluster);
    }
}


/* Scenario 17.  The loads of 19 members change, each a thousand times a
   second. */
static void
load_storm_delays_no_update(void **state)
{
    size_t      i;
    uint64_t    seed, ms, bytes;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);

        for (i = 1; i < 20; i++) {
            cluster_set_service(cluster, i, LLMGW_SERVICE_READY);
        }

        cluster_run_ms(cluster, 4000);
        bytes = fake_net_bytes(cluster->net);
        cluster_crash(cluster, 7);

        for (ms = 0; ms < 6000; ms++) {
            for (i = 1; i < 20; i++) {
                if (i != 7) {
                    cluster_set_load(cluster, i, (ms + i) % 11);
                }
            }

            cluster_run_ms(cluster, 1);
            holds(cluster, ms > 3000 || !cluster_all_see_dead(cluster, 7));
        }

        holds(cluster, cluster_all_see_dead(cluster, 7));
        holds(cluster, cluster_false_deaths(cluster) == 0);

        /* Each of the 19 sends at most ten loads a second, to the
           one gateway. */
        bytes = (fake_net_bytes(cluster->net) - bytes) / 6 / 20;
        holds(cluster, bytes <= 2500);

        /* The gateway has the last load in the end. */
        cluster_run_ms(cluster, 1100);
        holds(cluster, cluster_view(cluster, 0, 3)->load.active_requests
                       == (5999 + 3) % 11);
        cluster_settles(cluster, 3000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(many_joiners_at_once_are_all_known_soon),
        cmocka_unit_test(a_thousand_joiners_are_all_known_soon),
        cmocka_unit_test(all_change_while_one_dies),
        cmocka_unit_test(load_storm_delays_no_update),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

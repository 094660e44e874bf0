
/* What one death costs a thousand members, and how soon all know of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20


/* Scenario 29.  A dead member is suspected within three periods, and all see
   it dead about 2 s x log10(1000) later; its return is known to all within
   log2(1000) = 10 periods. */
static void
death_among_a_thousand_is_known_to_all(void **state)
{
    uint64_t    seed, ms, bytes;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_restored(1000, seed);
        cluster_run_ms(cluster, 6000);
        bytes = fake_net_bytes(cluster->net);
        cluster_run_ms(cluster, 2000);
        bytes = (fake_net_bytes(cluster->net) - bytes) / 2 / 1000;
        holds(cluster, bytes >= 100 && bytes <= 700);

        cluster_crash(cluster, 500);
        ms = cluster_run_until(cluster, cluster_any_suspects, 500, 5000);
        holds(cluster, ms >= 500 && ms <= 1501);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 500, 12000);
        holds(cluster, ms >= 5900 && ms <= 7500);
        holds(cluster, cluster_false_deaths(cluster) == 0);

        cluster_start(cluster, 500, LLMGW_ROLE_REPLICA, 0);
        ms = cluster_run_until(cluster, cluster_all_see_alive, 500, 10000);
        holds(cluster, ms >= 1 && ms <= 10 * CLUSTER_PERIOD_MS);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(death_among_a_thousand_is_known_to_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

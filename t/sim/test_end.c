
/* Agents that leave, small clusters, and agents that end while their replicas
   continue. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20


/* Scenario 21. */
static void
leaver_is_LEFT_and_never_DEAD(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(10, seed);
        cluster_run_ms(cluster, 1000);
        node_leave(cluster->hosts[4].node);
        holds(cluster, !swim_has_left(cluster_swim(cluster, 4)));
        cluster_run_ms(cluster, 5);
        holds(cluster, swim_has_left(cluster_swim(cluster, 4)));
        holds(cluster, cluster_all_see(cluster, 4, LLMGW_LIVENESS_LEFT));
        cluster_crash(cluster, 4);
        cluster_run_ms(cluster, 20000);
        holds(cluster, cluster_all_see(cluster, 4, LLMGW_LIVENESS_LEFT));
        cluster_settles(cluster, 1000);
        cluster_destroy(cluster);
    }
}


/* A member's LEFT is lost: it ends after a second, and is found
   dead as usual. */
static void
leaver_whose_word_is_lost_is_gone_all_the_same(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(10, seed);
        fake_net_part(cluster->net, 4, 1, FAKE_ALL);
        node_leave(cluster->hosts[4].node);
        cluster_run_ms(cluster, 899);
        holds(cluster, !swim_has_left(cluster_swim(cluster, 4)));
        cluster_run_ms(cluster, 102);
        holds(cluster, swim_has_left(cluster_swim(cluster, 4)));
        cluster_crash(cluster, 4);
        ms = cluster_run_until(cluster, cluster_all_see_gone, 4, 12000);
        holds(cluster, ms >= 1000 && ms <= 8000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


/* Scenario 27. */
static void
gateway_is_never_a_replica(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(6, seed);
        fake_net_weather(cluster->net)->loss_permille = 100;
        cluster_run_ms(cluster, 5000);
        cluster_crash(cluster, 0);
        cluster_run_ms(cluster, 3000);
        cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, 1);
        cluster_settles(cluster, 12000);

        for (i = 0; i < 6; i++) {
            holds(cluster, cluster_facts(cluster, i, 0)->role
                           == LLMGW_ROLE_GATEWAY);
            holds(cluster, cluster_facts(cluster, i, 0)->grpc[0] == '\0');
            holds(cluster, cluster_facts(cluster, 0, i)->role
                           == (i ? LLMGW_ROLE_REPLICA : LLMGW_ROLE_GATEWAY));
        }

        cluster_destroy(cluster);
    }
}


/* Scenario 28.  No other member can confirm a suspicion, so it has only the
   minimum time. */
static void
two_and_three_find_a_death_and_a_rejoin(void **state)
{
    size_t      n;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (n = 2; n <= 3; n++) {
            cluster = cluster_formed(n, seed);
            cluster_run_ms(cluster, 2000 + seed * 31);
            cluster_crash(cluster, 1);
            ms = cluster_run_until(cluster, cluster_all_see_dead, 1, 6000);
            holds(cluster, ms >= 2500 && ms <= 4100);
            cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
            ms = cluster_run_until(cluster, cluster_is_whole, 0, 500);
            holds(cluster, ms >= 1 && ms <= 500);
            holds(cluster, cluster_false_deaths(cluster) == 0);
            cluster_settles(cluster, 12000);
            cluster_destroy(cluster);
        }
    }
}


/*
 * Scenario 30.  Only the agent dies: its member is suspected, which stops new
 * work but ends no stream; the next agent is up before the suspicion ends.
 */
static void
agent_that_is_back_in_time_was_never_dead(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(10, seed);
        cluster_set_service(cluster, 3, LLMGW_SERVICE_READY);
        cluster_run_ms(cluster, 2000);
        cluster_crash(cluster, 3);
        cluster_run_ms(cluster, 2400);
        holds(cluster, cluster_facts(cluster, 0, 3)->liveness
                       != LLMGW_LIVENESS_DEAD);
        holds(cluster, cluster_facts(cluster, 0, 3)->service
                       == LLMGW_SERVICE_READY);
        cluster_start(cluster, 3, LLMGW_ROLE_REPLICA, 0);
        cluster_set_service(cluster, 3, LLMGW_SERVICE_READY);
        ms = cluster_run_until(cluster, cluster_is_settled, 0, 3000);
        holds(cluster, ms <= 3000);
        holds(cluster, cluster->hosts[3].dead_us == 0);
        cluster_settles(cluster, 1000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(leaver_is_LEFT_and_never_DEAD),
        cmocka_unit_test(leaver_whose_word_is_lost_is_gone_all_the_same),
        cmocka_unit_test(gateway_is_never_a_replica),
        cmocka_unit_test(two_and_three_find_a_death_and_a_rejoin),
        cmocka_unit_test(agent_that_is_back_in_time_was_never_dead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

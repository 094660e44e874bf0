
/*
 * Networks that lose, delay, double and reorder datagrams: live members stay
 * alive, dead ones are found, and all tables are right soon after the faults
 * have ended.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20


/* Scenario 1.  No member is declared dead by loss that TCP pings survive. */
static void
nobody_dies_of_loss(void **state)
{
    size_t           i;
    uint64_t         seed;
    cluster_t       *cluster;
    static const unsigned  losses[] = { 50, 100, 200 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
            cluster = cluster_formed(20, seed);
            fake_net_weather(cluster->net)->loss_permille = losses[i];
            cluster_run_ms(cluster, 60000);
            holds(cluster, cluster_false_deaths(cluster) == 0);
            cluster_settles(cluster, 15000);
            cluster_destroy(cluster);
        }
    }
}


/* A member that really died is found, although a fifth of datagrams is lost. */
static void
death_is_found_at_twenty_percent_loss(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        fake_net_weather(cluster->net)->loss_permille = 200;
        cluster_run_ms(cluster, 10000);
        cluster_crash(cluster, 7);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 7, 30000);
        holds(cluster, ms >= 2600 && ms <= 20000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


/* Half, or nine tenths, of all datagrams are lost: members that are declared
   dead come back. */
static void
cluster_is_whole_again_after_a_storm(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;
    static const unsigned  losses[] = { 500, 900 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
            cluster = cluster_formed(20, seed);
            fake_net_weather(cluster->net)->loss_permille = losses[i];
            cluster_run_ms(cluster, 30000);
            cluster_settles(cluster, 40000);
            cluster_destroy(cluster);
        }
    }
}


/* Scenario 2.  Delays up to the ping timeout, and up to three times that. */
static void
nobody_dies_of_jitter(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;
    static const uint64_t  jitters_us[] = { 200000, 600000 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(jitters_us) / sizeof(jitters_us[0]); i++) {
            cluster = cluster_formed(20, seed);
            fake_net_weather(cluster->net)->delay_us = 10000;
            fake_net_weather(cluster->net)->jitter_us = jitters_us[i];
            cluster_run_ms(cluster, 60000);
            holds(cluster, cluster_false_deaths(cluster) == 0);
            cluster_settles(cluster, 15000);
            cluster_destroy(cluster);
        }
    }
}


/* Scenario 3. */
static void
half_of_all_doubled_changes_nothing(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        fake_net_weather(cluster->net)->double_permille = 500;
        fake_net_weather(cluster->net)->jitter_us = 5000;
        cluster_run_ms(cluster, 20000);
        holds(cluster, !cluster_any_suspects(cluster, 9));
        cluster_crash(cluster, 9);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 9, 10000);
        holds(cluster, ms >= 3100 && ms <= 6000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


/* Scenario 4.  Up to 32 datagrams to a member overtake an earlier one. */
static void
reordering_kills_nobody(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        fake_net_weather(cluster->net)->reorder = FAKE_MAX_REORDER;
        cluster_set_service(cluster, 4, LLMGW_SERVICE_READY);
        cluster_set_service(cluster, 4, LLMGW_SERVICE_DOWN);
        cluster_run_ms(cluster, 30000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        holds(cluster, cluster_facts(cluster, 0, 4)->service
                       == LLMGW_SERVICE_DOWN);
        cluster_crash(cluster, 3);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 3, 15000);
        holds(cluster, ms >= 3100 && ms <= 10000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nobody_dies_of_loss),
        cmocka_unit_test(death_is_found_at_twenty_percent_loss),
        cmocka_unit_test(cluster_is_whole_again_after_a_storm),
        cmocka_unit_test(nobody_dies_of_jitter),
        cmocka_unit_test(half_of_all_doubled_changes_nothing),
        cmocka_unit_test(reordering_kills_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Restarts of a member, and two members of one id at once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define HOUR   3600000000LL


/* Scenario 8: a member is down for down_ms, and then its clock is ahead. */
static void
restart_after(uint64_t seed, uint64_t down_ms, int64_t ahead_us)
{
    size_t      i;
    uint64_t    ms;
    cluster_t  *cluster;

    cluster = cluster_formed(6, seed);
    cluster_run_ms(cluster, 1000 + seed * 37);
    cluster_crash(cluster, 3);
    cluster_run_ms(cluster, down_ms);
    fake_net_set_wall(cluster->net, 3, ahead_us);
    cluster_start(cluster, 3, LLMGW_ROLE_REPLICA, 0);

    ms = cluster_run_until(cluster, cluster_is_settled, 0, 4000);
    holds(cluster, ms <= (ahead_us < 0 ? 3500 : 2000));

    for (i = 0; i < 6; i++) {
        holds(cluster, swim_table(cluster_swim(cluster, i))->n == 6);
    }

    /* A ping that the old process missed does not count against the new. */
    cluster_run_ms(cluster, 10000);
    holds(cluster, cluster_is_whole(cluster, 0));
    holds(cluster, cluster_false_deaths(cluster) == 0);
    holds(cluster, cluster->hosts[3].nconflicts == 0);
    cluster_settles(cluster, 1000);
    cluster_destroy(cluster);
}


static void
restart_supersedes_at_any_moment_and_by_any_clock(void **state)
{
    size_t    i;
    uint64_t  seed;
    static const uint64_t  down_ms[] = { 100, 1500, 8000 };

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < sizeof(down_ms) / sizeof(down_ms[0]); i++) {
            restart_after(seed, down_ms[i], 0);
            restart_after(seed, down_ms[i], -HOUR);
            restart_after(seed, down_ms[i], HOUR);
        }
    }
}


/* Scenario 9.  The later start of an id counts, wherever it runs; if its clock
   is behind, it counts once the old address has not answered for a second. */
static void
same_id_goes_on_at_a_new_address(void **state)
{
    size_t      is_behind;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (is_behind = 0; is_behind < 2; is_behind++) {
            cluster = cluster_create(8, seed);
            cluster->n = 7;             /* host 7 starts later */
            cluster_start_all(cluster);
            cluster->n = 8;
            cluster_run_ms(cluster, 2000);
            cluster_crash(cluster, 3);
            fake_net_set_wall(cluster->net, 7, is_behind ? -HOUR : 0);
            cluster_start_as(cluster, 7, 3, LLMGW_ROLE_REPLICA, 0,
                clock_wall_us(fake_net_clock(cluster->net, 7)));
            ms = cluster_run_until(cluster, cluster_is_settled, 0, 5000);
            holds(cluster, ms >= (is_behind ? 1000 : 0));
            holds(cluster, ms <= (is_behind ? 4500 : 2000));
            holds(cluster, strcmp(cluster_facts(cluster, 1, 7)->id, "m3")
                           == 0);
            holds(cluster, cluster->hosts[7].nconflicts == 0);
            cluster_settles(cluster, 1000);
            cluster_destroy(cluster);
        }
    }
}


/* Scenario 10.  The old id dies as usual, the new one lives at its address. */
static void
new_id_at_an_old_address_is_somebody_else(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(8, seed);
        cluster->n = 7;
        cluster_start_all(cluster);
        cluster->n = 8;
        cluster_run_ms(cluster, 2000);
        cluster_crash(cluster, 3);
        cluster_start_as(cluster, 3, 7, LLMGW_ROLE_REPLICA, 0,
            clock_wall_us(fake_net_clock(cluster->net, 3)));

        /* Host 7 has the id m3 now, and does not run. */
        ms = cluster_run_until(cluster, cluster_all_see_alive, 3, 1500);
        holds(cluster, ms <= 1500);
        ms = cluster_run_until(cluster, cluster_all_see_dead, 7, 12000);
        holds(cluster, ms >= 1000 && ms <= 12000);
        holds(cluster, cluster_all_see_alive(cluster, 3));
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


static int
was_told_to_end(const cluster_t *cluster, size_t host)
{
    return cluster->hosts[host].nconflicts > 0;
}


/* Scenario 11.  The member that started later ends, whatever its
   clock shows. */
static void
later_of_two_with_one_id_is_told_to_end(void **state)
{
    size_t      is_behind;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (is_behind = 0; is_behind < 2; is_behind++) {
            cluster = cluster_create(8, seed);
            cluster->n = 7;
            cluster_start_all(cluster);
            cluster->n = 8;
            cluster_run_ms(cluster, 3000);
            fake_net_set_wall(cluster->net, 7, is_behind ? -HOUR : 0);
            cluster_start_as(cluster, 7, 3, LLMGW_ROLE_REPLICA, 0,
                clock_wall_us(fake_net_clock(cluster->net, 7)));
            ms = cluster_run_until(cluster, was_told_to_end, 7, 3000);
            holds(cluster, ms <= 3000);
            holds(cluster, !was_told_to_end(cluster, 3));

            /* It ends without a LEFT; the other member with this id stays
               known. */
            cluster_crash(cluster, 7);
            strcpy(cluster->hosts[7].id, "m7");
            ms = cluster_run_until(cluster, cluster_is_settled, 0, 12000);
            holds(cluster, ms <= 12000);
            holds(cluster, !was_told_to_end(cluster, 3));
            cluster_settles(cluster, 1000);
            cluster_destroy(cluster);
        }
    }
}


/* Scenario 12. */
static void
joiner_long_after_a_death_learns_of_it_and_revives_nobody(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(6, seed);
        cluster->n = 5;
        cluster_start_all(cluster);
        cluster->n = 6;
        cluster_run_ms(cluster, 3000);
        cluster_crash(cluster, 3);
        cluster_run_ms(cluster, 120000);
        cluster_start(cluster, 5, LLMGW_ROLE_REPLICA, 0);
        holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 1000)
                       != UINT64_MAX);
        cluster_run_ms(cluster, 1000);
        holds(cluster, cluster_all_see_dead(cluster, 3));
        cluster_run_ms(cluster, 60000);
        holds(cluster, cluster_all_see_dead(cluster, 3));
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 1000);
        cluster_destroy(cluster);
    }
}


/* Scenario 13. */
static void
all_restart_at_once(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        cluster_run_ms(cluster, 3000);

        for (i = 0; i < 20; i++) {
            cluster_crash(cluster, i);
        }

        cluster_run_ms(cluster, seed * 100);

        for (i = 0; i < 20; i++) {
            cluster_start(cluster, i, i ? LLMGW_ROLE_REPLICA
                                        : LLMGW_ROLE_GATEWAY,
                          i ? 0 : CLUSTER_NO_SEED);
        }

        ms = cluster_run_until(cluster, cluster_is_whole, 0, 2000);
        holds(cluster, ms >= 1 && ms <= 1000);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


/* Scenario 14.  Each member is back within a second, and never known twice. */
static void
rolling_restart_is_known_to_all_each_time(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(10, seed);

        for (i = 1; i < 10; i++) {
            node_leave(cluster->hosts[i].node);
            cluster_run_ms(cluster, 50);
            holds(cluster, cluster_all_see(cluster, i, LLMGW_LIVENESS_LEFT));
            cluster_crash(cluster, i);
            cluster_run_ms(cluster, 300);
            cluster_start(cluster, i, LLMGW_ROLE_REPLICA, 0);
            ms = cluster_run_until(cluster, cluster_is_whole, 0, 1000);
            holds(cluster, ms >= 1 && ms <= 1000);
            holds(cluster, swim_table(cluster_swim(cluster, 0))->n == 10);
        }

        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(restart_supersedes_at_any_moment_and_by_any_clock),
        cmocka_unit_test(same_id_goes_on_at_a_new_address),
        cmocka_unit_test(new_id_at_an_old_address_is_somebody_else),
        cmocka_unit_test(later_of_two_with_one_id_is_told_to_end),
        cmocka_unit_test(
            joiner_long_after_a_death_learns_of_it_and_revives_nobody),
        cmocka_unit_test(all_restart_at_once),
        cmocka_unit_test(rolling_restart_is_known_to_all_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

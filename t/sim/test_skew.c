
/* Clocks that are wrong by days, and are set right. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS    20
#define N        6
#define AHEAD    4          /* the host whose clock is ahead */

#define HOUR_US  3600000000LL
#define DAY_US   (24 * HOUR_US)


/* Starts a cluster in which one member's clock was days ahead at its start;
   all else is well. */
static cluster_t *
formed_with_one_ahead(uint64_t seed, int64_t ahead_us)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_create(N, seed);
    fake_net_set_wall(cluster->net, AHEAD, ahead_us);

    for (i = 0; i < N; i++) {
        cluster_start(cluster, i, i ? LLMGW_ROLE_REPLICA : LLMGW_ROLE_GATEWAY,
                      i ? 0 : CLUSTER_NO_SEED);
    }

    cluster_run_ms(cluster, 5000);

    return cluster;
}


static size_t
count_skews(const cluster_t *cluster)
{
    size_t  i, n;

    for (i = 0, n = 0; i < N; i++) {
        n += cluster->hosts[i].nskews;
    }

    return n;
}


/* The member is refused, and both sides report it; once its clock is set
   right, all members know it. */
static void
clock_that_is_set_right_brings_its_member_back(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = formed_with_one_ahead(seed, 3 * DAY_US);
        holds(cluster, cluster_view(cluster, 0, AHEAD) == NULL);
        holds(cluster, cluster->hosts[0].nskews == 1);
        holds(cluster, cluster_counters(cluster, 0)->dropped[PACKET_ECLOCK]
                       > 1);
        holds(cluster, cluster->hosts[AHEAD].nown_skews == 0);

        fake_net_set_wall(cluster->net, AHEAD, 0);
        ms = cluster_run_until(cluster, cluster_is_whole, 0, 3000);
        holds(cluster, ms <= 3000);
        holds(cluster, cluster->hosts[AHEAD].nown_skews == 1);
        holds(cluster, cluster_counters(cluster, AHEAD)->epochs_refused == 1);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


/* A refused sender is reported once an hour; any of them, once in 10 s. */
static void
refused_senders_are_told_of_seldom(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N, seed);

        for (i = 1; i < N; i++) {
            fake_net_set_wall(cluster->net, i, 3 * DAY_US);
        }

        for (i = 0; i < N; i++) {
            cluster_start(cluster, i, LLMGW_ROLE_GATEWAY,
                          i ? 0 : CLUSTER_NO_SEED);
        }

        cluster_run_ms(cluster, 9000);
        holds(cluster, cluster->hosts[0].nskews == 1);
        cluster_run_ms(cluster, 120000);
        holds(cluster, cluster->hosts[0].nskews == N - 1);
        holds(cluster, count_skews(cluster) == N - 1);
        cluster_run_ms(cluster, 3700000);
        holds(cluster, cluster->hosts[0].nskews == 2 * (N - 1));
        cluster_destroy(cluster);
    }
}


/* A day ahead is still accepted. */
static void
epoch_of_the_near_future_is_gone_on_from(void **state)
{
    uint64_t    seed, epoch;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = formed_with_one_ahead(seed, DAY_US - HOUR_US);
        epoch = cluster_facts(cluster, 0, AHEAD)->epoch;
        fake_net_set_wall(cluster->net, AHEAD, 0);
        cluster_crash(cluster, AHEAD);
        cluster_start(cluster, AHEAD, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, 5000);
        holds(cluster, cluster_facts(cluster, 0, AHEAD)->epoch == epoch + 1);
        holds(cluster, count_skews(cluster) == 0);
        cluster_destroy(cluster);
    }
}


static void
restart_from_segment(cluster_t *cluster, llmgw_members_view_t *view)
{
    cluster_crash(cluster, AHEAD);
    cluster_start(cluster, AHEAD, LLMGW_ROLE_REPLICA, 0);
    node_restore(cluster->hosts[AHEAD].node, view);
}


/* Its segment still has the epoch of the wrong clock. */
static void
restart_does_not_go_on_from_a_refused_epoch(void **state)
{
    uint64_t              seed, ms, epoch;
    cluster_t            *cluster;
    llmgw_member_t        own;
    llmgw_member_load_t   load;
    llmgw_members_view_t  view;

    memset(&load, 0, sizeof(load));
    memset(&view, 0, sizeof(view));
    view.members = &own;
    view.loads = &load;
    view.n = 1;

    cluster_each_seed(seed, SEEDS) {
        cluster = formed_with_one_ahead(seed, 3 * DAY_US);
        own = swim_own(cluster_swim(cluster, AHEAD))->facts;
        fake_net_set_wall(cluster->net, AHEAD, 0);

        restart_from_segment(cluster, &view);
        holds(cluster, cluster->hosts[AHEAD].nown_skews == 1);
        ms = cluster_run_until(cluster, cluster_is_whole, 0, 3000);
        holds(cluster, ms <= 3000);

        /* Its clock shows the same microsecond as at the start of the process
           before. */
        own = swim_own(cluster_swim(cluster, AHEAD))->facts;
        epoch = own.epoch;
        own.epoch = clock_wall_us(fake_net_clock(cluster->net, AHEAD));
        restart_from_segment(cluster, &view);
        own = swim_own(cluster_swim(cluster, AHEAD))->facts;
        holds(cluster, own.epoch > epoch);
        cluster_run_ms(cluster, 2000);
        holds(cluster, cluster_facts(cluster, 0, AHEAD)->epoch == own.epoch);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


/* All clocks are ahead, so the members accept each other; then the clocks are
   set right one after the other. */
static void
who_believed_a_refused_epoch_gives_it_up(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N, seed);

        for (i = 0; i < N; i++) {
            fake_net_set_wall(cluster->net, i, 3 * DAY_US);
        }

        cluster_start_all(cluster);
        cluster_run_ms(cluster, 5000);
        holds(cluster, cluster_is_whole(cluster, 0));

        for (i = 0; i < N; i++) {
            fake_net_set_wall(cluster->net, i, 0);
            cluster_run_ms(cluster, 700);
        }

        ms = cluster_run_until(cluster, cluster_is_whole, 0, 15000);
        holds(cluster, ms <= 15000);

        for (i = 0; i < N; i++) {
            holds(cluster, cluster->hosts[i].nown_skews == 1);
        }

        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


/* The member refuses all others and reports it, but declares none dead; once
   its clock is set right, all is well. */
static void
clock_far_behind_is_told_of_and_heals(void **state)
{
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_crash(cluster, AHEAD);
        cluster_run_ms(cluster, 100);
        fake_net_set_wall(cluster->net, AHEAD, -10000 * DAY_US);
        cluster_start(cluster, AHEAD, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, 20000);
        holds(cluster, cluster->hosts[AHEAD].nskews > 0);
        holds(cluster, swim_is_alone(cluster_swim(cluster, AHEAD)));

        fake_net_set_wall(cluster->net, AHEAD, 0);
        ms = cluster_run_until(cluster, cluster_is_whole, 0, 15000);
        holds(cluster, ms <= 15000);
        cluster_settles(cluster, 15000);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(clock_that_is_set_right_brings_its_member_back),
        cmocka_unit_test(refused_senders_are_told_of_seldom),
        cmocka_unit_test(epoch_of_the_near_future_is_gone_on_from),
        cmocka_unit_test(restart_does_not_go_on_from_a_refused_epoch),
        cmocka_unit_test(who_believed_a_refused_epoch_gives_it_up),
        cmocka_unit_test(clock_far_behind_is_told_of_and_heals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

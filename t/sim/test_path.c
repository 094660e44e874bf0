
/* What an agent reports to operators of its path to each member. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS    5
#define N        4
#define ODD      2          /* the host whose path is different */

#define MINUTE_US  60000000LL


static const member_path_t *
path_to(const cluster_t *cluster, size_t viewer, size_t host)
{
    return &cluster_view(cluster, viewer, host)->path;
}


static uint64_t
heard_ago_us(const cluster_t *cluster, size_t viewer, size_t host)
{
    return fake_net_now_us(cluster->net)
           - path_to(cluster, viewer, host)->heard_us;
}


/* The member is alive by TCP, and both ends see which direction is cut. */
static void
datagrams_that_are_lost_one_way_are_told_from_both_ends(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        cluster_run_ms(cluster, 10000);
        holds(cluster, path_to(cluster, 0, ODD)->pings_lost == 0);
        holds(cluster, heard_ago_us(cluster, 0, ODD) < 5000000);

        fake_net_cut(cluster->net, 0, ODD, FAKE_DATAGRAMS);
        cluster_run_ms(cluster, 30000);
        holds(cluster, cluster_all_see_alive(cluster, ODD));
        holds(cluster, path_to(cluster, 0, ODD)->pings_lost >= 5);
        holds(cluster, heard_ago_us(cluster, 0, ODD) < 5000000);
        holds(cluster, path_to(cluster, ODD, 0)->pings_lost >= 5);
        holds(cluster, heard_ago_us(cluster, ODD, 0) > 20000000);
        holds(cluster, path_to(cluster, 1, ODD)->pings_lost == 0);

        fake_net_cut(cluster->net, 0, ODD, 0);
        cluster_run_ms(cluster, 10000);
        holds(cluster, path_to(cluster, 0, ODD)->pings_lost == 0);
        holds(cluster, path_to(cluster, ODD, 0)->pings_lost == 0);
        cluster_destroy(cluster);
    }
}


static void
clock_that_is_wrong_by_minutes_is_measured(void **state)
{
    int64_t     ahead_us;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N, seed);
        fake_net_set_wall(cluster->net, ODD, -7 * MINUTE_US);
        cluster_start_all(cluster);
        cluster_run_ms(cluster, 10000);

        ahead_us = path_to(cluster, 0, ODD)->clock_ahead_us;
        holds(cluster, path_to(cluster, 0, ODD)->has_clock);
        holds(cluster, llabs(ahead_us + 7 * MINUTE_US) < 100000);
        ahead_us = path_to(cluster, ODD, 0)->clock_ahead_us;
        holds(cluster, llabs(ahead_us - 7 * MINUTE_US) < 100000);
        holds(cluster, llabs(path_to(cluster, 0, 1)->clock_ahead_us) < 100000);
        cluster_destroy(cluster);
    }
}


/* The agent remembers of the last datagram that it refused why, when, and its
   sender. */
static void
last_datagram_that_was_refused_is_kept(void **state)
{
    address_t           from;
    cluster_t          *cluster;
    const uint8_t       bytes[] = "nothing of ours";
    const swim_drop_t  *drop;

    cluster = cluster_formed(N, 1);
    drop = swim_last_drop(cluster_swim(cluster, 0));
    holds(cluster, drop->why == PACKET_DONE);

    fake_net_address(ODD, &from);
    swim_recv((swim_t *) cluster_swim(cluster, 0), &from, bytes,
              sizeof(bytes), 1234, 0);
    holds(cluster, drop->why == PACKET_EMAGIC && drop->at_us == 1234);
    holds(cluster, address_equal(&drop->from, &from));
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(
            datagrams_that_are_lost_one_way_are_told_from_both_ends),
        cmocka_unit_test(clock_that_is_wrong_by_minutes_is_measured),
        cmocka_unit_test(last_datagram_that_was_refused_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

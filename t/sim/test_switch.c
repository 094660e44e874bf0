
/*
 * Orders to switch a standby group: carried out once whatever the network
 * does, and never by a member that is not the active one that was meant.  Host
 * 0 is the gateway, 1 is active, 2 stands by.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/sim/stage/orders.h"


#define SEEDS  20
#define N      3

typedef struct {
    keyring_t  *ring;
    crypt_t    *crypts[N];
    cluster_t  *cluster;
} pair_t;


static int
pair_is_known(const cluster_t *cluster, size_t host)
{
    size_t  i;

    for (i = 0; i < N; i++) {
        if (cluster_facts(cluster, i, 1)->group_state != LLMGW_GROUP_ACTIVE
            || cluster_facts(cluster, i, 2)->group_state
               != LLMGW_GROUP_STANDBY)
        {
            return 0;
        }
    }

    return 1;
}


static void
pair_start(pair_t *pair, uint64_t seed)
{
    size_t  i;

    pair->cluster = cluster_create(N, seed);

    for (i = 0; i < N; i++) {
        pair->crypts[i] = pair->ring != NULL ? crypt_create(pair->ring, "test")
                                             : NULL;
        pair->cluster->crypt = pair->crypts[i];
        cluster_start(pair->cluster, i, i ? LLMGW_ROLE_REPLICA
                                          : LLMGW_ROLE_GATEWAY,
                      i ? 0 : CLUSTER_NO_SEED);
    }

    cluster_run_ms(pair->cluster, 2000);
    orders_joins(pair->cluster, 1, LLMGW_GROUP_ACTIVE, 10);
    orders_joins(pair->cluster, 2, LLMGW_GROUP_STANDBY, 0);
    holds(pair->cluster, cluster_run_until(pair->cluster, pair_is_known, 0,
                                           5000) != UINT64_MAX);
}


static void
pair_end(pair_t *pair)
{
    size_t  i;

    cluster_destroy(pair->cluster);

    for (i = 0; i < N; i++) {
        if (pair->crypts[i] != NULL) {
            crypt_destroy(pair->crypts[i]);
        }
    }
}


static int
pair_setup(void **state)
{
    int      fd;
    char     path[] = "/tmp/llmgw-test-XXXXXX";
    char     error[KEYRING_ERROR_BYTES];
    pair_t  *pair;

    pair = calloc(1, sizeof(pair_t));
    fd = mkstemp(path);
    assert_int_equal(write(fd, "6b6579206b6579206b6579206b657920"
                           "6b6579206b6579206b6579206b657920\n", 65), 65);
    close(fd);
    pair->ring = keyring_create(path, error);
    assert_non_null(pair->ring);
    unlink(path);
    *state = pair;

    return 0;
}


static int
pair_teardown(void **state)
{
    pair_t  *pair = *state;

    keyring_destroy(pair->ring);
    free(pair);

    return 0;
}


static void
switch_is_carried_out_once_however_the_network_is(void **state)
{
    pair_t          *pair = *state;
    uint64_t         seed;
    cluster_t       *cluster;
    fake_weather_t  *weather;

    cluster_each_seed(seed, SEEDS) {
        pair_start(pair, seed);
        cluster = pair->cluster;
        weather = fake_net_weather(cluster->net);
        weather->loss_permille = 300;
        weather->double_permille = 500;
        weather->jitter_us = 300000;
        holds(cluster, orders_done(cluster, 0, 1, ORDER_SWITCH, "10")
                       == ORDER_DONE);
        cluster_run_ms(cluster, 1000);
        holds(cluster, cluster->hosts[1].nswitches == 1);
        holds(cluster, cluster->hosts[2].nswitches == 0);
        pair_end(pair);
    }
}


static void
one_that_is_not_meant_refuses(void **state)
{
    pair_t     *pair = *state;
    cluster_t  *cluster;

    pair_start(pair, 1);
    cluster = pair->cluster;
    assert_int_equal(orders_done(cluster, 1, 0, ORDER_SWITCH, "10"),
                     ORDER_EROLE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_SWITCH, "10"),
                     ORDER_ENOTACTIVE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_SWITCH, "0"),
                     ORDER_ENOTACTIVE);
    assert_int_equal(orders_done(cluster, 0, 1, ORDER_SWITCH, "9"),
                     ORDER_ENOTACTIVE);
    assert_int_equal(orders_done(cluster, 0, 1, ORDER_SWITCH, "11"),
                     ORDER_ENOTACTIVE);

    /* The order comes late: the standby took over meanwhile. */
    orders_joins(cluster, 1, LLMGW_GROUP_INIT, 0);
    orders_joins(cluster, 2, LLMGW_GROUP_ACTIVE, 11);
    assert_int_equal(orders_done(cluster, 0, 1, ORDER_SWITCH, "10"),
                     ORDER_ENOTACTIVE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_SWITCH, "10"),
                     ORDER_ENOTACTIVE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_SWITCH, "11"),
                     ORDER_ENOSTANDBY);
    assert_int_equal(cluster->hosts[1].nswitches, 0);
    assert_int_equal(cluster->hosts[2].nswitches, 0);
    pair_end(pair);
}


static void
without_a_keyring_only_the_own_socket_is_obeyed(void **state)
{
    pair_t  pair = { .ring = NULL };

    pair_start(&pair, 1);
    assert_int_equal(orders_done(pair.cluster, 0, 1, ORDER_SWITCH, "10"),
                     ORDER_ENOKEYRING);
    assert_int_equal(pair.cluster->hosts[1].nswitches, 0);
    assert_int_equal(orders_give(pair.cluster, 1, 1, ORDER_SWITCH, "10"),
                     ORDER_DONE);
    assert_int_equal(pair.cluster->hosts[1].nswitches, 1);
    pair_end(&pair);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(switch_is_carried_out_once_however_the_network_is),
        cmocka_unit_test(one_that_is_not_meant_refuses),
        cmocka_unit_test(without_a_keyring_only_the_own_socket_is_obeyed)
    };

    return cmocka_run_group_tests_name("switch", tests, pair_setup,
                                       pair_teardown);
}

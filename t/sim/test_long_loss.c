
/* Ten minutes on a network that loses a fifth of all datagrams, with and
   without a keyring. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/crypt.h"
#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define CROWD  50


/* Fifty members for ten minutes; ring NULL: datagrams are not sealed. */
static void
ten_minutes_of_loss(uint64_t seed, const keyring_t *ring)
{
    size_t      i;
    crypt_t    *crypts[CROWD];
    cluster_t  *cluster;

    cluster = cluster_create(CROWD, seed);

    for (i = 0; i < CROWD; i++) {
        crypts[i] = ring ? crypt_create(ring, cluster->name) : NULL;
        cluster->crypt = crypts[i];
        cluster_start(cluster, i, i ? LLMGW_ROLE_REPLICA : LLMGW_ROLE_GATEWAY,
                      i ? 0 : CLUSTER_NO_SEED);
        cluster_run_ms(cluster, 10);
    }

    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 3000)
                   != UINT64_MAX);
    fake_net_weather(cluster->net)->loss_permille = 200;
    cluster_run_ms(cluster, 600000);
    holds(cluster, cluster_false_deaths(cluster) == 0);
    cluster_settles(cluster, 15000);
    cluster_destroy(cluster);

    for (i = 0; i < CROWD && ring != NULL; i++) {
        crypt_destroy(crypts[i]);
    }
}


static void
nobody_dies_in_ten_minutes_of_twenty_percent_loss(void **state)
{
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        ten_minutes_of_loss(seed, NULL);
    }
}


static void
nor_does_anybody_with_a_keyring(void **state)
{
    int         fd;
    char        path[] = "/tmp/llmgw-test-XXXXXX";
    char        error[KEYRING_ERROR_BYTES];
    uint64_t    seed;
    keyring_t  *ring;

    fd = mkstemp(path);
    assert_int_equal(dprintf(fd, "%064x\n", 1), 65);
    close(fd);
    ring = keyring_create(path, error);
    assert_non_null(ring);
    unlink(path);

    cluster_each_seed(seed, 2) {
        ten_minutes_of_loss(seed, ring);
    }

    keyring_destroy(ring);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nobody_dies_in_ten_minutes_of_twenty_percent_loss),
        cmocka_unit_test(nor_does_anybody_with_a_keyring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* How soon the halves of a cluster know each other again after a cut. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"


#define SEEDS        20
#define MAX_SEEDS    1000
#define N            20


static int
compare(const void *a, const void *b)
{
    uint64_t  one = *(const uint64_t *) a, other = *(const uint64_t *) b;

    return one < other ? -1 : one > other;
}


static uint64_t
heals_in_ms(size_t n, size_t cut, uint64_t seed, uint64_t cut_ms,
    uint64_t max_ms)
{
    uint64_t    ms;
    cluster_t  *cluster;

    cluster = cluster_formed(n, seed);
    fake_net_part(cluster->net, n - cut, cut, FAKE_ALL);

    /* The cut ends at any moment of the protocol period. */
    cluster_run_ms(cluster, cut_ms + seed * 37 % 1000);
    holds(cluster, !cluster_is_whole(cluster, 0));
    fake_net_part(cluster->net, n - cut, cut, 0);

    ms = cluster_run_until(cluster, cluster_is_whole, 0, max_ms);
    holds(cluster, ms <= max_ms);
    cluster_settles(cluster, 12000);
    cluster_destroy(cluster);

    return ms;
}


static void
heal_all(size_t n, size_t cut, uint64_t cut_ms, uint64_t max_ms)
{
    size_t    count;
    uint64_t  seed, took_ms[MAX_SEEDS];

    count = 0;

    cluster_each_seed(seed, SEEDS) {
        assert_true(count < MAX_SEEDS);
        took_ms[count++] = heals_in_ms(n, cut, seed, cut_ms, max_ms);
    }

    qsort(took_ms, count, sizeof(took_ms[0]), compare);
    print_message("%zu of %zu cut off for %zu s: whole after %zu ms, "
                  "%zu at most\n", cut, n, (size_t) cut_ms / 1000,
                  (size_t) took_ms[count / 2], (size_t) took_ms[count - 1]);
}


static void
halves_are_whole_within_a_second(void **state)
{
    heal_all(N, N / 2, 15000, 1000);
}


static void
one_that_was_cut_off_is_back_within_a_second(void **state)
{
    heal_all(N, 1, 15000, 1000);
}


static void
two_find_each_other_within_a_second(void **state)
{
    heal_all(2, 1, 15000, 1000);
}


/* The longer the cut, the longer the healing may take. */
static void
longer_cuts_take_little_longer(void **state)
{
    heal_all(N, N / 2, 60000, 2000);
    heal_all(N, N / 2, 590000, 10000);
}


/* Cuts of a length at which some members are still suspected and some dead. */
static void
shorter_cuts_heal_as_soon(void **state)
{
    heal_all(N, N / 2, 5000, 1000);
    heal_all(N, N / 2, 8000, 1000);
}


/* Payload bytes that each of n hosts sends in a second. */
static uint64_t
bytes_a_second(cluster_t *cluster, size_t n, uint64_t seconds)
{
    uint64_t  before;

    before = fake_net_bytes(cluster->net);
    cluster_run_ms(cluster, seconds * 1000);

    return (fake_net_bytes(cluster->net) - before) / seconds / n;
}


/* One of twenty has crashed for good: the others ping it ever less often. */
static void
looking_for_the_dead_costs_little(void **state)
{
    uint64_t    before, soon, later;
    cluster_t  *cluster;

    cluster = cluster_formed(N, 1);
    cluster_run_ms(cluster, 30000);
    before = bytes_a_second(cluster, N, 60);

    cluster_crash(cluster, 4);
    holds(cluster, cluster_run_until(cluster, cluster_all_see_dead, 4, 6000)
                   != UINT64_MAX);
    cluster_run_ms(cluster, 5000);      /* until its death is known to all */
    soon = bytes_a_second(cluster, N - 1, 60);
    cluster_run_ms(cluster, 60000);
    later = bytes_a_second(cluster, N - 1, 60);

    print_message("bytes a member and second: %zu, for a minute after a "
                  "crash %zu, from then on %zu\n", (size_t) before,
                  (size_t) soon, (size_t) later);

    holds(cluster, soon < before + 50);
    holds(cluster, later < before + 20);
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(halves_are_whole_within_a_second),
        cmocka_unit_test(one_that_was_cut_off_is_back_within_a_second),
        cmocka_unit_test(two_find_each_other_within_a_second),
        cmocka_unit_test(longer_cuts_take_little_longer),
        cmocka_unit_test(shorter_cuts_heal_as_soon),
        cmocka_unit_test(looking_for_the_dead_costs_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * Datagrams that no agent of this cluster sends: noise, damaged ones, those of
 * another cluster, and false updates.  None has any effect.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rnd.h"
#include "t/sim/stage/cluster.h"


#define SEEDS  20
#define N      5
#define WALL   1763650000000000ULL

typedef struct {
    cluster_t  *cluster;
    rnd_t       rnd;
    int         is_busy;            /* a damaged copy is being sent */
} wire_t;


/* Scenario 24: each datagram comes once more, with some bits flipped,
   shortened, or lengthened by noise. */
static void
wire_mutilate(void *data, const char *what, size_t from, size_t to,
    const uint8_t *bytes, size_t len)
{
    size_t      i, n;
    wire_t     *wire = data;
    uint8_t     copy[PACKET_MAX_BYTES + 16];
    address_t   address;

    if (strcmp(what, "sent") != 0 || wire->is_busy) {
        return;
    }

    memcpy(copy, bytes, len);
    n = rnd_below(&wire->rnd, 4) ? len : rnd_below(&wire->rnd, len + 1);

    /* Several bits may flip.  With one, a changed sequence would be a valid
       message: an answer to another ping. */
    for (i = rnd_below(&wire->rnd, 8) + 1; i > 0 && n > 0; i--) {
        copy[rnd_below(&wire->rnd, n)] ^= 1 << rnd_below(&wire->rnd, 8);
    }

    fake_net_address(to, &address);
    wire->is_busy = 1;
    transport_send(fake_net_transport(wire->cluster->net, N), &address, copy,
                   n);
    wire->is_busy = 0;
}


static void
flipped_bits_and_noise_stop_nobody(void **state)
{
    size_t      i;
    uint64_t    seed;
    wire_t      wire;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N + 1, seed);
        cluster->n = N;                 /* host N is the attacker */
        cluster_start_all(cluster);
        cluster_run_ms(cluster, 1000);
        memset(&wire, 0, sizeof(wire));
        wire.cluster = cluster;
        wire.rnd.state = seed;

        for (i = 0; i < 100; i++) {
            fake_net_tap(cluster->net, NULL, NULL);
            cluster_run_ms(cluster, 50);
            fake_net_tap(cluster->net, wire_mutilate, &wire);
            cluster_run_ms(cluster, 1);
        }

        fake_net_tap(cluster->net, NULL, NULL);
        holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 5000)
                       != UINT64_MAX);
        cluster->n = N + 1;
        cluster_destroy(cluster);
    }
}


/* The part of scenario 23 without keys: another cluster's name. */
static void
other_cluster_is_not_heard_and_counted(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(4, seed);
        cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
        cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
        cluster->name = "other";
        cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, 20000);

        holds(cluster, swim_table(cluster_swim(cluster, 0))->n == 2);
        holds(cluster, swim_table(cluster_swim(cluster, 2))->n == 1);
        holds(cluster, swim_is_alone(cluster_swim(cluster, 2)));
        holds(cluster, cluster_counters(cluster, 0)->dropped[PACKET_ECLUSTER]
                       >= 15);

        for (i = 0; i < 2; i++) {
            holds(cluster, cluster_counters(cluster, i)->suspicions == 0);
        }

        cluster_destroy(cluster);
    }
}


/* Sends host 0 one false update about m1, which m2 seems to send. */
static void
wire_lie(cluster_t *cluster, uint64_t epoch_ahead, uint64_t jump)
{
    size_t          len;
    member_t        lie;
    address_t       to;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *bytes;

    memset(&head, 0, sizeof(head));
    head.type = PACKET_UPDATES;
    head.sender_epoch = swim_own(cluster_swim(cluster, 2))->facts.epoch;
    strcpy(head.sender_id, "m2");
    memset(&lie, 0, sizeof(lie));
    lie.facts = *cluster_facts(cluster, 0, 1);
    lie.facts.epoch += epoch_ahead;
    lie.facts.incarnation += jump;
    lie.facts.liveness = LLMGW_LIVENESS_DEAD;

    out = packet_out_create("test");
    packet_begin(out, &head);
    packet_add(out, &lie, 0);
    bytes = packet_end(out, &len);
    fake_net_address(0, &to);
    transport_send(fake_net_transport(cluster->net, N), &to, bytes, len);
    packet_out_destroy(out);
    cluster_run_ms(cluster, 1);
}


/* Scenario 26, on both sides of each limit. */
static void
implausible_epochs_and_incarnations_are_refused(void **state)
{
    uint64_t    seed, day_us, to_limit;
    cluster_t  *cluster;

    day_us = 24ULL * 3600 * 1000000;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N + 1, seed);
        cluster->n = N;
        cluster_start_all(cluster);
        cluster_run_ms(cluster, 1000);

        to_limit = day_us + fake_net_now_us(cluster->net)
                   - (cluster->hosts[1].epoch - WALL);
        wire_lie(cluster, to_limit + 10000, 0);
        holds(cluster, cluster_counters(cluster, 0)->updates_refused == 1);
        wire_lie(cluster, 0, 1ULL << 49);
        holds(cluster, cluster_counters(cluster, 0)->updates_refused == 2);
        wire_lie(cluster, 0, MEMBER_MAX_INCARNATION_JUMP + 1);
        holds(cluster, cluster_counters(cluster, 0)->updates_implausible
                       == 1);
        holds(cluster, cluster_facts(cluster, 0, 1)->liveness
                       == LLMGW_LIVENESS_ALIVE);
        holds(cluster, cluster_facts(cluster, 0, 1)->incarnation == 0);

        /* The largest jump that is accepted is refuted at once. */
        wire_lie(cluster, 0, MEMBER_MAX_INCARNATION_JUMP);
        holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 3000)
                       != UINT64_MAX);
        cluster_run_ms(cluster, 3000);
        holds(cluster, cluster_facts(cluster, 3, 1)->incarnation
                       == MEMBER_MAX_INCARNATION_JUMP + 1);
        cluster->n = N + 1;
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(flipped_bits_and_noise_stop_nobody),
        cmocka_unit_test(other_cluster_is_not_heard_and_counted),
        cmocka_unit_test(implausible_epochs_and_incarnations_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

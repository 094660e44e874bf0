
/*
 * Scenario 23: sealed gossip.  An agent without a key is no member, changed
 * or repeated datagrams have no effect, and keys rotate while it runs.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/rnd.h"
#include "t/sim/stage/cluster.h"
#include "t/unit/agent/net/keyring_now.h"


#define SEEDS       20
#define N           8
#define INTRUDER    N               /* an additional host */
#define A16         "aaaaaaaaaaaaaaaa"
#define B16         "bbbbbbbbbbbbbbbb"
#define KEY_A       A16 A16 A16 A16
#define KEY_B       B16 B16 B16 B16
#define MAX_HEARD   20000

typedef struct {
    size_t   from;
    size_t   to;
    size_t   len;
    uint8_t  bytes[PACKET_MAX_BYTES];
} heard_t;

/* A cluster whose members have their own rings, and an eavesdropper. */
typedef struct {
    cluster_t  *cluster;
    char        path[N + 1][32];
    keyring_t  *rings[N + 1];
    crypt_t    *crypts[N + 1];
    rnd_t       rnd;
    heard_t    *heard;
    size_t      nheard;
} scene_t;


static void
give_key(scene_t *s, size_t host, const char *key, const char *cluster)
{
    int   fd;
    char  error[KEYRING_ERROR_BYTES];

    strcpy(s->path[host], "/tmp/llmgw-test-XXXXXX");
    fd = mkstemp(s->path[host]);
    assert_int_equal(write(fd, key, strlen(key)), strlen(key));
    close(fd);

    s->rings[host] = keyring_create(s->path[host], error);
    assert_non_null(s->rings[host]);
    s->crypts[host] = crypt_create(s->rings[host], cluster);
    assert_non_null(s->crypts[host]);
}


static void
listen_to(void *data, const char *what, size_t from, size_t to,
    const uint8_t *bytes, size_t len)
{
    heard_t  *heard;
    scene_t  *s = data;

    if (strcmp(what, "had") != 0 || len == 0) {
        return;
    }

    assert_true(s->nheard < MAX_HEARD);
    heard = &s->heard[s->nheard++];
    heard->from = from;
    heard->to = to;
    heard->len = len;
    memcpy(heard->bytes, bytes, len);
}


static void
init(scene_t *s, uint64_t seed)
{
    size_t      i;
    cluster_t  *cluster;

    memset(s, 0, sizeof(scene_t));
    s->rnd.state = seed;
    s->heard = malloc(MAX_HEARD * sizeof(heard_t));
    cluster = cluster_create(N + 1, seed);
    s->cluster = cluster;

    for (i = 0; i < N; i++) {
        give_key(s, i, KEY_A "\n", "test");
        cluster->crypt = s->crypts[i];
        cluster_start(cluster, i,
                      i == 0 ? LLMGW_ROLE_GATEWAY : LLMGW_ROLE_REPLICA,
                      i == 0 ? CLUSTER_NO_SEED : 0);
        cluster_run_ms(cluster, 10);
    }

    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 3000)
                   != UINT64_MAX);
}


static void
done(scene_t *s)
{
    size_t  i;

    cluster_destroy(s->cluster);

    for (i = 0; i <= N; i++) {
        if (s->crypts[i] != NULL) {
            crypt_destroy(s->crypts[i]);
            keyring_destroy(s->rings[i]);
            unlink(s->path[i]);
        }
    }

    free(s->heard);
}


/* The sum over all members. */
static uint64_t
dropped(const scene_t *s, packet_rc_t rc)
{
    size_t    i;
    uint64_t  n;

    n = 0;

    for (i = 0; i < N; i++) {
        n += cluster_counters(s->cluster, i)->dropped[rc];
    }

    return n;
}


static uint64_t
dropped_in_all(const scene_t *s)
{
    int       rc;
    uint64_t  n;

    n = 0;

    for (rc = PACKET_DONE + 1; rc < PACKET_NRC; rc++) {
        n += dropped(s, rc);
    }

    return n;
}


static void
assert_unmoved(const scene_t *s)
{
    size_t  i;

    for (i = 0; i < N; i++) {
        holds(s->cluster, !cluster_any_suspects(s->cluster, i));
        holds(s->cluster, cluster_view(s->cluster, i, INTRUDER) == NULL);
        holds(s->cluster,
              cluster_facts(s->cluster, 0, i)->incarnation == 0);
        holds(s->cluster, swim_table(cluster_swim(s->cluster, i))->n == N);
    }

    holds(s->cluster, cluster_false_deaths(s->cluster) == 0);
}


/* A stranger tries to join for 20 s; it gets no byte back, and its datagrams
   are counted by the reason of their refusal. */
static void
knocks(scene_t *s, packet_rc_t theirs)
{
    uint64_t    before;
    cluster_t  *cluster;

    cluster = s->cluster;
    before = dropped_in_all(s);

    cluster_start(cluster, INTRUDER, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 20000);

    holds(cluster, dropped(s, theirs) >= 15);
    holds(cluster, dropped_in_all(s) - before == dropped(s, theirs));
    holds(cluster, swim_is_alone(cluster_swim(cluster, INTRUDER)));
    holds(cluster,
          cluster_counters(cluster, INTRUDER)->datagrams_received == 0);
    assert_unmoved(s);

    cluster_crash(cluster, INTRUDER);
    cluster_settles(cluster, 15000);
}


static void
who_has_no_key_is_nobody(void **state)
{
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        s.cluster->crypt = NULL;
        knocks(&s, PACKET_EPLAIN);
        done(&s);
    }
}


static void
who_has_another_key_is_nobody(void **state)
{
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        give_key(&s, INTRUDER, KEY_B "\n", "test");
        s.cluster->crypt = s.crypts[INTRUDER];
        knocks(&s, PACKET_EKEY);
        done(&s);
    }
}


static void
who_is_of_another_cluster_is_nobody(void **state)
{
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        give_key(&s, INTRUDER, KEY_A "\n", "prod");
        s.cluster->crypt = s.crypts[INTRUDER];
        s.cluster->name = "prod";
        knocks(&s, PACKET_ECLUSTER);
        done(&s);
    }
}


static void
say_again(scene_t *s, const heard_t *heard, size_t to)
{
    address_t  address;

    fake_net_address(to, &address);
    transport_send(fake_net_transport(s->cluster->net, INTRUDER), &address,
                   heard->bytes, heard->len);
}


/* All datagrams of 10 s are sent again, twice. */
static void
what_was_had_is_dropped(void **state)
{
    int       round;
    size_t    i;
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        fake_net_tap(s.cluster->net, listen_to, &s);
        cluster_run_ms(s.cluster, 10000);
        fake_net_tap(s.cluster->net, NULL, NULL);
        holds(s.cluster, s.nheard > 200);

        for (round = 1; round <= 2; round++) {
            for (i = 0; i < s.nheard; i++) {
                say_again(&s, &s.heard[i], s.heard[i].to);
            }

            cluster_run_ms(s.cluster, 1000);
            holds(s.cluster,
                  dropped(&s, PACKET_EREPLAYED) == round * s.nheard);
        }

        holds(s.cluster, dropped_in_all(&s) == 2 * s.nheard);
        assert_unmoved(&s);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


/* A datagram for one member is sent to others: its content is
   true, but known. */
static void
what_others_had_changes_nothing(void **state)
{
    size_t    i;
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        fake_net_tap(s.cluster->net, listen_to, &s);
        cluster_run_ms(s.cluster, 10000);
        fake_net_tap(s.cluster->net, NULL, NULL);

        for (i = 0; i < s.nheard; i++) {
            say_again(&s, &s.heard[i], rnd_below(&s.rnd, N));
        }

        cluster_run_ms(s.cluster, 5000);
        assert_unmoved(&s);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


/* Each datagram comes a second time with one bit flipped, at any place. */
static void
flipped_bits_are_found(void **state)
{
    size_t    i, at;
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        fake_net_tap(s.cluster->net, listen_to, &s);
        cluster_run_ms(s.cluster, 10000);
        fake_net_tap(s.cluster->net, NULL, NULL);

        for (i = 0; i < s.nheard; i++) {
            at = i < 100 ? i % s.heard[i].len
                         : rnd_below(&s.rnd, s.heard[i].len);
            s.heard[i].bytes[at] ^= 1 << rnd_below(&s.rnd, 8);
            say_again(&s, &s.heard[i], s.heard[i].to);
        }

        cluster_run_ms(s.cluster, 1000);

        holds(s.cluster, dropped_in_all(&s) == s.nheard);
        holds(s.cluster, dropped(&s, PACKET_EREPLAYED) == 0);
        holds(s.cluster, dropped(&s, PACKET_EFORGED) > s.nheard / 2);
        assert_unmoved(&s);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


/*
 * The rotation of a key: add it everywhere, use it everywhere, remove the old
 * one everywhere, each time at one member after the other, from a random one
 * on; with delay and doubled datagrams.
 */
static void
keys_rotate_under_way(void **state)
{
    char      error[KEYRING_ERROR_BYTES], ids[2][KEYRING_ID_TEXT_BYTES];
    size_t    i, step, first;
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        fake_net_weather(s.cluster->net)->double_permille = 500;
        fake_net_weather(s.cluster->net)->jitter_us = 20000;
        keyring_id_text(s.rings[0], 0, ids[0]);

        for (step = 0; step < 3; step++) {
            first = rnd_below(&s.rnd, N);

            for (i = first; i < first + N; i++) {
                cluster_run_ms(s.cluster, 700);
                assert_int_equal(
                    step == 0 ? keyring_add(s.rings[i % N], KEY_B, error)
                    : step == 1 ? keyring_use(s.rings[i % N], ids[1], error)
                    : keyring_remove(s.rings[i % N], ids[0], error),
                    KEYRING_DONE);
                keyring_id_text(s.rings[i % N],
                                keyring_count(s.rings[i % N]) - 1, ids[1]);
            }
        }

        cluster_run_ms(s.cluster, 2000);
        holds(s.cluster, dropped(&s, PACKET_EREPLAYED) > 100);
        holds(s.cluster,
              dropped_in_all(&s) == dropped(&s, PACKET_EREPLAYED));
        assert_unmoved(&s);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


/* Pings over connections are sealed as well: they keep a member alive whose
   datagrams are lost. */
static void
streams_are_sealed_too(void **state)
{
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);
        fake_net_part(s.cluster->net, 3, 1, FAKE_DATAGRAMS);
        cluster_run_ms(s.cluster, 20000);
        holds(s.cluster, cluster_counters(s.cluster, 3)->stream_pings > 10);
        holds(s.cluster, cluster_false_deaths(s.cluster) == 0);
        holds(s.cluster, dropped_in_all(&s) == 0);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


/* A restarted member has a new epoch and counts from 0, also the
   second time. */
static void
restarted_ones_are_heard_at_once(void **state)
{
    int       life;
    scene_t   s;
    uint64_t  seed;

    cluster_each_seed(seed, SEEDS) {
        init(&s, seed);

        for (life = 0; life < 5; life++) {
            cluster_crash(s.cluster, 3);
            crypt_destroy(s.crypts[3]);
            s.crypts[3] = crypt_create(s.rings[3], "test");
            s.cluster->crypt = s.crypts[3];
            cluster_run_ms(s.cluster, 100);
            cluster_start(s.cluster, 3, LLMGW_ROLE_REPLICA, 0);
            holds(s.cluster, cluster_run_until(s.cluster, cluster_is_settled,
                                               0, 5000) != UINT64_MAX);
        }

        holds(s.cluster, dropped_in_all(&s) == 0);
        holds(s.cluster, cluster_false_deaths(s.cluster) == 0);
        cluster_settles(s.cluster, 15000);
        done(&s);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(who_has_no_key_is_nobody),
        cmocka_unit_test(who_has_another_key_is_nobody),
        cmocka_unit_test(who_is_of_another_cluster_is_nobody),
        cmocka_unit_test(what_was_had_is_dropped),
        cmocka_unit_test(what_others_had_changes_nothing),
        cmocka_unit_test(flipped_bits_are_found),
        cmocka_unit_test(keys_rotate_under_way),
        cmocka_unit_test(streams_are_sealed_too),
        cmocka_unit_test(restarted_ones_are_heard_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

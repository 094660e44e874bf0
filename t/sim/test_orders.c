
/*
 * Orders on a fake network: lost, doubled, late, to members that are gone, and
 * from members that may not give them.  Host 0 is the gateway.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/sim/stage/orders.h"


#define SEEDS   20
#define N       5
#define OP      "operator"
#define UPDATE  ORDERS_UPDATE


static void
order_is_done_and_shown_in_one_flight_there_and_back(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 1);
    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                     ORDER_PENDING);
    cluster_run_ms(cluster, 1);         /* 500 us in each direction */
    assert_int_equal(cluster->hosts[0].nordered, 1);
    assert_int_equal(cluster->hosts[0].ordered, ORDER_DONE);
    assert_int_equal(cluster->hosts[2].ntold, 1);
    assert_string_equal(cluster_facts(cluster, 0, 2)->drain_owner, OP);
    assert_true(cluster_run_until(cluster, orders_all_see_operator, 2, 1000)
                != UINT64_MAX);

    /* A replica's agent may order too, and any agent itself, without a
       datagram. */
    assert_int_equal(orders_done(cluster, 3, 2, ORDER_UNDRAIN, OP),
                     ORDER_DONE);
    assert_int_equal(cluster->hosts[2].nuntold, 1);
    assert_int_equal(orders_give(cluster, 2, 2, ORDER_DRAIN, OP), ORDER_DONE);
    assert_int_equal(cluster->hosts[2].ntold, 2);
    cluster_destroy(cluster);
}


/* Orders are carried out once each, in the order in which they were given. */
static void
orders_are_carried_out_once_however_the_network_is(void **state)
{
    size_t           i;
    uint64_t         seed;
    cluster_t       *cluster;
    fake_weather_t  *weather;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        weather = fake_net_weather(cluster->net);
        weather->loss_permille = 500;
        weather->double_permille = 500;
        weather->jitter_us = 300000;

        for (i = 1; i <= 10; i++) {
            holds(cluster, orders_done(cluster, 0, 2, i % 2 ? ORDER_DRAIN
                                                            : ORDER_UNDRAIN,
                                       OP) == ORDER_DONE);
            holds(cluster, cluster->hosts[2].ntold == (i + 1) / 2);
            holds(cluster, cluster->hosts[2].nuntold == i / 2);
        }

        weather->loss_permille = 0;
        weather->double_permille = 0;
        weather->jitter_us = 0;
        holds(cluster, cluster_run_until(cluster, orders_all_see_nobody, 2,
                                         15000)
                       != UINT64_MAX);
        holds(cluster, cluster_counters(cluster, 2)->orders_taken == 10);
        cluster_destroy(cluster);
    }
}


static void
target_that_does_not_hear_is_unreachable_after_5_s(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 2);
    fake_net_cut(cluster->net, 0, 2, FAKE_ALL);
    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                     ORDER_PENDING);
    cluster_run_ms(cluster, 4990);
    assert_int_equal(cluster->hosts[0].nordered, 0);
    cluster_run_ms(cluster, 20);
    assert_int_equal(cluster->hosts[0].nordered, 1);
    assert_int_equal(cluster->hosts[0].ordered, ORDER_EUNREACHED);
    assert_int_equal(cluster->hosts[2].ntold, 0);

    /* A member that is known to be gone is not tried. */
    cluster_crash(cluster, 3);
    cluster_run_ms(cluster, 20000);
    assert_int_equal(orders_give(cluster, 0, 3, ORDER_DRAIN, OP),
                     ORDER_EUNREACHED);
    cluster_destroy(cluster);
}


/* The target's answers are lost: it carried the order out, as its record
   shows. */
static void
lost_answers_are_given_again(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 3);
    fake_net_cut(cluster->net, 2, 0, FAKE_ALL);
    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                     ORDER_PENDING);
    cluster_run_ms(cluster, 1100);
    assert_int_equal(cluster->hosts[0].nordered, 0);
    assert_int_equal(cluster->hosts[2].ntold, 1);
    fake_net_cut(cluster->net, 2, 0, 0);
    cluster_run_ms(cluster, 201);
    assert_int_equal(cluster->hosts[0].ordered, ORDER_DONE);
    assert_int_equal(cluster->hosts[2].ntold, 1);
    assert_true(cluster_counters(cluster, 2)->orders_repeated >= 5);
    cluster_destroy(cluster);
}


typedef struct {
    size_t   len;
    uint8_t  bytes[PACKET_MAX_BYTES];
} heard_t;


static void
hear_order(void *data, const char *what, size_t from, size_t to,
    const uint8_t *bytes, size_t len)
{
    packet_t   packet;
    heard_t   *heard = data;

    if (packet_decode(&packet, "test", bytes, len, UINT64_MAX / 2)
        == PACKET_DONE && packet.head.type == PACKET_ORDER
        && heard->len == 0)
    {
        memcpy(heard->bytes, bytes, len);
        heard->len = len;
    }
}


static void
order_that_comes_late_once_more_changes_nothing(void **state)
{
    heard_t     heard;
    address_t   to;
    cluster_t  *cluster;

    memset(&heard, 0, sizeof(heard));
    cluster = cluster_formed(N, 4);
    fake_net_tap(cluster->net, hear_order, &heard);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, OP), ORDER_DONE);
    fake_net_tap(cluster->net, NULL, NULL);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_UNDRAIN, OP),
                     ORDER_DONE);

    fake_net_address(2, &to);
    transport_send(fake_net_transport(cluster->net, 0), &to, heard.bytes,
                   heard.len);
    cluster_run_ms(cluster, 10);
    assert_int_equal(cluster_counters(cluster, 2)->orders_repeated, 1);
    assert_true(orders_all_see_owner(cluster, 2, ""));
    assert_int_equal(cluster->hosts[2].ntold, 1);

    /* Nor after a restart, when the target does not remember the order. */
    cluster_crash(cluster, 2);
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
    cluster_run_ms(cluster, 2000);
    transport_send(fake_net_transport(cluster->net, 0), &to, heard.bytes,
                   heard.len);
    cluster_run_ms(cluster, 1000);
    assert_true(orders_all_see_owner(cluster, 2, ""));
    cluster_destroy(cluster);
}


/* The target has forgotten the order's id, since too many orders
   followed it. */
static void
order_of_an_earlier_start_of_its_giver_is_ignored(void **state)
{
    size_t      i;
    heard_t     heard;
    address_t   to;
    cluster_t  *cluster;

    memset(&heard, 0, sizeof(heard));
    cluster = cluster_formed(N, 7);
    fake_net_tap(cluster->net, hear_order, &heard);

    for (i = 0; i < ORDER_REMEMBERED + 2; i++) {
        assert_int_equal(orders_done(cluster, 0, 2, i % 2 ? ORDER_UNDRAIN
                                                          : ORDER_DRAIN, OP),
                         ORDER_DONE);
    }

    fake_net_tap(cluster->net, NULL, NULL);

    cluster_crash(cluster, 0);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, 1);
    cluster_run_ms(cluster, 2000);

    fake_net_address(2, &to);
    transport_send(fake_net_transport(cluster->net, 0), &to, heard.bytes,
                   heard.len);
    cluster_run_ms(cluster, 1000);
    assert_int_equal(cluster_counters(cluster, 2)->orders_outdated, 1);
    assert_int_equal(cluster_counters(cluster, 2)->orders_repeated, 0);
    assert_int_equal(cluster_counters(cluster, 2)->orders_taken, i);
    assert_true(orders_all_see_owner(cluster, 2, ""));

    /* Orders of the giver's present start are carried out. */
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, OP), ORDER_DONE);
    assert_int_equal(cluster_counters(cluster, 2)->orders_outdated, 1);
    cluster_destroy(cluster);
}


static void
order_for_an_earlier_life_is_refused(void **state)
{
    uint64_t    seed;
    order_t     order;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        memset(&order, 0, sizeof(order));
        order.verb = ORDER_DRAIN;
        order.target_epoch = cluster_facts(cluster, 0, 2)->epoch;
        strcpy(order.target_id, "m2");
        strcpy(order.owner, OP);

        cluster_crash(cluster, 2);
        cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, seed * 10);
        node_order(cluster->hosts[0].node, &order);
        cluster_run_ms(cluster, 6000);
        holds(cluster, cluster->hosts[0].ordered == ORDER_ERESTARTED);
        holds(cluster, cluster->hosts[2].ntold == 0);
        holds(cluster, orders_all_see_nobody(cluster, 2));
        cluster_destroy(cluster);
    }
}


static void
who_cannot_do_it_says_why(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 5);
    assert_int_equal(orders_done(cluster, 2, 0, ORDER_DRAIN, OP),
                     ORDER_EROLE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, "me"),
                     ORDER_EVERB);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_NVERBS, OP),
                     ORDER_EVERB);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_RESTART, OP),
                     ORDER_ENOKEYRING);
    assert_int_equal(orders_done(cluster, 2, 2, ORDER_RESTART, OP),
                     ORDER_ENOCHILD);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, UPDATE),
                     ORDER_DONE);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, "update:u2"),
                     ORDER_EOWNED);
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_UNDRAIN, OP),
                     ORDER_EOWNED);
    assert_int_equal(cluster->hosts[2].ntold, 1);
    cluster_destroy(cluster);
}


static void
more_orders_than_there_is_room_for_are_refused(void **state)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_formed(N, 6);
    fake_net_cut(cluster->net, 0, 2, FAKE_ALL);

    for (i = 0; i < ORDER_MAX; i++) {
        assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                         ORDER_PENDING);
    }

    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP), ORDER_EMANY);
    cluster_run_ms(cluster, 5100);
    assert_int_equal(cluster->hosts[0].nordered, ORDER_MAX);
    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                     ORDER_PENDING);
    cluster_destroy(cluster);
}


/* All members have the keys of one file, and each has its own crypt. */
static void
restart_is_for_who_has_a_key_and_done_once(void **state)
{
    int              fd;
    char             path[] = "/tmp/llmgw-test-XXXXXX";
    char             error[KEYRING_ERROR_BYTES];
    size_t           i;
    uint64_t         seed;
    crypt_t         *crypts[3];
    keyring_t       *ring;
    cluster_t       *cluster;
    fake_weather_t  *weather;

    fd = mkstemp(path);
    assert_int_equal(write(fd, "6b6579206b6579206b6579206b657920"
                           "6b6579206b6579206b6579206b657920\n", 65), 65);
    close(fd);
    ring = keyring_create(path, error);
    assert_non_null(ring);

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(3, seed);
        cluster->can_restart = 1;

        for (i = 0; i < 3; i++) {
            crypts[i] = crypt_create(ring, "test");
            cluster->crypt = crypts[i];
            cluster_start(cluster, i, i ? LLMGW_ROLE_REPLICA
                                        : LLMGW_ROLE_GATEWAY,
                          i ? 0 : CLUSTER_NO_SEED);
        }

        cluster_run_ms(cluster, 2000);
        holds(cluster, cluster_view(cluster, 0, 1)->traits.can_restart);
        weather = fake_net_weather(cluster->net);
        weather->loss_permille = 300;
        weather->double_permille = 500;
        holds(cluster, orders_done(cluster, 0, 1, ORDER_RESTART, UPDATE)
                       == ORDER_DONE);
        cluster_run_ms(cluster, 1000);
        holds(cluster, cluster->hosts[1].nrestarts == 1);
        assert_string_equal(cluster->hosts[1].version, "v2");
        cluster_destroy(cluster);

        for (i = 0; i < 3; i++) {
            crypt_destroy(crypts[i]);
        }
    }

    keyring_destroy(ring);
    unlink(path);
}


/* An order is carried out at once, and once only; the answer waits until the
   target's state is on the disk. */
static void
answer_waits_for_the_targets_disk(void **state)
{
    cluster_t       *cluster;
    cluster_host_t  *target, *giver;

    cluster = cluster_formed(N, 1);
    giver = &cluster->hosts[0];
    target = &cluster->hosts[2];

    target->is_writing = 1;
    assert_int_equal(orders_give(cluster, 0, 2, ORDER_DRAIN, OP),
                     ORDER_PENDING);
    cluster_run_ms(cluster, 3000);
    assert_int_equal(target->ntold, 1);
    assert_string_equal(cluster_facts(cluster, 0, 2)->drain_owner, OP);
    assert_int_equal(giver->nordered, 0);

    target->is_writing = 0;
    node_kept(target->node);
    cluster_run_ms(cluster, 1);
    assert_int_equal(giver->nordered, 1);
    assert_int_equal(giver->ordered, ORDER_DONE);

    /* An order to itself waits for the disk, too. */
    target->is_writing = 1;
    assert_int_equal(orders_give(cluster, 2, 2, ORDER_UNDRAIN, OP),
                     ORDER_PENDING);
    cluster_run_ms(cluster, 100);
    assert_int_equal(target->nordered, 0);
    target->is_writing = 0;
    node_kept(target->node);
    node_kept(target->node);
    assert_int_equal(target->nordered, 1);
    assert_int_equal(target->ordered, ORDER_DONE);
    assert_int_equal(target->ntold, 1);
    cluster_destroy(cluster);
}


/* The answer that refuses an order need not wait for the disk. */
static void
refusal_does_not_wait_for_the_disk(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 1);
    cluster->hosts[2].is_writing = 1;
    assert_int_equal(orders_done(cluster, 0, 2, ORDER_DRAIN, "nobody"),
                     ORDER_EVERB);
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(order_is_done_and_shown_in_one_flight_there_and_back),
        cmocka_unit_test(orders_are_carried_out_once_however_the_network_is),
        cmocka_unit_test(target_that_does_not_hear_is_unreachable_after_5_s),
        cmocka_unit_test(lost_answers_are_given_again),
        cmocka_unit_test(order_that_comes_late_once_more_changes_nothing),
        cmocka_unit_test(order_of_an_earlier_start_of_its_giver_is_ignored),
        cmocka_unit_test(order_for_an_earlier_life_is_refused),
        cmocka_unit_test(who_cannot_do_it_says_why),
        cmocka_unit_test(more_orders_than_there_is_room_for_are_refused),
        cmocka_unit_test(restart_is_for_who_has_a_key_and_done_once),
        cmocka_unit_test(answer_waits_for_the_targets_disk),
        cmocka_unit_test(refusal_does_not_wait_for_the_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Datagrams: what is written is read, and nothing else is accepted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "swim/wire/packet.h"
#include "gossip.pb-c.h"


#define WALL_US  1763650000000000ULL

typedef Llmgateway__Gossip__GossipMessage     message_t;
typedef Llmgateway__Gossip__MembershipUpdate  update_t;


static member_t
full_member(void)
{
    member_t  m;

    memset(&m, 0, sizeof(m));
    memset(m.facts.id, 'i', LLMGW_MEMBERS_NAME_BYTES - 1);
    memset(m.facts.model_version, 'v', LLMGW_MEMBERS_NAME_BYTES - 1);
    strcpy(m.facts.address,
           "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    strcpy(m.facts.grpc, "[2001:db8:ffff:ffff:ffff:ffff:ffff:fffe]:65535");
    strcpy(m.facts.drain_owner, "update:");
    memset(m.facts.drain_owner + 7, 'o', LLMGW_MEMBERS_NAME_BYTES - 1);
    memset(m.facts.resume_group, 'g', LLMGW_MEMBERS_NAME_BYTES - 1);
    memset(m.traits.update, 'u', LLMGW_MEMBERS_NAME_BYTES - 1);
    m.traits.can_restart = 1;
    m.traits.refuses_new = 1;
    m.facts.epoch = WALL_US;
    m.facts.incarnation = PACKET_MAX_INCARNATION;
    m.facts.replica_start_ms = UINT64_MAX;
    m.facts.weight = 100;
    m.facts.max_capacity = INT32_MAX;
    m.facts.liveness = LLMGW_LIVENESS_SUSPECT;
    m.facts.service = LLMGW_SERVICE_DOWN;
    m.facts.draining = 1;
    m.load.active_requests = INT32_MAX;
    m.load_seq = UINT64_MAX;

    return m;
}


static packet_head_t
head_of(packet_type_t type)
{
    packet_head_t  head;

    memset(&head, 0, sizeof(head));
    head.type = type;
    head.sequence = UINT64_MAX;
    head.sender_epoch = 7;
    head.table_digest = 0x0123456789abcdefULL;
    strcpy(head.sender_id, "a");
    strcpy(head.target_id, "b");
    strcpy(head.target_address, "10.0.0.1:7946");

    return head;
}


static void
largest_fields_come_back_as_they_were(void **state)
{
    size_t          len;
    member_t        member;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    member = full_member();
    head = head_of(PACKET_PING_REQ);
    out = packet_out_create("c");

    packet_begin(out, &head);
    assert_int_equal(packet_add(out, &member, 0), 0);
    data = packet_end(out, &len);

    assert_int_equal(packet_decode(&packet, "c", data, len, WALL_US),
                     PACKET_DONE);
    assert_memory_equal(&packet.head, &head, sizeof(head));
    assert_int_equal(packet.nupdates, 1);
    assert_memory_equal(&packet.updates[0].facts, &member.facts,
                        sizeof(llmgw_member_t));
    assert_memory_equal(&packet.updates[0].traits, &member.traits,
                        sizeof(member_traits_t));
    assert_int_equal(packet.updates[0].active_requests, INT32_MAX);
    assert_true(packet.updates[0].load_seq == UINT64_MAX);

    packet_out_destroy(out);
}


/* Full to the last update that fits, and never over the limit: what is left
   of the 1200 is for the seal. */
static void
datagram_is_filled_and_never_longer_than_1200(void **state)
{
    size_t          len, n, longest;
    char            cluster[LLMGW_MEMBERS_NAME_BYTES];
    member_t        member;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    head = head_of(PACKET_TABLE);
    memset(cluster, 'c', sizeof(cluster) - 1);
    cluster[sizeof(cluster) - 1] = '\0';
    out = packet_out_create(cluster);
    longest = 0;

    for (n = 1; n < LLMGW_MEMBERS_NAME_BYTES; n++) {
        member = full_member();
        member.facts.id[n] = '\0';
        member.traits.update[n] = '\0';
        packet_begin(out, &head);

        while (packet_add(out, &member, 0) == 0) { /* void */ }

        data = packet_end(out, &len);
        assert_true(len <= PACKET_MAX_BYTES - PACKET_SEAL_BYTES);
        longest = len > longest ? len : longest;
        assert_int_equal(packet_decode(&packet, cluster, data, len, WALL_US),
                         PACKET_DONE);
        assert_int_equal(packet.nupdates, packet_nupdates(out));
    }

    assert_true(longest > PACKET_MAX_BYTES - PACKET_SEAL_BYTES - 50);
    packet_out_destroy(out);
}


static void
small_updates_stop_at_their_number(void **state)
{
    size_t         n;
    member_t       member;
    packet_out_t  *out;
    packet_head_t  head;

    memset(&member, 0, sizeof(member));
    strcpy(member.facts.id, "a");
    member.facts.weight = 1;
    head = head_of(PACKET_UPDATES);
    out = packet_out_create("c");
    packet_begin(out, &head);

    for (n = 0; packet_add(out, &member, 0) == 0; n++) { /* void */ }

    assert_int_equal(n, PACKET_MAX_UPDATES);
    packet_out_destroy(out);
}


/* Cut at every byte, and each byte of the header wrong. */
static void
mutilated_datagrams_are_dropped_with_their_reason(void **state)
{
    size_t          i, len;
    uint8_t         copy[PACKET_MAX_BYTES + 1];
    member_t        member;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;
    struct {
        size_t       at;
        packet_rc_t  rc;
    } wrong[] = {
        { 0, PACKET_EMAGIC }, { 1, PACKET_EMAGIC }, { 2, PACKET_EVERSION },
        { 3, PACKET_ESEALED }, { 4, PACKET_ECLUSTER }, { 5, PACKET_ECLUSTER }
    };

    member = full_member();
    head = head_of(PACKET_PING);
    out = packet_out_create("prod");
    packet_begin(out, &head);
    packet_add(out, &member, 0);
    data = packet_end(out, &len);

    for (i = 0; i < 5 + 4; i++) {
        assert_int_equal(packet_decode(&packet, "prod", data, i, WALL_US),
                         PACKET_ELENGTH);
    }

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(copy, data, len);
        copy[wrong[i].at] ^= 1;
        assert_int_equal(packet_decode(&packet, "prod", copy, len, WALL_US),
                         wrong[i].rc);
    }

    copy[5] = 'p';
    copy[3] = 2;
    assert_int_equal(packet_decode(&packet, "prod", copy, len, WALL_US),
                     PACKET_EFLAGS);

    for (i = 5 + 4; i < len; i++) {
        memcpy(copy, data, i);
        packet_decode(&packet, "prod", copy, i, WALL_US);
    }

    assert_int_equal(packet_decode(&packet, "test", data, len, WALL_US),
                     PACKET_ECLUSTER);
    memset(copy + len, 0, sizeof(copy) - len);
    assert_int_equal(packet_decode(&packet, "prod", copy, sizeof(copy),
                                   WALL_US),
                     PACKET_ELENGTH);
    packet_out_destroy(out);
}


static size_t
pack(uint8_t *buf, const message_t *message)
{
    memcpy(buf, "LG\1\0\1c", 6);

    return 6 + llmgateway__gossip__gossip_message__pack(message, buf + 6);
}


/* One message with one update, both as a peer would make them. */
static void
good_message(message_t *message, update_t *update, update_t **list)
{
    llmgateway__gossip__gossip_message__init(message);
    llmgateway__gossip__membership_update__init(update);

    *list = update;
    message->sender_id = "a";
    message->n_updates = 1;
    message->updates = list;
    update->member_id = "b";
    update->address = "10.0.0.1:1";
    update->grpc_address = "10.0.0.1:2";
    update->epoch = WALL_US;
}


static packet_rc_t
decode(packet_t *packet, const message_t *message)
{
    uint8_t  buf[4096];

    return packet_decode(packet, "c", buf, pack(buf, message), WALL_US);
}


static void
wrong_heads_are_dropped(void **state)
{
    packet_t    packet;
    update_t    update, *list[PACKET_MAX_UPDATES + 1];
    message_t   message;
    size_t      i;

#define wrong(field, value, expected)                                         \
    good_message(&message, &update, list);                                    \
    message.field = value;                                                    \
    assert_int_equal(decode(&packet, &message), expected);

    wrong(sequence_num, 5, PACKET_DONE);
    wrong(type, 7, PACKET_DONE);
    wrong(type, 8, PACKET_EORDER);
    wrong(type, 9, PACKET_EORDER);
    wrong(type, 10, PACKET_ETYPE);
    wrong(type, -1, PACKET_ETYPE);
    wrong(sender_id, "", PACKET_ESENDER);
    wrong(sender_id, "a/b", PACKET_ESENDER);
    wrong(sender_epoch, WALL_US + PACKET_MAX_AHEAD_US, PACKET_DONE);
    wrong(sender_epoch, WALL_US + PACKET_MAX_AHEAD_US + 1, PACKET_ECLOCK);
    wrong(target_id, "-b", PACKET_ETARGET);
    wrong(target_address, "localhost:1", PACKET_ETARGET);
#undef wrong

    /* Empty updates are the only ones of which so many fit. */
    good_message(&message, &update, list);
    llmgateway__gossip__membership_update__init(&update);

    for (i = 0; i < PACKET_MAX_UPDATES + 1; i++) {
        list[i] = &update;
    }

    message.n_updates = PACKET_MAX_UPDATES;
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    assert_int_equal(packet.nrefused, PACKET_MAX_UPDATES);
    message.n_updates = PACKET_MAX_UPDATES + 1;
    assert_int_equal(decode(&packet, &message), PACKET_EUPDATES);
}


static void
wrong_updates_are_left_out_alone(void **state)
{
    char        name[65];
    packet_t    packet;
    update_t    update, good, *list[2];
    message_t   message;

    memset(name, 'n', 64);
    name[64] = '\0';

#define wrong(field, value, refused)                                          \
    good_message(&message, &good, list);                                      \
    good_message(&message, &update, list);                                    \
    list[1] = &good;                                                          \
    message.n_updates = 2;                                                    \
    update.field = value;                                                     \
    assert_int_equal(decode(&packet, &message), PACKET_DONE);                 \
    assert_int_equal(packet.nrefused, refused);                               \
    assert_int_equal(packet.nupdates, 2 - refused);

    wrong(incarnation, PACKET_MAX_INCARNATION, 0);
    wrong(incarnation, PACKET_MAX_INCARNATION + 1, 1);
    wrong(member_id, "", 1);
    wrong(member_id, ".b", 1);
    wrong(member_id, name, 1);
    wrong(member_id, name + 1, 0);
    wrong(model_version, "v 1", 1);
    wrong(address, "", 1);
    wrong(address, "10.0.0.1", 1);
    wrong(address, "10.0.0.1:0", 1);
    wrong(address, "10.0.0.1:65536", 1);
    wrong(address, "0.0.0.0:1", 1);
    wrong(address, "host:1", 1);
    wrong(grpc_address, "", 1);
    wrong(grpc_address, "[::]:5", 1);
    wrong(state, 4, 1);
    wrong(state, -1, 1);
    wrong(service, 5, 1);
    wrong(role, 2, 1);
    wrong(active_requests, -1, 1);
    wrong(max_capacity, -1, 1);
    wrong(weight, 100, 0);
    wrong(weight, 101, 1);
    wrong(drain_owner, "update:lb1", 0);
    wrong(drain_owner, "update:", 1);
    wrong(drain_owner, "a b", 1);
    wrong(update, "u1", 0);
    wrong(update, "u 1", 1);
    wrong(update, name, 1);
    wrong(update, name + 1, 0);
    wrong(epoch, WALL_US + PACKET_MAX_AHEAD_US, 0);
    wrong(epoch, WALL_US + PACKET_MAX_AHEAD_US + 1, 1);
#undef wrong
}


/* With the own record at its largest beside it, and room for the seal. */
static void
largest_order_fits_with_the_own_record(void **state)
{
    size_t          len;
    char            cluster[LLMGW_MEMBERS_NAME_BYTES];
    order_t         order;
    member_t        member;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    memset(cluster, 'c', sizeof(cluster) - 1);
    cluster[sizeof(cluster) - 1] = '\0';
    member = full_member();
    memset(&order, 0, sizeof(order));
    order.verb = ORDER_RESTART;
    order.id = UINT64_MAX;
    order.target_epoch = UINT64_MAX;
    order.answer = ORDER_EMANY;
    memset(order.target_id, 't', LLMGW_MEMBERS_NAME_BYTES - 1);
    memset(order.version, 'v', LLMGW_MEMBERS_NAME_BYTES - 1);
    strcpy(order.owner, member.facts.drain_owner);

    head = head_of(PACKET_ORDER);
    head.sender_epoch = WALL_US;
    strcpy(head.sender_id, member.facts.id);
    strcpy(head.target_id, order.target_id);
    head.order = &order;

    out = packet_out_create(cluster);
    packet_begin(out, &head);
    assert_int_equal(packet_add(out, &member, 0), 0);
    data = packet_end(out, &len);
    assert_true(len <= PACKET_MAX_BYTES - PACKET_SEAL_BYTES);
    assert_int_equal(packet_decode(&packet, cluster, data, len, WALL_US),
                     PACKET_DONE);
    assert_int_equal(packet.nupdates, 1);
    assert_ptr_equal(packet.head.order, &packet.order);
    assert_memory_equal(&packet.order, &order, sizeof(order));
    packet_out_destroy(out);
}


static void
wrong_orders_are_dropped_and_unknown_verbs_are_not(void **state)
{
    char                       name[65];
    packet_t                   packet;
    update_t                   update, *list[1];
    message_t                  message;
    Llmgateway__Gossip__Order  order;

    memset(name, 'n', 64);
    name[64] = '\0';

#define wrong(field, value, expected)                                         \
    good_message(&message, &update, list);                                    \
    llmgateway__gossip__order__init(&order);                                  \
    message.type = (Llmgateway__Gossip__MessageType) PACKET_ORDER;            \
    message.target_id = "r1";                                                 \
    message.order = &order;                                                   \
    order.id = 1;                                                             \
    order.field = value;                                                      \
    assert_int_equal(decode(&packet, &message), expected);

    wrong(owner, "operator", PACKET_DONE);
    assert_string_equal(packet.head.order->target_id, "r1");
    wrong(owner, "a b", PACKET_EORDER);
    wrong(id, 0, PACKET_EORDER);
    wrong(version, "v2", PACKET_DONE);
    wrong(version, "v 2", PACKET_EORDER);
    wrong(version, name, PACKET_EORDER);
    wrong(version, name + 1, PACKET_DONE);
    wrong(verb, 2, PACKET_DONE);
    assert_int_equal(packet.head.order->verb, ORDER_RESTART);
    wrong(verb, 3, PACKET_DONE);
    assert_int_equal(packet.head.order->verb, ORDER_NVERBS);
    wrong(verb, -1, PACKET_DONE);
    assert_int_equal(packet.head.order->verb, ORDER_NVERBS);
    wrong(answer, ORDER_EMANY, PACKET_DONE);
    assert_int_equal(packet.head.order->answer, ORDER_EMANY);
    wrong(answer, ORDER_NRC, PACKET_DONE);
    assert_int_equal(packet.head.order->answer, ORDER_EVERB);
#undef wrong

    /* In another message it is ignored. */
    message.type = (Llmgateway__Gossip__MessageType) PACKET_PING;
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    assert_null(packet.head.order);
}


static void
weight_zero_reads_as_one_and_addresses_in_one_form(void **state)
{
    packet_t    packet;
    update_t    update, *list[1];
    message_t   message;

    good_message(&message, &update, list);
    update.address = "[0:0::1]:80";
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    assert_int_equal(packet.updates[0].facts.weight, 1);
    assert_string_equal(packet.updates[0].facts.address, "[::1]:80");
}


static int
decode_one(const member_t *member, member_update_t *said)
{
    size_t          len;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    head = head_of(PACKET_UPDATES);
    out = packet_out_create("c");
    packet_begin(out, &head);
    assert_int_equal(packet_add(out, member, 0), 0);
    data = packet_end(out, &len);
    assert_int_equal(packet_decode(&packet, "c", data, len, WALL_US),
                     PACKET_DONE);
    *said = packet.updates[0];
    packet_out_destroy(out);

    return (int) packet.nupdates;
}


/* Absent, empty and set are three different things. */
static void
more_is_told_by_who_has_it(void **state)
{
    member_t         member;
    member_update_t  said;

    member = full_member();
    assert_int_equal(decode_one(&member, &said), 1);
    assert_true(said.has_more);

    member.facts.resume_group[0] = '\0';
    assert_int_equal(decode_one(&member, &said), 1);
    assert_true(said.has_more);
    assert_string_equal(said.facts.resume_group, "");

    member = full_member();
    member.lacks_more = 1;
    assert_int_equal(decode_one(&member, &said), 1);
    assert_false(said.has_more);
    assert_string_equal(said.facts.resume_group, "");

    member.lacks_more = 0;
    strcpy(member.facts.resume_group, "a/b");
    assert_int_equal(decode_one(&member, &said), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(largest_fields_come_back_as_they_were),
        cmocka_unit_test(datagram_is_filled_and_never_longer_than_1200),
        cmocka_unit_test(small_updates_stop_at_their_number),
        cmocka_unit_test(mutilated_datagrams_are_dropped_with_their_reason),
        cmocka_unit_test(wrong_heads_are_dropped),
        cmocka_unit_test(wrong_updates_are_left_out_alone),
        cmocka_unit_test(largest_order_fits_with_the_own_record),
        cmocka_unit_test(wrong_orders_are_dropped_and_unknown_verbs_are_not),
        cmocka_unit_test(weight_zero_reads_as_one_and_addresses_in_one_form),
        cmocka_unit_test(more_is_told_by_who_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

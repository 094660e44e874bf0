
/* Datagrams: what is written is read, and nothing else is accepted. */

#include "t/unit/agent/swim/wire/packet_scene.h"


static void
comes_back(const member_t *member)
{
    size_t          len;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    head = head_of(PACKET_PING_REQ);
    out = packet_out_create("c");

    packet_begin(out, &head);
    assert_int_equal(packet_add(out, member, 0), 0);
    data = packet_end(out, &len);

    assert_int_equal(packet_decode(&packet, "c", data, len, WALL_US),
                     PACKET_DONE);
    assert_memory_equal(&packet.head, &head, sizeof(head));
    assert_int_equal(packet.nupdates, 1);
    assert_memory_equal(&packet.updates[0].facts, &member->facts,
                        sizeof(llmgw_member_t));
    assert_memory_equal(&packet.updates[0].traits, &member->traits,
                        sizeof(member_traits_t));
    assert_int_equal(packet.updates[0].active_requests, INT32_MAX);
    assert_int_equal(packet.updates[0].models_bytes, member->models_bytes);
    assert_memory_equal(packet.updates[0].models, member->models,
                        member->models_bytes);
    assert_memory_equal(&packet.updates[0].engine, &member->load.engine,
                        sizeof(llmgw_engine_load_t));
    assert_true(packet.updates[0].load_seq == UINT64_MAX);

    packet_out_destroy(out);
}


static void
largest_fields_come_back_as_they_were(void **state)
{
    member_t  member;

    member = full_member();
    comes_back(&member);
    member = full_shard();
    comes_back(&member);
}


/* The length of a datagram with this record and the longest head; 0 if the
   record does not fit. */
static size_t
longest_with(member_t *member)
{
    int             rc;
    size_t          len;
    char            cluster[LLMGW_MEMBERS_NAME_BYTES];
    packet_out_t   *out;
    packet_head_t   head;

    memset(cluster, 'c', sizeof(cluster) - 1);
    cluster[sizeof(cluster) - 1] = '\0';
    member->nconfirmers = MEMBER_MAX_CONFIRMERS;
    head = head_of(PACKET_PING_REQ);
    strcpy(head.sender_id, member->facts.id);
    strcpy(head.target_id, member->facts.id);
    strcpy(head.target_address, member->facts.address);
    head.sender_epoch = UINT64_MAX;
    head.wait_ms = UINT32_MAX;
    head.seen = UINT32_MAX;
    memset(&head.own_engine, 0, sizeof(head.own_engine));

    out = packet_out_create(cluster);
    packet_begin(out, &head);
    rc = packet_add(out, member, 0);
    packet_end(out, &len);
    packet_out_destroy(out);

    return rc == 0 ? len : 0;
}


/* Behind the longest head there is room for the sender's record, be it a
   replica's or a shard's, which has other fields and is no longer. */
static void
longest_head_leaves_room_for_the_longest_record(void **state)
{
    size_t    len;
    member_t  member;

    member = full_member();
    len = longest_with(&member);
    assert_in_range(len, PACKET_PLAIN_BYTES - 50, PACKET_PLAIN_BYTES);

    member = full_shard();
    assert_in_range(longest_with(&member), len - 150, len);
}


/* A datagram is filled up to the last update that fits, and never beyond: what
   is left of the 1200 bytes is for the seal. */
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
        member.models_bytes = models_of(member.models, n + 1);
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


/* A datagram cut at every byte, and one with each byte of its
   header changed. */
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

    /* Only empty updates are so small that so many fit. */
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


static order_t
full_order(void)
{
    order_t  order;

    memset(&order, 0, sizeof(order));
    order.verb = ORDER_RESTART;
    order.id = UINT64_MAX;
    order.target_epoch = UINT64_MAX;
    order.group_epoch = UINT64_MAX;
    order.answer = ORDER_ENOPROCESS;
    memset(order.group, 'g', LLMGW_GROUP_BYTES - 1);
    memset(order.target_id, 't', LLMGW_MEMBERS_NAME_BYTES - 1);

    return order;
}


/* Checks that an order fits beside the sender's record, with room for the
   seal. */
static void
assert_order_fits(order_t order, member_t member)
{
    size_t          len;
    char            cluster[LLMGW_MEMBERS_NAME_BYTES];
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    memset(cluster, 'c', sizeof(cluster) - 1);
    cluster[sizeof(cluster) - 1] = '\0';
    head = head_of(PACKET_ORDER);
    head.sender_epoch = WALL_US;
    head.table_digest = 0;          /* only other messages have these */
    head.target_address[0] = '\0';
    memset(&head.own_engine, 0, sizeof(head.own_engine));
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


/* The orders of gateways, which serve no models, may be of a rolling update; a
   replica's agent gives only an operator's. */
static void
largest_order_fits_with_the_own_record(void **state)
{
    order_t   order;
    member_t  member;

    member = full_member();
    order = full_order();
    strcpy(order.owner, "operator");
    assert_order_fits(order, member);

    memset(order.version, 'v', LLMGW_MEMBERS_NAME_BYTES - 1);
    strcpy(order.owner, member.facts.drain_owner);
    member.models_bytes = 0;
    member.facts.models_cut = 0;
    assert_order_fits(order, member);
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
    assert_int_equal(packet.head.order->verb, ORDER_SWITCH);
    wrong(verb, 4, PACKET_DONE);
    assert_int_equal(packet.head.order->verb, ORDER_NVERBS);
    wrong(verb, -1, PACKET_DONE);
    assert_int_equal(packet.head.order->verb, ORDER_NVERBS);
    wrong(group, "g", PACKET_DONE);
    assert_string_equal(packet.head.order->group, "g");
    wrong(group, ".g", PACKET_EORDER);
    wrong(group, name + 64 - LLMGW_GROUP_BYTES, PACKET_EORDER);
    wrong(group, name + 64 - LLMGW_GROUP_BYTES + 1, PACKET_DONE);
    wrong(group_epoch, UINT64_MAX, PACKET_DONE);
    assert_true(packet.head.order->group_epoch == UINT64_MAX);
    wrong(answer, ORDER_EMANY, PACKET_DONE);
    assert_int_equal(packet.head.order->answer, ORDER_EMANY);
    wrong(answer, ORDER_NRC, PACKET_DONE);
    assert_int_equal(packet.head.order->answer, ORDER_EVERB);
#undef wrong

    /* In another message an order is ignored. */
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(largest_fields_come_back_as_they_were),
        cmocka_unit_test(longest_head_leaves_room_for_the_longest_record),
        cmocka_unit_test(datagram_is_filled_and_never_longer_than_1200),
        cmocka_unit_test(small_updates_stop_at_their_number),
        cmocka_unit_test(mutilated_datagrams_are_dropped_with_their_reason),
        cmocka_unit_test(wrong_heads_are_dropped),
        cmocka_unit_test(wrong_updates_are_left_out_alone),
        cmocka_unit_test(largest_order_fits_with_the_own_record),
        cmocka_unit_test(wrong_orders_are_dropped_and_unknown_verbs_are_not),
        cmocka_unit_test(weight_zero_reads_as_one_and_addresses_in_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

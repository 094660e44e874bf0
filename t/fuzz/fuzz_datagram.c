
/*
 * Bytes as datagrams to a member of a small cluster, with time passing in
 * between: no crash, and the table keeps its rules.
 *
 * The input is a sequence of records, each a length (two bytes), a pause in
 * units of 16 ms (one byte) and the datagram; length 0 and one more byte are
 * an order.  A datagram that does not begin with the magic gets a valid header
 * before it, so that the fuzzer need not find that first.
 */

#include <assert.h>
#include <string.h>

#include "swim/swim.h"
#include "t/fuzz/fuzz_count.h"


#define FUZZ_WALL_US  1763650000000000ULL
#define FUZZ_HEADER   "LG\1\0\1c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


/* Checks that other members would accept what this one sends; net: where to
   keep the sequence of the last ping. */
static void
fuzz_send(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
    packet_t   packet;
    uint64_t  *sequence = net;

    assert(to->len > 0);
    assert(packet_decode(&packet, "c", bytes, len, FUZZ_WALL_US)
           == PACKET_DONE);
    assert(packet.nrefused == 0);

    if (packet.head.type == PACKET_PING) {
        *sequence = packet.head.sequence;
    }
}


static void
fuzz_change(void *data, const member_t *member, unsigned what)
{
    assert(what != 0);
    assert(llmgw_name_is_valid(member->facts.id, strlen(member->facts.id)));
}


static void
fuzz_conflict(void *data, const char *address)
{
}


static const swim_callbacks_t  fuzz_callbacks = {
    .on_change = fuzz_change,
    .on_conflict = fuzz_conflict
};


static void
fuzz_check_models(const member_t *member)
{
    if (member->models_bytes == 0) {
        assert(member->models == NULL && member->facts.models == 0);
        return;
    }

    assert(member->models_bytes <= LLMGW_MEMBERS_MODELS_BYTES);
    assert(llmgw_members_list_is_valid(member->models, member->models_bytes));
    assert(member->facts.models
           == llmgw_members_list_hash(member->models, member->models_bytes));
    assert(member->load.engine.kv_permille <= 1000);
}


static void
fuzz_check_group(const llmgw_member_t *facts)
{
    assert(memchr(facts->group, '\0', sizeof(facts->group)) != NULL);
    assert(llmgw_member_group_is_valid(facts));
    assert(facts->group_epoch <= FUZZ_WALL_US + PACKET_MAX_AHEAD_US);
}


static void
fuzz_check(swim_t *swim)
{
    size_t          i, npresent;
    const char     *group;
    const table_t  *table;

    table = swim_table(swim);
    npresent = 0;

    for (i = 0; i < table->n; i++) {
        npresent += member_is_present(table->members[i]);
        assert(table_find(table, table->members[i]->facts.id)
               == table->members[i]);
        group = table->members[i]->facts.resume_group;
        assert(group[0] == '\0' || llmgw_name_is_valid(group, strlen(group)));
        fuzz_check_models(table->members[i]);
        fuzz_check_group(&table->members[i]->facts);
    }

    assert(npresent == table->npresent);
    assert(swim_own(swim)->facts.liveness == LLMGW_LIVENESS_ALIVE);
    assert(swim_own(swim)->facts.draining
           == (swim_own(swim)->facts.drain_owner[0] != '\0'));
}


static void
fuzz_datagram(swim_t *swim, const uint8_t *data, size_t len, uint64_t now_us)
{
    size_t     header_bytes;
    uint8_t    bytes[PACKET_MAX_BYTES + 64];
    address_t  from;

    if (len > PACKET_MAX_BYTES) {
        len = PACKET_MAX_BYTES;
    }

    header_bytes = len >= 2 && memcmp(data, "LG", 2) == 0
                   ? 0 : sizeof(FUZZ_HEADER) - 1;
    memcpy(bytes, FUZZ_HEADER, header_bytes);
    memcpy(bytes + header_bytes, data, len);
    address_parse("10.0.0.9:7946", &from);

    swim_recv(swim, &from, bytes, header_bytes + len, now_us, FUZZ_WALL_US);
    fuzz_count();
}


static void
fuzz_say(swim_t *swim, packet_out_t *out, packet_type_t type,
    const member_t *who, uint64_t sequence, uint64_t now_us)
{
    size_t          len;
    packet_head_t   head;
    const uint8_t  *bytes;

    memset(&head, 0, sizeof(head));
    head.type = type;
    head.sequence = sequence;
    strcpy(head.sender_id, who->facts.id);

    packet_begin(out, &head);
    packet_add(out, who, now_us);
    bytes = packet_end(out, &len);
    fuzz_datagram(swim, bytes, len, now_us);
}


/* Member 0 is in no group, member 1 stands by, the others are active. */
static void
fuzz_stand(llmgw_member_t *facts, size_t i)
{
    if (i > 0) {
        strcpy(facts->group, "g");
        facts->group_state = i == 1 ? LLMGW_GROUP_STANDBY : LLMGW_GROUP_ACTIVE;
        facts->group_epoch = i == 1 ? 0 : FUZZ_WALL_US;
        facts->group_lock = 7;
    }
}


/* Makes the facts those of a shard, with an address and valid layers. */
static void
fuzz_compute(llmgw_member_t *facts)
{
    strcpy(facts->grpc, "10.0.0.2:50051");
    facts->is_shard = 1;
    facts->shard.last = 3;
    facts->shard.layers = 8;
    strcpy(facts->shard.zone, "z");
}


/* Four others join as every member does: each is announced and pinged, and it
   answers.  Two of them are agents of older versions. */
static void
fuzz_befriend(swim_t *swim, const uint64_t *sequence, uint64_t now_us)
{
    size_t         i;
    member_t       stranger;
    packet_out_t  *out;

    out = packet_out_create("c");

    for (i = 0; i < 4; i++) {
        memset(&stranger, 0, sizeof(stranger));
        stranger.facts.id[0] = 'a' + i;
        stranger.facts.weight = 1;
        stranger.facts.epoch = 5;
        stranger.facts.role = LLMGW_ROLE_GATEWAY;
        stranger.lacks_more = i == 1 ? MEMBER_MORE_ALL
                              : i == 3 ? MEMBER_MORE_ALL - MEMBER_MORE_FIRST
                                       : 0;
        fuzz_stand(&stranger.facts, i);
        strcpy(stranger.facts.resume_group, i ? "g" : "");
        stranger.traits.orchestrates = i == 2;

        if (i == 0) {
            fuzz_compute(&stranger.facts);
        }

        stranger.models = "base\0lora";
        stranger.models_bytes = i == 2 ? 10 : 0;
        stranger.load.engine.reported = i == 2 ? LLMGW_ENGINE_ALL : 0;
        strcpy(stranger.facts.address, "10.0.0.2:7946");
        stranger.facts.address[7] = '2' + i;

        /* So late that the only ping that is due is one to this member. */
        now_us += 1000;
        fuzz_say(swim, out, PACKET_UPDATES, &stranger, 0, now_us);
        swim_tick(swim, now_us);
        fuzz_say(swim, out, PACKET_ACK, &stranger, *sequence, now_us);
    }

    packet_out_destroy(out);
    assert(swim_table(swim)->n == 5);
}


/* An order from one of the four, which the fuzzer would hardly find itself. */
static void
fuzz_order(swim_t *swim, uint8_t byte, uint64_t now_us)
{
    size_t          len;
    order_t         order;
    packet_head_t   head;
    packet_out_t   *out;
    const uint8_t  *bytes;

    static const char *const  owners[] = { "operator", "update:u1",
                                           "update:u2", "me" };

    memset(&order, 0, sizeof(order));
    order.verb = byte % (ORDER_NVERBS + 1);
    order.id = 1 + (byte >> 4);
    order.target_epoch = swim_own(swim)->facts.epoch - (byte == 0xff);
    strcpy(order.owner, owners[byte >> 2 & 3]);
    strcpy(order.version, "v2");
    strcpy(order.group, "g");
    order.group_epoch = swim_own(swim)->facts.group_epoch;

    memset(&head, 0, sizeof(head));
    head.type = byte & 0x80 ? PACKET_ORDER_ACK : PACKET_ORDER;
    head.order = &order;
    strcpy(head.sender_id, "a");
    strcpy(head.target_id, swim_own(swim)->facts.id);

    out = packet_out_create("c");
    packet_begin(out, &head);
    bytes = packet_end(out, &len);
    fuzz_datagram(swim, bytes, len, now_us);
    packet_out_destroy(out);
}


/* The own replica is active in a group, so that a switch has
   something to do. */
static void
fuzz_own(swim_t *swim, uint64_t now_us)
{
    swim_own_t  own;

    memset(&own, 0, sizeof(own));
    own.service = LLMGW_SERVICE_READY;
    own.model_version = "v1";
    own.is_heard = 1;
    own.group = "g";
    own.group_state = LLMGW_GROUP_ACTIVE;
    own.group_epoch = FUZZ_WALL_US + 1;
    swim_set_own(swim, &own, now_us);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t          n;
    swim_t         *swim;
    uint64_t        now_us, sequence;
    swim_config_t   config;

    now_us = 1000000;
    memset(&config, 0, sizeof(config));
    config.cluster = "c";
    config.id = "me";
    config.address = "10.0.0.1:7946";
    config.grpc = "10.0.0.1:5051";
    config.weight = 1;
    config.epoch = FUZZ_WALL_US;
    config.period_us = 500000;
    config.ping_timeout_us = 200000;
    config.suspect_timeout_us = 2000000;
    config.indirect_probes = 3;
    config.on_send = fuzz_send;
    config.net = &sequence;
    config.callbacks = &fuzz_callbacks;

    swim = swim_create(&config, now_us);
    fuzz_befriend(swim, &sequence, now_us);
    fuzz_own(swim, now_us);

    while (len >= 3) {
        n = data[0] | data[1] << 8;
        now_us += data[2] * 16000ULL;
        data += 3;
        len -= 3;
        n = n < len ? n : len;

        swim_tick(swim, now_us);

        if (n == 0 && len > 0) {
            fuzz_order(swim, *data, now_us);
            n = 1;

        } else {
            fuzz_datagram(swim, data, n, now_us);
        }

        data += n;
        len -= n;
        fuzz_check(swim);
    }

    swim_tick(swim, now_us + 10000000);
    fuzz_check(swim);
    swim_destroy(swim);

    return 0;
}

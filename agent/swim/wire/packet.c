
/*
 * The message of a datagram; the bytes before it are common/packet_header.c's.
 */

#include <string.h>

#include "common/address.h"
#include "gossip.pb-c.h"
#include "swim/wire/packet.h"


typedef Llmgateway__Gossip__GossipMessage     message_t;
typedef Llmgateway__Gossip__MembershipUpdate  update_t;
typedef Llmgateway__Gossip__MemberMore        more_t;
typedef Llmgateway__Gossip__EngineLoad        engine_load_t;
typedef Llmgateway__Gossip__Shard             shard_t;
typedef Llmgateway__Gossip__Order             wire_order_t;


static int
packet_copy_name(char *to, const char *from, int may_be_empty)
{
    size_t  len;

    len = strlen(from);

    if (!llmgw_name_is_valid(from, len) && !(len == 0 && may_be_empty)) {
        return -1;
    }

    memcpy(to, from, len + 1);

    return 0;
}


/* Copies the name of a standby group, or an empty one. */
static int
packet_copy_group(char *to, const char *from)
{
    size_t  len;

    len = strlen(from);

    if (len != 0 && !llmgw_group_is_valid(from, len)) {
        return -1;
    }

    memcpy(to, from, len + 1);

    return 0;
}


/*
 * Copies an address, which must be numeric and in the form that our own agents
 * write.
 */
static int
packet_copy_address(char *to, const char *from, int may_be_empty)
{
    address_t  address;

    if (from[0] == '\0' && may_be_empty) {
        to[0] = '\0';
        return 0;
    }

    if (strlen(from) >= LLMGW_MEMBERS_ADDRESS_BYTES
        || address_parse(from, &address) != 0
        || address_is_wildcard(&address) || address_port(&address) == 0)
    {
        return -1;
    }

    address_format(&address, to);

    return 0;
}


/*
 * Copies an owner: empty, a word, or a word, a colon and a name: "update:lb1".
 */
static int
packet_copy_owner(char *to, const char *from)
{
    size_t       len;
    const char  *name;

    len = strlen(from);
    name = strchr(from, ':');
    name = name ? name + 1 : from;

    if (len >= LLMGW_MEMBERS_OWNER_BYTES) {
        return -1;
    }

    if (len != 0 && !(llmgw_name_is_valid(name, strlen(name))
                      && (name == from
                          || llmgw_name_is_valid(from, name - from - 1))))
    {
        return -1;
    }

    memcpy(to, from, len + 1);

    return 0;
}


static int
packet_copy_numbers(member_update_t *update, const update_t *wire,
    uint64_t wall_us)
{
    llmgw_member_t  *facts;

    facts = &update->facts;

    if ((unsigned) wire->state > LLMGW_LIVENESS_LEFT
        || wire->incarnation > PACKET_MAX_INCARNATION
        || (unsigned) wire->service > LLMGW_SERVICE_DOWN
        || (unsigned) wire->role > LLMGW_ROLE_GATEWAY
        || wire->active_requests < 0 || wire->max_capacity < 0
        || wire->epoch > wall_us + PACKET_MAX_AHEAD_US
        || wire->weight > PACKET_MAX_WEIGHT)
    {
        return -1;
    }

    facts->liveness = wire->state;
    facts->service = wire->service;
    facts->role = wire->role;
    facts->draining = wire->draining != 0;
    facts->max_capacity = wire->max_capacity;
    facts->epoch = wire->epoch;
    facts->incarnation = wire->incarnation;
    facts->weight = wire->weight ? wire->weight : 1;
    facts->replica_start_ms = wire->replica_start_ms;
    update->active_requests = wire->active_requests;
    update->load_seq = wire->load_seq;
    update->age_s = member_liveness_is_present(wire->state) ? 0
                                                            : wire->age_s;

    return 0;
}


/* More confirmers than we keep are no error: another version may send more. */
static void
packet_copy_confirmers(member_update_t *update, const update_t *wire)
{
    size_t  i;

    if (update->facts.liveness != LLMGW_LIVENESS_SUSPECT) {
        return;
    }

    for (i = 0; i < wire->n_confirmers && i < MEMBER_MAX_CONFIRMERS; i++) {
        update->confirmers[i] = wire->confirmers[i];
    }

    update->nconfirmers = i;
}


static int
packet_copy_engine(llmgw_engine_load_t *engine, const engine_load_t *wire)
{
    if (wire == NULL) {
        return 0;
    }

    if (wire->running > LLMGW_ENGINE_MAX_REQUESTS
        || wire->waiting > LLMGW_ENGINE_MAX_REQUESTS
        || wire->kv_permille > 1000
        || wire->kv_free_blocks > LLMGW_ENGINE_MAX_BLOCKS
        || wire->hit_permille > 1000)
    {
        return -1;
    }

    engine->running = wire->running;
    engine->waiting = wire->waiting;
    engine->kv_permille = (uint16_t) wire->kv_permille;
    engine->kv_free_blocks = wire->kv_free_blocks;
    engine->hit_permille = (uint16_t) wire->hit_permille;
    engine->reported = wire->reported & LLMGW_ENGINE_ALL;

    return 0;
}


static int
packet_copy_models(member_update_t *update, const more_t *wire)
{
    update->models = (const char *) wire->models.data;
    update->models_bytes = wire->models.len;
    update->facts.models_cut = wire->models_cut;

    if (wire->models.len == 0) {
        return wire->models_cut == 0 ? 0 : -1;
    }

    if (wire->models.len > LLMGW_MEMBERS_MODELS_BYTES
        || !llmgw_members_list_is_valid(update->models, wire->models.len))
    {
        return -1;
    }

    update->facts.models = llmgw_members_list_hash(update->models,
                                                   wire->models.len);

    return 0;
}


/*
 * Copies the standby group.  An epoch from a wrong clock, which would supersede
 * all later ones of the group, is refused.
 */
static int
packet_copy_standing(member_update_t *update, const more_t *wire,
    uint64_t wall_us)
{
    llmgw_member_t  *facts;

    facts = &update->facts;

    if (packet_copy_group(facts->group, wire->group) != 0
        || (unsigned) wire->group_state > LLMGW_GROUP_ACTIVE)
    {
        return -1;
    }

    facts->group_state = wire->group_state;
    facts->group_epoch = wire->group_epoch;
    facts->group_lock = wire->group_lock;

    if (!llmgw_member_group_is_valid(facts)) {
        return -1;
    }

    if (wire->group_epoch > wall_us + PACKET_MAX_AHEAD_US) {
        update->refused_epoch = wire->group_epoch;
        member_refuse_epoch(facts);
    }

    return 0;
}


/*
 * Copies shards' facts.  Not called for an older edition, whatever is in these
 * fields.
 */
static int
packet_copy_shard(member_update_t *update, const more_t *wire)
{
    size_t           len;
    const shard_t   *said;
    llmgw_shard_t   *shard;

    update->traits.orchestrates = wire->orchestrates != 0;
    said = wire->shard;

    if (said == NULL) {
        return 0;
    }

    update->facts.is_shard = 1;
    shard = &update->facts.shard;
    len = strlen(said->zone);

    if (len >= LLMGW_ZONE_BYTES || said->first > UINT16_MAX
        || said->last > UINT16_MAX || said->layers > UINT16_MAX)
    {
        return -1;
    }

    memset(shard, 0, sizeof(llmgw_shard_t));
    memcpy(shard->zone, said->zone, len);
    shard->memory_bytes = said->memory;
    shard->first = said->first;
    shard->last = said->last;
    shard->layers = said->layers;
    shard->is_loaded = said->loaded != 0;

    return llmgw_shard_is_valid(shard) ? 0 : -1;
}


static member_more_t
packet_more_of(const more_t *wire)
{
    if (wire == NULL) {
        return MEMBER_MORE_NONE;
    }

    return wire->edition < MEMBER_MORE_ALL - MEMBER_MORE_FIRST
           ? MEMBER_MORE_FIRST + wire->edition : MEMBER_MORE_ALL;
}


/*
 * Copies MemberMore.  An older edition has no group, whatever is in its fields.
 */
static int
packet_copy_more(member_update_t *update, const more_t *wire,
    uint64_t wall_us)
{
    update->more = packet_more_of(wire);

    if (wire == NULL) {
        return 0;
    }

    if (packet_copy_name(update->facts.resume_group, wire->resume_group, 1)
        != 0
        || packet_copy_models(update, wire) != 0
        || packet_copy_engine(&update->engine, wire->engine) != 0)
    {
        return -1;
    }

    if (update->more >= MEMBER_MORE_GROUP
        && packet_copy_standing(update, wire, wall_us) != 0)
    {
        return -1;
    }

    return update->more >= MEMBER_MORE_ALL ? packet_copy_shard(update, wire)
                                           : 0;
}


static int
packet_decode_update(member_update_t *update, const update_t *wire,
    uint64_t wall_us)
{
    llmgw_member_t  *facts;

    memset(update, 0, sizeof(member_update_t));
    facts = &update->facts;

    if (packet_copy_name(facts->id, wire->member_id, 0) != 0
        || packet_copy_name(facts->model_version, wire->model_version, 1)
           != 0
        || packet_copy_address(facts->address, wire->address, 0) != 0
        || packet_copy_address(facts->grpc, wire->grpc_address, 1) != 0
        || packet_copy_owner(facts->drain_owner, wire->drain_owner) != 0
        || packet_copy_name(update->traits.update, wire->update, 1) != 0
        || packet_copy_more(update, wire->more, wall_us) != 0
        || packet_copy_numbers(update, wire, wall_us) != 0)
    {
        return -1;
    }

    update->traits.can_restart = wire->can_restart != 0;
    update->traits.refuses_new = wire->refuses_new != 0;
    packet_copy_confirmers(update, wire);

    if (facts->is_shard && facts->role != LLMGW_ROLE_GATEWAY) {
        return -1;
    }

    return llmgw_member_role(facts) != LLMGW_ROLE_GATEWAY
           && facts->grpc[0] == '\0' ? -1 : 0;
}


static packet_rc_t
packet_decode_head(packet_head_t *head, const message_t *message,
    uint64_t wall_us)
{
    if ((unsigned) message->type >= PACKET_NTYPES) {
        return PACKET_ETYPE;
    }

    head->own_engine = (llmgw_engine_load_t) { 0 };

    if (packet_copy_name(head->sender_id, message->sender_id, 0) != 0
        || message->own_incarnation > PACKET_MAX_INCARNATION
        || message->own_active_requests < 0
        || packet_copy_engine(&head->own_engine, message->own_engine) != 0)
    {
        return PACKET_ESENDER;
    }

    head->sender_epoch = message->sender_epoch;

    if (message->sender_epoch > wall_us + PACKET_MAX_AHEAD_US) {
        return PACKET_ECLOCK;
    }

    if (packet_copy_name(head->target_id, message->target_id, 1) != 0
        || packet_copy_address(head->target_address, message->target_address,
                               1)
           != 0)
    {
        return PACKET_ETARGET;
    }

    head->type = (packet_type_t) message->type;
    head->sequence = message->sequence_num;
    head->table_digest = message->table_digest;
    head->wait_ms = message->wait_ms;
    head->seen = message->seen;
    head->own_incarnation = message->own_incarnation;
    head->own_active_requests = message->own_active_requests;
    head->own_load_seq = message->own_load_seq;
    head->boot_nonce = message->boot_nonce;
    head->uptime_ms = message->uptime_ms;
    head->time_us = message->time_us;

    return PACKET_DONE;
}


/*
 * Decodes an order.  An unknown verb or answer is no error here: order.c
 * answers it.
 */
static packet_rc_t
packet_decode_order(packet_t *packet, const message_t *message)
{
    order_t             *order;
    const wire_order_t  *from;

    from = message->order;
    packet->head.order = NULL;

    if (packet->head.type != PACKET_ORDER
        && packet->head.type != PACKET_ORDER_ACK)
    {
        return PACKET_DONE;
    }

    order = &packet->order;
    memset(order, 0, sizeof(order_t));

    if (from == NULL || from->id == 0
        || packet_copy_owner(order->owner, from->owner) != 0
        || packet_copy_name(order->version, from->version, 1) != 0
        || packet_copy_group(order->group, from->group) != 0)
    {
        return PACKET_EORDER;
    }

    strcpy(order->target_id, packet->head.target_id);
    order->verb = (unsigned) from->verb < ORDER_NVERBS
                  ? (order_verb_t) from->verb : ORDER_NVERBS;
    order->id = from->id;
    order->target_epoch = from->target_epoch;
    order->group_epoch = from->group_epoch;
    order->answer = from->answer < ORDER_NRC ? (order_rc_t) from->answer
                                             : ORDER_EVERB;
    packet->head.order = order;

    return PACKET_DONE;
}


static packet_rc_t
packet_decode_message(packet_t *packet, const message_t *message,
    uint64_t wall_us)
{
    size_t            i;
    packet_rc_t       rc;
    member_update_t  *update;

    rc = packet_decode_head(&packet->head, message, wall_us);

    if (rc == PACKET_DONE) {
        rc = packet_decode_order(packet, message);
    }

    if (rc != PACKET_DONE) {
        return rc;
    }

    if (message->n_updates > PACKET_MAX_UPDATES) {
        return PACKET_EUPDATES;
    }

    packet->nupdates = 0;
    packet->nrefused = 0;

    for (i = 0; i < message->n_updates; i++) {
        update = &packet->updates[packet->nupdates];

        if (packet_decode_update(update, message->updates[i], wall_us) == 0) {
            packet->nupdates++;

        } else {
            packet->nrefused++;
        }
    }

    return PACKET_DONE;
}


static void *
packet_arena_alloc(void *data, size_t bytes)
{
    void      *taken;
    packet_t  *packet = data;

    bytes = (bytes + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);

    if (bytes > PACKET_ARENA_BYTES - packet->arena_used) {
        return NULL;
    }

    taken = (char *) packet->arena + packet->arena_used;
    packet->arena_used += bytes;

    return taken;
}


/* Frees nothing: the whole arena is reused when the next datagram comes. */
static void
packet_arena_free(void *data, void *taken)
{
}


packet_rc_t
packet_decode(packet_t *packet, const char *cluster, const uint8_t *data,
    size_t len, uint64_t wall_us)
{
    size_t              header_bytes;
    unsigned            flags;
    message_t          *message;
    packet_rc_t         rc;
    ProtobufCAllocator  arena;

    rc = packet_header_decode(cluster, data, len, &flags, &header_bytes);

    if (rc != PACKET_DONE) {
        return rc;
    }

    if (flags & PACKET_FLAG_SEALED) {
        return PACKET_ESEALED;
    }

    packet->arena_used = 0;
    arena.alloc = packet_arena_alloc;
    arena.free = packet_arena_free;
    arena.allocator_data = packet;

    message = llmgateway__gossip__gossip_message__unpack(&arena,
                                                         len - header_bytes,
                                                         data + header_bytes);

    return message == NULL ? PACKET_EMESSAGE
                           : packet_decode_message(packet, message, wall_us);
}

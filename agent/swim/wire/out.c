
/*
 * Encodes a datagram: begin, add records while they fit, end (packet.h).
 *
 * protobuf-c packs a tree of structs.  All structs of the tree are in one
 * packet_out_t and point to the members' own strings.  So building a datagram
 * allocates nothing, and each byte is copied once, when it is packed.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gossip.pb-c.h"
#include "swim/wire/packet.h"


typedef Llmgateway__Gossip__GossipMessage     message_t;
typedef Llmgateway__Gossip__MembershipUpdate  update_t;
typedef Llmgateway__Gossip__MemberMore        more_t;
typedef Llmgateway__Gossip__EngineLoad        engine_load_t;
typedef Llmgateway__Gossip__Shard             shard_t;
typedef Llmgateway__Gossip__Order             wire_order_t;

struct packet_out_s {
    size_t         header_bytes;
    size_t         bytes;           /* of the datagram so far */
    message_t      message;
    wire_order_t   order;
    engine_load_t  own_engine;
    update_t       updates[PACKET_MAX_UPDATES];
    more_t         mores[PACKET_MAX_UPDATES];
    engine_load_t  engines[PACKET_MAX_UPDATES];
    shard_t        shards[PACKET_MAX_UPDATES];
    update_t      *pointers[PACKET_MAX_UPDATES];
    uint8_t        buf[PACKET_MAX_BYTES];
};

/* Tag and length of an update: 1 + 2 bytes, since it is below 16 KiB. */
#define PACKET_UPDATE_FRAME_BYTES  3


packet_out_t *
packet_out_create(const char *cluster)
{
    packet_out_t  *out;

    assert(llmgw_name_is_valid(cluster, strlen(cluster)));

    out = calloc(1, sizeof(packet_out_t));
    if (out == NULL) {
        return NULL;
    }

    out->header_bytes = packet_header_encode(out->buf, cluster, 0);

    return out;
}


void
packet_out_destroy(packet_out_t *out)
{
    free(out);
}


static void
packet_fill_order(wire_order_t *wire, const order_t *order)
{
    llmgateway__gossip__order__init(wire);

    wire->verb = (Llmgateway__Gossip__OrderVerb) order->verb;
    wire->id = order->id;
    wire->target_epoch = order->target_epoch;
    wire->owner = (char *) order->owner;
    wire->version = (char *) order->version;
    wire->answer = order->answer;
    wire->group = (char *) order->group;
    wire->group_epoch = order->group_epoch;
}


/* Fills the engine's load; NULL: there is none to send. */
static engine_load_t *
packet_fill_engine(engine_load_t *wire, const llmgw_engine_load_t *engine)
{
    if (engine->reported == 0) {
        return NULL;
    }

    llmgateway__gossip__engine_load__init(wire);

    wire->reported = engine->reported;
    wire->running = engine->running;
    wire->waiting = engine->waiting;
    wire->kv_permille = engine->kv_permille;
    wire->kv_free_blocks = engine->kv_free_blocks;
    wire->hit_permille = engine->hit_permille;

    return wire;
}


void
packet_begin(packet_out_t *out, const packet_head_t *head)
{
    message_t  *message;

    message = &out->message;
    llmgateway__gossip__gossip_message__init(message);

    message->type = (Llmgateway__Gossip__MessageType) head->type;
    message->sender_id = (char *) head->sender_id;
    message->target_id = (char *) head->target_id;
    message->target_address = (char *) head->target_address;
    message->sequence_num = head->sequence;
    message->sender_epoch = head->sender_epoch;
    message->table_digest = head->table_digest;
    message->wait_ms = head->wait_ms;
    message->seen = head->seen;
    message->own_incarnation = head->own_incarnation;
    message->own_active_requests = head->own_active_requests;
    message->own_engine = packet_fill_engine(&out->own_engine,
                                             &head->own_engine);
    message->own_load_seq = head->own_load_seq;
    message->boot_nonce = head->boot_nonce;
    message->uptime_ms = head->uptime_ms;
    message->time_us = head->time_us;
    message->updates = out->pointers;

    if (head->order != NULL) {
        packet_fill_order(&out->order, head->order);
        message->order = &out->order;
    }

    out->bytes = out->header_bytes
        + llmgateway__gossip__gossip_message__get_packed_size(message);
}


static void
packet_fill_update(update_t *update, const member_t *member, uint64_t now_us)
{
    const llmgw_member_t  *facts;

    facts = &member->facts;
    llmgateway__gossip__membership_update__init(update);

    update->member_id = (char *) facts->id;
    update->address = (char *) facts->address;
    update->model_version = (char *) facts->model_version;
    update->grpc_address = (char *) facts->grpc;
    update->drain_owner = (char *) facts->drain_owner;
    update->state = (Llmgateway__Gossip__MemberState) facts->liveness;
    update->role = (Llmgateway__Gossip__MemberRole) facts->role;
    update->service = (Llmgateway__Gossip__ServiceState) facts->service;
    update->draining = facts->draining;
    update->epoch = facts->epoch;
    update->incarnation = facts->incarnation;
    update->max_capacity = facts->max_capacity;
    update->weight = facts->weight == 1 ? 0 : facts->weight;
    update->replica_start_ms = facts->replica_start_ms;
    update->active_requests = member->load.active_requests;
    update->load_seq = member->load_seq;
    update->age_s = member_age_s(member, now_us);
    update->can_restart = member->traits.can_restart;
    update->refuses_new = member->traits.refuses_new;
    update->update = (char *) member->traits.update;

    if (facts->liveness == LLMGW_LIVENESS_SUSPECT) {
        update->n_confirmers = member->nconfirmers;
        update->confirmers = (uint32_t *) member->confirmers;
    }
}


static void
packet_fill_group(more_t *more, const llmgw_member_t *facts)
{
    more->group = (char *) facts->group;
    more->group_state = (Llmgateway__Gossip__GroupState) facts->group_state;
    more->group_epoch = facts->group_epoch;
    more->group_lock = facts->group_lock;
}


/* Fills a shard's facts; NULL: it is no shard. */
static shard_t *
packet_fill_shard(shard_t *wire, const llmgw_member_t *facts)
{
    if (!facts->is_shard) {
        return NULL;
    }

    llmgateway__gossip__shard__init(wire);

    wire->first = facts->shard.first;
    wire->last = facts->shard.last;
    wire->layers = facts->shard.layers;
    wire->memory = facts->shard.memory_bytes;
    wire->loaded = facts->shard.is_loaded;
    wire->zone = (char *) facts->shard.zone;

    return wire;
}


/*
 * Fills MemberMore with no more than we have ourselves: it is absent if we lack
 * all of it, and of an older edition if we lack a part, since empty fields
 * would mean that the member has none.
 */
static void
packet_fill_more(update_t *update, more_t *more, engine_load_t *engine,
    shard_t *shard, const member_t *member)
{
    member_more_t  has;

    has = MEMBER_MORE_ALL - member->lacks_more;

    if (has == MEMBER_MORE_NONE) {
        return;
    }

    llmgateway__gossip__member_more__init(more);
    more->edition = has - MEMBER_MORE_FIRST;
    more->models.data = (uint8_t *) member->models;
    more->models.len = member->models_bytes;
    more->models_cut = member->facts.models_cut;
    more->engine = packet_fill_engine(engine, &member->load.engine);
    update->more = more;

    if (!member->facts.is_shard) {
        more->resume_group = (char *) member->facts.resume_group;
    }

    if (has >= MEMBER_MORE_GROUP) {
        packet_fill_group(more, &member->facts);
    }

    if (has >= MEMBER_MORE_ALL) {
        more->shard = packet_fill_shard(shard, &member->facts);
        more->orchestrates = member->traits.orchestrates;
    }
}


int
packet_add(packet_out_t *out, const member_t *member, uint64_t now_us)
{
    size_t     n, bytes;
    update_t  *update;

    n = out->message.n_updates;

    if (n == PACKET_MAX_UPDATES) {
        return -1;
    }

    update = &out->updates[n];
    packet_fill_update(update, member, now_us);
    packet_fill_more(update, &out->mores[n], &out->engines[n],
                     &out->shards[n], member);

    bytes = PACKET_UPDATE_FRAME_BYTES
        + llmgateway__gossip__membership_update__get_packed_size(update);

    if (out->bytes + bytes > PACKET_PLAIN_BYTES) {
        return -1;
    }

    out->bytes += bytes;
    out->pointers[n] = update;
    out->message.n_updates = n + 1;

    return 0;
}


size_t
packet_nupdates(const packet_out_t *out)
{
    return out->message.n_updates;
}


const uint8_t *
packet_end(packet_out_t *out, size_t *len)
{
    *len = out->header_bytes
        + llmgateway__gossip__gossip_message__pack(&out->message,
                                                   out->buf
                                                   + out->header_bytes);
    assert(*len <= PACKET_PLAIN_BYTES);

    return out->buf;
}

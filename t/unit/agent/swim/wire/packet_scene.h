
/* Datagrams as a peer would make them, and a member at its largest. */

#ifndef PACKET_SCENE_H
#define PACKET_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "swim/wire/packet.h"
#include "proto/members/shards.h"
#include "gossip.pb-c.h"


#define WALL_US  1763650000000000ULL

typedef Llmgateway__Gossip__GossipMessage     message_t;
typedef Llmgateway__Gossip__MembershipUpdate  update_t;
typedef Llmgateway__Gossip__MemberMore        more_t;


/* Writes names of so many bytes in all into the caller's buffer. */
static inline size_t
models_of(char *models, size_t bytes)
{
    size_t  i;

    for (i = 0; i < bytes; i++) {
        models[i] = (i % 32 == 31 && i + 2 < bytes) || i + 1 == bytes ? '\0'
                                                                     : 'm';
    }

    return bytes;
}


static inline member_t
full_member(void)
{
    member_t     m;
    static char  models[LLMGW_MEMBERS_MODELS_BYTES];

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
    m.traits.orchestrates = 1;
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
    m.models = models;
    m.models_bytes = models_of(models, sizeof(models));
    m.facts.models = llmgw_members_list_hash(models, sizeof(models));
    m.facts.models_cut = 63;
    memset(m.facts.group, 'g', LLMGW_GROUP_BYTES - 1);
    m.facts.group_state = LLMGW_GROUP_ACTIVE;
    m.facts.group_epoch = WALL_US + PACKET_MAX_AHEAD_US;
    m.facts.group_lock = UINT64_MAX;
    m.load.engine = (llmgw_engine_load_t) {
        LLMGW_ENGINE_MAX_REQUESTS, LLMGW_ENGINE_MAX_REQUESTS, 1000,
        LLMGW_ENGINE_ALL, LLMGW_ENGINE_MAX_BLOCKS, 1000, 0
    };

    return m;
}


/* A shard at its largest. */
static inline member_t
full_shard(void)
{
    size_t                i;
    member_t              m;
    llmgw_shard_model_t   model;
    static char           list[LLMGW_MEMBERS_MODELS_BYTES];

    m = full_member();
    m.facts.role = LLMGW_ROLE_GATEWAY;
    m.facts.is_shard = 1;
    memset(&m.facts.shard, 0, sizeof(m.facts.shard));
    memset(m.facts.shard.zone, 'z', LLMGW_ZONE_BYTES - 1);
    m.facts.shard.memory_bytes = UINT64_MAX;
    m.facts.shard.first = LLMGW_SHARD_MAX_LAYERS - 2;
    m.facts.shard.last = LLMGW_SHARD_MAX_LAYERS - 1;
    m.facts.shard.layers = LLMGW_SHARD_MAX_LAYERS;
    m.facts.shard.is_loaded = 1;
    m.facts.models_cut = 0;
    memset(m.facts.group, 0, sizeof(m.facts.group));
    m.facts.group_state = LLMGW_GROUP_NONE;
    m.facts.group_epoch = 0;
    m.facts.group_lock = 0;

    memset(&model, 0, sizeof(model));
    memset(model.name, 'm', LLMGW_SHARD_MODEL_BYTES - 1);
    memset(model.numerics, 'n', LLMGW_MEMBERS_NAME_BYTES - 1);

    for (i = 0; i < LLMGW_WEIGHTS_ID_BYTES; i++) {
        model.weights_id[i] = (uint8_t) (i * 7);
    }

    m.models = list;
    m.models_bytes = llmgw_shard_model_write(&model, list);
    m.facts.models = llmgw_members_list_hash(list, m.models_bytes);

    return m;
}


static inline packet_head_t
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
    head.own_engine = (llmgw_engine_load_t) { 3, 4, 5, LLMGW_ENGINE_ALL, 6, 7,
                                              0 };

    return head;
}


static inline size_t
pack(uint8_t *buf, const message_t *message)
{
    memcpy(buf, "LG\1\0\1c", 6);

    return 6 + llmgateway__gossip__gossip_message__pack(message, buf + 6);
}


/* One message with one update, both as a peer would make them. */
static inline void
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


static inline packet_rc_t
decode(packet_t *packet, const message_t *message)
{
    uint8_t  buf[4096];

    return packet_decode(packet, "c", buf, pack(buf, message), WALL_US);
}

#endif /* PACKET_SCENE_H */

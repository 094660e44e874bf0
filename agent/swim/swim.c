
/*
 * One swim: it is created and destroyed here, and its timers run from here.
 *
 * Each part of the protocol has a tick() and says when it wants the next one.
 * swim_tick() calls those that are due; swim_next_us() is the earliest of them.
 * Small accessors of the public header are here as well.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "swim/swim_inner.h"


/*
 * A tick that is this late means that this agent did not run, and missed
 * answers because of it.  So pings and suspicions get that much more time.
 */
#define SWIM_LATE_US  (50 * SWIM_MS)

typedef struct {
    void      (*tick)(swim_t *swim, uint64_t now_us);
    uint64_t  (*next_us)(const swim_t *swim);
} swim_part_t;

/*
 * Parts whose datagrams must arrive at once come first, suspicions come last.
 */
static const swim_part_t  swim_parts[] = {
    { swim_drain_tick, swim_drain_next_us },
    { delivery_tick,   delivery_next_us },
    { load_tick,       load_next_us },
    { order_tick,      order_next_us },
    { stranger_tick,   stranger_next_us },
    { join_tick,       join_next_us },
    { handout_tick,    handout_next_us },
    { gossip_tick,     gossip_next_us },
    { sync_tick,       sync_next_us },
    { reconnect_tick,  reconnect_next_us },
    { conflict_tick,   conflict_next_us },
    { relay_tick,      relay_next_us },
    { probe_tick,      probe_next_us },
    { suspicion_tick,  suspicion_next_us }
};

#define SWIM_NPARTS  (sizeof(swim_parts) / sizeof(swim_parts[0]))


static int
swim_add_own(swim_t *swim, const swim_config_t *config, uint64_t now_us)
{
    member_update_t  update;
    llmgw_member_t  *own;

    assert(llmgw_name_is_valid(config->id, strlen(config->id)));
    assert(strlen(config->address) < LLMGW_MEMBERS_ADDRESS_BYTES);
    assert(strlen(config->grpc) < LLMGW_MEMBERS_ADDRESS_BYTES);

    memset(&update, 0, sizeof(update));
    own = &update.facts;

    strcpy(own->id, config->id);
    strcpy(own->address, config->address);
    strcpy(own->grpc, config->grpc);
    own->role = config->role == LLMGW_ROLE_REPLICA ? LLMGW_ROLE_REPLICA
                                                   : LLMGW_ROLE_GATEWAY;
    own->is_shard = config->role == LLMGW_ROLE_SHARD;
    own->weight = config->weight;
    own->epoch = config->epoch;
    own->service = config->role == LLMGW_ROLE_GATEWAY
                   ? LLMGW_SERVICE_READY : LLMGW_SERVICE_STARTING;
    own->draining = drain_owner(&swim->drain)[0] != '\0';
    strcpy(own->drain_owner, drain_owner(&swim->drain));
    update.traits.can_restart = config->can_restart;
    update.more = MEMBER_MORE_ALL;

    if (config->resume_group != NULL && !own->is_shard) {
        assert(strlen(config->resume_group) < LLMGW_MEMBERS_NAME_BYTES);
        strcpy(own->resume_group, config->resume_group);
    }

    swim->own = table_add(&swim->table, &update, now_us);

    swim->own_hash = member_hash(own->id);

    return swim->own ? 0 : -1;
}


swim_t *
swim_create(const swim_config_t *config, uint64_t now_us)
{
    swim_t  *swim;

    swim = calloc(1, sizeof(swim_t));
    if (swim == NULL) {
        return NULL;
    }

    swim->config = *config;
    swim->rnd.state = config->random_seed;
    strcpy(swim->cluster, config->cluster);
    table_init(&swim->table);
    broadcast_init(&swim->broadcast);
    drain_init(&swim->drain, config->drain_kept);

    swim->out = packet_out_create(swim->cluster);

    if (swim->out == NULL || swim_add_own(swim, config, now_us) != 0) {
        swim_destroy(swim);
        return NULL;
    }

    /* not from 1: acks for an earlier run must not match */
    swim->sequence = rnd_next(&swim->rnd) >> 16;
    swim->join.sequence = ++swim->sequence;
    swim->join.next_us = now_us;
    swim->started_us = now_us;
    swim->boot_nonce = rnd_next(&swim->rnd) | 1;
    swim->load.next_us = SWIM_NEVER;
    swim->delivery.next_us = SWIM_NEVER;
    swim->relay.next_us = SWIM_NEVER;
    swim->reconnect.next_us = SWIM_NEVER;
    swim->conflict.next_us = SWIM_NEVER;
    swim->candidates.next_us = SWIM_NEVER;
    swim->sync_us = now_us + rnd_below(&swim->rnd, 10 * SWIM_S);

    /* agents that start together should not ping together */
    swim->probe.period_us = now_us
                            + rnd_below(&swim->rnd, config->period_us);

    return swim;
}


void
swim_destroy(swim_t *swim)
{
    table_done(&swim->table);
    packet_out_destroy(swim->out);
    schedule_done(&swim->schedule);
    suspicion_done(&swim->suspicion);
    candidates_done(&swim->candidates);
    free(swim->delivery.targets);
    free(swim);
}


uint64_t
swim_next_us(const swim_t *swim)
{
    size_t    i;
    uint64_t  next_us, part_us;

    next_us = SWIM_NEVER;

    for (i = 0; i < SWIM_NPARTS; i++) {
        part_us = swim_parts[i].next_us(swim);
        next_us = part_us < next_us ? part_us : next_us;
    }

    return next_us;
}


/*
 * Measures how late a tick is by the deadlines of pings and suspicions, which
 * are never set in the past.  Only these deadlines are moved: only they lead to
 * a suspicion or a death.
 */
static void
swim_forgive_lateness(swim_t *swim, uint64_t now_us)
{
    uint64_t  due_us, suspicion_us;

    due_us = probe_next_us(swim);
    suspicion_us = suspicion_next_us(swim);
    due_us = suspicion_us < due_us ? suspicion_us : due_us;

    if (now_us <= due_us + SWIM_LATE_US) {
        return;
    }

    swim->counters.late_ticks++;
    local_health_worsen(swim, 1);

    probe_delay(swim, now_us - due_us + 1);
    suspicion_delay(swim, now_us - due_us + 1);
}


void
swim_tick(swim_t *swim, uint64_t now_us)
{
    size_t  i;

    swim_forgive_lateness(swim, now_us);
    skew_check_own(swim, now_us);

    for (i = 0; i < SWIM_NPARTS; i++) {
        if (swim_parts[i].next_us(swim) <= now_us) {
            swim_parts[i].tick(swim, now_us);
        }
    }
}


void
swim_set_wall_ahead(swim_t *swim, uint64_t ahead_us)
{
    swim->wall_ahead_us = ahead_us;
}


void
swim_set_load(swim_t *swim, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t now_us)
{
    load_set(swim, active_requests, engine, now_us);
}


int
swim_has_left(const swim_t *swim)
{
    return !member_is_present(swim->own) && swim->delivery.n == 0;
}


int
swim_is_isolated(const swim_t *swim)
{
    return swim->is_isolated;
}


const swim_drop_t *
swim_last_drop(const swim_t *swim)
{
    return &swim->last_drop;
}


unsigned
swim_local_health(const swim_t *swim)
{
    return swim->local_health;
}


int
swim_inject_suspect(swim_t *swim, const char *id, uint64_t now_us)
{
    member_t  *member;

    member = table_find(&swim->table, id);

    if (member == NULL || member == swim->own
        || member->facts.liveness != LLMGW_LIVENESS_ALIVE)
    {
        return -1;
    }

    swim_suspect(swim, member, now_us);

    return 0;
}


int
swim_is_alone(const swim_t *swim)
{
    return !swim->join.is_done;
}


const table_t *
swim_table(const swim_t *swim)
{
    return &swim->table;
}


const member_t *
swim_own(const swim_t *swim)
{
    return swim->own;
}


const swim_counters_t *
swim_counters(const swim_t *swim)
{
    return &swim->counters;
}


size_t
swim_backlog(const swim_t *swim)
{
    return swim->broadcast.n;
}

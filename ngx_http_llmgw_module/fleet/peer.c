
/*
 * A replica's data for the pick, and its reported load.
 *
 * core/serve/reach.h decides whether a replica may be used.  Of a group, only
 * the active member with the greatest epoch is used (core/standby.h), and the
 * living standbys are waited for.
 */

#include "fleet/replica.h"
#include "fleet/table.h"


static ngx_uint_t ngx_http_llmgw_replica_stands_by(
    const llmgw_pick_peer_t *peer);
static void ngx_http_llmgw_replica_set_full(
    ngx_http_llmgw_replica_t *replica, const llmgw_member_load_t *load);
static void ngx_http_llmgw_replica_set_foreign(
    ngx_http_llmgw_replica_t *replica, const llmgw_member_load_t *load);


void
ngx_http_llmgw_replica_gossip(ngx_http_llmgw_replica_t *replica,
    llmgw_reach_facts_t *facts)
{
    ngx_http_llmgw_pool_t  *pool;
    const llmgw_member_t   *m;

    pool = replica->pool;
    m = &replica->member;

    facts->liveness = m->liveness;
    facts->service = m->service;
    facts->standing = replica->standing.is;
    facts->is_barred = !replica->listed || !replica->usable_addr
                       || replica->slot == NULL
                       || ngx_http_llmgw_models_is_other(
                              &pool->upstream->models, replica->models)
                       || m->role != LLMGW_ROLE_REPLICA || m->draining;
    facts->has_standby = replica->standing.has_standby
    && pool->conf->queue_size;
    facts->is_isolated = pool->upstream->view.isolated != 0;
    facts->is_stale = pool->upstream->stale != 0;
}


/* Routable, as operators understand it: by gossip alone. */

ngx_uint_t
ngx_http_llmgw_replica_is_routable(ngx_http_llmgw_replica_t *replica)
{
    llmgw_reach_facts_t  facts;

    ngx_http_llmgw_replica_gossip(replica, &facts);

    return llmgw_reach_by_gossip(&facts) == LLMGW_PEER_ALIVE;
}


ngx_uint_t
ngx_http_llmgw_replica_is_absent(ngx_http_llmgw_replica_t *replica)
{
    llmgw_reach_facts_t  facts;

    ngx_http_llmgw_replica_gossip(replica, &facts);

    return llmgw_reach_is_absent(&facts);
}


void
ngx_http_llmgw_replica_set_peer(ngx_http_llmgw_replica_t *replica)
{
    llmgw_pick_peer_t       *peer;
    llmgw_reach_facts_t      facts;
    ngx_http_llmgw_table_t  *table;

    if (replica->index == -1) {
        return;
    }

    ngx_http_llmgw_replica_gossip(replica, &facts);

    table = replica->pool->table;
    peer = &table->peers[replica->index];
    table->nusable -= (peer->state != LLMGW_PEER_UNUSABLE);
    table->nstandbys -= ngx_http_llmgw_replica_stands_by(peer);

    peer->counts = replica->slot ? &replica->slot->admission.counts : NULL;
    peer->breaker = replica->slot ? &replica->slot->admission.breaker : NULL;
    peer->weight = ngx_max(replica->member.weight, 1);
    peer->max_capacity = replica->member.max_capacity;
    peer->full = replica->slot ? &replica->slot->admission.full : NULL;
    peer->resume_group = replica->resume_group;
    peer->is_unproven = (replica->reach.backoff_ms != 0);
    peer->models = replica->models;
    peer->state = llmgw_reach_state(&replica->reach, &facts, ngx_current_msec);
    replica->pool->table->places[replica->index] = replica->place;

    table->owners[replica->index] =
        ngx_http_llmgw_prefix_owner(replica->node.str.data,
                                    replica->node.str.len,
                                    replica->member.replica_start_ms);

    table->nusable += (peer->state != LLMGW_PEER_UNUSABLE);
    table->nstandbys += ngx_http_llmgw_replica_stands_by(peer);

    ngx_http_llmgw_replica_set_load(replica);
}


static ngx_uint_t
ngx_http_llmgw_replica_stands_by(const llmgw_pick_peer_t *peer)
{
    return peer->state == LLMGW_PEER_STANDBY || peer->state == LLMGW_PEER_LAST;
}


/* Sets the load that the replica reports, as far as it is known. */

void
ngx_http_llmgw_replica_set_load(ngx_http_llmgw_replica_t *replica)
{
    uint32_t                    in_flight;
    ngx_http_llmgw_table_t     *table;
    const llmgw_member_load_t  *load;

    if (replica->index == -1) {
        return;
    }

    table = replica->pool->table;
    load = replica->slot ? ngx_http_llmgw_replica_load(replica) : NULL;
    in_flight = load ? replica->slot->admission.counts.in_flight : 0;

    ngx_http_llmgw_replica_set_full(replica, load);
    ngx_http_llmgw_replica_set_foreign(replica, load);

    ngx_http_llmgw_choice_update(&replica->facts, replica->place.slot, load,
                               in_flight,
                               table->peers[replica->index].foreign);
    table->facts[replica->index] = replica->facts;
}


/* If the replica's load has decreased, it is no longer marked full. */

static void
ngx_http_llmgw_replica_set_full(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_load_t *load)
{
    ngx_http_llmgw_zone_t  *zone;

    /* takes no lock if the replica is not marked */

    if (load == NULL || !llmgw_full_is_known(&replica->slot->admission.full)) {
        return;
    }

    zone = replica->pool->zone;

    ngx_http_llmgw_zone_lock(zone);
    llmgw_admission_reports(&zone->self, replica->place,
                            load->active_requests);
    ngx_http_llmgw_zone_unlock(zone);
}


/* Sets the number of other gateways' requests there. */

static void
ngx_http_llmgw_replica_set_foreign(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_load_t *load)
{
    uint64_t            now;
    llmgw_slot_t       *slot;
    llmgw_pick_peer_t  *peer;

    peer = &replica->pool->table->peers[replica->index];
    peer->foreign = 0;

    if (load == NULL) {
        return;
    }

    now = ngx_http_llmgw_pool_clock_ms(replica->pool);

    if (now < load->reported_ms + LLMGW_FACTS_MS) {
        slot = &replica->slot->admission;
        peer->foreign = llmgw_high_water_foreign(&slot->high,
                                                 slot->counts.in_flight,
                                                 load->active_requests,
                                                 ngx_current_msec);
    }
}


const llmgw_member_load_t *
ngx_http_llmgw_replica_load(ngx_http_llmgw_replica_t *replica)
{
    llmgw_members_view_t  *view;

    view = &replica->pool->upstream->view;

    if (replica->is_static || !replica->listed
        || replica->view_index >= view->n
        || view->loads[replica->view_index].reported_ms == 0)
    {
        return NULL;
    }

    return &view->loads[replica->view_index];
}

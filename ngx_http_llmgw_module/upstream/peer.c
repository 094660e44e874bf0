
/*
 * A replica as the pick sees it, and what it reports of its load.
 *
 * What it is to the pick follows from three things: what gossip says of its
 * agent (liveness) and of itself (service, draining), and what this worker
 * saw when it last tried to connect.  A replica that cannot be connected to
 * is used as a suspect one is, when there is no other, until its back-off has
 * passed; where another one of its group stands by, it is not used until then.
 *
 * Of a group, only the active member with the greatest epoch is used
 * (core/standby.h).  The living standbys are waited for.  While the view is too
 * old to tell, or its writer is cut off, they are the last that are tried.
 */

#include "upstream/replica.h"
#include "upstream/table.h"


static llmgw_peer_state_t ngx_http_llmgw_replica_told(
    ngx_http_llmgw_replica_t *replica);
static ngx_uint_t ngx_http_llmgw_replica_has_heir(
    ngx_http_llmgw_replica_t *replica);
static ngx_uint_t ngx_http_llmgw_replica_stands_by(
    const llmgw_pick_peer_t *peer);
static void ngx_http_llmgw_replica_set_full(
    ngx_http_llmgw_replica_t *replica, const llmgw_member_load_t *load);
static void ngx_http_llmgw_replica_set_foreign(
    ngx_http_llmgw_replica_t *replica, const llmgw_member_load_t *load);


/* By what is told of it, and by what this worker has seen. */

llmgw_peer_state_t
ngx_http_llmgw_replica_state(ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_pool_t  *pool;
    llmgw_peer_state_t      state;

    pool = replica->pool;
    state = ngx_http_llmgw_replica_told(replica);

    switch (state) {

    case LLMGW_PEER_ALIVE:
        if (!replica->retry.timer_set) {
            return state;
        }

        return ngx_http_llmgw_replica_has_heir(replica) ? LLMGW_PEER_UNUSABLE
                                                        : LLMGW_PEER_SUSPECT;

    case LLMGW_PEER_STANDBY:
        return (pool->stale || pool->view.isolated)
               && !replica->retry.timer_set ? LLMGW_PEER_LAST : state;

    default:
        return state;
    }
}


/* By gossip and the configuration alone. */

static llmgw_peer_state_t
ngx_http_llmgw_replica_told(ngx_http_llmgw_replica_t *replica)
{
    llmgw_member_t  *m;

    m = &replica->member;

    if (!replica->listed || !replica->usable_addr || replica->slot == NULL
        || ngx_http_llmgw_models_is_other(&replica->pool->models,
                                          replica->models)
        || m->role != LLMGW_ROLE_REPLICA || m->draining)
    {
        return LLMGW_PEER_UNUSABLE;
    }

    switch (replica->standing.is) {

    case LLMGW_STANDING_FREE:
    case LLMGW_STANDING_LEADS:
        break;

    case LLMGW_STANDING_WARM:
        return LLMGW_PEER_STANDBY;

    default:
        return LLMGW_PEER_UNUSABLE;
    }

    if (m->service != LLMGW_SERVICE_READY) {
        return LLMGW_PEER_UNUSABLE;
    }

    switch (m->liveness) {

    case LLMGW_LIVENESS_ALIVE:
        return LLMGW_PEER_ALIVE;

    case LLMGW_LIVENESS_SUSPECT:
        return LLMGW_PEER_SUSPECT;

    case LLMGW_LIVENESS_DEAD:
        /* an agent cut off from gossip believes all others dead */
        return replica->pool->view.isolated ? LLMGW_PEER_SUSPECT
                                            : LLMGW_PEER_UNUSABLE;

    default:
        return LLMGW_PEER_UNUSABLE;
    }
}


/* Only where requests can wait for it. */

static ngx_uint_t
ngx_http_llmgw_replica_has_heir(ngx_http_llmgw_replica_t *replica)
{
    return replica->standing.has_heir && replica->pool->conf->queue_size;
}


/* What operators call routable: by gossip alone. */

ngx_uint_t
ngx_http_llmgw_replica_is_routable(ngx_http_llmgw_replica_t *replica)
{
    return ngx_http_llmgw_replica_told(replica) == LLMGW_PEER_ALIVE;
}


ngx_uint_t
ngx_http_llmgw_replica_is_absent(ngx_http_llmgw_replica_t *replica)
{
    return replica->standing.is == LLMGW_STANDING_WARM
           || (replica->standing.is == LLMGW_STANDING_LEADS
               && ngx_http_llmgw_replica_has_heir(replica));
}


void
ngx_http_llmgw_replica_set_peer(ngx_http_llmgw_replica_t *replica)
{
    llmgw_pick_peer_t       *peer;
    ngx_http_llmgw_table_t  *table;

    if (replica->index == -1) {
        return;
    }

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
    peer->is_unproven = (replica->backoff != 0);
    peer->models = replica->models;
    peer->state = ngx_http_llmgw_replica_state(replica);
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


/* What it reports of its load, as far as it is known. */

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

    ngx_http_llmgw_choice_hear(&replica->facts, replica->place.slot, load,
                               in_flight,
                               table->peers[replica->index].foreign);
    table->facts[replica->index] = replica->facts;
}


/* With less load than before it is not full any more. */

static void
ngx_http_llmgw_replica_set_full(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_load_t *load)
{
    ngx_http_llmgw_zone_t  *zone;

    /* without the lock, where it is not marked */

    if (load == NULL || !llmgw_full_is_known(&replica->slot->admission.full)) {
        return;
    }

    zone = replica->pool->zone;

    ngx_http_llmgw_zone_lock(zone);
    llmgw_admission_reports(&zone->self, replica->place,
                            load->active_requests);
    ngx_http_llmgw_zone_unlock(zone);
}


/* What others have running there. */

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

    view = &replica->pool->view;

    if (replica->is_static || !replica->listed
        || replica->view_index >= view->n
        || view->loads[replica->view_index].reported_ms == 0)
    {
        return NULL;
    }

    return &view->loads[replica->view_index];
}


/*
 * A gateway: its shared memory, which all workers of an nginx would share, its
 * ring, and its view of the replicas.
 *
 * The shared memory has one worker's row: more workers would change no stream.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/admission/lease.h"
#include "sim/fleet/ring.h"
#include "sim/gateway/gateway_inner.h"


#define FRONT_NAME_BYTES  24
#define FRONT_SPARE       4096  /* queue entries for streams that have begun,
                                   which are not limited by the queue's size */


/* --- setting up */

static void
front_init_peer(gateway_t *g, front_t *front, uint32_t i)
{
    char               name[FRONT_NAME_BYTES];
    llmgw_slot_t      *slot;
    llmgw_pick_peer_t *peer = &front->peers[i];

    front->places[i].slot = llmgw_slots_attach(front->shared, name,
        (size_t) snprintf(name, sizeof(name), "instance_%u", i), 1);
    slot = llmgw_slot(front->shared, front->places[i].slot);
    front->places[i].generation = slot->generation;

    peer->counts = &slot->counts;
    peer->breaker = &slot->breaker;
    peer->full = &slot->full;
    peer->weight = 1;
    peer->max_capacity = g->config->capacity;
    peer->state = LLMGW_PEER_ALIVE;

    front->views[i].service = LLMGW_SERVICE_READY;
    front->views[i].liveness = LLMGW_LIVENESS_ALIVE;
}


static int
front_init(gateway_t *g, front_t *front, llmgw_ring_t *ring)
{
    void                    *memory;
    uint32_t                 i, n;
    llmgw_admission_size_t   size;

    n = g->fleet->replicas;
    size = (llmgw_admission_size_t) {
        .nrows = 1, .nslots = n,
        .slot_bytes = (sizeof(llmgw_slot_t) + 7) / 8 * 8,
        .queue_capacity = g->config->queue_size + FRONT_SPARE,
        .without_flow = 1
    };
    memory = gateway_alloc(g, 1, llmgw_admission_bytes(&size));
    front->peers = gateway_alloc(g, n, sizeof(llmgw_pick_peer_t));
    front->places = gateway_alloc(g, n, sizeof(llmgw_place_t));
    front->views = gateway_alloc(g, n, sizeof(front_view_t));
    front->links = gateway_alloc(g, n, sizeof(link_t));
    front->waiting = gateway_alloc(g, size.queue_capacity, sizeof(uint32_t));

    if (choice_init(g, &front->choice) != 0 || g->failed) {
        free(memory);
        return -1;
    }

    memset(front->waiting, 0xff, size.queue_capacity * sizeof(uint32_t));
    front->shared = llmgw_admission_init(memory, &size);
    front->self.shared = front->shared;

    for (i = 0; i < n; i++) {
        front_init_peer(g, front, i);
    }

    front->nusable = n;

    front->view = (llmgw_admission_view_t) {
        .pick = {
            .ring = ring, .peers = front->peers,
            .breaker_conf = &g->config->breaker, .npeers = n,
            .load_factor_permille = g->config->load_factor_permille,
            .min_load = g->config->min_load, .sums = &front->sums
        },
        .places = front->places,
        .queue_size = g->config->queue_size,
        .hold_ms = (uint64_t) g->config->hold_us / 1000,
        .hedge_budget_permille = g->config->hedge_permille
    };

    return 0;
}


int
front_init_all(gateway_t *g)
{
    uint32_t       i;
    llmgw_ring_t  *ring;

    /* all gateways have the same ring, so one is built */
    ring = g->ring = fleet_ring(g->fleet->replicas, g->config->vnodes);
    g->fronts = gateway_alloc(g, g->config->gateways, sizeof(front_t));

    if (g->failed || ring == NULL) {
        return -1;
    }

    for (i = 0; i < g->config->gateways; i++) {
        if (front_init(g, &g->fronts[i], ring) != 0) {
            return -1;
        }
    }

    return 0;
}


void
front_done_all(gateway_t *g)
{
    uint32_t  i;

    for (i = 0; g->fronts != NULL && i < g->config->gateways; i++) {
        choice_done(g->fronts[i].choice);
        free(g->fronts[i].shared);
        free(g->fronts[i].peers);
        free(g->fronts[i].places);
        free(g->fronts[i].views);
        free(g->fronts[i].links);
        free(g->fronts[i].waiting);
    }

    free(g->fronts);
    free(g->ring);
}


/* --- its view */

static llmgw_reach_facts_t
front_facts(const front_view_t *view)
{
    return (llmgw_reach_facts_t) {
        .liveness = (llmgw_liveness_t) view->liveness,
        .service = (llmgw_service_t) view->service,
        .is_barred = view->is_draining
    };
}


static void
front_state(gateway_t *g, front_t *front, uint32_t replica)
{
    uint8_t                     backs_off;
    front_view_t               *view = &front->views[replica];
    const llmgw_reach_facts_t   facts = front_facts(view);

    backs_off = llmgw_reach_wait_ms(&view->reach, gateway_ms(g)) != 0;
    front->nbacking_off += backs_off;
    front->nbacking_off -= view->backs_off;
    view->backs_off = backs_off;

    front->nusable -= front->peers[replica].state != LLMGW_PEER_UNUSABLE;
    front->peers[replica].state = (uint8_t) llmgw_reach_state(
        &view->reach, &facts, gateway_ms(g));
    front->nusable += front->peers[replica].state != LLMGW_PEER_UNUSABLE;
    front->view.is_empty = front->nusable == 0;
    front->peers[replica].is_unproven = view->reach.backoff_ms != 0;
    front->sums.state = LLMGW_PEER_UNUSABLE;
}


/*
 * A connection failed: for a while the replica is picked only if no other can
 * be.
 */
void
front_refused(gateway_t *g, front_t *front, uint32_t replica)
{
    (void) llmgw_reach_failed(&front->views[replica].reach, gateway_ms(g));
    front_state(g, front, replica);
}


void
front_answered(gateway_t *g, front_t *front, uint32_t replica)
{
    if (front->views[replica].reach.backoff_ms != 0) {
        llmgw_reach_renewed(&front->views[replica].reach);
        front_state(g, front, replica);
    }
}


/* The replica refused as full, which is newer than its report of load. */
void
front_full(gateway_t *g, front_t *front, uint32_t replica)
{
    llmgw_admission_full(&front->self, front->places[replica],
                         news_load(g, (uint32_t) (front - g->fronts), replica),
                         gateway_ms(g));
}


static void
front_retry(gateway_t *g, front_t *front)
{
    uint32_t  i;

    for (i = 0; front->nbacking_off != 0 && i < g->fleet->replicas; i++) {
        if (front->views[i].backs_off) {
            front_state(g, front, i);
        }
    }
}


/* The current view of the pool. */
const llmgw_admission_view_t *
front_view(gateway_t *g, front_t *front)
{
    front_retry(g, front);

    return &front->view;
}


/*
 * Ends the gateway's attempts at a replica that its new view does not allow to
 * continue there.
 */
static void
front_move(gateway_t *g, uint32_t front, uint32_t replica,
    const front_view_t *view)
{
    uint32_t                    i;
    attempt_t                  *a;
    llmgw_cause_t               cause;
    const llmgw_reach_facts_t   facts = front_facts(view);

    for (i = g->nodes[replica].first; i != ATTEMPT_NONE; i = a->behind) {
        a = gateway_attempt(g, i);

        if (gateway_stream(g, i / 2)->front != front) {
            continue;
        }

        attempt_look(g, i);
        cause = llmgw_reach_leaves(&view->reach, &facts, &a->state);

        if (cause != LLMGW_CAUSE_NONE) {
            attempt_break(g, i, LLMGW_ENDING_FAILED, cause, g->loop.clock_us);
        }
    }
}


void
front_news(gateway_t *g, uint32_t i, uint32_t replica,
    const front_view_t *news)
{
    front_t       *front = &g->fronts[i];
    llmgw_wake_t   wake;
    front_view_t  *view = &front->views[replica];

    llmgw_reach_update(&view->reach, (llmgw_liveness_t) news->liveness,
                       gateway_ms(g));
    view->service = news->service;
    view->liveness = news->liveness;
    view->is_draining = news->is_draining;

    if (view->life != news->life) {
        view->life = news->life;
        llmgw_reach_renewed(&view->reach);
        llmgw_slots_renew(front->shared, front->places[replica], view->life);
    }

    front_state(g, front, replica);
    front_move(g, i, replica, view);

    llmgw_queue_wake(front->shared, gateway_ms(g), &wake);
    front_wake(g, front, &wake);
}


/* --- the queue */

void
front_wake(gateway_t *g, front_t *front, const llmgw_wake_t *wake)
{
    uint32_t  i;

    i = (uint32_t) (front - g->fronts);

    if (wake->row != LLMGW_NO_ROW && !front->has_turn) {
        front->has_turn = 1;
        gateway_later(g, g->loop.clock_us, EVENT_TURN, i, 0, 0);
    }

    if (front->shared->queue.length != 0 && !front->has_tick) {
        front->has_tick = 1;
        gateway_later(g, g->loop.clock_us + FRONT_TURN_US, EVENT_TICK, i, 0, 0);
    }
}


/*
 * If the last usable replica went, or the first is back, all waiting streams
 * claim again.
 */
static void
front_hold(gateway_t *g, front_t *front)
{
    uint32_t  i, stream, capacity;

    if (front->view.hold_ms == 0
        || front->nheld == (front->nusable == 0 ? front->shared->queue.length
                                                : 0))
    {
        return;
    }

    capacity = front->shared->queue.capacity;

    for (i = 0; i < capacity; i++) {
        stream = front->waiting[i];

        if (stream != STREAM_NONE
            && gateway_stream(g, stream)->claim.is_held
               != (unsigned) front->view.is_empty)
        {
            stream_turn(g, stream);
        }
    }
}


/*
 * The head of the queue claims a place, then the next one, as long as places
 * are granted.
 */
void
front_turn(gateway_t *g, uint32_t i)
{
    uint32_t       entry;
    uint64_t       ticket, last;
    front_t       *front = &g->fronts[i];
    llmgw_wake_t   wake;

    front->has_turn = 0;
    front_hold(g, front);
    last = 0;

    for ( ;; ) {
        entry = llmgw_admission_turn(&front->self, gateway_ms(g), &ticket,
                                     &wake);

        if (entry == LLMGW_QUEUE_NONE || ticket == last) {
            return;
        }

        if (front->waiting[entry] == STREAM_NONE) {
            llmgw_admission_drop(&front->self, entry, ticket);
            continue;
        }

        last = ticket;
        stream_turn(g, front->waiting[entry]);
    }
}


/*
 * Circuits close and replicas become usable without an event, so the queue is
 * looked at regularly.
 */
void
front_tick(gateway_t *g, uint32_t i)
{
    front_t  *front = &g->fronts[i];

    front->has_tick = 0;
    llmgw_admission_look(&front->self, gateway_ms(g));
    front_turn(g, i);
    front_wake(g, front, &LLMGW_WAKE_NOBODY);
}

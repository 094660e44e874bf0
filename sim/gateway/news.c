
/*
 * News of replicas, and when gateways hear of them.
 *
 * Without a simulated network every change reaches every gateway after one
 * fixed time, and a machine that died is suspected and then called dead after
 * others.  With one, agents gossip (sim/swim/), and what a gateway believes is
 * what its agent's table says.
 *
 * Loads travel by themselves: once a second each replica reports how many
 * requests it serves, and other gateways' share of them is what a gateway
 * cannot explain by its own (core/admission/high_water.h).
 */

#include "sim/gateway/gateway_inner.h"


#define NEWS_LOADS_US  1000000


/* A view in a word, for an event. */
static uint32_t
news_pack(const front_view_t *view)
{
    return view->service | (uint32_t) view->liveness << 8
           | (uint32_t) view->is_draining << 16;
}


static front_view_t
news_unpack(uint32_t what)
{
    return (front_view_t) {
        .service = (uint8_t) what,
        .liveness = (uint8_t) (what >> 8),
        .is_draining = (uint8_t) (what >> 16)
    };
}


/* What its agent says of it. */
static front_view_t
news_truth(const node_truth_t *node)
{
    return (front_view_t) {
        .service = !node->is_up ? LLMGW_SERVICE_DOWN
                   : node->is_stalled ? LLMGW_SERVICE_STALLED
                   : LLMGW_SERVICE_READY,
        .liveness = LLMGW_LIVENESS_ALIVE,
        .is_draining = node->is_draining
    };
}


static void
news_send(gateway_t *g, uint32_t replica, const front_view_t *view,
    int64_t after_us)
{
    uint32_t  i;

    for (i = 0; i < g->config->gateways; i++) {
        gateway_later(g, g->clock_us + after_us, EVENT_NEWS, i, replica,
                      news_pack(view));
    }
}


void
news_tell(gateway_t *g, uint32_t replica)
{
    front_view_t                   view;
    node_truth_t                  *node = &g->nodes[replica];
    const gateway_gossip_t        *gossip = &g->config->gossip;

    node->changed_us = g->clock_us;
    view = news_truth(node);

    if (!node->is_dead) {
        news_send(g, replica, &view, gossip->delay_us);
        return;
    }

    /* nobody tells: it is found out; until then it seems to be well */
    view.service = LLMGW_SERVICE_READY;
    view.liveness = LLMGW_LIVENESS_SUSPECT;
    news_send(g, replica, &view, gossip->detect_us / 2);
    view.liveness = LLMGW_LIVENESS_DEAD;
    news_send(g, replica, &view, gossip->detect_us);
}


void
news_come(gateway_t *g, uint32_t front, uint32_t replica, uint32_t what)
{
    int64_t        took_us;
    front_view_t   view;
    node_truth_t  *node = &g->nodes[replica];

    view = news_unpack(what);

    if (view.liveness != LLMGW_LIVENESS_ALIVE && !node->is_dead) {
        return;                 /* it came back meanwhile */
    }

    took_us = g->clock_us - node->changed_us;

    if (took_us > g->counts->news_max_us) {
        g->counts->news_max_us = took_us;
    }

    front_news(g, front, replica, &view);
}


/* What was reported a second ago is what gateways have heard by now. */
void
news_loads(gateway_t *g)
{
    uint32_t       i, r;
    front_t       *front;
    llmgw_slot_t  *slot;

    for (i = 0; i < g->config->gateways; i++) {
        front = &g->fronts[i];
        front->sums.state = LLMGW_PEER_UNUSABLE;

        for (r = 0; r < g->fleet->replicas; r++) {
            slot = llmgw_slot(front->shared, front->places[r].slot);
            front->peers[r].foreign = llmgw_high_water_foreign(&slot->high,
                slot->counts.in_flight, g->reported[r], gateway_ms(g));
        }
    }

    for (r = 0; r < g->fleet->replicas; r++) {
        g->reported[r] = g->nodes[r].active;
    }

    gateway_later(g, g->clock_us + NEWS_LOADS_US, EVENT_LOADS, 0, 0, 0);
}


int
news_init(gateway_t *g)
{
    g->reported = gateway_alloc(g, g->fleet->replicas, sizeof(uint32_t));

    if (g->reported == NULL) {
        return -1;
    }

    if (g->config->gateways > 1) {
        gateway_later(g, NEWS_LOADS_US, EVENT_LOADS, 0, 0, 0);
    }

    return 0;
}

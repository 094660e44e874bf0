
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

#include <stdlib.h>

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


/* Its agent says so, if its machine is alive. */
static void
news_say(gateway_t *g, uint32_t replica, const front_view_t *view)
{
    const node_truth_t  *node = &g->nodes[replica];

    mesh_run(g->mesh, g->clock_us);

    if (node->is_dead) {
        mesh_kill(g->mesh, replica);
        return;
    }

    mesh_revive(g->mesh, replica);
    mesh_say(g->mesh, replica, view->service, view->is_draining, node->life);
}


void
news_tell(gateway_t *g, uint32_t replica)
{
    front_view_t             view;
    node_truth_t            *node = &g->nodes[replica];
    const gateway_gossip_t  *gossip = &g->config->gossip;

    node->changed_us = g->clock_us;
    view = news_truth(node);

    if (g->mesh != NULL) {
        news_say(g, replica, &view);
        return;
    }

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


/* A gateway hears of it. */
static void
news_heard(gateway_t *g, uint32_t front, uint32_t replica,
    const front_view_t *view)
{
    uint64_t             took_us;
    const node_truth_t  *node = &g->nodes[replica];

    took_us = (uint64_t) (g->clock_us - node->changed_us);

    if (took_us > g->counts->news_max_us) {
        g->counts->news_max_us = took_us;
    }

    front_news(g, front, replica, view);
}


void
news_come(gateway_t *g, uint32_t front, uint32_t replica, uint32_t what)
{
    front_view_t  view;

    view = news_unpack(what);

    if (view.liveness != LLMGW_LIVENESS_ALIVE && !g->nodes[replica].is_dead) {
        return;                 /* it came back meanwhile */
    }

    news_heard(g, front, replica, &view);
}


/* The same from its agent: whatever else has changed in the record. */
static void
news_changed(void *data, uint32_t front, uint32_t replica,
    const mesh_view_t *view)
{
    gateway_t           *g = data;
    front_view_t         news;
    const front_view_t  *known = &g->fronts[front].views[replica];

    g->clock_us = mesh_now_us(g->mesh);

    if (view->service == known->service && view->liveness == known->liveness
        && view->is_draining == known->is_draining)
    {
        return;
    }

    news = (front_view_t) {
        .service = view->service, .liveness = view->liveness,
        .is_draining = view->is_draining
    };
    news_heard(g, front, replica, &news);
}


int64_t
news_next_us(const gateway_t *g)
{
    return g->mesh == NULL ? INT64_MAX : mesh_next_us(g->mesh);
}


void
news_run(gateway_t *g)
{
    mesh_run(g->mesh, g->clock_us);
}


static uint32_t
news_load(const gateway_t *g, uint32_t front, uint32_t replica)
{
    mesh_view_t  view;

    if (g->mesh == NULL) {
        return g->reported[replica];
    }

    mesh_view(g->mesh, front, replica, &view);

    return view.active;
}


static void
news_report(gateway_t *g, uint32_t replica)
{
    g->reported[replica] = g->nodes[replica].active;

    if (g->mesh != NULL) {
        mesh_say_load(g->mesh, replica, g->reported[replica]);
    }
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
                slot->counts.in_flight, news_load(g, i, r), gateway_ms(g));
        }
    }

    for (r = 0; r < g->fleet->replicas; r++) {
        news_report(g, r);
    }

    gateway_later(g, g->clock_us + NEWS_LOADS_US, EVENT_LOADS, 0, 0, 0);
}


static int
news_init_mesh(gateway_t *g)
{
    const gateway_gossip_t  *gossip = &g->config->gossip;
    mesh_config_t            config = {
        .gateways = g->config->gateways, .replicas = g->fleet->replicas,
        .seed = g->fleet->seed,
        .delay_us = (uint64_t) gossip->delay_us,
        .jitter_us = (uint64_t) gossip->jitter_us,
        .loss_permille = gossip->loss_permille,
        .period_us = (uint64_t) gossip->period_us
    };

    if (config.gateways + config.replicas > MESH_MAX_MEMBERS) {
        gateway_fail(g, "gossip by swim is for at most 2000 members");
        return -1;
    }

    g->mesh = mesh_create(&config, news_changed, g);

    return g->mesh == NULL ? -1 : 0;
}


int
news_init(gateway_t *g)
{
    g->reported = gateway_alloc(g, g->fleet->replicas, sizeof(uint32_t));

    if (g->reported == NULL
        || (g->config->gossip.kind == GATEWAY_GOSSIP_SWIM
            && news_init_mesh(g) != 0))
    {
        return -1;
    }

    if (g->config->gateways > 1) {
        gateway_later(g, NEWS_LOADS_US, EVENT_LOADS, 0, 0, 0);
    }

    return 0;
}


void
news_done(gateway_t *g)
{
    mesh_destroy(g->mesh);
    free(g->reported);
}

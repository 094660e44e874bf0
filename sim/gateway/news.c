
/*
 * Reports about replicas, and the times at which they reach gateways.
 *
 * Without a simulated network every change reaches every gateway after one
 * fixed time, and a machine that died is SUSPECT and then DEAD after two other
 * fixed times.  With one, agents gossip (sim/swim/), and a gateway's view is
 * its agent's table.
 *
 * Loads are sent separately: once a second each replica reports how many
 * requests it serves; those that a gateway has not sent itself are other
 * gateways' (core/admission/high_water.h).
 */

#include <stdlib.h>

#include "sim/gateway/gateway_inner.h"


#define NEWS_LOADS_US  1000000


/*
 * Packs a view into 32 bits for an event, with the number of the machine's
 * deaths.
 */
static uint32_t
news_pack(const front_view_t *view, uint8_t death)
{
    return view->service | (uint32_t) view->liveness << 3
           | (uint32_t) view->is_draining << 5 | (uint32_t) death << 8
           | (uint32_t) view->life << 16;
}


static front_view_t
news_unpack(uint32_t what)
{
    return (front_view_t) {
        .service = what & 7,
        .liveness = what >> 3 & 3,
        .is_draining = what >> 5 & 1,
        .life = (uint16_t) (what >> 16)
    };
}


/*
 * What the replica's agent reports; for a dead machine, its last report, DEAD.
 */
static front_view_t
news_truth(const node_truth_t *node)
{
    front_view_t  view;

    if (node->is_dead) {
        view = node->said;
        view.liveness = LLMGW_LIVENESS_DEAD;
        return view;
    }

    return (front_view_t) {
        .service = !node->is_up ? LLMGW_SERVICE_DOWN
                   : node->is_stalled ? LLMGW_SERVICE_STALLED
                   : LLMGW_SERVICE_READY,
        .liveness = LLMGW_LIVENESS_ALIVE,
        .is_draining = node->is_draining,
        .life = node->is_up ? (uint16_t) node->life : node->said.life
    };
}


static int
news_is_same(const front_view_t *a, const front_view_t *b)
{
    return a->service == b->service && a->liveness == b->liveness
           && a->is_draining == b->is_draining && a->life == b->life;
}


static void
news_send(gateway_t *g, uint32_t replica, const front_view_t *view,
    int64_t after_us)
{
    uint32_t  i;

    for (i = 0; i < g->config->gateways; i++) {
        gateway_later(g, g->loop.clock_us + after_us, EVENT_NEWS, i, replica,
                      news_pack(view, g->nodes[replica].deaths));
    }
}


/* Has the agent report the view in the mesh, if its machine is alive. */
static void
news_say(gateway_t *g, uint32_t replica, const front_view_t *view)
{
    const node_truth_t  *node = &g->nodes[replica];

    mesh_run(g->mesh, g->loop.clock_us);

    if (node->is_dead) {
        mesh_kill(g->mesh, replica);
        return;
    }

    mesh_revive(g->mesh, replica);
    mesh_say(g->mesh, replica, view->service, view->is_draining, view->life);
}


/*
 * Keeps the report as the latest; a gateway whose view is equal counts as
 * informed.
 */
static void
news_count(gateway_t *g, uint32_t replica, const front_view_t *said)
{
    uint32_t       i;
    front_view_t  *view;
    node_truth_t  *node = &g->nodes[replica];

    node->deaths += said->liveness != node->said.liveness && node->is_dead;
    node->said = *said;
    node->changed_us = g->loop.clock_us;
    node->change++;

    for (i = 0; i < g->config->gateways; i++) {
        view = &g->fronts[i].views[replica];

        if (news_is_same(view, said)) {
            view->heard = node->change;
        }
    }
}


void
news_tell(gateway_t *g, uint32_t replica)
{
    front_view_t             view;
    node_truth_t            *node = &g->nodes[replica];
    const gateway_gossip_t  *gossip = &g->config->gossip;

    view = news_truth(node);

    if (news_is_same(&view, &node->said)) {
        return;
    }

    news_count(g, replica, &view);

    if (g->mesh != NULL) {
        news_say(g, replica, &view);
        return;
    }

    if (!node->is_dead) {
        news_send(g, replica, &view, gossip->delay_us);
        return;
    }

    /* until SUSPECT, the agent's last report holds */
    view.liveness = LLMGW_LIVENESS_SUSPECT;
    news_send(g, replica, &view, gossip->detect_us / 2);
    view.liveness = LLMGW_LIVENESS_DEAD;
    news_send(g, replica, &view, gossip->detect_us);
}


/*
 * A gateway receives a report.  The delay is measured until its view is right
 * for the first time, so a false suspicion and its end do not count.
 */
static void
news_heard(gateway_t *g, uint32_t i, uint32_t replica,
    const front_view_t *news)
{
    uint64_t             took_us;
    front_view_t        *view = &g->fronts[i].views[replica];
    const node_truth_t  *node = &g->nodes[replica];

    took_us = (uint64_t) (g->loop.clock_us - node->changed_us);

    if (view->heard != node->change && news_is_same(news, &node->said)) {
        view->heard = node->change;

        if (took_us > g->counts->news_max_us) {
            g->counts->news_max_us = took_us;
        }
    }

    front_news(g, i, replica, news);
}


void
news_come(gateway_t *g, uint32_t front, uint32_t replica, uint32_t what)
{
    front_view_t         view;
    const node_truth_t  *node = &g->nodes[replica];

    view = news_unpack(what);

    if (view.liveness != LLMGW_LIVENESS_ALIVE
        && (!node->is_dead || (what >> 8 & 0xff) != node->deaths))
    {
        return;                 /* the machine has come back meanwhile */
    }

    news_heard(g, front, replica, &view);
}


/* A gateway's agent has a changed record of a replica (mesh_change_pt). */
static void
news_changed(void *data, uint32_t front, uint32_t replica,
    const mesh_view_t *view)
{
    gateway_t           *g = data;
    front_view_t         news;
    const front_view_t  *known = &g->fronts[front].views[replica];

    g->loop.clock_us = mesh_now_us(g->mesh);

    news = (front_view_t) {
        .service = view->service, .liveness = view->liveness,
        .is_draining = view->is_draining, .life = (uint16_t) view->process
    };

    if (news_is_same(&news, known)) {
        return;
    }

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
    mesh_run(g->mesh, g->loop.clock_us);
}


uint32_t
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


/* Loads reported a second ago have reached the gateways by now. */
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
            llmgw_admission_reports(&front->self, front->places[r],
                                    news_load(g, i, r));
        }
    }

    for (r = 0; r < g->fleet->replicas; r++) {
        news_report(g, r);
    }

    gateway_later(g, g->loop.clock_us + NEWS_LOADS_US, EVENT_LOADS, 0, 0, 0);
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

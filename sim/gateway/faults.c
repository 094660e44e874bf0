
/*
 * What goes wrong with replicas, by the clock or at random.
 *
 * A process that crashes breaks its connections at once, and its agent says so.
 * A machine that dies says nothing: its streams are silent until their timers
 * strike or gossip calls it dead.  A process that hangs answers nobody; its
 * agent says so when reports have failed to come for a while.
 */

#include <math.h>

#include "sim/gateway/gateway_inner.h"


#define FAULTS_STALL_US  3000000        /* as the agent's own limit */


/* From 0 on, with that mean (exponential). */
static int64_t
faults_wait(gateway_t *g, int64_t mean_us)
{
    double  x;

    x = ((double) (rnd_next(&g->rnd) >> 11) + 0.5) / 9007199254740992.0;

    return (int64_t) (-log(x) * (double) mean_us);
}


static void
faults_schedule(gateway_t *g, uint32_t i, int64_t from_us)
{
    const gateway_fault_t  *fault = &g->config->faults[i];

    if (fault->every_us != 0) {
        from_us += faults_wait(g, fault->every_us);
    }

    if (from_us <= g->fleet->horizon_us) {
        gateway_later(g, from_us, EVENT_FAULT, i, 0, 0);
    }
}


void
faults_init(gateway_t *g)
{
    uint32_t  i;

    for (i = 0; i < g->config->nfaults; i++) {
        faults_schedule(g, i, g->config->faults[i].at_us);
    }

    if (g->config->update.is_on) {
        gateway_later(g, g->config->update.at_us, EVENT_UPDATE, 0, 0, 0);
    }
}


static void
faults_lost(void *data, model_request_t *request)
{
    /* its attempt knows already */
}


void
faults_crash(gateway_t *g, uint32_t replica, int is_silent)
{
    uint32_t       i;
    attempt_t     *a;
    node_truth_t  *node = &g->nodes[replica];

    if (!node->is_up) {
        return;
    }

    node->is_up = 0;
    node->is_dead = (uint8_t) is_silent;
    node->hangs = 0;
    node->is_stalled = 0;
    node->life++;

    for (i = node->first; i != ATTEMPT_NONE; i = a->behind) {
        a = gateway_attempt(g, i);

        if (!a->is_there) {
            continue;
        }

        attempt_freeze(g, i);

        if (!is_silent && a->final_us == 0) {
            attempt_break(g, i, LLMGW_ENDING_FAILED, LLMGW_CAUSE_RESET,
                          g->clock_us + g->config->network_us);
        }
    }

    model_replica_crash(node->model, faults_lost, g);
    model_replica_stall(node->model, 0);        /* what hung is gone */
    gateway_node_changed(g, replica);
    news_tell(g, replica);
}


void
faults_restart(gateway_t *g, uint32_t replica)
{
    node_truth_t  *node = &g->nodes[replica];

    if (node->is_up) {
        return;
    }

    node->is_up = 1;
    node->is_dead = 0;
    node->is_draining = 0;
    news_tell(g, replica);
}


void
faults_drain(gateway_t *g, uint32_t replica, int is_draining)
{
    g->nodes[replica].is_draining = (uint8_t) is_draining;
    news_tell(g, replica);
}


static void
faults_stall(gateway_t *g, uint32_t replica, int64_t for_us)
{
    node_truth_t  *node = &g->nodes[replica];

    if (!node->is_up) {
        return;
    }

    node->hangs = 1;
    model_replica_stall(node->model, for_us == 0 ? g->fleet->horizon_us
                                                 : g->clock_us + for_us);
    gateway_node_changed(g, replica);
    gateway_later(g, g->clock_us + FAULTS_STALL_US, EVENT_STALLED, replica,
                  node->life, 0);
}


void
faults_stalled(gateway_t *g, uint32_t replica, uint32_t life)
{
    node_truth_t  *node = &g->nodes[replica];

    if (node->life == life && node->hangs && node->is_up) {
        node->is_stalled = 1;
        news_tell(g, replica);
    }
}


static void
faults_strike(gateway_t *g, uint32_t i, uint32_t replica)
{
    const gateway_fault_t  *fault = &g->config->faults[i];

    g->counts->faults++;

    switch (fault->kind) {

    case GATEWAY_CRASH:
    case GATEWAY_DIE:
        faults_crash(g, replica, fault->kind == GATEWAY_DIE);
        break;

    case GATEWAY_STALL:
        faults_stall(g, replica, fault->for_us);
        break;

    case GATEWAY_SLOW:
        model_replica_slow(g->nodes[replica].model, fault->factor);
        break;

    case GATEWAY_DRAIN:
        faults_drain(g, replica, 1);
        break;
    }

    if (fault->for_us != 0) {
        gateway_later(g, g->clock_us + fault->for_us, EVENT_FAULT_END, i,
                      replica, 0);
    }
}


void
faults_begin(gateway_t *g, uint32_t i)
{
    uint32_t                k;
    const gateway_fault_t  *fault = &g->config->faults[i];

    if (fault->every_us != 0) {
        faults_strike(g, i, (uint32_t) rnd_below(&g->rnd,
                                                 g->fleet->replicas));
        faults_schedule(g, i, g->clock_us);
        return;
    }

    for (k = 0; k < fault->count; k++) {
        faults_strike(g, i, fault->replica + k);
    }
}


void
faults_end(gateway_t *g, uint32_t i, uint32_t replica)
{
    node_truth_t  *node = &g->nodes[replica];

    switch (g->config->faults[i].kind) {

    case GATEWAY_CRASH:
    case GATEWAY_DIE:
        faults_restart(g, replica);
        return;

    case GATEWAY_STALL:
        if (node->is_up) {
            node->hangs = 0;
            node->is_stalled = 0;
            news_tell(g, replica);
        }
        return;

    case GATEWAY_SLOW:
        model_replica_slow(node->model, 1);
        return;

    case GATEWAY_DRAIN:
        faults_drain(g, replica, 0);
        return;
    }
}


/*
 * Faults of replicas, at given times or at random.
 *
 * If a process crashes, its connections break at once, and its agent reports
 * it.  If a machine dies, nothing is sent: its streams are silent until their
 * timers expire or gossip reports it DEAD.  If a process hangs, it does not
 * answer, and its agent reports that after it has missed reports for a while.
 *
 * Several faults and an update may affect a replica at one time.  Each fault is
 * a cause of one of the states below, and its end removes that cause:
 *
 *     state      as long as one of these lasts
 *     ---------  ---------------------------------------------------
 *     down       crash, die, the restart of an update
 *     dead       die
 *     draining   drain, the drain and the restart of an update
 *     hanging    stall, of this process: a crash ends all stalls
 *     slow       slow; their factors multiply
 */

#include <math.h>

#include "sim/gateway/gateway_inner.h"


#define FAULTS_STALL_US  3000000        /* until an agent reports STALLED */


/* A random time with that mean (exponential distribution), at least 0. */
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
    /* the attempt has been frozen already */
}


/* The replica's process ends, with the requests that it serves. */
static void
faults_fall(gateway_t *g, uint32_t replica)
{
    uint32_t       i;
    attempt_t     *a;
    node_truth_t  *node = &g->nodes[replica];

    node->is_up = 0;
    node->struck[GATEWAY_STALL] = 0;
    node->life++;

    if (node->is_dead) {
        link_die_all(g, replica);

    } else {
        link_reset_all(g, replica);
    }

    for (i = node->first; i != ATTEMPT_NONE; i = a->behind) {
        a = gateway_attempt(g, i);

        if (!a->is_there) {
            continue;
        }

        attempt_freeze(g, i);

        if (!node->is_dead && a->final_us == 0) {
            attempt_break(g, i, LLMGW_ENDING_FAILED, LLMGW_CAUSE_RESET,
                          g->loop.clock_us + g->config->network_us);
        }
    }

    model_replica_crash(node->model, faults_lost, g);
    gateway_node_changed(g, replica);
}


static void
faults_hang(gateway_t *g, uint32_t replica, int hangs)
{
    node_truth_t  *node = &g->nodes[replica];

    if (node->hangs == hangs) {
        return;
    }

    node->hangs = (uint8_t) hangs;
    node->is_stalled = 0;
    node->hang++;
    model_replica_stall(node->model, hangs ? MODEL_NEVER : g->loop.clock_us);
    gateway_node_changed(g, replica);

    if (hangs) {
        gateway_later(g, g->loop.clock_us + FAULTS_STALL_US, EVENT_STALLED,
                      replica, node->hang, 0);
    }
}


int
faults_is_fit(const node_truth_t *node)
{
    return node->is_up && !node->is_draining && !node->hangs;
}


void
faults_settle(gateway_t *g, uint32_t replica)
{
    int            is_down, was_dead, was_fit;
    node_truth_t  *node = &g->nodes[replica];

    was_fit = faults_is_fit(node);
    was_dead = node->is_dead;
    is_down = node->struck[GATEWAY_CRASH] + node->struck[GATEWAY_DIE] > 0
              || node->update == UPDATE_RESTARTS;
    node->is_dead = node->struck[GATEWAY_DIE] > 0;

    if (is_down && node->is_up) {
        faults_fall(g, replica);
    }

    if (was_dead && !node->is_dead) {
        link_revive_all(g, replica);
    }

    node->is_up = !is_down;
    node->is_draining = node->struck[GATEWAY_DRAIN] > 0
                        || node->update != UPDATE_NOT;
    faults_hang(g, replica, node->struck[GATEWAY_STALL] > 0);

    if (was_fit && !faults_is_fit(node)) {
        node->unfit_us = g->loop.clock_us;
    }

    news_tell(g, replica);
}


void
faults_stalled(gateway_t *g, uint32_t replica, uint32_t hang)
{
    node_truth_t  *node = &g->nodes[replica];

    if (node->hangs && node->hang == hang) {
        node->is_stalled = 1;
        news_tell(g, replica);
    }
}


/*
 * Slows by that factor, or faster again; without any slow fault slowness is set
 * to 1, since products round.
 */
static void
faults_slow(node_truth_t *node, double by)
{
    node->slowness = node->struck[GATEWAY_SLOW] > 0 ? node->slowness * by : 1;
    model_replica_slow(node->model, node->slowness);
}


static void
faults_strike(gateway_t *g, uint32_t i, uint32_t replica)
{
    node_truth_t           *node = &g->nodes[replica];
    const gateway_fault_t  *fault = &g->config->faults[i];

    g->counts->faults++;

    if (fault->kind == GATEWAY_STALL && !node->is_up) {
        return;                 /* no process that could hang */
    }

    node->struck[fault->kind]++;

    if (fault->kind == GATEWAY_SLOW) {
        faults_slow(node, fault->factor);
    }

    faults_settle(g, replica);

    if (fault->for_us != 0) {
        gateway_later(g, g->loop.clock_us + fault->for_us, EVENT_FAULT_END, i,
                      replica, node->life);
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
        faults_schedule(g, i, g->loop.clock_us);
        return;
    }

    for (k = 0; k < fault->count; k++) {
        faults_strike(g, i, fault->replica + k);
    }
}


void
faults_end(gateway_t *g, uint32_t i, uint32_t replica, uint32_t life)
{
    node_truth_t           *node = &g->nodes[replica];
    const gateway_fault_t  *fault = &g->config->faults[i];

    if (fault->kind == GATEWAY_STALL && node->life != life) {
        return;                 /* the process that hung has ended */
    }

    node->struck[fault->kind]--;

    if (fault->kind == GATEWAY_SLOW) {
        faults_slow(node, 1 / fault->factor);
    }

    faults_settle(g, replica);
}

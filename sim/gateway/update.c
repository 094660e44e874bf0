
/*
 * A rolling update: one replica after another drains, restarts with an empty
 * cache, and comes back; `parallel` of them at a time.
 *
 *     serves ---> drains --- empty, or late ---> restarts ---> serves
 *
 * Streams that still run when the drain times out lose their connection, and
 * continue elsewhere.  A replica that is down already is skipped.  A replica
 * that a fault takes down during its step is done when its restart is over, but
 * stays down as long as the fault lasts.
 */

#include "sim/gateway/gateway_inner.h"


/* Begins the step of the next replica that is up. */
static void
update_next(gateway_t *g)
{
    uint32_t  i;

    while (g->next_update < g->fleet->replicas) {
        i = g->next_update++;

        if (g->nodes[i].is_up) {
            g->nodes[i].update = UPDATE_DRAINS;
            faults_settle(g, i);
            gateway_later(g, g->loop.clock_us + g->config->update.drain_us,
                          EVENT_UPDATE_LATE, i, 0, 0);
            update_judge(g, i, 0);
            return;
        }
    }
}


void
update_first(gateway_t *g)
{
    uint32_t  i;

    for (i = 0; i < g->config->update.parallel; i++) {
        update_next(g);
    }
}


/* Ends the replica's drain if no attempt is left there, or it is late. */
void
update_judge(gateway_t *g, uint32_t replica, uint32_t is_late)
{
    node_truth_t  *node = &g->nodes[replica];

    if (node->update != UPDATE_DRAINS || (node->active != 0 && !is_late)) {
        return;
    }

    node->update = UPDATE_RESTARTS;
    faults_settle(g, replica);
    gateway_later(g, g->loop.clock_us + g->config->update.restart_us,
                  EVENT_UPDATE_RESTARTED, replica, 0, 0);
}


void
update_restarted(gateway_t *g, uint32_t replica)
{
    g->nodes[replica].update = UPDATE_NOT;
    g->counts->updated++;
    faults_settle(g, replica);
    update_next(g);
}

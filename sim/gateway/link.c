
/*
 * A gateway's connection to a replica, as nginx would have it.
 *
 *           a call, and its process lives       its process ended
 *     none ------------------------------> ready ----------------> none
 *      |                                     |
 *      | a call, and the process is down     | its machine died: calls hear
 *      | or hangs, or the machine is dead    | nothing, until gossip, a timer
 *      v                                     | or TCP's time-out ends them, or
 *     the call fails: at once, or after      | the machine is back and resets
 *     connect_timeout                        v them
 *                                           none
 *
 * The time-outs are those of attempt/session.c.
 */

#include "sim/gateway/gateway_inner.h"


#define LINK_PATIENCE_US  20000000      /* TCP_USER_TIMEOUT */


static link_t *
link_of(gateway_t *g, uint32_t attempt)
{
    const stream_t  *s = gateway_stream(g, attempt / 2);

    return &g->fronts[s->front].links[gateway_attempt(g, attempt)->replica];
}


static void
link_lose(link_t *link)
{
    link->is_ready = 0;
    link->unread_us = 0;
    link->serial++;
}


/* Breaks the connection for all attempts on it. */
static void
link_break(gateway_t *g, uint32_t front, uint32_t replica, int64_t at_us)
{
    uint32_t    i;
    link_t     *link = &g->fronts[front].links[replica];
    attempt_t  *a;

    for (i = g->nodes[replica].first; i != ATTEMPT_NONE; i = a->behind) {
        a = gateway_attempt(g, i);

        if (a->link == link->serial && link_of(g, i) == link) {
            attempt_break(g, i, LLMGW_ENDING_FAILED, LLMGW_CAUSE_RESET, at_us);
        }
    }

    link_lose(link);
}


/*
 * Connects.  1: the connection is ready; 0: it fails later, or the call waits
 * for the end of the replica's back-off.
 */
static int
link_connect(gateway_t *g, uint32_t i, link_t *link)
{
    int64_t              wait_us;
    attempt_t           *a = gateway_attempt(g, i);
    const front_t       *front = &g->fronts[gateway_stream(g, i / 2)->front];
    const node_truth_t  *node = &g->nodes[a->replica];

    wait_us = 1000 * (int64_t) llmgw_reach_wait_ms(
                  &front->views[a->replica].reach, gateway_ms(g));

    if (wait_us != 0) {
        gateway_later(g, g->loop.clock_us + wait_us, EVENT_CAME, i, a->serial,
                      0);
        return 0;
    }

    if (node->is_up && !node->hangs) {
        link->is_ready = 1;
        link->life = node->life;
        link->connect_end_us = 0;
        a->link = link->serial;
        return 1;
    }

    if (link->connect_end_us <= g->loop.clock_us) {
        link->connect_end_us = g->loop.clock_us + (node->is_dead || node->hangs
                                              ? g->config->connect_us
                                              : g->config->network_us);
    }

    attempt_break(g, i, LLMGW_ENDING_FAILED, LLMGW_CAUSE_CONNECT,
                  link->connect_end_us);

    return 0;
}


int
link_call(gateway_t *g, uint32_t i)
{
    link_t              *link = link_of(g, i);
    attempt_t           *a = gateway_attempt(g, i);
    const node_truth_t  *node = &g->nodes[a->replica];

    if (!link->is_ready) {
        return link_connect(g, i, link);
    }

    a->link = link->serial;

    if (node->is_dead) {
        link->unread_us = link->unread_us != 0 ? link->unread_us
                                               : g->loop.clock_us;
        return 0;
    }

    if (link->life != node->life) {
        /* its machine died and came back without this connection */
        link_break(g, gateway_stream(g, i / 2)->front, a->replica,
                   g->loop.clock_us + g->config->network_us);
        return 0;
    }

    return 1;
}


void
link_reset_all(gateway_t *g, uint32_t replica)
{
    uint32_t  i;

    for (i = 0; i < g->config->gateways; i++) {
        link_lose(&g->fronts[i].links[replica]);
    }
}


void
link_die_all(gateway_t *g, uint32_t replica)
{
    uint32_t  i;
    link_t   *link;

    for (i = 0; i < g->config->gateways; i++) {
        link = &g->fronts[i].links[replica];

        if (link->is_ready) {
            gateway_later(g, g->loop.clock_us + LINK_PATIENCE_US, EVENT_LINK, i,
                          replica, link->serial);
        }
    }
}


/* The machine is back: it resets connections on which calls were sent. */
void
link_revive_all(gateway_t *g, uint32_t replica)
{
    uint32_t  i;

    for (i = 0; i < g->config->gateways; i++) {
        if (g->fronts[i].links[replica].unread_us != 0) {
            link_break(g, i, replica, g->loop.clock_us + g->config->network_us);
        }
    }
}


void
link_received(gateway_t *g, uint32_t attempt)
{
    link_of(g, attempt)->heard_us = g->loop.clock_us;
}


int
link_refused(gateway_t *g, uint32_t attempt)
{
    link_t  *link = link_of(g, attempt);

    if (link->connect_end_us == 0) {
        return 0;
    }

    link->connect_end_us = 0;

    return 1;
}


/*
 * Closes the connection, so that the next call opens one, unless another call
 * has received something on it since.
 */
void
link_timed_out(gateway_t *g, uint32_t attempt)
{
    uint32_t     i;
    link_t      *link = link_of(g, attempt);
    attempt_t   *other, *a = gateway_attempt(g, attempt);

    if (!link->is_ready || a->link != link->serial
        || link->heard_us > a->heard_us)
    {
        return;
    }

    for (i = g->nodes[a->replica].first; i != ATTEMPT_NONE; i = other->behind)
    {
        other = gateway_attempt(g, i);
        attempt_look(g, i);

        if (link_of(g, i) == link && other->state.tokens > 0
            && other->heard_us > a->heard_us)
        {
            return;
        }
    }

    link_lose(link);
}


void
link_due(gateway_t *g, uint32_t front, uint32_t replica, uint32_t serial)
{
    link_t  *link = &g->fronts[front].links[replica];

    if (link->serial != serial || !link->is_ready
        || (!g->nodes[replica].is_dead
            && link->life == g->nodes[replica].life))
    {
        return;
    }

    if (link->unread_us + LINK_PATIENCE_US > g->loop.clock_us) {
        gateway_later(g, link->unread_us + LINK_PATIENCE_US, EVENT_LINK, front,
                      replica, serial);
        return;
    }

    link_break(g, front, replica, g->loop.clock_us);
}

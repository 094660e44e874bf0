
#include "lock/machine_inner.h"


/* --- the queue */

static void
machine_positions(machine_t *m, machine_group_t *g)
{
    unsigned           position;
    machine_engine_t  *e;

    position = 0;

    for (e = g->queue; e != NULL; e = e->next) {
        position++;

        if (e->position != position) {
            e->position = position;
            m->ops->queued(m->data, e, position);
        }
    }
}


void
machine_enqueue(machine_group_t *g, machine_engine_t *e, int is_first)
{
    machine_engine_t  **place;

    place = &g->queue;

    while (!is_first && *place != NULL) {
        place = &(*place)->next;
    }

    e->next = *place;
    *place = e;
    g->nwaiters++;
}


void
machine_dequeue(machine_group_t *g, machine_engine_t *e)
{
    machine_engine_t  **place;

    for (place = &g->queue; *place != e; place = &(*place)->next) {
        /* void */
    }

    *place = e->next;
    e->next = NULL;
    g->nwaiters--;

    if (g->offered == e) {
        g->offered = NULL;
    }
}


unsigned
machine_standbys(const machine_t *m, const machine_group_t *g)
{
    unsigned                 n;
    const machine_engine_t  *e;

    n = 0;

    for (e = g->queue; e != NULL; e = e->next) {
        n += !e->is_silent && e->state == LLMGW_GROUP_STANDBY
             && m->now_ms >= e->standby_ms + MACHINE_KNOWN_MS
             && m->now_ms < e->pong_ms + MACHINE_READY_PINGS
                                         * m->settings.ping_interval_ms;
    }

    return n;
}


/* --- offers and grants */

/*
 * The next epoch.  If the greatest known one is so far ahead that gossip
 * refuses it, it is given up: gossip would refuse each epoch above it until the
 * clock came near, and no engine could serve until then.
 */
static uint64_t
machine_next_epoch(machine_t *m)
{
    uint64_t  wall_us;

    wall_us = m->ops->wall_us(m->data);

    if (m->epoch >= wall_us + MACHINE_EPOCH_AHEAD_US) {
        m->ops->given_up(m->data, m->epoch);
        m->epoch = 0;
    }

    m->epoch = (m->epoch > wall_us ? m->epoch : wall_us) + 1;

    return m->epoch;
}


/* Whether the lock file shows that no engine is active.  A missing file shows
   that only if it is certain that it was not removed. */
static int
machine_file_is_free(machine_t *m, machine_group_t *g)
{
    machine_file_t  file;

    file = m->ops->file(m->data, g->name);

    g->is_settling = file == MACHINE_FILE_MISSING
                     && m->now_ms < m->settled_ms;

    if (file != MACHINE_FILE_HELD) {
        g->is_unknown = 0;
        return !g->is_settling;
    }

    if (!g->is_unknown || m->now_ms >= g->alarm_ms + MACHINE_ALARM_MS) {
        g->is_unknown = 1;
        g->alarm_ms = m->now_ms;
        m->ops->tell(m->data, MACHINE_UNKNOWN, g, NULL, NULL);
    }

    return 0;
}


void
machine_offer_next(machine_t *m, machine_group_t *g)
{
    machine_engine_t  *e;

    machine_positions(m, g);

    for (e = g->queue; e != NULL && e->is_silent; e = e->next) { /* void */ }

    if (e == NULL || g->holder != NULL || g->offered != NULL
        || m->now_ms < g->retry_ms || !machine_file_is_free(m, g))
    {
        return;
    }

    e->claim.epoch = machine_next_epoch(m);
    g->offered = e;
    g->offer_ms = m->now_ms + m->settings.take_timeout_ms;
    m->ops->tell(m->data, MACHINE_OFFERED, g, e, NULL);
    m->ops->offer(m->data, e);
}


/* The engine becomes the holder, whatever its state was. */
void
machine_hold(machine_t *m, machine_group_t *g, machine_engine_t *e)
{
    g->holder = e;
    g->phase = MACHINE_HOLDS;
    g->fault = NULL;
    g->granted_ms = m->now_ms;
    g->is_unknown = 0;
    g->epoch = e->claim.epoch;

    e->position = 0;
    e->pong_ms = m->now_ms;
    e->progress_ms = m->now_ms;
    e->streams = 0;
}


int
machine_keep(machine_t *m)
{
    m->is_unkept = m->ops->keep(m->data) != 0;
    m->kept_ms = m->now_ms;

    return m->is_unkept ? -1 : 0;
}


/* Grants the group.  The epoch is written first, since a GRANTED that was sent
   must not be forgotten. */
static void
machine_grant(machine_t *m, machine_group_t *g, machine_engine_t *e)
{
    uint64_t  before;

    before = g->epoch;
    machine_dequeue(g, e);
    machine_hold(m, g, e);
    e->state = LLMGW_GROUP_WAKING;      /* whatever it reported as a waiter */

    if (machine_keep(m) != 0) {
        g->holder = NULL;
        g->epoch = before;
        g->retry_ms = m->now_ms + MACHINE_RETRY_MS;
        machine_enqueue(g, e, 1);
        m->ops->refused(m->data, e, MACHINE_STATE);
        return;
    }

    if (g->dying_us != 0) {
        g->last_grant_ms = (int64_t) ((m->ops->mono_us(m->data)
                                       - g->dying_us) / MACHINE_US);
        g->dying_us = 0;
    }

    m->ops->tell(m->data, MACHINE_GRANTED, g, e, NULL);
    m->ops->granted(m->data, e, 0);
    machine_positions(m, g);
}


void
machine_take(machine_t *m, machine_engine_t *e, uint64_t epoch)
{
    machine_group_t  *g;

    machine_advance(m);
    g = e->group;

    if (g->offered != e || epoch != e->claim.epoch) {
        m->ops->refused(m->data, e, MACHINE_LATE);
        return;
    }

    if (!machine_file_is_free(m, g)) {
        g->offered = NULL;
        m->ops->refused(m->data, e, MACHINE_BUSY);
        return;
    }

    machine_grant(m, g, e);
}


void
machine_missed(machine_t *m, machine_group_t *g)
{
    machine_engine_t  *e;

    e = g->offered;
    machine_dequeue(g, e);
    machine_enqueue(g, e, 0);
    e->is_silent = 1;
    m->ops->tell(m->data, MACHINE_MISSED, g, e, NULL);
}



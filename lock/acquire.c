
#include <stdlib.h>
#include <string.h>

#include "lock/machine_inner.h"


/* --- ACQUIRE */

static machine_engine_t *
machine_engine_create(machine_group_t *g, void *peer,
    const machine_claim_t *claim)
{
    machine_engine_t  *e;

    e = calloc(1, sizeof(machine_engine_t));

    if (e != NULL) {
        e->claim = *claim;
        e->group = g;
        e->peer = peer;
    }

    return e;
}


machine_engine_t *
machine_restore(machine_t *m, const machine_claim_t *claim)
{
    machine_group_t   *g;
    machine_engine_t  *e;

    g = machine_group(m, claim->group);

    if (g == NULL || g->holder != NULL) {
        return NULL;
    }

    e = machine_engine_create(g, NULL, claim);

    if (e != NULL) {
        machine_hold(m, g, e);
        g->lost_ms = m->now_ms;
    }

    return e;
}


static int
machine_is_same(const machine_engine_t *e, const machine_claim_t *claim)
{
    return strcmp(e->claim.nonce, claim->nonce) == 0
           && e->claim.pid == claim->pid
           && e->claim.start_ticks == claim->start_ticks;
}


/* Checks that the claim's epochs are plausible, and remembers the greatest. */
static int
machine_learn_epoch(machine_t *m, const machine_claim_t *claim)
{
    uint64_t  known;

    known = claim->epoch > claim->last_epoch ? claim->epoch
                                             : claim->last_epoch;

    if (known > m->epoch
        && known > m->ops->wall_us(m->data) + MACHINE_EPOCH_AHEAD_US)
    {
        return -1;
    }

    m->epoch = known > m->epoch ? known : m->epoch;

    return 0;
}


static void
machine_regrant(machine_t *m, machine_group_t *g)
{
    m->ops->tell(m->data, MACHINE_REGRANTED, g, g->holder, NULL);
    m->ops->granted(m->data, g->holder, 1);
    m->ops->ping(m->data, g->holder);       /* does the holder still answer? */
}


/* The claim is the holder's, over another connection. */
static machine_rc_t
machine_comes_back(machine_t *m, machine_group_t *g, void *peer,
    const machine_claim_t *claim)
{
    machine_engine_t  *e;

    e = g->holder;

    if (g->phase == MACHINE_FENCED) {
        return MACHINE_HELD;
    }

    if (claim->epoch != e->claim.epoch) {
        return MACHINE_BAD_EPOCH;
    }

    if (e->peer != NULL) {
        m->ops->drop(m->data, e);
    }

    e->peer = peer;
    e->claim.can_be_killed = claim->can_be_killed;
    e->claim.waking_timeout_ms = claim->waking_timeout_ms;
    e->is_released = 0;
    g->dying_us = 0;
    machine_hold(m, g, e);
    machine_regrant(m, g);

    return MACHINE_OK;
}


/*
 * The claim is that of a holder that the service does not know, since the state
 * file was lost.  It is accepted, since that only excludes others; the lock
 * file decides.
 */
static machine_rc_t
machine_claims(machine_t *m, machine_group_t *g, machine_engine_t *e)
{
    g->offered = NULL;
    g->dying_us = 0;
    machine_hold(m, g, e);
    (void) machine_keep(m);
    machine_regrant(m, g);

    return MACHINE_OK;
}


/* The engine that is recorded as the holder reports that it holds nothing,
   which frees the group: the service died before GRANTED was sent. */
static int
machine_disclaims(machine_t *m, machine_group_t *g,
    const machine_claim_t *claim)
{
    if (g->holder == NULL || g->phase == MACHINE_FENCED || claim->epoch != 0
        || !machine_is_same(g->holder, claim))
    {
        return 0;
    }

    if (g->holder->peer != NULL) {
        m->ops->drop(m->data, g->holder);
    }

    machine_forget(m, g->holder);
    g->holder = NULL;
    m->is_unkept = 1;

    return 1;
}


/* One engine waits only once: closes an older connection of it. */
static void
machine_leave_older(machine_t *m, machine_group_t *g,
    const machine_claim_t *claim)
{
    machine_engine_t  *e;

    for (e = g->queue; e != NULL; e = e->next) {
        if (machine_is_same(e, claim)) {
            m->ops->drop(m->data, e);
            machine_dequeue(g, e);
            machine_forget(m, e);
            return;
        }
    }
}


machine_rc_t
machine_acquire(machine_t *m, void *peer, const machine_claim_t *claim,
    machine_engine_t **engine)
{
    int                is_first;
    machine_group_t   *g;
    machine_engine_t  *e;

    machine_advance(m);

    if (machine_learn_epoch(m, claim) != 0) {
        return MACHINE_BAD_EPOCH;
    }

    g = machine_group(m, claim->group);

    if (g == NULL) {
        return MACHINE_TOO_MANY;
    }

    is_first = machine_disclaims(m, g, claim);

    if (claim->epoch != 0 && g->holder != NULL) {
        if (!machine_is_same(g->holder, claim)) {
            return MACHINE_HELD;
        }

        *engine = g->holder;
        return machine_comes_back(m, g, peer, claim);
    }

    machine_leave_older(m, g, claim);

    if (g->nwaiters == MACHINE_WAITERS_MAX) {
        return MACHINE_TOO_MANY;
    }

    e = machine_engine_create(g, peer, claim);

    if (e == NULL) {
        return MACHINE_TOO_MANY;
    }

    *engine = e;

    if (claim->epoch != 0) {
        return machine_claims(m, g, e);
    }

    machine_enqueue(g, e, is_first);
    m->ops->tell(m->data, MACHINE_QUEUED, g, e, NULL);
    machine_offer_next(m, g);

    return MACHINE_OK;
}



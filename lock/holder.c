
#include "lock/machine_inner.h"


/* --- messages of engines */

void
machine_heard(machine_t *m, machine_engine_t *e)
{
    machine_advance(m);

    if (e->is_silent) {
        e->is_silent = 0;
        machine_offer_next(m, e->group);
    }
}


void
machine_pong(machine_t *m, machine_engine_t *e, llmgw_group_state_t state,
    uint64_t progress, uint64_t streams)
{
    int  was_active;

    machine_advance(m);
    was_active = e->state == LLMGW_GROUP_ACTIVE;
    e->pong_ms = m->now_ms;

    if (e->state != state && state == LLMGW_GROUP_STANDBY) {
        e->standby_ms = m->now_ms;
    }

    e->state = was_active ? LLMGW_GROUP_ACTIVE : state;

    if (streams == 0 || progress != e->progress || e->streams == 0) {
        e->progress_ms = m->now_ms;
    }

    e->progress = progress;
    e->streams = streams;

    if (e->group->holder == e && e->state == LLMGW_GROUP_ACTIVE
        && !was_active)
    {
        m->ops->tell(m->data, MACHINE_ACTIVE, e->group, e, NULL);
    }
}


machine_rc_t
machine_process_add(machine_engine_t *e)
{
    if (e->nprocesses == MACHINE_PROCESSES_MAX) {
        return MACHINE_TOO_MANY;
    }

    e->nprocesses++;

    return MACHINE_OK;
}


/* --- the end of a holder */

static void
machine_is_dying(machine_t *m, machine_group_t *g)
{
    if (g->dying_us == 0) {
        g->dying_us = m->ops->mono_us(m->data);
        g->last_gone_ms = -1;
        g->last_grant_ms = -1;
    }
}


static void
machine_gone_if_gone(machine_t *m, machine_group_t *g)
{
    machine_engine_t  *e;

    e = g->holder;

    if (e->peer != NULL || e->nprocesses > 0) {
        return;
    }

    g->last_gone_ms = (int64_t) ((m->ops->mono_us(m->data) - g->dying_us)
                                 / MACHINE_US);
    g->holder = NULL;
    g->phase = MACHINE_HOLDS;
    m->is_unkept = 1;
    m->ops->tell(m->data, MACHINE_GONE, g, e, NULL);
    machine_forget(m, e);
    machine_offer_next(m, g);
}


/* Without its main process an engine cannot come back: its other processes are
   killed at once if fence=kill. */
void
machine_process_gone(machine_t *m, machine_engine_t *e, int is_main)
{
    machine_group_t  *g;

    machine_advance(m);
    g = e->group;
    e->nprocesses--;

    if (g->holder != e) {
        return;
    }

    if (is_main) {
        machine_is_dying(m, g);

        if (e->nprocesses > 0 && m->settings.is_kill
            && e->claim.can_be_killed)
        {
            m->ops->kill(m->data, e);
        }
    }

    machine_gone_if_gone(m, g);
}


void
machine_closed(machine_t *m, machine_engine_t *e)
{
    machine_group_t  *g;

    machine_advance(m);
    g = e->group;
    e->peer = NULL;

    if (g->holder != e) {
        machine_dequeue(g, e);
        m->ops->tell(m->data, MACHINE_LEFT, g, e, NULL);
        machine_forget(m, e);
        machine_offer_next(m, g);
        return;
    }

    machine_is_dying(m, g);

    if (!e->is_released) {
        g->lost_ms = m->now_ms;
    }

    if (e->nprocesses > 0) {
        m->ops->tell(m->data, MACHINE_LOST, g, e, NULL);
    }

    machine_gone_if_gone(m, g);
}


void
machine_release(machine_t *m, machine_engine_t *e)
{
    machine_group_t  *g;

    machine_advance(m);
    g = e->group;

    if (g->holder == e) {
        if (!e->is_released) {
            machine_is_dying(m, g);
            e->is_released = 1;
            g->lost_ms = m->now_ms;
            m->ops->tell(m->data, MACHINE_RELEASED, g, e, NULL);
        }

        return;
    }

    m->ops->drop(m->data, e);
    machine_closed(m, e);
}


/* --- deadlines */

/* Why the holder has lost its right; NULL: it has not. */
static const char *
machine_fault(const machine_t *m, const machine_group_t *g)
{
    uint64_t                 now, hang;
    const machine_engine_t  *e;

    e = g->holder;
    now = m->now_ms;
    hang = m->settings.hang_timeout_ms;

    if (e->peer == NULL || e->is_released) {
        if (now < g->lost_ms + m->settings.reconnect_window_ms) {
            return NULL;
        }

        return e->is_released ? "it released the group and did not end"
                              : "it did not come back";
    }

    if (now >= e->pong_ms + hang) {
        return "no PONG";
    }

    if (e->streams > 0 && now >= e->progress_ms + hang) {
        return "no progress while streams run";
    }

    if (e->state != LLMGW_GROUP_ACTIVE
        && now >= g->granted_ms + e->claim.waking_timeout_ms
                  + MACHINE_WAKING_GRACE_MS)
    {
        return "it did not wake in time";
    }

    return NULL;
}


static void
machine_blame(machine_t *m, machine_group_t *g, const char *fault)
{
    machine_engine_t  *e;

    e = g->holder;
    machine_is_dying(m, g);
    g->fault = fault;
    g->alarm_ms = m->now_ms;

    if (m->settings.is_kill && e->claim.can_be_killed) {
        g->phase = MACHINE_FENCED;
        m->ops->tell(m->data, MACHINE_KILLED, g, e, fault);
        m->ops->kill(m->data, e);
        return;
    }

    g->phase = MACHINE_ALARM;
    m->ops->tell(m->data, MACHINE_BLOCKED, g, e, fault);
}


void
machine_judge(machine_t *m, machine_group_t *g)
{
    const char  *fault;

    fault = machine_fault(m, g);

    if (g->phase == MACHINE_HOLDS && fault != NULL) {
        machine_blame(m, g, fault);
        return;
    }

    if (g->phase == MACHINE_ALARM && fault == NULL) {
        g->phase = MACHINE_HOLDS;
        g->fault = NULL;
        g->dying_us = 0;
        m->ops->tell(m->data, MACHINE_RECOVERED, g, g->holder, NULL);
        return;
    }

    if (g->phase != MACHINE_HOLDS
        && m->now_ms >= g->alarm_ms + MACHINE_ALARM_MS)
    {
        machine_blame(m, g, g->fault);      /* and killed again */
    }
}



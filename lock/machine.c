
#include <stdlib.h>
#include <string.h>

#include "lock/machine_inner.h"


/* --- time */

void
machine_advance(machine_t *m)
{
    uint64_t  mono_us, step_ms;

    mono_us = m->ops->mono_us(m->data);
    step_ms = (mono_us - m->mono_us) / MACHINE_US;
    m->mono_us += step_ms * MACHINE_US;

    m->now_ms += step_ms < m->settings.step_max_ms
                 ? step_ms : m->settings.step_max_ms;
}


void
machine_is_unsettled(machine_t *m)
{
    m->settled_ms = m->settings.reconnect_window_ms;
}


void
machine_init(machine_t *m, const machine_settings_t *settings,
    const machine_ops_t *ops, void *data, uint64_t kept_epoch, int is_known)
{
    size_t  i;

    memset(m, 0, sizeof(machine_t));
    m->settings = *settings;
    m->ops = ops;
    m->data = data;
    m->mono_us = ops->mono_us(data);
    m->epoch = kept_epoch;

    if (!is_known) {
        machine_is_unsettled(m);
    }

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        m->groups[i].last_gone_ms = -1;
        m->groups[i].last_grant_ms = -1;
    }
}


void
machine_forget(machine_t *m, machine_engine_t *e)
{
    m->ops->forget(m->data, e);
    free(e);
}


void
machine_done(machine_t *m)
{
    size_t             i;
    machine_group_t   *g;
    machine_engine_t  *e;

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        g = &m->groups[i];

        while (g->queue != NULL) {
            e = g->queue;
            g->queue = e->next;
            machine_forget(m, e);
        }

        if (g->holder != NULL) {
            machine_forget(m, g->holder);
            g->holder = NULL;
        }
    }
}


/* --- groups */

/* The group with this name, or else an unused entry, or else an idle
   group's. */
machine_group_t *
machine_group(machine_t *m, const char *name)
{
    size_t            i;
    machine_group_t  *g, *idle, *unused;

    idle = NULL;
    unused = NULL;

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        g = &m->groups[i];

        if (strcmp(g->name, name) == 0) {
            return g;
        }

        if (g->name[0] == '\0') {
            unused = unused != NULL ? unused : g;

        } else if (g->holder == NULL && g->queue == NULL) {
            idle = idle != NULL ? idle : g;
        }
    }

    g = unused != NULL ? unused : idle;

    if (g != NULL) {
        memset(g, 0, sizeof(machine_group_t));
        strcpy(g->name, name);
        g->last_gone_ms = -1;
        g->last_grant_ms = -1;
    }

    return g;
}


/* --- time passes */

static void
machine_ping(machine_t *m, machine_group_t *g)
{
    machine_engine_t  *e;

    if (g->holder != NULL && g->holder->peer != NULL) {
        m->ops->ping(m->data, g->holder);
    }

    for (e = g->queue; e != NULL; e = e->next) {
        m->ops->ping(m->data, e);
    }
}


void
machine_tick(machine_t *m)
{
    int               is_ping;
    size_t            i;
    machine_group_t  *g;

    machine_advance(m);
    is_ping = m->now_ms >= m->ping_ms + m->settings.ping_interval_ms;
    m->ping_ms = is_ping ? m->now_ms : m->ping_ms;

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        g = &m->groups[i];

        if (is_ping) {
            machine_ping(m, g);
        }

        if (g->offered != NULL && m->now_ms >= g->offer_ms) {
            machine_missed(m, g);
        }

        if (g->holder != NULL) {
            machine_judge(m, g);
        }

        machine_offer_next(m, g);
    }

    if (m->is_unkept && m->now_ms >= m->kept_ms + MACHINE_RETRY_MS) {
        (void) machine_keep(m);
    }
}


#include "lock/machine_inner.h"


static const char *const  machine_rc_names[] = {
    "ok", "late", "held", "busy", "bad_epoch", "too_many", "state"
};


const char *
machine_rc_name(machine_rc_t rc)
{
    return machine_rc_names[rc];
}


static uint64_t
machine_left(const machine_t *m, uint64_t until_ms)
{
    return until_ms > m->now_ms ? until_ms - m->now_ms : 0;
}


uint64_t
machine_window_ms(const machine_t *m, const machine_group_t *g)
{
    if (g->holder == NULL) {
        return g->is_settling ? machine_left(m, m->settled_ms) : 0;
    }

    return g->holder->peer == NULL || g->holder->is_released
           ? machine_left(m, g->lost_ms + m->settings.reconnect_window_ms)
           : 0;
}


const char *
machine_group_state(const machine_t *m, const machine_group_t *g)
{
    if (g->holder == NULL) {
        if (g->is_unknown) {
            return "unknown";
        }

        if (g->offered != NULL) {
            return "offered";
        }

        return g->is_settling && g->queue != NULL ? "settling" : "free";
    }

    if (g->phase != MACHINE_HOLDS) {
        return g->phase == MACHINE_FENCED ? "fenced" : "alarm";
    }

    if (g->holder->is_released) {
        return "released";
    }

    if (g->holder->peer == NULL) {
        return "lost";
    }

    return g->holder->state == LLMGW_GROUP_ACTIVE ? "active" : "waking";
}

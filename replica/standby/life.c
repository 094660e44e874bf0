
#include <string.h>

#include "replica/standby/life.h"


void
life_init(life_t *life, uint64_t waking_timeout_ms)
{
    memset(life, 0, sizeof(life_t));
    life->state = LLMGW_GROUP_INIT;
    life->waking_timeout_ms = waking_timeout_ms;
}


static int
life_step(life_t *life, llmgw_group_state_t from, llmgw_group_state_t to)
{
    if (life->is_dead || life->state != from) {
        return -1;
    }

    life->state = to;

    return 0;
}


int
life_asleep(life_t *life)
{
    return life_step(life, LLMGW_GROUP_INIT, LLMGW_GROUP_STANDBY);
}


int
life_granted(life_t *life, uint64_t epoch, uint64_t lock, uint64_t now_ms)
{
    if (life_step(life, LLMGW_GROUP_STANDBY, LLMGW_GROUP_WAKING) != 0) {
        return -1;
    }

    life->epoch = epoch;
    life->lock = lock;
    life->is_queued = 1;
    life->waking_ms = now_ms;

    return 0;
}


int
life_woken(life_t *life, uint64_t now_ms)
{
    if (life_is_overdue(life, now_ms)) {
        return -1;
    }

    return life_step(life, LLMGW_GROUP_WAKING, LLMGW_GROUP_ACTIVE);
}


int
life_end(life_t *life)
{
    if (life->is_dead) {
        return -1;
    }

    life->is_dead = 1;

    return 0;
}


void
life_regranted(life_t *life, uint64_t lock)
{
    life->lock = lock;
    life->is_queued = 1;
}


void
life_queued(life_t *life, int is_queued, uint64_t now_ms)
{
    if (life->is_queued && !is_queued) {
        life->away_ms = now_ms;
    }

    life->is_queued = is_queued;
    life->was_queued |= is_queued;
}


llmgw_group_state_t
life_shown(const life_t *life, uint64_t now_ms)
{
    if (life->state != LLMGW_GROUP_STANDBY || life->is_queued) {
        return life->state;
    }

    return life->was_queued && now_ms - life->away_ms < LIFE_AWAY_MS
           ? LLMGW_GROUP_STANDBY : LLMGW_GROUP_INIT;
}


int
life_is_lock_away(const life_t *life)
{
    return life->state == LLMGW_GROUP_ACTIVE && !life->is_queued;
}


void
life_turned(life_t *life, const life_vitals_t *vitals, uint64_t now_ms)
{
    life->vitals = *vitals;
    life->turned_ms = now_ms;
}


int
life_is_overdue(const life_t *life, uint64_t now_ms)
{
    return life->state == LLMGW_GROUP_WAKING
           && now_ms - life->waking_ms >= life->waking_timeout_ms;
}


/* Whether an Active engine answers Generate. */
static int
life_is_healthy(const life_t *life, uint64_t now_ms)
{
    return life->vitals.is_ready && now_ms - life->turned_ms < LIFE_STUCK_MS;
}


static int
life_is_live(const life_t *life, uint64_t now_ms)
{
    switch (life->state) {

    case LLMGW_GROUP_STANDBY:
        return 1;

    case LLMGW_GROUP_WAKING:
        return !life_is_overdue(life, now_ms);

    case LLMGW_GROUP_ACTIVE:
        return life_is_healthy(life, now_ms);

    default:
        return 0;
    }
}


int
life_answer(const life_t *life, life_question_t question, uint64_t now_ms)
{
    if (life->is_dead) {
        return 0;
    }

    switch (question) {

    case LIFE_IS_LIVE:
        return life_is_live(life, now_ms);

    case LIFE_IS_STARTED:
        return life->state != LLMGW_GROUP_INIT;

    default:
        return life->state == LLMGW_GROUP_ACTIVE
               && !life->vitals.is_draining
               && life_is_healthy(life, now_ms);
    }
}


const char *
life_name(const life_t *life)
{
    static const char *const  names[] = {
        [LLMGW_GROUP_INIT] = "INIT",
        [LLMGW_GROUP_STANDBY] = "STANDBY",
        [LLMGW_GROUP_WAKING] = "WAKING",
        [LLMGW_GROUP_ACTIVE] = "ACTIVE"
    };

    return life->is_dead ? "DEAD" : names[life->state];
}

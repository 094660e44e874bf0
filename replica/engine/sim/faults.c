
/*
 * The simulated engine: admission, faults and pace.  What it says is
 * common/sim_token.h's.
 */

#include "replica/engine/sim/faults.h"


int
engine_is_draining(const engine_t *e)
{
    return e->is_draining || e->is_stopping;
}


engine_admission_t
engine_admit(engine_t *e, double chance)
{
    if (engine_is_draining(e)) {
        return ENGINE_DRAINING;
    }

    if (e->faults.reject_all || chance < e->faults.error_rate) {
        e->stats.failed++;
        return ENGINE_REJECTED;
    }

    if (e->max_capacity > 0 && e->stats.active >= e->max_capacity) {
        return ENGINE_FULL;
    }

    e->stats.active++;
    e->stats.started++;

    return ENGINE_ADMITTED;
}


void
engine_release(engine_t *e, engine_end_t end)
{
    e->stats.active--;

    switch (end) {

    case ENGINE_FINISHED:
        e->stats.finished++;
        break;

    case ENGINE_CANCELLED:
        e->stats.cancelled++;
        break;

    default:
        e->stats.failed++;
    }
}


uint64_t
engine_delay_us(const engine_t *e, int is_first)
{
    int32_t  ms;

    ms = e->faults.token_delay_ms;

    if (is_first && e->faults.first_token_delay_ms > 0) {
        ms = e->faults.first_token_delay_ms;
    }

    return (uint64_t) ms * 1000;
}


uint64_t
engine_pace_us(uint64_t due_us, uint64_t now_us, uint64_t delay_us)
{
    uint64_t  bound_us;

    if (delay_us == 0) {
        return now_us;
    }

    bound_us = delay_us > ENGINE_CATCH_UP_US ? delay_us : ENGINE_CATCH_UP_US;

    return now_us < due_us + bound_us ? due_us : now_us;
}


int
engine_dies(const engine_t *e, int32_t tokens)
{
    return e->faults.die_after_tokens > 0
           && tokens >= e->faults.die_after_tokens;
}


const char *
engine_faults_error(const engine_faults_t *f)
{
    if (!(f->error_rate >= 0.0 && f->error_rate <= 1.0)) {
        return "error_rate";
    }

    if (f->token_delay_ms < 0 || f->token_delay_ms > ENGINE_DELAY_MAX_MS) {
        return "token_delay_ms";
    }

    if (f->first_token_delay_ms < 0
        || f->first_token_delay_ms > ENGINE_DELAY_MAX_MS)
    {
        return "first_token_delay_ms";
    }

    if (f->die_after_tokens < 0) {
        return "die_after_tokens";
    }

    return NULL;
}


/*
 * The simulated engine: faults and pace.
 */

#include "replica/engine/engine.h"
#include "replica/engine/sim/faults.h"


int
faults_reject(const faults_t *f, double chance)
{
    return f->reject_all || chance < f->error_rate;
}


uint64_t
faults_delay_us(const faults_t *f, int is_first)
{
    int32_t  ms;

    ms = f->token_delay_ms;

    if (is_first && f->first_token_delay_ms > 0) {
        ms = f->first_token_delay_ms;
    }

    return (uint64_t) ms * 1000;
}


uint64_t
faults_pace_us(uint64_t due_us, uint64_t now_us, uint64_t delay_us)
{
    uint64_t  bound_us;

    if (delay_us == 0) {
        return now_us;
    }

    bound_us = delay_us > FAULTS_CATCH_UP_US ? delay_us : FAULTS_CATCH_UP_US;

    return now_us < due_us + bound_us ? due_us : now_us;
}


int
faults_hold(const faults_t *f, int32_t index)
{
    return f->stall || (f->gate != FAULTS_NO_GATE && index >= f->gate);
}


int
faults_kill(const faults_t *f, int64_t tokens)
{
    return f->die_after_tokens > 0 && tokens >= f->die_after_tokens;
}


const char *
faults_error(const faults_t *f)
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

    if (f->gate < FAULTS_NO_GATE) {
        return "gate";
    }

    return NULL;
}

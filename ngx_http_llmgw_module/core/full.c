
#include "core/full.h"


static uint32_t
full_double(uint32_t ms)
{
    if (ms == 0) {
        return LLMGW_FULL_MS;
    }

    return ms < LLMGW_FULL_MAX_MS / 2 ? 2 * ms : LLMGW_FULL_MAX_MS;
}


void
llmgw_full_refused(llmgw_full_t *full, uint32_t load, uint64_t now_ms)
{
    if (llmgw_full_stands(full, now_ms)) {
        return;
    }

    full->hold_ms = full_double(full->hold_ms);
    full->load = load;
    full->until_ms = now_ms + full->hold_ms;
}


void
llmgw_full_serves(llmgw_full_t *full)
{
    *full = (llmgw_full_t) { 0 };
}


void
llmgw_full_reports(llmgw_full_t *full, uint32_t load)
{
    if (full->hold_ms == 0) {
        return;
    }

    if (load < full->load) {
        llmgw_full_serves(full);

    } else {
        full->load = load;
    }
}


uint32_t
llmgw_full_pushback_ms(int64_t said_ms, uint32_t refusals)
{
    uint32_t  i, ms;

    if (said_ms == LLMGW_PUSHBACK_NONE) {
        ms = LLMGW_FULL_MS;

        for (i = 1; i < refusals && ms < LLMGW_FULL_MAX_MS; i++) {
            ms = full_double(ms);
        }

        return ms;
    }

    if (said_ms < 0 || said_ms > LLMGW_PUSHBACK_MAX_MS) {
        return LLMGW_PUSHBACK_MAX_MS;
    }

    return said_ms < LLMGW_FULL_MS ? LLMGW_FULL_MS : (uint32_t) said_ms;
}

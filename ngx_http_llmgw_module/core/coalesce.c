
#include "core/coalesce.h"


void
llmgw_coalesce_iteration(llmgw_coalesce_load_t *load, uint64_t now_ms)
{
    uint64_t  elapsed_ms, enough;

    if (load->interval_ms == 0) {
        return;
    }

    elapsed_ms = now_ms - load->since_ms;

    if (elapsed_ms < LLMGW_COALESCE_WINDOW * load->interval_ms) {
        return;
    }

    enough = load->is_busy ? LLMGW_COALESCE_CALM : LLMGW_COALESCE_BUSY;

    load->is_busy = load->tokens * load->interval_ms >= enough * elapsed_ms;
    load->since_ms = now_ms;
    load->tokens = 0;
}


int
llmgw_coalesce_event(const llmgw_coalesce_load_t *load,
    llmgw_coalesce_source_t *source, uint64_t now_ms)
{
    uint64_t  gap_ms;

    if (load->interval_ms == 0 || source->at_intervals) {
        return 0;
    }

    gap_ms = now_ms - source->read_ms;
    source->read_ms = now_ms;

    if (!load->is_busy || gap_ms > load->interval_ms) {
        return 0;
    }

    source->at_intervals = 1;
    source->quiet = 0;

    return 1;
}


int
llmgw_coalesce_interval(const llmgw_coalesce_load_t *load,
    llmgw_coalesce_source_t *source)
{
    if (!source->has_brought) {
        source->quiet++;

    } else if (source->quiet) {
        source->quiet--;
    }

    source->has_brought = 0;

    return !load->is_busy || source->quiet >= LLMGW_COALESCE_QUIET;
}


void
llmgw_coalesce_brought(llmgw_coalesce_source_t *source)
{
    source->has_brought = 1;
}


/*
 * Turns a replica's data in the members segment into the facts that core's
 * policies read.
 */

#include "choice/choice.h"


_Static_assert(LLMGW_FACT_RUNNING == LLMGW_ENGINE_RUNNING
               && LLMGW_FACT_WAITING == LLMGW_ENGINE_WAITING
               && LLMGW_FACT_KV == LLMGW_ENGINE_KV,
               "the bits of reported facts are those of the segment");


void
ngx_http_llmgw_choice_update(llmgw_facts_t *facts, uint32_t slot,
    const llmgw_member_load_t *load, uint32_t in_flight, uint32_t foreign)
{
    llmgw_facts_t  before;

    before = *facts;
    ngx_memzero(facts, sizeof(llmgw_facts_t));

    facts->replica = slot;

    if (load == NULL) {
        return;
    }

    facts->reported_ms = load->reported_ms;
    facts->active = load->active_requests;
    facts->running = load->engine.running;
    facts->waiting = load->engine.waiting;
    facts->kv_permille = load->engine.kv_permille;
    facts->reported = load->engine.reported;

    llmgw_facts_update(facts, &before, in_flight, foreign);
}

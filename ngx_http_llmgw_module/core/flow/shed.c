
/*
 * Chooses the waiting request that is shed for another one.  flow.h has the
 * rules.
 */

#include "core/flow/flow_inner.h"


static uint32_t
shed_newest(llmgw_flow_t *flow, const flow_list_t *list, flow_link_kind_t kind)
{
    uint32_t  i;

    for (i = list->last;
         i != 0 && flow_entry(flow, i)->is_firm;
         i = flow_entry(flow, i)->links[kind].before)
    {
        /* void */
    }

    return i;
}


uint32_t
flow_victim(llmgw_flow_t *flow, int32_t priority)
{
    uint32_t            i, entry;
    const flow_band_t  *band;

    if (!flow->conf.has_shedding) {
        return 0;
    }

    for (i = flow->nbands; i-- > 0; /* void */ ) {
        band = &flow->bands[i];

        if (band->priority >= 0 || band->priority >= priority) {
            return 0;
        }

        entry = shed_newest(flow, &band->list, FLOW_LINK_BAND);

        if (entry != 0) {
            return entry;
        }
    }

    return 0;
}


uint32_t
llmgw_flow_victim(llmgw_flow_t *flow, uint32_t entry)
{
    uint32_t              victim;
    const flow_tenant_t  *own, *most;

    victim = flow_victim(flow, flow_entry(flow, entry)->priority);

    if (victim != 0 || flow->conf.fairness != LLMGW_FLOW_ROUND_ROBIN) {
        return victim;
    }

    own = flow_tenant(flow, flow_entry(flow, entry)->flow);
    most = flow_tenant_most(flow, own->lane);

    return most->length > own->length
           ? shed_newest(flow, &most->list, FLOW_LINK_FLOW) : 0;
}

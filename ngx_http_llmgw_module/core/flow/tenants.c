
/*
 * Flows by lane and tenant: a sorted array of those that are not empty, so
 * that round robin finds the tenant behind another by bisection.  A lane is a
 * band, or, with fifo, all bands.
 */

#include <string.h>

#include "core/flow/flow_inner.h"


static uint32_t *
tenants_order(llmgw_flow_t *flow)
{
    return (uint32_t *) ((char *) flow + flow->order);
}


/* The position of that flow, or of the first one after it. */
static uint32_t
tenants_place(llmgw_flow_t *flow, int32_t lane, uint64_t tenant)
{
    uint32_t              low, high, middle;
    const flow_tenant_t  *found;

    low = 0;
    high = flow->nflows;

    while (low < high) {
        middle = low + (high - low) / 2;
        found = flow_tenant(flow, tenants_order(flow)[middle]);

        if (found->lane > lane
            || (found->lane == lane && found->tenant < tenant))
        {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


/* The flow at a position, if it is of that lane, else NULL. */
static const flow_tenant_t *
tenants_at(llmgw_flow_t *flow, uint32_t place, int32_t lane)
{
    const flow_tenant_t  *found;

    if (place >= flow->nflows) {
        return NULL;
    }

    found = flow_tenant(flow, tenants_order(flow)[place]);

    return found->lane == lane ? found : NULL;
}


static uint32_t
tenants_memory(llmgw_flow_t *flow)
{
    uint32_t  i;

    i = flow->free_flow;

    if (i == 0) {
        return ++flow->used_flows;
    }

    flow->free_flow = flow_tenant(flow, i)->root;

    return i;
}


uint32_t
flow_tenant_get(llmgw_flow_t *flow, int32_t lane, uint64_t tenant)
{
    uint32_t              i, place, *order;
    flow_tenant_t        *made;
    const flow_tenant_t  *found;

    order = tenants_order(flow);
    place = tenants_place(flow, lane, tenant);
    found = tenants_at(flow, place, lane);

    if (found != NULL && found->tenant == tenant) {
        return order[place];
    }

    i = tenants_memory(flow);
    made = flow_tenant(flow, i);
    *made = (flow_tenant_t) { .tenant = tenant, .lane = lane };

    memmove(&order[place + 1], &order[place],
            (flow->nflows - place) * sizeof(uint32_t));
    order[place] = i;
    flow->nflows++;

    return i;
}


void
flow_tenant_drop(llmgw_flow_t *flow, uint32_t i)
{
    uint32_t        place, *order;
    flow_tenant_t  *tenant;

    order = tenants_order(flow);
    tenant = flow_tenant(flow, i);
    place = tenants_place(flow, tenant->lane, tenant->tenant);

    flow->nflows--;
    memmove(&order[place], &order[place + 1],
            (flow->nflows - place) * sizeof(uint32_t));

    tenant->root = flow->free_flow;
    flow->free_flow = i;
}


uint32_t
flow_tenant_turn(llmgw_flow_t *flow, int32_t lane,
    const flow_cursor_t *cursor)
{
    uint32_t              place;
    const flow_tenant_t  *found;

    if (cursor->is_set) {
        place = tenants_place(flow, lane, cursor->tenant);
        found = tenants_at(flow, place, lane);

        if (found != NULL && found->tenant == cursor->tenant) {
            found = tenants_at(flow, ++place, lane);

        } else if (!flow->conf.keeps_turns) {
            found = NULL;
        }

    } else {
        found = NULL;
    }

    if (found == NULL) {
        place = tenants_place(flow, lane, 0);
    }

    return tenants_order(flow)[place];
}


const flow_tenant_t *
flow_tenant_most(llmgw_flow_t *flow, int32_t lane)
{
    uint32_t              place;
    const flow_tenant_t  *found, *most;

    place = tenants_place(flow, lane, 0);
    most = tenants_at(flow, place, lane);

    while ((found = tenants_at(flow, ++place, lane)) != NULL) {
        if (found->length > most->length) {
            most = found;
        }
    }

    return most;
}

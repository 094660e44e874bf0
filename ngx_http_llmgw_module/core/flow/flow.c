
/* Flow control.  flow.h has the rules. */

#include <string.h>

#include "core/flow/flow_inner.h"
#include "core/policy/name.h"


static const char *const  orders[] = {
    [LLMGW_FLOW_FIFO] = "fifo",
    [LLMGW_FLOW_PRIORITY] = "priority",
    [LLMGW_FLOW_SLO_DEADLINE] = "slo-deadline"
};

static const char *const  fairnesses[] = {
    [LLMGW_FLOW_GLOBAL_STRICT] = "global-strict",
    [LLMGW_FLOW_ROUND_ROBIN] = "round-robin"
};


int
llmgw_flow_order(const char *name, size_t len, llmgw_flow_order_t *order)
{
    int  found;

    found = llmgw_name_find(orders, sizeof(orders) / sizeof(orders[0]), name,
                            len);
    if (found == -1) {
        return -1;
    }

    *order = (llmgw_flow_order_t) found;

    return 0;
}


int
llmgw_flow_fairness(const char *name, size_t len,
    llmgw_flow_fairness_t *fairness)
{
    int  found;

    found = llmgw_name_is("global", name, len)
            ? LLMGW_FLOW_GLOBAL_STRICT
            : llmgw_name_find(fairnesses,
                              sizeof(fairnesses) / sizeof(fairnesses[0]), name,
                              len);
    if (found == -1) {
        return -1;
    }

    *fairness = (llmgw_flow_fairness_t) found;

    return 0;
}


const char *
llmgw_flow_order_word(llmgw_flow_order_t order)
{
    static const char *const  words[] = {
        [LLMGW_FLOW_FIFO] = "fifo",
        [LLMGW_FLOW_PRIORITY] = "priority",
        [LLMGW_FLOW_SLO_DEADLINE] = "slo_deadline"
    };

    return words[order];
}


const char *
llmgw_flow_fairness_word(llmgw_flow_fairness_t fairness)
{
    return fairness == LLMGW_FLOW_ROUND_ROBIN ? "round_robin" : "global";
}


static size_t
flow_offset_of_flows(uint32_t capacity)
{
    return sizeof(llmgw_flow_t)
           + ((size_t) capacity + 1) * sizeof(flow_entry_t);
}


static size_t
flow_offset_of_order(uint32_t capacity)
{
    return flow_offset_of_flows(capacity)
           + ((size_t) capacity + 1) * sizeof(flow_tenant_t);
}


size_t
llmgw_flow_bytes(uint32_t capacity)
{
    return flow_offset_of_order(capacity)
           + (size_t) capacity * sizeof(uint32_t);
}


llmgw_flow_t *
llmgw_flow_init(void *memory, uint32_t capacity, const llmgw_flow_conf_t *conf)
{
    llmgw_flow_t  *flow;

    flow = memory;
    flow->conf = *conf;
    flow->capacity = capacity;
    flow->flows = flow_offset_of_flows(capacity);
    flow->order = flow_offset_of_order(capacity);

    return flow;
}


void
llmgw_flow_reset(llmgw_flow_t *flow, const llmgw_flow_conf_t *conf)
{
    flow->conf = *conf;
    flow->length = 0;
    flow->free_entry = 0;
    flow->used_entries = 0;
    flow->free_flow = 0;
    flow->used_flows = 0;
    flow->nflows = 0;
    flow->nbands = 0;
    flow->cursor = (flow_cursor_t) { 0 };
}


/* Lists of entries, by band and by flow. */

/* The entry before which that number belongs; 0: at the end. */
static uint32_t
list_place(llmgw_flow_t *flow, const flow_list_t *list, flow_link_kind_t kind,
    uint64_t number)
{
    uint32_t  i;

    if (list->last == 0 || flow_entry(flow, list->last)->number < number) {
        return 0;
    }

    for (i = list->first;
         flow_entry(flow, i)->number < number;
         i = flow_entry(flow, i)->links[kind].behind)
    {
        /* void: one that comes back stood near the first */
    }

    return i;
}


static void
list_add(llmgw_flow_t *flow, flow_list_t *list, flow_link_kind_t kind,
    uint32_t i)
{
    uint32_t      behind;
    flow_link_t  *link;

    behind = list_place(flow, list, kind, flow_entry(flow, i)->number);

    link = &flow_entry(flow, i)->links[kind];
    link->behind = behind;
    link->before = behind == 0 ? list->last
                               : flow_entry(flow, behind)->links[kind].before;

    if (link->before != 0) {
        flow_entry(flow, link->before)->links[kind].behind = i;

    } else {
        list->first = i;
    }

    if (behind != 0) {
        flow_entry(flow, behind)->links[kind].before = i;

    } else {
        list->last = i;
    }
}


static void
list_remove(llmgw_flow_t *flow, flow_list_t *list, flow_link_kind_t kind,
    uint32_t i)
{
    const flow_link_t  *link;

    link = &flow_entry(flow, i)->links[kind];

    if (link->before != 0) {
        flow_entry(flow, link->before)->links[kind].behind = link->behind;

    } else {
        list->first = link->behind;
    }

    if (link->behind != 0) {
        flow_entry(flow, link->behind)->links[kind].before = link->before;

    } else {
        list->last = link->before;
    }
}


/* The band of a priority, or the place where it would be. */
static flow_band_t *
band_place(llmgw_flow_t *flow, int32_t priority)
{
    uint32_t  low, high, middle;

    low = 0;
    high = flow->nbands;

    while (low < high) {
        middle = (low + high) / 2;

        if (flow->bands[middle].priority > priority) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return &flow->bands[low];
}


/* Finds or creates it; NULL: there are too many. */
static flow_band_t *
band_get(llmgw_flow_t *flow, int32_t priority)
{
    size_t        behind;
    flow_band_t  *band;

    band = band_place(flow, priority);
    behind = (size_t) (&flow->bands[flow->nbands] - band);

    if (behind != 0 && band->priority == priority) {
        return band;
    }

    if (flow->nbands == LLMGW_FLOW_BANDS) {
        return NULL;
    }

    memmove(band + 1, band, behind * sizeof(flow_band_t));
    *band = (flow_band_t) { .priority = priority };
    flow->nbands++;

    return band;
}


void
llmgw_flow_see(llmgw_flow_t *flow, int32_t priority)
{
    (void) band_get(flow, priority);
}


/* Takes an entry out of everything and frees it.  Returns its request. */
static uint32_t
flow_drop(llmgw_flow_t *flow, uint32_t i)
{
    flow_band_t    *band;
    flow_entry_t   *entry;
    flow_tenant_t  *tenant;

    entry = flow_entry(flow, i);
    tenant = flow_tenant(flow, entry->flow);
    band = band_place(flow, entry->priority);

    list_remove(flow, &band->list, FLOW_LINK_BAND, i);
    list_remove(flow, &tenant->list, FLOW_LINK_FLOW, i);

    if (flow->conf.order == LLMGW_FLOW_SLO_DEADLINE) {
        tenant->root = flow_deadline_remove(flow, tenant->root, i);
    }

    tenant->length--;

    if (tenant->length == 0) {
        flow_tenant_drop(flow, entry->flow);
    }

    band->length--;
    flow->length--;

    entry->number = 0;
    entry->links[0].behind = flow->free_entry;
    flow->free_entry = i;

    return entry->request;
}


static uint32_t
flow_put(llmgw_flow_t *flow, flow_band_t *band,
    const llmgw_flow_arrival_t *arrival)
{
    uint32_t        i;
    flow_entry_t   *entry;
    flow_tenant_t  *tenant;

    i = flow->free_entry;

    if (i != 0) {
        flow->free_entry = flow_entry(flow, i)->links[0].behind;

    } else {
        i = ++flow->used_entries;
    }

    entry = flow_entry(flow, i);
    entry->number = arrival->number != 0 ? arrival->number : flow->number;
    entry->deadline_us = arrival->deadline_us;
    entry->priority = arrival->priority;
    entry->request = arrival->request;
    entry->is_firm = arrival->is_firm != 0;
    entry->flow = flow_tenant_get(flow, flow->conf.order == LLMGW_FLOW_FIFO
                                        ? 0 : arrival->priority,
                                  arrival->tenant);

    tenant = flow_tenant(flow, entry->flow);
    tenant->length++;
    list_add(flow, &band->list, FLOW_LINK_BAND, i);
    list_add(flow, &tenant->list, FLOW_LINK_FLOW, i);

    if (flow->conf.order == LLMGW_FLOW_SLO_DEADLINE) {
        tenant->root = flow_deadline_add(flow, tenant->root, i);
    }

    band->length++;
    flow->length++;

    return i;
}


llmgw_flow_rc_t
llmgw_flow_enqueue(llmgw_flow_t *flow, const llmgw_flow_arrival_t *arrival,
    uint32_t *entry, uint32_t *victim)
{
    uint32_t      shed;
    flow_band_t  *band;

    shed = 0;
    flow->number++;
    band = band_get(flow, arrival->priority);

    if (band == NULL || (flow->conf.band_size != 0
                         && band->length >= flow->conf.band_size))
    {
        return LLMGW_FLOW_REJECTED;
    }

    if (flow->length == flow->capacity
        || (flow->conf.size != 0 && flow->length >= flow->conf.size))
    {
        shed = flow_victim(flow, arrival->priority);

        if (shed == 0) {
            return LLMGW_FLOW_REJECTED;
        }

        *victim = flow_drop(flow, shed);
    }

    *entry = flow_put(flow, band, arrival);

    return shed == 0 ? LLMGW_FLOW_QUEUED : LLMGW_FLOW_SHED;
}


/* With fifo: the first to arrive, of all bands; 0: none waits. */
static uint32_t
flow_oldest(llmgw_flow_t *flow)
{
    uint32_t  i, first, oldest;

    oldest = 0;

    for (i = 0; i < flow->nbands; i++) {
        first = flow->bands[i].list.first;

        if (first != 0
            && (oldest == 0 || flow_entry(flow, first)->number
                               < flow_entry(flow, oldest)->number))
        {
            oldest = first;
        }
    }

    return oldest;
}


/* The entry of a lane that leaves next; oldest: the lane's oldest one. */
static uint32_t
flow_choose(llmgw_flow_t *flow, int32_t lane, uint32_t oldest,
    const flow_cursor_t *cursor)
{
    const flow_tenant_t  *tenant;

    tenant = flow_tenant(flow,
                         flow->conf.fairness == LLMGW_FLOW_ROUND_ROBIN
                         ? flow_tenant_turn(flow, lane, cursor)
                         : flow_entry(flow, oldest)->flow);

    return flow->conf.order == LLMGW_FLOW_SLO_DEADLINE ? tenant->root
                                                       : tenant->list.first;
}


/* Ceilings never rise from one band to the next. */
static double
flow_ceiling(const llmgw_flow_t *flow, uint32_t band)
{
    if (flow->nbands == 1) {
        return 1;
    }

    return 1 - (double) band * (1 - flow->conf.usage_limit)
               / (double) (flow->nbands - 1);
}


uint32_t
llmgw_flow_next(llmgw_flow_t *flow, double *ceiling)
{
    uint32_t      i;
    flow_band_t  *band;

    if (flow->length == 0) {
        return 0;
    }

    if (flow->conf.order == LLMGW_FLOW_FIFO) {
        *ceiling = 1;
        return flow_choose(flow, 0, flow_oldest(flow), &flow->cursor);
    }

    for (i = 0; flow->bands[i].length == 0; i++) { /* void */ }

    band = &flow->bands[i];
    *ceiling = flow_ceiling(flow, i);

    return flow_choose(flow, band->priority, band->list.first, &band->cursor);
}


uint32_t
llmgw_flow_take(llmgw_flow_t *flow, uint32_t i)
{
    flow_entry_t   *entry;
    flow_cursor_t  *cursor;

    entry = flow_entry(flow, i);
    cursor = flow->conf.order == LLMGW_FLOW_FIFO
             ? &flow->cursor : &band_place(flow, entry->priority)->cursor;

    cursor->tenant = flow_tenant(flow, entry->flow)->tenant;
    cursor->is_set = 1;

    return flow_drop(flow, i);
}


uint32_t
llmgw_flow_request(const llmgw_flow_t *flow, uint32_t entry)
{
    return flow->entries[entry].request;
}


int
llmgw_flow_remove(llmgw_flow_t *flow, uint32_t entry, uint32_t request)
{
    if (entry == 0 || entry > flow->used_entries
        || flow_entry(flow, entry)->number == 0
        || flow_entry(flow, entry)->request != request)
    {
        return 0;
    }

    (void) flow_drop(flow, entry);

    return 1;
}

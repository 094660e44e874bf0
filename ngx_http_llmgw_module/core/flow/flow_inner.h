
/* The memory of flow control, as its files see it. */

#ifndef LLMGW_FLOW_INNER_H
#define LLMGW_FLOW_INNER_H

#include "core/flow/flow.h"


/*
 * Index 0 means none for entries and flows, so the first of each is not used.
 */

typedef struct {
    uint32_t  before;
    uint32_t  behind;
} flow_link_t;

typedef struct {
    uint32_t  first;
    uint32_t  last;
} flow_list_t;

typedef enum {
    FLOW_LINK_BAND = 0,         /* all of a priority */
    FLOW_LINK_FLOW,
    FLOW_LINKS
} flow_link_kind_t;

/* A request that waits. */
typedef struct {
    uint64_t     number;        /* by order of arrival; 0: unused */
    int64_t      deadline_us;
    int32_t      priority;
    uint32_t     request;
    uint32_t     is_firm;
    uint32_t     flow;
    uint32_t     child;         /* in the heap of deadlines */
    uint32_t     sibling;
    uint32_t     back;          /* for the first child the parent, for others
                                   the sibling before */
    flow_link_t  links[FLOW_LINKS];
} flow_entry_t;

typedef struct {
    uint64_t     tenant;
    int32_t      lane;          /* its band's priority; with fifo 0 */
    uint32_t     length;
    uint32_t     root;          /* the earliest deadline */
    flow_list_t  list;
} flow_tenant_t;

/* The tenant that round robin served last. */
typedef struct {
    uint64_t  tenant;
    int       is_set;
} flow_cursor_t;

typedef struct {
    int32_t        priority;
    uint32_t       length;
    flow_list_t    list;
    flow_cursor_t  cursor;
} flow_band_t;

struct llmgw_flow_s {
    llmgw_flow_conf_t  conf;
    uint32_t           capacity;
    uint32_t           length;
    uint32_t           free_entry;      /* chained by links[0].behind */
    uint32_t           used_entries;    /* that were never free */
    uint32_t           free_flow;       /* chained by root */
    uint32_t           used_flows;
    uint32_t           nflows;
    uint32_t           nbands;
    uint64_t           number;          /* of the last arrival */
    flow_cursor_t      cursor;          /* of fifo's only band */
    size_t             flows;           /* offsets */
    size_t             order;           /* flows, by lane and tenant */
    flow_band_t        bands[LLMGW_FLOW_BANDS];     /* highest first */
    flow_entry_t       entries[];
};


static inline flow_entry_t *
flow_entry(llmgw_flow_t *flow, uint32_t i)
{
    return &flow->entries[i];
}


static inline flow_tenant_t *
flow_tenant(llmgw_flow_t *flow, uint32_t i)
{
    return (flow_tenant_t *) ((char *) flow + flow->flows) + i;
}


/* deadline.c: returns the new root; 0: the heap is empty. */
uint32_t flow_deadline_add(llmgw_flow_t *flow, uint32_t root, uint32_t i);
uint32_t flow_deadline_remove(llmgw_flow_t *flow, uint32_t root, uint32_t i);

/* tenants.c: the flow of a tenant in a lane, found or made, and its end. */
uint32_t flow_tenant_get(llmgw_flow_t *flow, int32_t lane, uint64_t tenant);
void flow_tenant_drop(llmgw_flow_t *flow, uint32_t i);

/* The next flow in a lane that is not empty. */
uint32_t flow_tenant_turn(llmgw_flow_t *flow, int32_t lane,
    const flow_cursor_t *cursor);

/*
 * The flow of a lane with the most requests, of several the first.  The lane
 * must not be empty.
 */
const flow_tenant_t *flow_tenant_most(llmgw_flow_t *flow, int32_t lane);

/* shed.c: the entry to be shed for a request of that priority; 0: none. */
uint32_t flow_victim(llmgw_flow_t *flow, int32_t priority);

#endif /* LLMGW_FLOW_INNER_H */


/*
 * Flow control: admitted requests wait until the fleet has room, and leave in
 * an order that is fair to classes and tenants.
 *
 *     band   all waiting requests of one priority.  A band, once seen, stays.
 *     flow   those of one tenant in a band, in the order of their coming; it
 *            goes when it is empty.
 *
 * llmgw_flow_next() returns the next request and the saturation below which it
 * may leave; llmgw_flow_take() takes it out.  Each band has a ceiling: 1 for
 * the highest priority, usage_limit for the lowest one ever seen, evenly spaced
 * in between.  The turn is in the highest band that is not empty.  While the
 * saturation reaches the ceiling of that band no request goes, so none
 * overtakes.  In the band, fairness names the flow and the order the request:
 *
 *     global-strict  the flow whose first request came first
 *     round-robin    the tenant behind the one served last, by number; the
 *                    first tenant if that one has nothing waiting any more,
 *                    unless keeps_turns is set
 *
 *     priority       the flow's first request
 *     slo-deadline   the flow's earliest deadline, of equal ones the first
 *     fifo           priorities play no part: all wait as one band, under one
 *                    ceiling of 1, and leave in the order of their coming (or
 *                    tenant by tenant, with round-robin).  They do count for
 *                    limits and shedding.
 *
 * The queue is full with `size` requests, a band with `band_size`; 0 has no
 * limit but the memory.  A full queue refuses, or, with shedding, gives up the
 * newest request of its lowest priority, if that is below 0 and below the new
 * one's.
 *
 * The rules are those of BLIS (after the Gateway API Inference Extension),
 * except for fifo, which in BLIS is priority by mistake.
 *
 *     llmgw_flow_t | entries[] | flows[] | order[]
 *
 * Memory is the caller's and has indices in place of pointers.  Requests are
 * the caller's numbers.  Zeroed memory stays untouched until it is needed.
 */

#ifndef LLMGW_FLOW_H
#define LLMGW_FLOW_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_FLOW_BANDS  256           /* priorities are -100 to 100 */
#define LLMGW_FLOW_NO_DEADLINE  INT64_MAX

typedef enum {
    LLMGW_FLOW_FIFO = 0,
    LLMGW_FLOW_PRIORITY,
    LLMGW_FLOW_SLO_DEADLINE
} llmgw_flow_order_t;

typedef enum {
    LLMGW_FLOW_GLOBAL_STRICT = 0,
    LLMGW_FLOW_ROUND_ROBIN
} llmgw_flow_fairness_t;

typedef struct {
    llmgw_flow_order_t     order;
    llmgw_flow_fairness_t  fairness;
    uint32_t               size;
    uint32_t               band_size;
    double                 usage_limit;     /* above 0, at most 1 */
    int                    has_shedding;
    int                    keeps_turns;     /* not in BLIS: without it tenants
                                               that have one request at a time
                                               would restart the round again and
                                               again, and those after them would
                                               starve */
} llmgw_flow_conf_t;

typedef struct llmgw_flow_s  llmgw_flow_t;

typedef struct {
    int32_t   priority;
    uint32_t  request;          /* the caller's number, handed back */
    uint64_t  tenant;           /* round robin goes by this number; for the
                                   order of names, the caller numbers tenants by
                                   name */
    int64_t   deadline_us;      /* of slo-deadline; LLMGW_FLOW_NO_DEADLINE */
    uint64_t  number;           /* its place in the order of arrival, by any
                                   count that only grows; 0: after all earlier
                                   ones.  All numbers are given, or none */
    int       is_firm;          /* never shed */
} llmgw_flow_arrival_t;

typedef enum {
    LLMGW_FLOW_QUEUED = 0,
    LLMGW_FLOW_SHED,            /* queued; *victim was given up for it */
    LLMGW_FLOW_REJECTED
} llmgw_flow_rc_t;


/*
 * Find one by its name, with '-' or '_' between words. 0, or -1: unknown.
 * Plain `global` is global-strict.
 */
int llmgw_flow_order(const char *name, size_t len, llmgw_flow_order_t *order);
int llmgw_flow_fairness(const char *name, size_t len,
    llmgw_flow_fairness_t *fairness);

/* The name in directives and on pages. */
const char *llmgw_flow_order_word(llmgw_flow_order_t order);
const char *llmgw_flow_fairness_word(llmgw_flow_fairness_t fairness);

/* capacity: the most that can ever wait, 1 to 2^31 */
size_t llmgw_flow_bytes(uint32_t capacity);

/* memory: zeroed, aligned to 8, of that many bytes; *conf is copied */
llmgw_flow_t *llmgw_flow_init(void *memory, uint32_t capacity,
    const llmgw_flow_conf_t *conf);

/* Makes it empty, without bands and turns, with these settings. */
void llmgw_flow_reset(llmgw_flow_t *flow, const llmgw_flow_conf_t *conf);

/* The band of that priority counts as seen. */
void llmgw_flow_see(llmgw_flow_t *flow, int32_t priority);

/* *entry is where it waits, *victim the request that was shed. */
llmgw_flow_rc_t llmgw_flow_enqueue(llmgw_flow_t *flow,
    const llmgw_flow_arrival_t *arrival, uint32_t *entry, uint32_t *victim);

/*
 * The entry that leaves next, as soon as the saturation is below *ceiling; 0:
 * none waits.  Changes nothing.
 */
uint32_t llmgw_flow_next(llmgw_flow_t *flow, double *ceiling);

/* Takes that entry out: its turn has come.  Returns its request. */
uint32_t llmgw_flow_take(llmgw_flow_t *flow, uint32_t entry);

/* The request of an entry that waits. */
uint32_t llmgw_flow_request(const llmgw_flow_t *flow, uint32_t entry);

/*
 * For a caller whose queue is full: the entry to be shed so that `entry` may
 * stay; 0: none.  With shedding, as said above; else, with round robin, the
 * newest of the tenant that has most in that band, if that is more than the
 * entry's own tenant has.  Without this the tenant that sends most would fill
 * the queue, and turns would be worth nothing.
 */
uint32_t llmgw_flow_victim(llmgw_flow_t *flow, uint32_t entry);

/*
 * Removes a request that waits no longer, e.g. because its time is over; 0: it
 * is not there.
 */
int llmgw_flow_remove(llmgw_flow_t *flow, uint32_t entry, uint32_t request);

#endif /* LLMGW_FLOW_H */


/*
 * The queue: in what order requests wait for capacity.
 *
 * One queue for all workers, in shared memory, of entries that link each other
 * by index.  The caller holds the lock of that memory.
 *
 * An entry has a ticket, taken when its request first asked.  The queue is
 * kept in the order of tickets, so that a request that was granted a place and
 * was then refused by the replica goes back to where it stood.  Requests that
 * have delivered tokens already (urgent) stand before all others: a client is
 * reading them.  Neither kind counts against the size that limits new
 * requests.
 *
 *                  push                          serve
 *      request ----------> WAITING --- grant ---> GRANTED ----------> served
 *                             ^                      |
 *                             +------ ungrant -------+  (still full)
 *
 * Only the head is granted, so no request overtakes another, whichever workers
 * they wait in.  A granted head whose worker does not claim (it is stopped or
 * swapped out) is skipped after LLMGW_QUEUE_GRANT_MS and keeps its place. The
 * entries of a dead worker are dropped by its row.
 *
 * A head that cannot use the free capacity, while others could, is skipped
 * until all are recalled, and keeps its place as well.  They are recalled
 * whenever capacity is freed.  A recall makes all of them claim again, so their
 * number is limited.  A head that all its replicas have asked to come later is
 * skipped until that time, even if capacity is freed: any number of entries may
 * rest in this way.
 *
 * With flow control (queue_flow.c, docs/adr/0020) classes and tenants matter:
 * after the urgent entries, the head is the entry that core/flow/ chooses.  The
 * flow holds all that wait and could be the head, each under its ticket; a
 * skipped entry is in a list of its own meanwhile, and returns to its old
 * place.  Whether a request is the head is known only when it is in the queue:
 * so a newcomer enters uncounted, and either leaves with a replica at once, or
 * stays, or is removed.  A shed request is taken out of the order, and keeps
 * its entry until its worker notices.
 *
 * The used entries are authoritative, with the settings of the flow and the
 * priorities that were seen; links, free list, counts and the flow follow from
 * them.  The word is_used is written after all others of an entry, so a
 * process that is killed leaves an entry whole or unused, and
 * llmgw_queue_mend() rebuilds the rest.
 */

#ifndef LLMGW_QUEUE_H
#define LLMGW_QUEUE_H

#include <stdint.h>

#include "core/flow/flow.h"


#define LLMGW_QUEUE_NONE         UINT32_MAX
#define LLMGW_QUEUE_GRANT_MS     200
#define LLMGW_QUEUE_MAX_SKIPPED  64
#define LLMGW_QUEUE_REST_MS      1000   /* at most; then it tries other
                                           replicas */
#define LLMGW_QUEUE_PRIORITY_MAX 100    /* as in classes.h */

typedef struct {
    uint64_t  ticket;
    uint64_t  granted_ms;       /* 0: not granted */
    uint64_t  tenant;
    uint64_t  deadline_ms;      /* 0: none */
    uint64_t  rests_ms;         /* skipped until then; 0: it does not rest */
    uint32_t  row;              /* of the worker */
    uint32_t  process;          /* where to wake it */
    uint32_t  next;             /* in its list, or the free list */
    uint32_t  prev;
    uint32_t  flow;             /* its entry in the flow; 0: it has none */
    int32_t   priority;
    uint8_t   is_urgent;
    uint8_t   is_counted;
    uint8_t   is_skipped;
    uint8_t   is_aside;         /* out of the flow: skipped, or passed over */
    uint8_t   is_shed;
    uint8_t   is_used;
} llmgw_queue_entry_t;

typedef struct {
    uint32_t  first;
    uint32_t  last;
} llmgw_queue_list_t;

typedef struct {
    llmgw_queue_entry_t  *entries;
    llmgw_flow_t         *flow;         /* NULL: there is no memory for it */
    uint32_t              capacity;
    uint32_t              free;
    llmgw_queue_list_t    waits;        /* by urgency, then by ticket; with a
                                           flow the urgent ones before others */
    llmgw_queue_list_t    aside;
    llmgw_queue_list_t    shed;
    uint32_t              length;       /* of waits and aside */
    uint32_t              counted;
    uint32_t              skipped;      /* at most LLMGW_QUEUE_MAX_SKIPPED */
    uint32_t              resting;      /* skipped until a time; not in
                                           `skipped` */
    uint32_t              granted;      /* with a flow: the last grant, or
                                           NONE */
    uint32_t              has_flow;     /* the flow chooses the head */
    llmgw_flow_conf_t     flow_conf;
    uint64_t              seen[LLMGW_FLOW_BANDS / 64];  /* priorities */
    uint64_t              ticket;       /* the last one given out */
} llmgw_queue_t;

typedef struct {
    uint64_t  ticket;           /* 0: a new one is taken */
    uint64_t  tenant;
    uint64_t  deadline_ms;
    uint32_t  row;
    uint32_t  process;
    int32_t   priority;         /* LLMGW_QUEUE_PRIORITY_MAX at most, and its
                                   negative at least */
    int       is_urgent;
    int       is_counted;       /* counts against `size` */
} llmgw_queue_place_t;


/*
 * entries: the caller's memory for `capacity` of them.  flow: zeroed, aligned
 * to 8, of llmgw_flow_bytes(capacity) bytes; NULL: flow control is not wanted.
 */
void llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    void *flow, uint32_t capacity);

/*
 * From now on the flow chooses the next entry, by these settings (size and
 * band_size are not used, and turns are kept), or, with NULL, tickets alone do.
 * Waiting requests keep waiting.  Returns 1; 0: nothing changed, or there is no
 * memory for a flow.
 */
int llmgw_queue_order(llmgw_queue_t *queue, const llmgw_flow_conf_t *conf);

/* A ticket for a request that asks for the first time; never 0. */
uint64_t llmgw_queue_ticket(llmgw_queue_t *queue);

/* 1: an entry that is not skipped waits before that place. */
int llmgw_queue_must_wait(const llmgw_queue_t *queue,
    const llmgw_queue_place_t *place);

/*
 * Takes a place by ticket.  Returns the entry's index, or LLMGW_QUEUE_NONE:
 * the place is counted and `size` counted ones wait already, or no entry is
 * left.  With a flow the entry is not counted yet: llmgw_queue_stay().
 */
uint32_t llmgw_queue_push(llmgw_queue_t *queue,
    const llmgw_queue_place_t *place, uint32_t size);

/*
 * With a flow: that entry counts from now on. If the queue was full, *shed is
 * the entry that was shed for it, else LLMGW_QUEUE_NONE. Returns 0: the queue
 * is full, and nothing can be shed.
 *
 * With shedding, this is the newest entry of the lowest priority, if that is
 * below 0 and below the entry's own; else, with round robin, the newest of the
 * tenant with the most requests in its band, if that has more than the entry's
 * own tenant: otherwise the busiest tenant would fill the queue and get the
 * largest share.
 */
int llmgw_queue_stay(llmgw_queue_t *queue, uint32_t entry, uint32_t size,
    uint32_t *shed);

/* Removes an entry; serve: it got its replica, so the next turn begins. */
void llmgw_queue_remove(llmgw_queue_t *queue, uint32_t entry);
void llmgw_queue_serve(llmgw_queue_t *queue, uint32_t entry);

/*
 * The entry that may claim next, or LLMGW_QUEUE_NONE.  With a flow this takes
 * entries that are passed over out of the order.
 */
uint32_t llmgw_queue_head(llmgw_queue_t *queue, uint64_t now_ms);

/* Whether the fleet is too saturated for the head; never for urgent ones. */
int llmgw_queue_is_held(const llmgw_queue_t *queue, uint32_t head,
    double saturation);

/* A shed entry of that row, or LLMGW_QUEUE_NONE. */
uint32_t llmgw_queue_shed_of(const llmgw_queue_t *queue, uint32_t row);

void llmgw_queue_grant(llmgw_queue_t *queue, uint32_t entry, uint64_t now_ms);
void llmgw_queue_ungrant(llmgw_queue_t *queue, uint32_t entry);

/* 1: skipped until the next recall; 0: too many are skipped already. */
int llmgw_queue_skip(llmgw_queue_t *queue, uint32_t entry);

/* Skipped until a recall at until_ms or later, LLMGW_QUEUE_REST_MS at most. */
void llmgw_queue_rest(llmgw_queue_t *queue, uint32_t entry, uint64_t until_ms,
    uint64_t now_ms);

/* 1: that entry is in use, with that ticket, by that row. */
int llmgw_queue_is_of(const llmgw_queue_t *queue, uint32_t entry,
    uint64_t ticket, uint32_t row);

/* Takes back the expired grants of a row. */
void llmgw_queue_thaw_row(llmgw_queue_t *queue, uint32_t row,
    uint64_t now_ms);

/*
 * There is capacity, or there may be: ends the skipping of all entries but
 * those that rest.
 */
void llmgw_queue_recall(llmgw_queue_t *queue, uint64_t now_ms);

/* Drops the entries that a dead worker left; returns how many. */
uint32_t llmgw_queue_drop_row(llmgw_queue_t *queue, uint32_t row);

/* Rebuilds links, free list, counts and the flow from the used entries. */
void llmgw_queue_mend(llmgw_queue_t *queue);

#endif /* LLMGW_QUEUE_H */


/*
 * The queue: in what order requests wait for capacity.
 *
 * One queue for all workers, in shared memory, of entries that link each other
 * by index.  The caller holds the lock of that memory.
 *
 * An entry has a ticket, taken when its request first asked.  The queue is
 * kept in the order of tickets, so that a request that was granted a place and
 * was then refused by the replica goes back to where it stood.  Requests that
 * have delivered tokens already (urgent) stand before all others: somebody
 * reads them.  Neither counts against the size that new requests are held to.
 *
 *                  push                          remove
 *      request ----------> WAITING --- grant ---> GRANTED ----------> served
 *                             ^                      |
 *                             +------ ungrant -------+  (still no room)
 *
 * Only the head is granted, so nobody overtakes, in whichever worker a request
 * waits.  A granted head whose worker does not come for it (stopped, swapped
 * out) is passed over after LLMGW_QUEUE_GRANT_MS, and keeps its place; the
 * entries of a dead worker are dropped by its row.
 *
 * A head that cannot use the room there is, while others could, steps aside:
 * it is passed over until all are recalled, which happens wherever room is
 * made, and keeps its place as well.  Each recall makes all of them look
 * again, so their number is limited.
 *
 * The used entries are the truth; links, free list and counts follow from
 * them.  The word is_used is written behind all others of an entry, so a
 * process that is killed leaves an entry whole or unused, and
 * llmgw_queue_mend() makes the rest anew.
 */

#ifndef LLMGW_QUEUE_H
#define LLMGW_QUEUE_H

#include <stdint.h>


#define LLMGW_QUEUE_NONE      UINT32_MAX
#define LLMGW_QUEUE_GRANT_MS  200
#define LLMGW_QUEUE_ASIDE     64

typedef struct {
    uint64_t  ticket;
    uint64_t  granted_ms;       /* 0: not granted */
    uint32_t  row;              /* of the worker */
    uint32_t  process;          /* where to wake it */
    uint32_t  next;             /* or of the free list */
    uint32_t  prev;
    uint8_t   is_urgent;
    uint8_t   is_counted;
    uint8_t   is_aside;
    uint8_t   is_used;
} llmgw_queue_entry_t;

typedef struct {
    llmgw_queue_entry_t  *entries;
    uint32_t              capacity;
    uint32_t              free;
    uint32_t              first;
    uint32_t              last;
    uint32_t              length;
    uint32_t              counted;
    uint32_t              aside;        /* at most LLMGW_QUEUE_ASIDE */
    uint64_t              ticket;       /* the last one given out */
} llmgw_queue_t;

typedef struct {
    uint64_t  ticket;           /* 0: a new one is taken */
    uint32_t  row;
    uint32_t  process;
    int       is_urgent;
    int       is_counted;       /* held to `size` */
} llmgw_queue_place_t;


/* entries: memory for capacity of them, of the caller's. */
void llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    uint32_t capacity);

/* A ticket for a request that asks for the first time; never 0. */
uint64_t llmgw_queue_ticket(llmgw_queue_t *queue);

/* Whether somebody in the queue, not aside, stands before that place. */
int llmgw_queue_must_wait(const llmgw_queue_t *queue,
    const llmgw_queue_place_t *place);

/*
 * Takes a place by ticket.  The entry's index, or LLMGW_QUEUE_NONE: a counted
 * one finds `size` counted ones there, or no entry is left.
 */
uint32_t llmgw_queue_push(llmgw_queue_t *queue,
    const llmgw_queue_place_t *place, uint32_t size);

void llmgw_queue_remove(llmgw_queue_t *queue, uint32_t entry);

/* The entry that may go on, or LLMGW_QUEUE_NONE. */
uint32_t llmgw_queue_head(const llmgw_queue_t *queue, uint64_t now_ms);

void llmgw_queue_grant(llmgw_queue_t *queue, uint32_t entry, uint64_t now_ms);
void llmgw_queue_ungrant(llmgw_queue_t *queue, uint32_t entry);

/* 1: passed over from now on; 0: too many are. */
int llmgw_queue_step_aside(llmgw_queue_t *queue, uint32_t entry);

/* 1: that entry is in use, with that ticket, by that row. */
int llmgw_queue_is_of(const llmgw_queue_t *queue, uint32_t entry,
    uint64_t ticket, uint32_t row);

/* Takes back the grants of a row that have grown old. */
void llmgw_queue_thaw_row(llmgw_queue_t *queue, uint32_t row,
    uint64_t now_ms);

/* There is room, or there may be: none is passed over any more. */
void llmgw_queue_recall(llmgw_queue_t *queue);

/* Drops what a dead worker left; how many. */
uint32_t llmgw_queue_drop_row(llmgw_queue_t *queue, uint32_t row);

/* Links, free list and counts out of the used entries. */
void llmgw_queue_mend(llmgw_queue_t *queue);

#endif /* LLMGW_QUEUE_H */

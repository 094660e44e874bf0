
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
 *                  push                          remove
 *      request ----------> WAITING --- grant ---> GRANTED ----------> served
 *                             ^                      |
 *                             +------ ungrant -------+  (still full)
 *
 * Only the head is granted, so no request overtakes another, whichever workers
 * they wait in.  A granted head whose worker does not come for it (stopped,
 * swapped out) is passed over after LLMGW_QUEUE_GRANT_MS and keeps its place.
 * The entries of a dead worker are dropped by its row.
 *
 * A head that cannot use the free capacity, while others could, is skipped
 * until all are recalled, and keeps its place as well.  That happens wherever
 * capacity is freed.  Each recall makes all of them claim again, so their
 * number is limited.
 *
 * The used entries are authoritative; links, free list and counts follow from
 * them.  The word is_used is written after all others of an entry, so a
 * process that is killed leaves an entry whole or unused, and
 * llmgw_queue_mend() rebuilds the rest.
 */

#ifndef LLMGW_QUEUE_H
#define LLMGW_QUEUE_H

#include <stdint.h>


#define LLMGW_QUEUE_NONE         UINT32_MAX
#define LLMGW_QUEUE_GRANT_MS     200
#define LLMGW_QUEUE_MAX_SKIPPED  64

typedef struct {
    uint64_t  ticket;
    uint64_t  granted_ms;       /* 0: not granted */
    uint32_t  row;              /* of the worker */
    uint32_t  process;          /* where to wake it */
    uint32_t  next;             /* or of the free list */
    uint32_t  prev;
    uint8_t   is_urgent;
    uint8_t   is_counted;
    uint8_t   is_skipped;
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
    uint32_t              skipped;      /* at most LLMGW_QUEUE_MAX_SKIPPED */
    uint64_t              ticket;       /* the last one given out */
} llmgw_queue_t;

typedef struct {
    uint64_t  ticket;           /* 0: a new one is taken */
    uint32_t  row;
    uint32_t  process;
    int       is_urgent;
    int       is_counted;       /* limited by `size` */
} llmgw_queue_place_t;


/* entries: the caller's memory for `capacity` of them. */
void llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    uint32_t capacity);

/* A ticket for a request that asks for the first time; never 0. */
uint64_t llmgw_queue_ticket(llmgw_queue_t *queue);

/* Whether an entry that is not skipped stands before that place. */
int llmgw_queue_must_wait(const llmgw_queue_t *queue,
    const llmgw_queue_place_t *place);

/*
 * Takes a place by ticket.  Returns the entry's index, or LLMGW_QUEUE_NONE:
 * the place is counted and `size` counted ones wait already, or no entry is
 * left.
 */
uint32_t llmgw_queue_push(llmgw_queue_t *queue,
    const llmgw_queue_place_t *place, uint32_t size);

void llmgw_queue_remove(llmgw_queue_t *queue, uint32_t entry);

/* The entry that may claim next, or LLMGW_QUEUE_NONE. */
uint32_t llmgw_queue_head(const llmgw_queue_t *queue, uint64_t now_ms);

void llmgw_queue_grant(llmgw_queue_t *queue, uint32_t entry, uint64_t now_ms);
void llmgw_queue_ungrant(llmgw_queue_t *queue, uint32_t entry);

/* 1: skipped until the next recall; 0: too many are skipped already. */
int llmgw_queue_skip(llmgw_queue_t *queue, uint32_t entry);

/* 1: that entry is in use, with that ticket, by that row. */
int llmgw_queue_is_of(const llmgw_queue_t *queue, uint32_t entry,
    uint64_t ticket, uint32_t row);

/* Takes back the grants of a row that have grown old. */
void llmgw_queue_thaw_row(llmgw_queue_t *queue, uint32_t row,
    uint64_t now_ms);

/* There is capacity, or there may be: no entry is skipped any more. */
void llmgw_queue_recall(llmgw_queue_t *queue);

/* Drops the entries that a dead worker left; returns how many. */
uint32_t llmgw_queue_drop_row(llmgw_queue_t *queue, uint32_t row);

/* Rebuilds links, free list and counts from the used entries. */
void llmgw_queue_mend(llmgw_queue_t *queue);

#endif /* LLMGW_QUEUE_H */

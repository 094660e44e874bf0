
/*
 * Admission's memory, shared by all processes of a gateway.
 *
 *   llmgw_admission_t | entries[] | flow | slots[] | shares[slot][row] |
 *   buckets[]
 *
 *   slot    one replica's: its id, the total of attempts in flight, its
 *           breaker, its mark as full.  Slots are found by a hash of the id,
 *           chained in buckets; the free ones are chained, too.  What follows
 *           llmgw_slot_t up to slot_bytes is the caller's own.
 *   share   how many of a slot's attempts one process runs.  A process has a
 *           number, its row; rows are given out by the caller.
 *   entry   a request that waits: queue.h; flow: flow control over them.
 *
 * The caller holds the lock of that memory; exceptions are noted.  A process
 * may be killed at any instruction, also while it holds the lock: the next
 * holder gets a consistent state nevertheless.
 *
 *   - `dirty` is set before the first store of a change and cleared after the
 *     last.  A process that takes the lock and finds it set calls
 *     llmgw_admission_mend() before anything else.
 *   - A few words are authoritative: a share, an entry's is_used and the words
 *     that were written before it, a slot's id_len and id.  Totals, counts,
 *     links and free lists follow from these, and are rebuilt when mending.
 *   - What a dead process held is in its shares and entries alone, under its
 *     row; llmgw_admission_drop_row() takes it back.
 *
 * A slot that goes from one replica to another gets another generation.  A
 * lease remembers the generation in which it was taken, and its end has no
 * effect in any other: a process that was stopped for long may return with
 * leases of a replica whose slot has been freed.
 *
 * The memory has the same address in all processes, so it holds pointers.
 * Zeroed memory is not ready: llmgw_admission_init().
 */

#ifndef LLMGW_SHARED_H
#define LLMGW_SHARED_H

#include "core/admission/hedge.h"
#include "core/admission/high_water.h"
#include "core/admission/queue.h"
#include "core/breaker.h"
#include "core/policy/peer.h"


#define LLMGW_SLOT_ID_BYTES  72     /* as long as an address may be */
#define LLMGW_NO_SLOT        UINT32_MAX
#define LLMGW_NO_ROW         UINT32_MAX

typedef struct {
    llmgw_peer_counts_t  counts;        /* the total of the shares */
    uint32_t             generation;
    uint32_t             id_len;        /* 0: free */
    uint32_t             next;          /* in its bucket, or free */
    llmgw_full_t         full;
    llmgw_breaker_t      breaker;
    llmgw_high_water_t   high;
    uint64_t             process_ms;    /* start of the replica's process
                                           that the breaker has judged */
    uint64_t             stamp_ms;      /* last use by some process; may be
                                           written without the lock */
    char                 id[LLMGW_SLOT_ID_BYTES];
} llmgw_slot_t;

/* A slot as some process knows it: its number and generation. */
typedef struct {
    uint32_t  slot;                     /* LLMGW_NO_SLOT: none */
    uint32_t  generation;               /* when it was attached */
} llmgw_place_t;

typedef enum {
    LLMGW_WAITS_ROOM = 0,
    LLMGW_WAITS_CIRCUIT,                /* to be probed */
    LLMGW_WAITS_STANDBY,                /* to be active */
    LLMGW_WAITS_REPLICA                 /* any */
} llmgw_waits_t;

typedef struct {
    uint32_t               dirty;
    uint32_t               nrows;
    uint32_t               nslots;
    uint32_t               slot_bytes;
    uint32_t               nbuckets;    /* a power of two */
    uint32_t               free_slot;
    uint32_t               waits_for;   /* llmgw_waits_t: the queue's head */
    char                  *slots;
    uint32_t              *shares;
    uint32_t              *buckets;
    llmgw_queue_t          queue;
    llmgw_hedge_budget_t   hedge;
} llmgw_admission_t;

typedef struct {
    uint32_t  nrows;
    uint32_t  nslots;                   /* at least 1 */
    uint32_t  slot_bytes;               /* a multiple of 8 */
    uint32_t  queue_capacity;
    uint32_t  without_flow;             /* 1: the queue is first come, first
                                           served, and needs less memory */
} llmgw_admission_size_t;


static inline llmgw_slot_t *
llmgw_slot(const llmgw_admission_t *shared, uint32_t i)
{
    return (llmgw_slot_t *) (shared->slots + (size_t) i * shared->slot_bytes);
}


static inline uint32_t *
llmgw_share(const llmgw_admission_t *shared, uint32_t slot, uint32_t row)
{
    return &shared->shares[(size_t) slot * shared->nrows + row];
}


/*
 * The stores of a change stand between these two.  The lock orders them for
 * other processors, also when the process dies; so only the compiler must be
 * kept from reordering them.
 */
static inline void
llmgw_admission_begin(llmgw_admission_t *shared)
{
    __atomic_store_n(&shared->dirty, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}


static inline void
llmgw_admission_commit(llmgw_admission_t *shared)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&shared->dirty, 0, __ATOMIC_RELAXED);
}


/*
 * The number of bytes that all of it needs; makes it in such memory, which is
 * zeroed and aligned to 8.
 */
size_t llmgw_admission_bytes(const llmgw_admission_size_t *size);
llmgw_admission_t *llmgw_admission_init(void *memory,
    const llmgw_admission_size_t *size);

/*
 * Sets the queue's order, by llmgw_queue_order().  Returns 1: the order has
 * changed.
 */
int llmgw_admission_order(llmgw_admission_t *shared,
    const llmgw_flow_conf_t *conf);

/* A process died inside a change: rebuilds totals, links and counts. */
void llmgw_admission_mend(llmgw_admission_t *shared);

/* Takes back all that a process held that has ended or is known to be dead. */
void llmgw_admission_drop_row(llmgw_admission_t *shared, uint32_t row,
    uint64_t now_ms);

/* "room" ... */
const char *llmgw_waits_name(llmgw_waits_t waits_for);


/*
 * The slot of an id, found or taken, stamped with now_ms; LLMGW_NO_SLOT: no
 * slot is free.  len is from 1 to LLMGW_SLOT_ID_BYTES.
 */
uint32_t llmgw_slots_attach(llmgw_admission_t *shared, const char *id,
    size_t len, uint64_t now_ms);

/*
 * The next slot from `from` on that no process has stamped for long and no
 * attempt counts in.
 */
uint32_t llmgw_slots_unused(const llmgw_admission_t *shared, uint32_t from,
    uint64_t now_ms);

/* Gives up a slot that llmgw_slots_unused() has named. */
void llmgw_slots_free(llmgw_admission_t *shared, uint32_t i);

/*
 * The replica of that slot is another process now, which began at process_ms:
 * its circuit is closed, and it is not marked full.  Returns 1 once, in the
 * worker that learns of it first.
 */
void llmgw_slots_renew(llmgw_admission_t *shared, llmgw_place_t place,
    uint64_t process_ms);

#endif /* LLMGW_SHARED_H */


/*
 * The prefix index shared by several processes: the owner of each number, and
 * whether the index is whole.
 *
 *     llmgw_prefix_shared_t | owners[replica] | llmgw_prefix_index_t
 *
 *   owner     what a replica's number stands for, in the caller's words.  A
 *             record for another owner forgets what was known before; a match
 *             finds nothing of it.
 *   sequence  odd while a change is made.  Writers hold a lock of the
 *             caller's.  Readers hold none: a match is good if the sequence is
 *             even, and the same before and after.
 *   writing   the replica of the change.
 *
 * A process may be killed at any store.  Then the sequence stays odd, readers
 * find nothing, and the next holder of the lock calls mend() before anything
 * else: it empties the replica of the change, as its blocks are half there, and
 * makes the rest whole, other replicas' order of use included.  If it is killed
 * while it mends, the next holder mends again.
 */

#ifndef LLMGW_PREFIX_SHARED_INDEX_H
#define LLMGW_PREFIX_SHARED_INDEX_H

#include "core/prefix/index.h"


/* A record takes 10 us at most, so a reader seldom meets two of them. */
#define LLMGW_PREFIX_TRIES  4

typedef struct {
    uint32_t  sequence;
    uint32_t  writing;
    uint64_t  replicas;
    uint64_t  owners[];
} llmgw_prefix_shared_t;


/* As llmgw_prefix_bytes(). */
static inline size_t
llmgw_prefix_shared_bytes(const llmgw_prefix_size_t *size)
{
    size_t  bytes;

    bytes = llmgw_prefix_bytes(size);

    return bytes == 0 ? 0 : sizeof(llmgw_prefix_shared_t)
                            + size->replicas * sizeof(uint64_t) + bytes;
}


/*
 * Sets size->total to the most nodes for which so many bytes are enough; 0: not
 * even one.
 */
uint32_t llmgw_prefix_shared_fit(llmgw_prefix_size_t *size, size_t bytes);

/* memory: zeroed, aligned to 8, of that many bytes.  NULL where bytes() is 0 */
llmgw_prefix_shared_t *llmgw_prefix_shared_init(void *memory,
    const llmgw_prefix_size_t *size);

/* The index within it. */
static inline llmgw_prefix_index_t *
llmgw_prefix_shared_index(const llmgw_prefix_shared_t *shared)
{
    return (llmgw_prefix_index_t *) &shared->owners[shared->replicas];
}


/* Owner of that number; 0: none. */
static inline uint64_t
llmgw_prefix_owner(const llmgw_prefix_shared_t *shared, uint32_t replica)
{
    return __atomic_load_n(&shared->owners[replica], __ATOMIC_RELAXED);
}


/* 1: a change was interrupted, or another process is making one. */
static inline int
llmgw_prefix_is_torn(const llmgw_prefix_shared_t *shared)
{
    return __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) & 1;
}


/*
 * llmgw_prefix_match(), with or without the lock.  0: it was changed during
 * each of a few tries, and matched is not to be read.
 */
int llmgw_prefix_shared_match(const llmgw_prefix_shared_t *shared,
    const uint64_t *blocks, uint32_t n, uint32_t *matched, uint64_t *scratch);

/*
 * With the lock, and not torn: the prompt with these blocks goes to the replica
 * of that number and owner.  Returns how many of them it had.
 */
uint32_t llmgw_prefix_shared_record(llmgw_prefix_shared_t *shared,
    uint32_t replica, uint64_t owner, const uint64_t *blocks, uint32_t n);

/* To be called with the lock if the index is torn: repairs it. */
void llmgw_prefix_shared_mend(llmgw_prefix_shared_t *shared);

#endif /* LLMGW_PREFIX_SHARED_INDEX_H */

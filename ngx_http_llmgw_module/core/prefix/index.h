
/*
 * The prefix index: which blocks of which prompts were sent to which replica.
 *
 * A prompt is cut into blocks, each known by a 64-bit hash that includes the
 * hash of the block before it, so equal hashes mean equal prefixes.  Of every
 * replica the index keeps the `blocks` hashes that were sent there last: an
 * exact LRU list.  A match reads how many blocks of a prompt, from its first
 * on without a gap, each replica has; it does not count as use.  A record says
 * that a prompt went to a replica: its blocks become the newest, the last of
 * the prompt the newest of all.
 *
 *     llmgw_prefix_index_t | lists[replica] | nodes[] | buckets[] | sets[]
 *
 *   node     a block at a replica, in that replica's list.  The first node of
 *            a hash is its head; it is found by the hash, and counts the nodes
 *            with that hash.  The others are found by hash and replica, in the
 *            same buckets.
 *   set      which replicas have a hash, as bits: of every hash that many
 *            replicas have.  If fewer have it, they are a list that begins at
 *            the head.  So a match of n blocks reads n heads, whatever the
 *            number of replicas, and takes two words for each 128 replicas.
 *
 * A node takes 32 bytes, its bucket 4 to 8, sets at most 8 for each node.
 *
 * Memory is the caller's and has indices in place of pointers, so that it may
 * be shared and mapped anywhere.  Zeroed memory stays untouched until it is
 * needed.  The caller orders writers; core has no lock.
 *
 * A match may run while a record does.  It reads words of before and after,
 * so its result is worthless then, but it ends and stays within the memory:
 * each index that it reads is checked, and each walk has an end.
 * shared_index.h tells such a match from a good one.
 *
 * A record changes the list of its own replica and no other.  So all else can
 * be rebuilt from the lists if a process dies in the middle of a change: that
 * replica is emptied, and the rest is rebuilt from the other lists.
 */

#ifndef LLMGW_PREFIX_INDEX_H
#define LLMGW_PREFIX_INDEX_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_PREFIX_MAX_REPLICAS  65535        /* numbers have 16 bits */
#define LLMGW_PREFIX_MAX_NODES     0x7fffffff

typedef struct {
    uint32_t  replicas;         /* their numbers are below this */
    uint32_t  blocks;           /* remembered of each replica */
    uint32_t  total;            /* of all replicas; 0: replicas x blocks.
                                   With fewer, a replica that asks for a node
                                   when none is free gives up its own oldest */
    uint64_t  random;           /* spreads hashes over buckets, so that clients
                                   cannot fill one; 0: always the same way */
} llmgw_prefix_size_t;

typedef struct llmgw_prefix_index_s  llmgw_prefix_index_t;


/* 0: a size is 0 or beyond its limit. */
size_t llmgw_prefix_bytes(const llmgw_prefix_size_t *size);

/* memory: zeroed, aligned to 8, of that many bytes */
llmgw_prefix_index_t *llmgw_prefix_init(void *memory,
    const llmgw_prefix_size_t *size);

/* Words of scratch memory that a match needs. */
size_t llmgw_prefix_scratch(const llmgw_prefix_index_t *index);

/*
 * Sets matched[replica] for all replicas of the index: how many of the n
 * blocks each has, from the first on without a gap.
 */
void llmgw_prefix_match(const llmgw_prefix_index_t *index,
    const uint64_t *blocks, uint32_t n, uint32_t *matched, uint64_t *scratch);

/*
 * The prompt with these blocks goes to that replica.  Returns how many of them
 * it had, from the first on without a gap.
 */
uint32_t llmgw_prefix_record(llmgw_prefix_index_t *index, uint32_t replica,
    const uint64_t *blocks, uint32_t n);

/* To be called when another replica gets this number: forgets its blocks. */
void llmgw_prefix_forget(llmgw_prefix_index_t *index, uint32_t replica);

/*
 * Repairs the index after a record or forget of that replica, or this function,
 * was interrupted at any store: forgets the replica, and rebuilds the rest from
 * the others.
 */
void llmgw_prefix_mend(llmgw_prefix_index_t *index, uint32_t replica);

/* 1: some replica has fewer blocks than it may, for want of memory. */
int llmgw_prefix_is_short(const llmgw_prefix_index_t *index);

#endif /* LLMGW_PREFIX_INDEX_H */


/* The prefix index's memory, for its two files. */

#ifndef LLMGW_PREFIX_INNER_H
#define LLMGW_PREFIX_INNER_H

#include "core/prefix/index.h"


/* A reader's walk along a bucket ends here: the bucket may be torn. */
#define PREFIX_MAX_HOPS  4096

/* The list of a node that is in none, while the index is mended. */
#define PREFIX_NOWHERE   UINT16_MAX

/*
 * For what a match reads, which may run while it changes.  Acquire and release
 * are plain moves on x86, and let the sequence of shared_index.h do without
 * fences.
 */
#define prefix_load(p)      __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define prefix_store(p, x)  __atomic_store_n(p, x, __ATOMIC_RELEASE)

/* Index 0 means none for nodes and sets, so the first of each is not used. */
typedef struct {
    uint64_t  hash;
    uint32_t  chain;            /* next in its bucket, or free */
    uint32_t  newer;            /* in its replica's list */
    uint32_t  older;
    uint32_t  next;             /* with the same hash, where there is no set */
    uint32_t  set;              /* head: the set of replicas, if any; its first
                                   word chains free sets */
    uint16_t  replica;
    uint16_t  holders;          /* head: nodes with this hash; else 0 */
} prefix_node_t;

_Static_assert(sizeof(prefix_node_t) == 32, "size of a node");

typedef struct {
    uint32_t  newest;
    uint32_t  oldest;
    uint32_t  n;
} prefix_list_t;

struct llmgw_prefix_index_s {
    uint32_t  nreplicas;
    uint32_t  blocks;
    uint32_t  nnodes;
    uint32_t  used_nodes;       /* of nodes that were never free */
    uint32_t  free_node;
    uint32_t  nsets;
    uint32_t  used_sets;
    uint32_t  free_set;
    uint32_t  words;            /* of a set */
    uint32_t  used_words;       /* beyond these no replica has a bit: a match of
                                   50 blocks at 8 replicas of 1,033 takes 0.5
                                   us, and 2.1 us without this */
    uint32_t  is_short;         /* a replica had to do with fewer blocks */
    uint32_t  many;             /* a hash with this many holders gets a set, and
                                   loses it below half as many */
    uint32_t  bits;             /* log2 of buckets */
    uint64_t  spread;           /* odd: a universal hash (Dietzfelbinger and
                                   others, 1997, multiply-shift) */
    size_t    lists;            /* offsets */
    size_t    nodes;
    size_t    buckets;
    size_t    sets;
};


static inline prefix_list_t *
prefix_list(const llmgw_prefix_index_t *index, uint32_t replica)
{
    return (prefix_list_t *) ((char *) index + index->lists) + replica;
}


static inline prefix_node_t *
prefix_node(const llmgw_prefix_index_t *index, uint32_t i)
{
    return (prefix_node_t *) ((char *) index + index->nodes) + i;
}


static inline int
prefix_is_node(const llmgw_prefix_index_t *index, uint32_t i)
{
    return i - 1 < index->nnodes;
}


static inline uint64_t *
prefix_set(const llmgw_prefix_index_t *index, uint32_t i)
{
    return (uint64_t *) ((char *) index + index->sets)
           + (size_t) i * index->words;
}


static inline uint32_t *
prefix_bucket(const llmgw_prefix_index_t *index, uint64_t key)
{
    return (uint32_t *) ((char *) index + index->buckets)
           + (key * index->spread >> (64 - index->bits));
}


/* The key of a node that is not its hash's head. */
static inline uint64_t
prefix_key(uint64_t hash, uint32_t replica)
{
    return (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull + replica + 1;
}


/*
 * The head of a hash, or 0.  For writers only, as the bucket has to be whole.
 * The walk has no limit: a writer that missed a head would make a second one.
 */
static inline uint32_t
prefix_head(const llmgw_prefix_index_t *index, uint64_t hash)
{
    uint32_t              i;
    const prefix_node_t  *node;

    for (i = *prefix_bucket(index, hash); i != 0; i = node->chain) {
        node = prefix_node(index, i);

        if (node->hash == hash && node->holders != 0) {
            return i;
        }
    }

    return 0;
}

#endif /* LLMGW_PREFIX_INNER_H */

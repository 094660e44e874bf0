
/* The prefix index.  prefix/index.h describes the layout and its reasons. */

#include <string.h>

#include "core/prefix/index_inner.h"


static size_t
index_round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t) 63;
}


/* 0: a size is 0 or beyond its limit. */
static int
index_measure(const llmgw_prefix_size_t *size, llmgw_prefix_index_t *index)
{
    uint64_t  total;

    total = (uint64_t) size->replicas * size->blocks;

    if (size->total != 0 && size->total < total) {
        total = size->total;
    }

    if (total == 0 || total > LLMGW_PREFIX_MAX_NODES
        || size->replicas > LLMGW_PREFIX_MAX_REPLICAS)
    {
        return 0;
    }

    index->nreplicas = size->replicas;
    index->blocks = size->blocks;
    index->nnodes = (uint32_t) total;
    index->words = (size->replicas + 63) / 64;
    index->many = index->words * 2 < 4 ? 4 : index->words * 2;
    index->spread = size->random == 0 ? 0x9e3779b97f4a7c15ull
                                      : size->random | 1;
    index->nsets = 2 * index->nnodes / index->many + 1;

    for (index->bits = 6; (uint64_t) 1 << index->bits < total; index->bits++) {
        /* void */
    }

    index->lists = index_round_up(sizeof(*index));
    index->nodes = index->lists
                   + index_round_up(size->replicas * sizeof(prefix_list_t));
    index->buckets = index->nodes
                     + index_round_up((total + 1) * sizeof(prefix_node_t));
    index->sets = index->buckets
                  + index_round_up(((size_t) 1 << index->bits)
                                   * sizeof(uint32_t));

    return 1;
}


size_t
llmgw_prefix_bytes(const llmgw_prefix_size_t *size)
{
    llmgw_prefix_index_t  index = { 0 };

    if (!index_measure(size, &index)) {
        return 0;
    }

    return index.sets + ((size_t) index.nsets + 1) * index.words
                        * sizeof(uint64_t);
}


llmgw_prefix_index_t *
llmgw_prefix_init(void *memory, const llmgw_prefix_size_t *size)
{
    llmgw_prefix_index_t  *index;

    index = memory;

    return index_measure(size, index) ? index : NULL;
}


size_t
llmgw_prefix_scratch(const llmgw_prefix_index_t *index)
{
    return 2 * (size_t) index->words;
}


int
llmgw_prefix_is_short(const llmgw_prefix_index_t *index)
{
    return prefix_load(&index->is_short) != 0;
}


/* Like prefix_head(), but for buckets that may be changing. */
static inline uint32_t
match_head(const llmgw_prefix_index_t *index, uint64_t hash)
{
    uint32_t              i, hops;
    const prefix_node_t  *node;

    i = prefix_load(prefix_bucket(index, hash));

    for (hops = 0; prefix_is_node(index, i) && hops < PREFIX_MAX_HOPS; hops++)
    {
        node = prefix_node(index, i);

        if (prefix_load(&node->hash) == hash
            && prefix_load(&node->holders) != 0)
        {
            return i;
        }

        i = prefix_load(&node->chain);
    }

    return 0;
}


/* Makes a set of a list of holders, in the caller's memory. */
static const uint64_t *
match_holders(const llmgw_prefix_index_t *index, uint32_t head,
    uint32_t words, uint64_t *set)
{
    uint32_t              i, hops, replica;
    const prefix_node_t  *node;

    i = prefix_load(&prefix_node(index, head)->set);

    if (i - 1 < index->nsets) {
        return prefix_set(index, i);
    }

    memset(set, 0, words * sizeof(uint64_t));
    i = head;

    for (hops = 0; prefix_is_node(index, i) && hops < index->many; hops++) {
        node = prefix_node(index, i);
        replica = prefix_load(&node->replica);

        if (replica / 64 < words) {
            set[replica / 64] |= (uint64_t) 1 << replica % 64;
        }

        i = prefix_load(&node->next);
    }

    return set;
}


/* Replicas of one word: all that are in `gone` have `length` blocks. */
static inline void
match_set(uint32_t *matched, uint64_t gone, uint32_t length)
{
    while (gone != 0) {
        matched[__builtin_ctzll(gone)] = length;
        gone &= gone - 1;
    }
}


/*
 * The holders of the first block.  A set that changes while it is read may have
 * any content, so replicas that do not exist are removed.
 */
static void
match_begin(const llmgw_prefix_index_t *index, const uint64_t *holders,
    uint32_t words, uint64_t *alive)
{
    uint32_t  w;

    for (w = 0; w < words; w++) {
        alive[w] = prefix_load(&holders[w]);
    }

    if (words == index->words && index->nreplicas % 64 != 0) {
        alive[words - 1] &= ((uint64_t) 1 << index->nreplicas % 64) - 1;
    }
}


/*
 * `alive` is the set of replicas that have all blocks so far.  When a replica
 * leaves it, its length is known.
 */
void
llmgw_prefix_match(const llmgw_prefix_index_t *index, const uint64_t *blocks,
    uint32_t n, uint32_t *matched, uint64_t *scratch)
{
    uint32_t         b, w, head, words;
    uint64_t        *alive, left, have;
    const uint64_t  *holders;

    memset(matched, 0, index->nreplicas * sizeof(uint32_t));

    head = n == 0 ? 0 : match_head(index, blocks[0]);

    if (head == 0) {
        return;
    }

    alive = scratch;
    scratch += index->words;
    words = prefix_load(&index->used_words);
    holders = match_holders(index, head, words, scratch);
    match_begin(index, holders, words, alive);

    for (b = 1; b < n; b++) {
        head = match_head(index, blocks[b]);

        if (head == 0) {
            break;
        }

        left = 0;
        holders = match_holders(index, head, words, scratch);

        for (w = 0; w < words; w++) {
            have = prefix_load(&holders[w]);
            match_set(&matched[w * 64], alive[w] & ~have, b);
            alive[w] &= have;
            left |= alive[w];
        }

        if (left == 0) {
            return;
        }
    }

    for (w = 0; w < words; w++) {
        match_set(&matched[w * 64], alive[w], b);
    }
}


/* The prefix index.  prefix/index.h says what is where, and why. */

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


uint32_t
llmgw_prefix_known(const llmgw_prefix_index_t *index, uint32_t replica)
{
    return prefix_list(index, replica)->n;
}


/* A list of holders as a set, in memory of the caller's. */
static const uint64_t *
match_holders(const llmgw_prefix_index_t *index, uint32_t head, uint64_t *set)
{
    uint32_t              i;
    const prefix_node_t  *node;

    node = prefix_node(index, head);

    if (node->set != 0) {
        return prefix_set(index, node->set);
    }

    memset(set, 0, index->words * sizeof(uint64_t));

    for (i = head; i != 0; i = node->next) {
        node = prefix_node(index, i);
        set[node->replica / 64] |= (uint64_t) 1 << node->replica % 64;
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
 * `alive` is the set of replicas that have all blocks so far.  A replica that
 * leaves it has its length.
 */
void
llmgw_prefix_match(const llmgw_prefix_index_t *index, const uint64_t *blocks,
    uint32_t n, uint32_t *matched, uint64_t *scratch)
{
    uint32_t         b, w, head;
    uint64_t        *alive, left;
    const uint64_t  *holders;

    memset(matched, 0, index->nreplicas * sizeof(uint32_t));

    head = n == 0 ? 0 : prefix_head(index, blocks[0]);

    if (head == 0) {
        return;
    }

    alive = scratch;
    scratch += index->words;
    holders = match_holders(index, head, scratch);
    memcpy(alive, holders, index->words * sizeof(uint64_t));

    for (b = 1; b < n; b++) {
        head = prefix_head(index, blocks[b]);

        if (head == 0) {
            break;
        }

        left = 0;
        holders = match_holders(index, head, scratch);

        for (w = 0; w < index->words; w++) {
            match_set(&matched[w * 64], alive[w] & ~holders[w], b);
            alive[w] &= holders[w];
            left |= alive[w];
        }

        if (left == 0) {
            return;
        }
    }

    for (w = 0; w < index->words; w++) {
        match_set(&matched[w * 64], alive[w], b);
    }
}

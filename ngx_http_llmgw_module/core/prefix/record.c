
/* What changes the prefix index: records, and what is forgotten for them. */

#include <string.h>

#include "core/prefix/index_inner.h"


static void
bucket_put(llmgw_prefix_index_t *index, uint64_t key, uint32_t i)
{
    uint32_t  *bucket;

    bucket = prefix_bucket(index, key);
    prefix_node(index, i)->chain = *bucket;
    *bucket = i;
}


static void
bucket_take(llmgw_prefix_index_t *index, uint64_t key, uint32_t i)
{
    uint32_t  *link;

    link = prefix_bucket(index, key);

    while (*link != i) {
        link = &prefix_node(index, *link)->chain;
    }

    *link = prefix_node(index, i)->chain;
}


/* The node of a hash at a replica, given the hash's head; 0: it has none. */
static uint32_t
node_find(const llmgw_prefix_index_t *index, uint32_t head, uint32_t replica)
{
    uint32_t              i;
    uint64_t              hash;
    const prefix_node_t  *node;

    node = prefix_node(index, head);
    hash = node->hash;

    if (node->replica == replica) {
        return head;
    }

    i = *prefix_bucket(index, prefix_key(hash, replica));

    for ( /* void */ ; i != 0; i = node->chain) {
        node = prefix_node(index, i);

        if (node->hash == hash && node->replica == replica) {
            return i;
        }
    }

    return 0;
}


static inline void
set_change(llmgw_prefix_index_t *index, uint32_t set, uint32_t replica)
{
    prefix_set(index, set)[replica / 64] ^= (uint64_t) 1 << replica % 64;
}


/* Many have it: their list becomes a set. */
static void
set_make(llmgw_prefix_index_t *index, prefix_node_t *head)
{
    uint32_t              i, set;
    const prefix_node_t  *node;

    set = index->free_set;

    if (set != 0) {
        index->free_set = (uint32_t) prefix_set(index, set)[0];

    } else {
        set = ++index->used_sets;
    }

    memset(prefix_set(index, set), 0, index->words * sizeof(uint64_t));
    head->set = set;

    for (node = head; /* void */ ; node = prefix_node(index, i)) {
        set_change(index, set, node->replica);
        i = node->next;

        if (i == 0) {
            break;
        }
    }
}


/* Few have it: the set becomes a list that begins at the head. */
static void
set_drop(llmgw_prefix_index_t *index, uint32_t head)
{
    uint32_t        w, i;
    uint64_t        bits;
    prefix_node_t  *first;

    first = prefix_node(index, head);
    first->next = 0;

    for (w = 0; w < index->words; w++) {
        bits = prefix_set(index, first->set)[w];

        for ( /* void */ ; bits != 0; bits &= bits - 1) {
            i = node_find(index, head, w * 64
                                       + (uint32_t) __builtin_ctzll(bits));
            if (i != head) {
                prefix_node(index, i)->next = first->next;
                first->next = i;
            }
        }
    }

    prefix_set(index, first->set)[0] = index->free_set;
    index->free_set = first->set;
    first->set = 0;
}


/* A node that has its hash and replica joins those of its hash. */
static void
holders_join(llmgw_prefix_index_t *index, uint32_t head, uint32_t i)
{
    prefix_node_t  *first, *node;

    node = prefix_node(index, i);
    node->set = 0;
    node->next = 0;
    node->holders = 0;

    if (head == 0) {
        node->holders = 1;
        bucket_put(index, node->hash, i);
        return;
    }

    bucket_put(index, prefix_key(node->hash, node->replica), i);

    first = prefix_node(index, head);
    first->holders++;

    if (first->set != 0) {
        set_change(index, first->set, node->replica);
        return;
    }

    node->next = first->next;
    first->next = i;

    if (first->holders >= index->many) {
        set_make(index, first);
    }
}


/* Any other node of the hash. */
static uint32_t
holders_other(const llmgw_prefix_index_t *index, uint32_t head)
{
    uint32_t              w;
    uint64_t              bits;
    const prefix_node_t  *first;

    first = prefix_node(index, head);

    if (first->set == 0) {
        return first->next;
    }

    for (w = 0; /* void */ ; w++) {
        bits = prefix_set(index, first->set)[w];

        if (w == first->replica / 64u) {
            bits &= ~((uint64_t) 1 << first->replica % 64);
        }

        if (bits != 0) {
            return node_find(index, head, w * 64
                                          + (uint32_t) __builtin_ctzll(bits));
        }
    }
}


/* The head goes, so another node of the hash becomes it.  Returns which. */
static uint32_t
holders_replace(llmgw_prefix_index_t *index, uint32_t head)
{
    uint32_t        i;
    prefix_node_t  *first, *node;

    i = holders_other(index, head);
    first = prefix_node(index, head);
    node = prefix_node(index, i);

    bucket_take(index, first->hash, head);
    bucket_take(index, prefix_key(node->hash, node->replica), i);

    node->set = first->set;
    node->holders = first->holders;
    bucket_put(index, node->hash, i);

    return i;
}


static void
list_take_next(llmgw_prefix_index_t *index, uint32_t head, uint32_t i)
{
    uint32_t  *link;

    link = &prefix_node(index, head)->next;

    while (*link != i) {
        link = &prefix_node(index, *link)->next;
    }

    *link = prefix_node(index, i)->next;
}


/* A node leaves those of its hash. */
static void
holders_leave(llmgw_prefix_index_t *index, uint32_t i)
{
    uint32_t        head;
    prefix_node_t  *first, *node;

    node = prefix_node(index, i);

    if (node->holders == 1) {
        bucket_take(index, node->hash, i);
        return;
    }

    if (node->holders != 0) {
        head = holders_replace(index, i);

    } else {
        head = prefix_head(index, node->hash);
        bucket_take(index, prefix_key(node->hash, node->replica), i);

        if (prefix_node(index, head)->set == 0) {
            list_take_next(index, head, i);
        }
    }

    first = prefix_node(index, head);
    first->holders--;

    if (first->set != 0) {
        set_change(index, first->set, node->replica);

        if (first->holders < index->many / 2) {
            set_drop(index, head);
        }
    }
}


/* The list of a replica: the newest first. */

static void
lru_take(llmgw_prefix_index_t *index, prefix_list_t *list, uint32_t i)
{
    prefix_node_t  *node;

    node = prefix_node(index, i);

    if (node->newer != 0) {
        prefix_node(index, node->newer)->older = node->older;

    } else {
        list->newest = node->older;
    }

    if (node->older != 0) {
        prefix_node(index, node->older)->newer = node->newer;

    } else {
        list->oldest = node->newer;
    }

    list->n--;
}


static void
lru_put(llmgw_prefix_index_t *index, prefix_list_t *list, uint32_t i)
{
    prefix_node_t  *node;

    node = prefix_node(index, i);
    node->newer = 0;
    node->older = list->newest;

    if (list->newest != 0) {
        prefix_node(index, list->newest)->newer = i;

    } else {
        list->oldest = i;
    }

    list->newest = i;
    list->n++;
}


/* Memory for a node of that replica; 0: there is none. */
static uint32_t
node_get(llmgw_prefix_index_t *index, prefix_list_t *list)
{
    uint32_t  i;

    if (list->n < index->blocks) {
        i = index->free_node;

        if (i != 0) {
            index->free_node = prefix_node(index, i)->chain;
            return i;
        }

        if (index->used_nodes < index->nnodes) {
            return ++index->used_nodes;
        }
    }

    i = list->oldest;

    if (i != 0) {
        holders_leave(index, i);
        lru_take(index, list, i);
    }

    return i;
}


/*
 * The node of a block at that replica, or 0.  The block behind another in a
 * prompt was mostly recorded right after it, and is the next newer: `guess`.
 */
static uint32_t
record_find(const llmgw_prefix_index_t *index, uint32_t replica,
    uint64_t block, uint32_t guess)
{
    uint32_t  head;

    if (guess != 0 && prefix_node(index, guess)->hash == block) {
        return guess;
    }

    head = prefix_head(index, block);

    return head == 0 ? 0 : node_find(index, head, replica);
}


void
llmgw_prefix_record(llmgw_prefix_index_t *index, uint32_t replica,
    const uint64_t *blocks, uint32_t n)
{
    uint32_t        b, i, guess;
    prefix_list_t  *list;

    guess = 0;
    list = prefix_list(index, replica);

    for (b = 0; b < n; b++) {
        i = record_find(index, replica, blocks[b], guess);

        if (i != 0) {
            guess = prefix_node(index, i)->newer;
            lru_take(index, list, i);
            lru_put(index, list, i);
            continue;
        }

        guess = 0;
        i = node_get(index, list);

        if (i == 0) {
            return;
        }

        prefix_node(index, i)->hash = blocks[b];
        prefix_node(index, i)->replica = (uint16_t) replica;
        holders_join(index, prefix_head(index, blocks[b]), i);
        lru_put(index, list, i);
    }
}


void
llmgw_prefix_forget(llmgw_prefix_index_t *index, uint32_t replica)
{
    uint32_t        i;
    prefix_list_t  *list;

    list = prefix_list(index, replica);

    while ((i = list->oldest) != 0) {
        holders_leave(index, i);
        lru_take(index, list, i);

        prefix_node(index, i)->chain = index->free_node;
        index->free_node = i;
    }
}

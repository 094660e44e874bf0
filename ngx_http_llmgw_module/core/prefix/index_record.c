
/*
 * Changes of the prefix index: records, and the blocks forgotten to make room.
 */

#include "core/prefix/index_inner.h"


static inline void
bucket_put(llmgw_prefix_index_t *index, uint64_t key, uint32_t i)
{
    uint32_t  *bucket;

    bucket = prefix_bucket(index, key);
    prefix_store(&prefix_node(index, i)->chain, *bucket);
    prefix_store(bucket, i);
}


static void
bucket_take(llmgw_prefix_index_t *index, uint64_t key, uint32_t i)
{
    uint32_t  *link;

    link = prefix_bucket(index, key);

    while (*link != i) {
        link = &prefix_node(index, *link)->chain;
    }

    prefix_store(link, prefix_node(index, i)->chain);
}


/* The node of a hash at a replica, given the hash's head; 0: none. */
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
    uint64_t  *word;

    word = &prefix_set(index, set)[replica / 64];
    prefix_store(word, *word ^ (uint64_t) 1 << replica % 64);
}


/* Many replicas have the hash: their list becomes a set. */
static void
set_make(llmgw_prefix_index_t *index, prefix_node_t *head)
{
    uint32_t              i, w, set;
    const prefix_node_t  *node;

    set = index->free_set;

    if (set != 0) {
        index->free_set = (uint32_t) prefix_set(index, set)[0];

    } else {
        set = ++index->used_sets;
    }

    for (w = 0; w < index->words; w++) {
        prefix_store(&prefix_set(index, set)[w], 0);
    }

    for (node = head; /* void */ ; node = prefix_node(index, i)) {
        set_change(index, set, node->replica);
        i = node->next;

        if (i == 0) {
            break;
        }
    }

    prefix_store(&head->set, set);
}


/*
 * Few replicas have the hash: the set becomes a list that begins at the head.
 */
static void
set_drop(llmgw_prefix_index_t *index, uint32_t head)
{
    uint32_t        w, i;
    uint64_t        bits;
    prefix_node_t  *first;

    first = prefix_node(index, head);
    prefix_store(&first->next, 0);

    for (w = 0; w < index->words; w++) {
        bits = prefix_set(index, first->set)[w];

        for ( /* void */ ; bits != 0; bits &= bits - 1) {
            i = node_find(index, head, w * 64
                                       + (uint32_t) __builtin_ctzll(bits));
            if (i != head) {
                prefix_store(&prefix_node(index, i)->next, first->next);
                prefix_store(&first->next, i);
            }
        }
    }

    prefix_store(&prefix_set(index, first->set)[0], index->free_set);
    index->free_set = first->set;
    prefix_store(&first->set, 0);
}


/* Inserts a node with its hash and replica into the list of its hash. */
static inline void
holders_join(llmgw_prefix_index_t *index, uint32_t head, uint32_t i)
{
    prefix_node_t  *first, *node;

    node = prefix_node(index, i);
    prefix_store(&node->set, 0);
    prefix_store(&node->next, 0);
    prefix_store(&node->holders, head == 0);

    if (head == 0) {
        bucket_put(index, node->hash, i);
        return;
    }

    bucket_put(index, prefix_key(node->hash, node->replica), i);

    first = prefix_node(index, head);
    prefix_store(&first->holders, first->holders + 1);

    if (first->set != 0) {
        set_change(index, first->set, node->replica);
        return;
    }

    prefix_store(&node->next, first->next);
    prefix_store(&first->next, i);

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


/*
 * The head is removed, so another node of the hash becomes head.  Returns it.
 */
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

    prefix_store(&node->set, first->set);
    prefix_store(&node->holders, first->holders);
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

    prefix_store(link, prefix_node(index, i)->next);
}


/* Removes a node from the list of its hash. */
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
    prefix_store(&first->holders, first->holders - 1);

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

        prefix_store(&index->is_short, 1);
    }

    i = list->oldest;

    if (i != 0) {
        holders_leave(index, i);
        lru_take(index, list, i);
    }

    return i;
}


/*
 * The node of a block at that replica, or 0.  The block after another in a
 * prompt was mostly recorded right after it, and is the next newer node:
 * `guess`.
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


/* A block that the replica does not have.  0: there is no memory for it. */
static uint32_t
record_new(llmgw_prefix_index_t *index, uint32_t replica, uint64_t block)
{
    uint32_t        i;
    prefix_list_t  *list;

    list = prefix_list(index, replica);
    i = node_get(index, list);

    if (i != 0) {
        prefix_store(&prefix_node(index, i)->hash, block);
        prefix_store(&prefix_node(index, i)->replica, (uint16_t) replica);
        holders_join(index, prefix_head(index, block), i);
        lru_put(index, list, i);
    }

    return i;
}


uint32_t
llmgw_prefix_record(llmgw_prefix_index_t *index, uint32_t replica,
    const uint64_t *blocks, uint32_t n)
{
    uint32_t        b, i, guess, had;
    prefix_list_t  *list;

    had = 0;
    guess = 0;
    list = prefix_list(index, replica);

    if (replica / 64 >= index->used_words) {
        prefix_store(&index->used_words, replica / 64 + 1);
    }

    for (b = 0; b < n; b++) {
        i = record_find(index, replica, blocks[b], guess);

        if (i != 0) {
            had += had == b;
            guess = prefix_node(index, i)->newer;
            lru_take(index, list, i);
            lru_put(index, list, i);

        } else {
            guess = 0;

            if (record_new(index, replica, blocks[b]) == 0) {
                break;
            }
        }
    }

    return had;
}


static void
node_free(llmgw_prefix_index_t *index, uint32_t i)
{
    prefix_store(&prefix_node(index, i)->chain, index->free_node);
    index->free_node = i;
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
        node_free(index, i);
    }
}


/*
 * Empties all buckets and sets, and marks all nodes as in no list and not free.
 */
static void
mend_clear(llmgw_prefix_index_t *index)
{
    uint32_t        i;
    uint32_t       *buckets;
    prefix_node_t  *node;

    buckets = (uint32_t *) ((char *) index + index->buckets);

    for (i = 0; i < (uint32_t) 1 << index->bits; i++) {
        if (buckets[i] != 0) {          /* otherwise the page is not touched */
            prefix_store(&buckets[i], 0);
        }
    }

    for (i = 1; i <= index->used_nodes; i++) {
        node = prefix_node(index, i);
        prefix_store(&node->replica, PREFIX_NOWHERE);
        prefix_store(&node->holders, 0);
    }

    index->free_node = 0;
    index->free_set = 0;
    index->used_sets = 0;
}


/* Reads only the lists, and changes no list but that replica's. */
void
llmgw_prefix_mend(llmgw_prefix_index_t *index, uint32_t replica)
{
    uint32_t        i, r;
    prefix_node_t  *node;

    *prefix_list(index, replica) = (prefix_list_t) { 0, 0, 0 };
    mend_clear(index);

    for (r = 0; r < index->nreplicas; r++) {
        for (i = prefix_list(index, r)->newest; i != 0; i = node->older) {
            node = prefix_node(index, i);
            prefix_store(&node->replica, (uint16_t) r);
            holders_join(index, prefix_head(index, node->hash), i);
        }
    }

    for (i = index->used_nodes; i > 0; i--) {
        if (prefix_node(index, i)->replica == PREFIX_NOWHERE) {
            node_free(index, i);
        }
    }
}


/*
 * The KV cache of one replica: blocks of tokens, with prefix caching.
 *
 * A block is free, or used by one or more requests.  The free ones are a queue:
 * a new block is taken from its head, and a request that ends puts its blocks
 * after its tail, the last one first.  A full block has a name, the hash of its
 * tokens and of all before them, and keeps it while it is free: a request whose
 * prompt begins with these tokens takes it out of the queue again.  So the
 * queue is the order of eviction, and the last blocks of a prompt are evicted
 * first.
 *
 * A name belongs to the block that got it last.  When a named block is reused,
 * its name is removed, even if another block has that name by then (as in
 * BLIS).
 *
 * Blocks that were never taken are the head of the queue, in order.  They are
 * kept as a number only, so a replica needs memory only for blocks that it has
 * used.
 */

#ifndef MODEL_KV_H
#define MODEL_KV_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/hashes.h"
#include "sim/model/request.h"


#define MODEL_KV_NONE  UINT32_MAX           /* no block */
#define MODEL_KV_USED  (UINT32_MAX - 1)

typedef struct {
    uint64_t  name;                         /* hash of its tokens and all
                                               before; 0: none */
    union {
        uint32_t  prev;                     /* if it is free: in the queue */
        uint32_t  users;                    /* used: by how many */
    };
    uint32_t  next;                         /* MODEL_KV_USED: it is used */
} model_block_t;

typedef struct {
    uint32_t         block_tokens;
    uint32_t         total;
    uint32_t         fresh;                 /* first one never taken */
    uint32_t         free;                  /* including fresh blocks */
    uint32_t         head, tail;            /* of the queue of free blocks that
                                               are not fresh */
    model_block_t   *blocks;
    uint32_t         capacity;
    model_hashes_t   names;                 /* from names to blocks */

    const uint64_t  *view;                  /* NULL: no frozen view */
    uint64_t         viewed;                /* the view of `changes` */
    model_hashes_t   changes;               /* names added or removed since the
                                               view: 1 if the view has them */

    uint64_t         hits;
    uint64_t         misses;
    int              is_broken;             /* memory ran out */
} model_kv_t;


void model_kv_init(model_kv_t *kv, uint32_t total, uint32_t block_tokens,
    const uint64_t *view);
void model_kv_done(model_kv_t *kv);

/* Empties the cache.  No request may hold a block. */
void model_kv_clear(model_kv_t *kv);

/*
 * How many blocks, from the first on, are cached: in the present cache by the
 * first function, in the frozen view by the second.
 */
uint32_t model_kv_cached(const model_kv_t *kv, const uint64_t *hashes,
    uint32_t n);
uint32_t model_kv_viewed(const model_kv_t *kv, const uint64_t *hashes,
    uint32_t n);

/*
 * Returns how many cached blocks a prompt begins with.  They are noted in the
 * request, which holds them only after model_kv_prefill().
 */
uint32_t model_kv_match(model_kv_t *kv, model_request_t *request);

/*
 * Takes blocks for the next `tokens` of the prompt, which follow ncached
 * matched blocks.  0, or -1: too few are free, and nothing has changed.
 */
int model_kv_prefill(model_kv_t *kv, model_request_t *request,
    uint32_t tokens, uint32_t ncached);

/* Likewise for one token of the answer. */
int model_kv_extend(model_kv_t *kv, model_request_t *request);

/*
 * How many more tokens the request can take before it needs a block or its last
 * block gets its name.
 */
uint32_t model_kv_room(const model_kv_t *kv, const model_request_t *request);

/*
 * Gives up all blocks of a request; those that no other request uses are free.
 */
void model_kv_release(model_kv_t *kv, model_request_t *request);

/* Frees the memory of a request's list of blocks, which must be empty. */
void model_kv_forget(model_request_t *request);

/*
 * A hash of everything that decides which prompts will be found and which
 * blocks will be taken: the free blocks in their order, by name and not by
 * number, and the block of each name.  Walks over all blocks that were ever
 * taken.
 */
uint64_t model_kv_state(const model_kv_t *kv);

/*
 * Checks the blocks for model_replica_check().  users[i] is the number of
 * requests that hold block i, or, unless are_all, a lower bound of it, for all
 * blocks below kv->fresh.  Returns NULL, or what is wrong.
 */
const char *model_kv_check(const model_kv_t *kv, const uint32_t *users,
    int are_all);

#endif /* MODEL_KV_H */

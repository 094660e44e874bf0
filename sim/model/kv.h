
/*
 * The KV cache of one replica: blocks of tokens, with prefix caching.
 *
 * A block is free, or used by one or more requests.  The free ones are a queue:
 * a new block is taken from its head, and a request that ends puts its blocks
 * behind its tail, the last one first.  A full block has a name, the hash of
 * its tokens and of all before them, and keeps it while it is free: a request
 * whose prompt begins with these tokens takes it out of the queue again.  So
 * the queue is the order of eviction, and late parts of prompts go first.
 *
 * A name belongs to the block that got it last.  When a named block is reused,
 * its name is removed, even if another block has that name by then (as in
 * BLIS).
 *
 * Blocks that were never taken are the head of the queue, in order.  They are
 * only a number, so a replica takes memory for what it ever used.
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
    uint64_t  name;                         /* 0: it has none */
    union {
        uint32_t  prev;                     /* of a free one */
        uint32_t  users;                    /* of a used one */
    };
    uint32_t  next;                         /* MODEL_KV_USED: not free */
} model_block_t;

typedef struct {
    uint32_t         block_tokens;
    uint32_t         total;
    uint32_t         fresh;                 /* from this one on: never taken */
    uint32_t         free;                  /* fresh ones too */
    uint32_t         head, tail;            /* of the queue behind the fresh */
    model_block_t   *blocks;
    uint32_t         capacity;
    model_hashes_t   names;                 /* to blocks */

    const uint64_t  *view;                  /* NULL: no frozen view */
    uint64_t         viewed;                /* the view that changes is about */
    model_hashes_t   changes;               /* names that came or went since:
                                               1 if the view has them */

    uint64_t         hits;
    uint64_t         misses;
    int              is_broken;             /* memory ran out */
} model_kv_t;


void model_kv_init(model_kv_t *kv, uint32_t total, uint32_t block_tokens,
    const uint64_t *view);
void model_kv_done(model_kv_t *kv);

/* Nothing is cached.  No request holds a block. */
void model_kv_clear(model_kv_t *kv);

/* How many blocks from the first are cached; now, and in the frozen view. */
uint32_t model_kv_cached(const model_kv_t *kv, const uint64_t *hashes,
    uint32_t n);
uint32_t model_kv_viewed(const model_kv_t *kv, const uint64_t *hashes,
    uint32_t n);

/*
 * The cached blocks that a prompt begins with.  They are noted in the request,
 * and are its own only after model_kv_prefill().
 */
uint32_t model_kv_match(model_kv_t *kv, model_request_t *request);

/*
 * Blocks for the next `tokens` of the prompt, behind ncached blocks that were
 * matched.  0, or -1: too few are free, and nothing has changed.
 */
int model_kv_prefill(model_kv_t *kv, model_request_t *request,
    uint32_t tokens, uint32_t ncached);

/* The same for one token of the answer. */
int model_kv_extend(model_kv_t *kv, model_request_t *request);

/*
 * Tokens that fit behind the request's last one before a block is needed or
 * gets its name.
 */
uint32_t model_kv_room(const model_kv_t *kv, const model_request_t *request);

/* All its blocks are free, unless others use them. */
void model_kv_release(model_kv_t *kv, model_request_t *request);

/* The memory for its list of blocks, which must be empty. */
void model_kv_forget(model_request_t *request);

/*
 * A hash of what decides which prompts it will find and which blocks it will
 * give: the free blocks in their order, by name and not by number, and who has
 * which name.  It walks over all blocks that were ever taken.
 */
uint64_t model_kv_state(const model_kv_t *kv);

/*
 * The walk of model_replica_check(): how many users each of the blocks below
 * kv->fresh has, or, if not all are known, at least has.  NULL: all is well.
 */
const char *model_kv_check(const model_kv_t *kv, const uint32_t *users,
    int are_all);

#endif /* MODEL_KV_H */

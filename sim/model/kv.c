
#include <stdlib.h>
#include <string.h>

#include "sim/model/kv.h"


#define LIST_SPARE  8       /* spare blocks in a list, for an answer */


void
model_kv_init(model_kv_t *kv, uint32_t total, uint32_t block_tokens,
    const uint64_t *view)
{
    memset(kv, 0, sizeof(model_kv_t));

    kv->total = total;
    kv->free = total;
    kv->block_tokens = block_tokens;
    kv->head = MODEL_KV_NONE;
    kv->tail = MODEL_KV_NONE;
    kv->view = view;
    kv->viewed = view != NULL ? *view : 0;
}


void
model_kv_done(model_kv_t *kv)
{
    model_hashes_done(&kv->names);
    model_hashes_done(&kv->changes);
    free(kv->blocks);
    memset(kv, 0, sizeof(model_kv_t));
}


void
model_kv_clear(model_kv_t *kv)
{
    model_kv_t  cleared;

    model_kv_init(&cleared, kv->total, kv->block_tokens, kv->view);
    cleared.hits = kv->hits;
    cleared.misses = kv->misses;
    model_kv_done(kv);
    *kv = cleared;
}


/* --- names */

/*
 * Keeps whether the frozen view has a name that is about to be added or
 * removed.
 */
static void
kv_note(model_kv_t *kv, uint64_t name)
{
    uint32_t  is_viewed;

    if (kv->view == NULL) {
        return;
    }

    if (kv->viewed != *kv->view) {
        model_hashes_clear(&kv->changes);
        kv->viewed = *kv->view;
    }

    if (model_hashes_get(&kv->changes, name) == MODEL_HASHES_NONE) {
        is_viewed = model_hashes_get(&kv->names, name) != MODEL_HASHES_NONE;

        if (model_hashes_put(&kv->changes, name, is_viewed) != 0) {
            kv->is_broken = 1;
        }
    }
}


static void
kv_name(model_kv_t *kv, const model_request_t *request, uint32_t i)
{
    model_block_t  *block;

    if (request->is_unchained || i >= request->nhashes
        || request->hashes[i] == 0)
    {
        return;
    }

    block = &kv->blocks[request->blocks[i]];
    block->name = request->hashes[i];

    kv_note(kv, block->name);

    if (model_hashes_put(&kv->names, block->name, request->blocks[i]) != 0) {
        kv->is_broken = 1;
    }
}


static void
kv_unname(model_kv_t *kv, model_block_t *block)
{
    if (block->name != 0) {
        kv_note(kv, block->name);
        model_hashes_remove(&kv->names, block->name);
        block->name = 0;
    }
}


uint32_t
model_kv_cached(const model_kv_t *kv, const uint64_t *hashes, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (model_hashes_get(&kv->names, hashes[i]) == MODEL_HASHES_NONE) {
            break;
        }
    }

    return i;
}


uint32_t
model_kv_viewed(const model_kv_t *kv, const uint64_t *hashes, uint32_t n)
{
    uint32_t  i, viewed;

    if (kv->view == NULL || kv->viewed != *kv->view) {
        return model_kv_cached(kv, hashes, n);      /* no changes since */
    }

    for (i = 0; i < n; i++) {
        viewed = model_hashes_get(&kv->changes, hashes[i]);

        if (viewed == MODEL_HASHES_NONE) {
            viewed = model_hashes_get(&kv->names, hashes[i])
                     != MODEL_HASHES_NONE;
        }

        if (!viewed) {
            break;
        }
    }

    return i;
}


/* --- the queue of free blocks */

static void
kv_push_free(model_kv_t *kv, uint32_t b)
{
    model_block_t  *block;

    block = &kv->blocks[b];
    block->prev = kv->tail;
    block->next = MODEL_KV_NONE;

    if (kv->tail != MODEL_KV_NONE) {
        kv->blocks[kv->tail].next = b;

    } else {
        kv->head = b;
    }

    kv->tail = b;
    kv->free++;
}


/* Removes a block from the queue, for its first user. */
static void
kv_take_free(model_kv_t *kv, uint32_t b)
{
    model_block_t  *block;

    block = &kv->blocks[b];

    if (block->prev != MODEL_KV_NONE) {
        kv->blocks[block->prev].next = block->next;

    } else {
        kv->head = block->next;
    }

    if (block->next != MODEL_KV_NONE) {
        kv->blocks[block->next].prev = block->prev;

    } else {
        kv->tail = block->prev;
    }

    block->next = MODEL_KV_USED;
    block->users = 1;
    kv->free--;
}


static int
kv_grow(model_kv_t *kv)
{
    uint32_t        capacity;
    model_block_t  *blocks;

    capacity = kv->capacity > 0 ? 2 * kv->capacity : 64;

    if (capacity > kv->total) {
        capacity = kv->total;
    }

    blocks = realloc(kv->blocks, capacity * sizeof(model_block_t));

    if (blocks == NULL) {
        return -1;
    }

    kv->blocks = blocks;
    kv->capacity = capacity;

    return 0;
}


/* Removes the queue's head; there must be a free block. */
static uint32_t
kv_pop(model_kv_t *kv)
{
    uint32_t  b;

    if (kv->fresh == kv->total) {
        b = kv->head;
        kv_take_free(kv, b);
        kv_unname(kv, &kv->blocks[b]);

        return b;
    }

    if (kv->fresh == kv->capacity && kv_grow(kv) != 0) {
        return MODEL_KV_NONE;
    }

    b = kv->fresh++;
    kv->blocks[b].name = 0;
    kv->blocks[b].next = MODEL_KV_USED;
    kv->blocks[b].users = 1;
    kv->free--;

    return b;
}


/* --- requests */

static int
kv_list_grow(model_request_t *request, uint32_t n)
{
    uint32_t   capacity;
    uint32_t  *blocks;

    if (n <= request->blocks_capacity) {
        return 0;
    }

    capacity = 2 * request->blocks_capacity;

    if (capacity < n) {
        capacity = n;
    }

    blocks = realloc(request->blocks, capacity * sizeof(uint32_t));

    if (blocks == NULL) {
        return -1;
    }

    request->blocks = blocks;
    request->blocks_capacity = capacity;

    return 0;
}


uint32_t
model_kv_match(model_kv_t *kv, model_request_t *request)
{
    uint32_t  i, n, b;

    n = request->input_tokens / kv->block_tokens;

    if (kv_list_grow(request, n + LIST_SPARE) != 0) {
        kv->is_broken = 1;
        return 0;
    }

    if (n > request->nhashes) {
        n = request->nhashes;
    }

    for (i = 0; i < n; i++) {
        b = model_hashes_get(&kv->names, request->hashes[i]);

        if (b == MODEL_HASHES_NONE) {
            break;
        }

        request->blocks[i] = b;
    }

    return i;
}


static void
kv_claim(model_kv_t *kv, model_request_t *request, uint32_t ncached)
{
    uint32_t  i, b;

    for (i = 0; i < ncached; i++) {
        b = request->blocks[i];

        if (kv->blocks[b].next == MODEL_KV_USED) {
            kv->blocks[b].users++;

        } else {
            kv_take_free(kv, b);
        }
    }

    if (ncached > 0) {
        request->nblocks = ncached;
        request->tail = kv->block_tokens;
        kv->hits += ncached;
    }
}


static uint32_t
kv_spare(const model_kv_t *kv, const model_request_t *request)
{
    return request->nblocks > 0 ? kv->block_tokens - request->tail : 0;
}


/*
 * Adds tokens to a request's blocks; enough blocks must be free.  Blocks of a
 * prompt are named as they are taken.
 */
static void
kv_append(model_kv_t *kv, model_request_t *request, uint32_t tokens,
    int is_prompt)
{
    uint32_t  b, n;

    n = kv_spare(kv, request);

    if (n > 0 && tokens > 0) {
        n = n < tokens ? n : tokens;
        request->tail += n;
        tokens -= n;

        if (request->tail == kv->block_tokens) {
            kv_name(kv, request, request->nblocks - 1);
        }
    }

    for ( /* void */ ; tokens > 0; tokens -= n) {
        b = kv_pop(kv);

        if (b == MODEL_KV_NONE || kv_list_grow(request, request->nblocks + 1)
            != 0)
        {
            kv->is_broken = 1;
            return;
        }

        n = tokens < kv->block_tokens ? tokens : kv->block_tokens;
        request->blocks[request->nblocks++] = b;
        request->tail = n;
        kv->misses++;

        if (is_prompt && n == kv->block_tokens) {
            kv_name(kv, request, request->nblocks - 1);
        }
    }
}


int
model_kv_prefill(model_kv_t *kv, model_request_t *request,
    uint32_t tokens, uint32_t ncached)
{
    uint32_t  i, need, spare;

    spare = kv_spare(kv, request);
    need = tokens > spare
           ? (tokens - spare - 1) / kv->block_tokens + 1 : 0;

    for (i = 0; i < ncached; i++) {
        need += kv->blocks[request->blocks[i]].next != MODEL_KV_USED;
    }

    if (need > kv->free) {
        return -1;
    }

    if (tokens > 0) {
        kv_claim(kv, request, ncached);
        kv_append(kv, request, tokens, 1);
    }

    return 0;
}


int
model_kv_extend(model_kv_t *kv, model_request_t *request)
{
    if (kv_spare(kv, request) == 0 && kv->free == 0) {
        return -1;
    }

    kv_append(kv, request, 1, 0);

    return 0;
}


uint32_t
model_kv_room(const model_kv_t *kv, const model_request_t *request)
{
    uint32_t  spare;

    spare = kv_spare(kv, request);

    return spare > 0 && !request->is_unchained
           && request->nblocks <= request->nhashes ? spare - 1 : spare;
}


void
model_kv_release(model_kv_t *kv, model_request_t *request)
{
    uint32_t  b;

    while (request->nblocks > 0) {
        b = request->blocks[--request->nblocks];

        if (--kv->blocks[b].users == 0) {
            kv_push_free(kv, b);
        }
    }

    request->tail = 0;
}


void
model_kv_forget(model_request_t *request)
{
    free(request->blocks);
    request->blocks = NULL;
    request->blocks_capacity = 0;
}


/* --- the state */

/*
 * Mixes in a block's name, and whether the name is still this block's or
 * another one's.
 */
static uint64_t
kv_state_name(const model_kv_t *kv, uint64_t state, uint32_t b)
{
    uint64_t  name;

    name = kv->blocks[b].name;
    state = model_hashes_mix(state, name);

    return name == 0 ? state
           : model_hashes_mix(state,
                              model_hashes_get(&kv->names, name) == b);
}


uint64_t
model_kv_state(const model_kv_t *kv)
{
    uint32_t  b;
    uint64_t  state;

    state = model_hashes_mix(0, kv->fresh);

    for (b = kv->head; b != MODEL_KV_NONE; b = kv->blocks[b].next) {
        state = kv_state_name(kv, state, b);
    }

    for (b = 0; b < kv->fresh; b++) {

        if (kv->blocks[b].next == MODEL_KV_USED) {
            state = model_hashes_mix(state, b);
            state = kv_state_name(kv, state, b);
        }
    }

    return state;
}


/* --- the check */

const char *
model_kv_check(const model_kv_t *kv, const uint32_t *users, int are_all)
{
    uint32_t  b, used, listed;

    listed = 0;

    for (b = kv->head; b != MODEL_KV_NONE; b = kv->blocks[b].next) {

        if (b >= kv->fresh || kv->blocks[b].next == MODEL_KV_USED
            || listed++ == kv->fresh)
        {
            return "the queue of free blocks is torn";
        }
    }

    used = 0;

    for (b = 0; b < kv->fresh; b++) {

        if (kv->blocks[b].next != MODEL_KV_USED) {
            if (users[b] != 0) {
                return "a block is free and in use";
            }

        } else if (are_all ? kv->blocks[b].users != users[b]
                           : kv->blocks[b].users < users[b])
        {
            return "a block has other users than it counts";

        } else {
            used++;
        }
    }

    if (used + kv->free != kv->total
        || listed + kv->total - kv->fresh != kv->free)
    {
        return "used and free blocks are not all blocks";
    }

    return NULL;
}

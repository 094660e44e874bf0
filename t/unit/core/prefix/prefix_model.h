
/*
 * A simple prefix index: for each replica an array of blocks that is searched,
 * the newest first.
 */

#ifndef PREFIX_MODEL_H
#define PREFIX_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/prefix/index.h"


#define MODEL_MAX  64           /* blocks of a replica */

typedef struct {
    uint32_t  n;
    uint64_t  blocks[MODEL_MAX];
} model_t;


static inline uint32_t
model_draw(uint64_t *seed, uint32_t n)
{
    uint64_t  x;

    x = *seed += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;

    return (uint32_t) ((x ^ x >> 31) % n);
}


static inline uint32_t
model_find(const model_t *model, uint64_t block)
{
    uint32_t  i;

    for (i = 0; i < model->n && model->blocks[i] != block; i++) {
        /* void */
    }

    return i;
}


static inline void
model_record(model_t *model, uint32_t limit, const uint64_t *blocks,
    uint32_t n)
{
    uint32_t  b, i;

    for (b = 0; b < n; b++) {
        i = model_find(model, blocks[b]);

        if (i == model->n) {
            model->n += model->n < limit;
            i = model->n - 1;
        }

        memmove(&model->blocks[1], &model->blocks[0], i * sizeof(uint64_t));
        model->blocks[0] = blocks[b];
    }
}


/* How many of the blocks the replica has, from the first on. */
static inline uint32_t
model_match(const model_t *model, const uint64_t *blocks, uint32_t n)
{
    uint32_t  b;

    for (b = 0; b < n && model_find(model, blocks[b]) < model->n; b++) {
        /* void */
    }

    return b;
}


/* A prompt: a common prefix of some group, then blocks of its own. */
static inline uint32_t
model_prompt(uint64_t *seed, uint64_t *blocks, uint32_t max, uint32_t groups,
    uint32_t alone)
{
    uint32_t  b, n, group, own, common;

    n = model_draw(seed, max + 1);
    group = model_draw(seed, groups);
    common = model_draw(seed, max + 1);
    own = model_draw(seed, alone);

    for (b = 0; b < n; b++) {
        blocks[b] = ((uint64_t) (b < common ? group : groups + own) + 1)
                    * 1000 + b;
    }

    return n;
}

#endif /* PREFIX_MODEL_H */


/* The blocks of a prompt.  blocks.h defines them. */

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/prefix/blocks.h"


void
llmgw_blocks_init(llmgw_blocks_t *blocks, uint64_t *hashes, uint32_t max,
    uint32_t bytes, uint64_t seed)
{
    blocks->hashes = hashes;
    blocks->n = 0;
    blocks->max = max;
    blocks->bytes = bytes;
    blocks->filled = 0;
    blocks->last = seed;
}


static void
blocks_put(llmgw_blocks_t *blocks, const void *block)
{
    blocks->last = XXH3_64bits_withSeed(block, blocks->bytes, blocks->last);
    blocks->hashes[blocks->n++] = blocks->last;
}


/* Fills up the block that is not whole.  Returns how many bytes it took. */
static size_t
blocks_fill(llmgw_blocks_t *blocks, const void *bytes, size_t len)
{
    size_t  n;

    n = blocks->bytes - blocks->filled;
    n = n < len ? n : len;

    memcpy(&blocks->block[blocks->filled], bytes, n);
    blocks->filled += (uint32_t) n;

    if (blocks->filled == blocks->bytes) {
        blocks->filled = 0;
        blocks_put(blocks, blocks->block);
    }

    return n;
}


void
llmgw_blocks_add(llmgw_blocks_t *blocks, const void *bytes, size_t len)
{
    size_t          n;
    const uint8_t  *p = bytes;

    while (len > 0 && !llmgw_blocks_are_full(blocks)) {

        if (blocks->filled != 0 || len < blocks->bytes) {
            n = blocks_fill(blocks, p, len);

        } else {
            blocks_put(blocks, p);
            n = blocks->bytes;
        }

        p += n;
        len -= n;
    }
}

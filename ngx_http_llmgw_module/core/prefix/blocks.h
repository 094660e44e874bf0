
/*
 * The blocks of a prompt, as the prefix index knows them: its bytes cut into
 * pieces of one length, and a 64-bit hash of each that includes the hash of
 * the block before it.  So equal hashes mean equal prefixes.
 *
 *     hash[0] = XXH3(block 0, seed)
 *     hash[i] = XXH3(block i, hash[i - 1])
 *
 * The seed stands for what comes before the prompt, and is never the prompt's:
 * prompts with different seeds have no block in common.  Bytes after the last
 * whole block have no hash yet; they get one once more bytes follow.
 *
 * The bytes come in pieces of any length, and nothing is kept of them but the
 * block that is not whole.
 */

#ifndef LLMGW_BLOCKS_H
#define LLMGW_BLOCKS_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_BLOCKS_MIN_BYTES  16      /* of a block */
#define LLMGW_BLOCKS_MAX_BYTES  4096

typedef struct {
    uint64_t  *hashes;          /* the caller's, for `max` of them */
    uint32_t   n;               /* whole blocks so far */
    uint32_t   max;             /* further blocks are dropped */
    uint32_t   bytes;           /* of a block */
    uint32_t   filled;          /* of the block that is not whole */
    uint64_t   last;            /* hash of the block before it, or the seed */
    uint8_t    block[LLMGW_BLOCKS_MAX_BYTES];
} llmgw_blocks_t;


/* bytes: LLMGW_BLOCKS_MIN_BYTES to LLMGW_BLOCKS_MAX_BYTES */
void llmgw_blocks_init(llmgw_blocks_t *blocks, uint64_t *hashes, uint32_t max,
    uint32_t bytes, uint64_t seed);

void llmgw_blocks_add(llmgw_blocks_t *blocks, const void *bytes, size_t len);


/* 1: further bytes change nothing. */
static inline int
llmgw_blocks_are_full(const llmgw_blocks_t *blocks)
{
    return blocks->n == blocks->max;
}

#endif /* LLMGW_BLOCKS_H */

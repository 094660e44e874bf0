
/* The blocks of a prompt: the same however its bytes come in. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/prefix/blocks.h"


#define TEXT_BYTES  1000
#define MAX         64


static uint8_t  text[TEXT_BYTES];


static int
setup(void **state)
{
    size_t  i;

    for (i = 0; i < TEXT_BYTES; i++) {
        text[i] = (uint8_t) (i * i >> 3);
    }

    return 0;
}


static uint32_t
whole(uint64_t *hashes, uint32_t max, uint32_t bytes, uint64_t seed,
    size_t len)
{
    llmgw_blocks_t  blocks;

    llmgw_blocks_init(&blocks, hashes, max, bytes, seed);
    llmgw_blocks_add(&blocks, text, len);

    return blocks.n;
}


static void
each_hash_includes_the_one_before(void **state)
{
    uint32_t  i;
    uint64_t  hashes[MAX], expected;

    assert_int_equal(whole(hashes, MAX, 64, 7, TEXT_BYTES), 15);

    expected = 7;

    for (i = 0; i < 15; i++) {
        expected = XXH3_64bits_withSeed(&text[i * 64], 64, expected);
        assert_int_equal(hashes[i], expected);
    }
}


static void
bytes_behind_the_last_whole_block_wait_for_more(void **state)
{
    uint64_t  hashes[MAX];

    assert_int_equal(whole(hashes, MAX, 64, 0, 0), 0);
    assert_int_equal(whole(hashes, MAX, 64, 0, 63), 0);
    assert_int_equal(whole(hashes, MAX, 64, 0, 64), 1);
    assert_int_equal(whole(hashes, MAX, 64, 0, 127), 1);
    assert_int_equal(whole(hashes, MAX, 64, 0, 128), 2);
}


static void
pieces_of_any_length_give_the_same_blocks(void **state)
{
    size_t          at, piece, n;
    uint32_t        bytes;
    uint64_t        expected[MAX], hashes[MAX];
    llmgw_blocks_t  blocks;

    for (bytes = LLMGW_BLOCKS_MIN_BYTES; bytes <= 200; bytes += 23) {
        n = whole(expected, MAX, bytes, 1, TEXT_BYTES);

        for (piece = 1; piece <= TEXT_BYTES; piece += 1 + piece / 3) {
            llmgw_blocks_init(&blocks, hashes, MAX, bytes, 1);

            for (at = 0; at + piece < TEXT_BYTES; at += piece) {
                llmgw_blocks_add(&blocks, &text[at], piece);
            }

            llmgw_blocks_add(&blocks, &text[at], TEXT_BYTES - at);
            assert_int_equal(blocks.n, n);
            assert_memory_equal(hashes, expected, n * sizeof(uint64_t));
        }
    }
}


static void
longer_prompt_has_the_blocks_of_its_beginning(void **state)
{
    uint64_t  a[MAX], b[MAX];

    assert_int_equal(whole(a, MAX, 16, 1, 500), 31);
    assert_int_equal(whole(b, MAX, 16, 1, TEXT_BYTES), 62);
    assert_memory_equal(a, b, 31 * sizeof(uint64_t));

    text[0] ^= 1;
    (void) whole(a, MAX, 16, 1, 500);
    text[0] ^= 1;
    assert_int_not_equal(a[0], b[0]);
    assert_int_not_equal(a[30], b[30]);
}


static void
other_seeds_have_no_block_in_common(void **state)
{
    uint32_t  i, k;
    uint64_t  a[MAX], b[MAX];

    (void) whole(a, MAX, 16, 1, TEXT_BYTES);
    (void) whole(b, MAX, 16, 2, TEXT_BYTES);

    for (i = 0; i < 62; i++) {
        for (k = 0; k < 62; k++) {
            assert_int_not_equal(a[i], b[k]);
        }
    }
}


static void
blocks_beyond_the_most_are_dropped(void **state)
{
    uint64_t        hashes[4] = { 0, 0, 0, 42 };
    llmgw_blocks_t  blocks;

    llmgw_blocks_init(&blocks, hashes, 3, 16, 0);
    llmgw_blocks_add(&blocks, text, 40);
    assert_false(llmgw_blocks_are_full(&blocks));
    llmgw_blocks_add(&blocks, &text[40], 8);
    assert_true(llmgw_blocks_are_full(&blocks));
    llmgw_blocks_add(&blocks, &text[48], 500);
    assert_int_equal(blocks.n, 3);
    assert_int_equal(hashes[3], 42);

    llmgw_blocks_init(&blocks, NULL, 0, 16, 0);
    llmgw_blocks_add(&blocks, text, 40);
    assert_int_equal(blocks.n, 0);
}


/* The longest block that there may be. */
static void
longest_block_is_filled_up(void **state)
{
    size_t          i;
    uint64_t        hashes[2];
    llmgw_blocks_t  blocks;

    llmgw_blocks_init(&blocks, hashes, 2, LLMGW_BLOCKS_MAX_BYTES, 0);

    for (i = 0; i < 2 * LLMGW_BLOCKS_MAX_BYTES; i++) {
        llmgw_blocks_add(&blocks, &text[i % TEXT_BYTES], 1);
    }

    assert_int_equal(blocks.n, 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_hash_includes_the_one_before),
        cmocka_unit_test(bytes_behind_the_last_whole_block_wait_for_more),
        cmocka_unit_test(pieces_of_any_length_give_the_same_blocks),
        cmocka_unit_test(longer_prompt_has_the_blocks_of_its_beginning),
        cmocka_unit_test(other_seeds_have_no_block_in_common),
        cmocka_unit_test(blocks_beyond_the_most_are_dropped),
        cmocka_unit_test(longest_block_is_filled_up)
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}

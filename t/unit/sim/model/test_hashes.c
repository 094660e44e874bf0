
/* The map of blocks' hashes, against an array. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/model/hashes.h"


#define KEYS   300
#define STEPS  200000


static void
puts_gets_and_removes_as_an_array_does(void **state)
{
    int             is_there;
    uint32_t        key, step, n, values[KEYS];
    uint64_t        seed;
    model_hashes_t  hashes = { 0 };

    seed = 7;
    n = 0;

    for (key = 0; key < KEYS; key++) {
        values[key] = MODEL_HASHES_NONE;
    }

    for (step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        key = (uint32_t) (seed >> 33) % KEYS;
        is_there = values[key] != MODEL_HASHES_NONE;

        if (seed >> 63) {
            assert_int_equal(model_hashes_put(&hashes, key << 20, step), 0);
            n += !is_there;
            values[key] = step;

        } else {
            assert_int_equal(model_hashes_remove(&hashes, key << 20),
                             is_there);
            n -= is_there;
            values[key] = MODEL_HASHES_NONE;
        }

        key = (uint32_t) (seed >> 21) % KEYS;
        assert_int_equal(model_hashes_get(&hashes, key << 20), values[key]);
        assert_int_equal(hashes.n, n);
    }

    for (key = 0; key < KEYS; key++) {
        assert_int_equal(model_hashes_get(&hashes, key << 20), values[key]);
    }

    model_hashes_clear(&hashes);
    assert_int_equal(hashes.n, 0);
    assert_int_equal(model_hashes_get(&hashes, 0), MODEL_HASHES_NONE);
    model_hashes_done(&hashes);
}


static void
grows_and_keeps_all(void **state)
{
    uint64_t        key;
    model_hashes_t  hashes = { 0 };

    for (key = 0; key < 100000; key++) {
        assert_int_equal(model_hashes_put(&hashes, key * key, (uint32_t) key),
                         0);
    }

    for (key = 0; key < 100000; key++) {
        assert_int_equal(model_hashes_get(&hashes, key * key), key);
    }

    assert_true(4 * (uint64_t) hashes.n <= 3 * (uint64_t) hashes.nplaces);
    model_hashes_done(&hashes);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(puts_gets_and_removes_as_an_array_does),
        cmocka_unit_test(grows_and_keeps_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Rows by their positions, against a plain array. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/rnd.h"
#include "replica/shard/flow/rows.h"

#define WIDTH  3


static void
value(uint32_t position, float *row)
{
    row[0] = position;
    row[1] = position * 2.0f;
    row[2] = -1.0f;
}


static void
add(rows_t *rows, uint32_t n)
{
    float     values[SHARD_ROWS_MAX * WIDTH];
    uint32_t  i;

    for (i = 0; i < n; i++) {
        value(rows->end + i, values + i * WIDTH);
    }

    assert_int_equal(rows_append(rows, values, n), 0);
}


static void
check(const rows_t *rows, uint32_t position, uint32_t n)
{
    float         scratch[SHARD_ROWS_MAX * WIDTH], row[WIDTH];
    uint32_t      i;
    const float  *got;

    got = rows_get(rows, position, n, scratch);

    for (i = 0; i < n; i++) {
        value(position + i, row);
        assert_memory_equal(got + i * WIDTH, row, sizeof(row));
    }
}


static void
what_is_appended_is_read_until_it_is_given_up(void **state)
{
    rnd_t     rnd = { 5 };
    rows_t    rows;
    uint32_t  i, n, at;
    uint64_t  bytes = 0;

    rows_init(&rows, WIDTH, &bytes);

    for (i = 0; i < 20000; i++) {
        n = 1 + rnd_below(&rnd, SHARD_ROWS_MAX);

        switch (rnd_below(&rnd, 8)) {
        case 0:
            at = rows.base + rnd_below(&rnd, rows.end - rows.base + 1);
            rows_trim(&rows, at);
            assert_int_equal(rows.base, at);
            break;
        case 1:
        case 2:
            add(&rows, n);
            break;
        case 3:
            if (rnd_below(&rnd, 100) == 0) {
                rows_done(&rows);
                assert_int_equal(bytes, 0);
            }
            break;
        default:
            if (rows.end - rows.base >= n) {
                at = rows.base + rnd_below(&rnd, rows.end - rows.base - n
                                                 + 1);
                check(&rows, at, n);
            }
        }
    }

    rows_done(&rows);
    assert_int_equal(bytes, 0);
}


/*
 * A stream whose history was given up needs the memory for the rows it sends.
 */
static void
what_is_given_up_is_free_at_once(void **state)
{
    rows_t    rows;
    uint32_t  i;
    uint64_t  bytes = 0;

    rows_init(&rows, WIDTH, &bytes);

    for (i = 0; i < 1000; i++) {
        add(&rows, 7);
        rows_trim(&rows, rows.end);
        assert_true(bytes <= SHARD_ROWS_MAX * WIDTH * sizeof(float));
    }

    rows_done(&rows);

    for (i = 0; i < 100; i++) {
        add(&rows, SHARD_ROWS_MAX);
    }

    assert_int_equal(bytes, 100 * SHARD_ROWS_MAX * WIDTH * sizeof(float));
    rows_trim(&rows, 99 * SHARD_ROWS_MAX + 1);
    assert_int_equal(bytes, SHARD_ROWS_MAX * WIDTH * sizeof(float));
    check(&rows, 99 * SHARD_ROWS_MAX + 1, SHARD_ROWS_MAX - 1);
    rows_done(&rows);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_is_appended_is_read_until_it_is_given_up),
        cmocka_unit_test(what_is_given_up_is_free_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

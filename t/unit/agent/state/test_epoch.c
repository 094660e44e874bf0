
/* Each start has a later epoch than all before, whatever the clock shows. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "state/epoch.h"


#define WALL_US  1763650000000000ULL
#define HOUR_US  3600000000ULL


static void
epochs_grow_over_a_clock_set_back(void **state)
{
    char      dir[] = "/tmp/llmgw-test-XXXXXX", path[64];
    char      error[EPOCH_ERROR_BYTES];
    FILE     *file;
    uint64_t  epoch, ahead_us;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/r1.epoch", dir);

    assert_int_equal(epoch_next(NULL, "r1", 5, &epoch,
                                &ahead_us, error), 0);
    assert_int_equal(epoch, 5);

    assert_int_equal(epoch_next(dir, "r1", WALL_US, &epoch,
                                &ahead_us, error), 0);
    assert_true(epoch == WALL_US);
    assert_int_equal(epoch_next(dir, "r1", WALL_US - HOUR_US, &epoch,
                                &ahead_us, error), 0);
    assert_true(epoch == WALL_US + 1);
    assert_int_equal(epoch_next(dir, "r1", WALL_US - HOUR_US, &epoch,
                                &ahead_us, error), 0);
    assert_true(epoch == WALL_US + 2);
    assert_int_equal(epoch_next(dir, "r1", WALL_US + HOUR_US, &epoch,
                                &ahead_us, error), 0);
    assert_true(epoch == WALL_US + HOUR_US);

    /* The file's epoch is further ahead than others would accept. */
    assert_true(ahead_us == 0);
    assert_int_equal(epoch_next(dir, "r1", WALL_US - 24 * HOUR_US, &epoch,
                                &ahead_us, error), EPOCH_KEPT);
    assert_true(ahead_us == 25 * HOUR_US + 1);
    assert_true(epoch == WALL_US - 24 * HOUR_US);

    /* The file has the new epoch from then on. */
    assert_int_equal(epoch_next(dir, "r1", WALL_US - 25 * HOUR_US, &epoch,
                                &ahead_us, error), EPOCH_KEPT);
    assert_true(ahead_us == 0);
    assert_true(epoch == WALL_US - 24 * HOUR_US + 1);

    /* The file's epoch is ahead by a day, which others accept, and then by
       more. */
    assert_int_equal(epoch_next(dir, "r1", WALL_US - 48 * HOUR_US + 2, &epoch,
                                &ahead_us, error), EPOCH_KEPT);
    assert_true(ahead_us == 0);
    assert_true(epoch == WALL_US - 24 * HOUR_US + 2);
    assert_int_equal(epoch_next(dir, "r1", WALL_US - 48 * HOUR_US + 2, &epoch,
                                &ahead_us, error), EPOCH_KEPT);
    assert_true(ahead_us != 0);
    assert_true(epoch == WALL_US - 48 * HOUR_US + 2);

    /* An invalid file counts as if there were none. */
    file = fopen(path, "w");
    fputs("garbage\n", file);
    fclose(file);
    assert_int_equal(epoch_next(dir, "r1", 7, &epoch,
                                &ahead_us, error), 0);
    assert_int_equal(epoch, 7);

    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(epoch_next(dir, "r1", 7, &epoch,
                                &ahead_us, error), EPOCH_REFUSED);
    assert_non_null(strstr(error, dir));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(epochs_grow_over_a_clock_set_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

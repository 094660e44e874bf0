
/* Which running request is evicted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fleet/policy/evict.h"


#define NREQUESTS  16


static evict_t *
evict_new(void)
{
    void  *memory;

    memory = calloc(1, evict_bytes(NREQUESTS));
    assert_non_null(memory);

    return evict_init(memory, NREQUESTS);
}


static void
lowest_priority_goes_then_the_newest(void **state)
{
    evict_t  *evict;

    evict = evict_new();
    evict_track(evict, 0, -1, 10);
    evict_track(evict, 1, -3, 10);
    evict_track(evict, 2, -3, 30);
    evict_track(evict, 3, -2, 99);
    evict_track(evict, 4, -3, 20);

    /* priorities from 0 up may not be shed */
    evict_track(evict, 5, 0, 99);
    evict_track(evict, 6, 4, 99);
    assert_int_equal(evict_length(evict), 5);

    assert_int_equal(evict_pop(evict), 2);
    assert_int_equal(evict_pop(evict), 4);
    assert_int_equal(evict_pop(evict), 1);
    assert_int_equal(evict_pop(evict), 3);
    assert_int_equal(evict_pop(evict), 0);
    assert_int_equal(evict_pop(evict), EVICT_NONE);
    free(evict);
}


static void
request_that_has_ended_is_no_victim(void **state)
{
    uint32_t  i;
    evict_t  *evict;

    evict = evict_new();

    for (i = 0; i < NREQUESTS; i++) {
        evict_track(evict, i, -1, i * 7 % NREQUESTS);
    }

    for (i = 0; i < NREQUESTS; i += 2) {
        evict_untrack(evict, i);
        evict_untrack(evict, i);
    }

    /* the odd requests by i x 7 mod 16, the highest first: 15, 13, 11, ... */
    assert_int_equal(evict_pop(evict), 9);
    assert_int_equal(evict_pop(evict), 11);
    assert_int_equal(evict_pop(evict), 13);
    assert_int_equal(evict_length(evict), 5);
    free(evict);
}


/*
 * Equal requests leave as Go's container/heap lets them: pushed as 0 1 2 3 4,
 * the last one takes the place of the first one that leaves, and sinks no
 * further.
 */
static void
equal_ones_leave_in_the_heaps_order(void **state)
{
    size_t    k;
    uint32_t  i;
    evict_t  *evict;

    static const uint32_t  want[] = { 0, 4, 3, 2, 1 };

    evict = evict_new();

    for (i = 0; i < 5; i++) {
        evict_track(evict, i, -1, 5);
    }

    for (k = 0; k < 5; k++) {
        assert_int_equal(evict_pop(evict), want[k]);
    }

    free(evict);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(lowest_priority_goes_then_the_newest),
        cmocka_unit_test(request_that_has_ended_is_no_victim),
        cmocka_unit_test(equal_ones_leave_in_the_heaps_order)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

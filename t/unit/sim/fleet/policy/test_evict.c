
/* Which running request is given up, and how full a fleet is. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fleet/policy/evict.h"
#include "core/flow/saturation.h"


#define NREQUESTS  16


static llmgw_evict_t *
evict_new(void)
{
    void  *memory;

    memory = calloc(1, llmgw_evict_bytes(NREQUESTS));
    assert_non_null(memory);

    return llmgw_evict_init(memory, NREQUESTS);
}


static void
lowest_priority_goes_then_the_newest(void **state)
{
    llmgw_evict_t  *evict;

    evict = evict_new();
    llmgw_evict_track(evict, 0, -1, 10);
    llmgw_evict_track(evict, 1, -3, 10);
    llmgw_evict_track(evict, 2, -3, 30);
    llmgw_evict_track(evict, 3, -2, 99);
    llmgw_evict_track(evict, 4, -3, 20);

    /* may not be shed */
    llmgw_evict_track(evict, 5, 0, 99);
    llmgw_evict_track(evict, 6, 4, 99);
    assert_int_equal(llmgw_evict_length(evict), 5);

    assert_int_equal(llmgw_evict_pop(evict), 2);
    assert_int_equal(llmgw_evict_pop(evict), 4);
    assert_int_equal(llmgw_evict_pop(evict), 1);
    assert_int_equal(llmgw_evict_pop(evict), 3);
    assert_int_equal(llmgw_evict_pop(evict), 0);
    assert_int_equal(llmgw_evict_pop(evict), LLMGW_EVICT_NONE);
    free(evict);
}


static void
request_that_has_ended_is_no_victim(void **state)
{
    uint32_t        i;
    llmgw_evict_t  *evict;

    evict = evict_new();

    for (i = 0; i < NREQUESTS; i++) {
        llmgw_evict_track(evict, i, -1, i * 7 % NREQUESTS);
    }

    for (i = 0; i < NREQUESTS; i += 2) {
        llmgw_evict_untrack(evict, i);
        llmgw_evict_untrack(evict, i);
    }

    /* odd ones by i x 7 mod 16, the highest first: 15, 13, 11, ... */
    assert_int_equal(llmgw_evict_pop(evict), 9);
    assert_int_equal(llmgw_evict_pop(evict), 11);
    assert_int_equal(llmgw_evict_pop(evict), 13);
    assert_int_equal(llmgw_evict_length(evict), 5);
    free(evict);
}


/*
 * Equal ones leave as Go's container/heap lets them: pushed as 0 1 2 3 4, the
 * last takes the place of the first that leaves, and sinks no further.
 */
static void
equal_ones_leave_in_the_heaps_order(void **state)
{
    size_t          k;
    uint32_t        i;
    llmgw_evict_t  *evict;

    static const uint32_t  want[] = { 0, 4, 3, 2, 1 };

    evict = evict_new();

    for (i = 0; i < 5; i++) {
        llmgw_evict_track(evict, i, -1, 5);
    }

    for (k = 0; k < 5; k++) {
        assert_int_equal(llmgw_evict_pop(evict), want[k]);
    }

    free(evict);
}


static void
fleet_is_as_full_as_its_mean(void **state)
{
    llmgw_candidate_t   candidates[2] = { { 0 } };
    llmgw_saturation_t  saturation = {
        .queue_depth = 5, .kv_utilization = 0.8, .max_concurrency = 10
    };

    candidates[0].queue_depth = 4;
    candidates[0].kv_utilization = 0.2;
    candidates[0].in_flight = 7;
    candidates[1].kv_utilization = 0.5;
    candidates[1].in_flight = 8;

    assert_true(llmgw_saturation(&saturation, candidates, 2) == 0);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 0);

    assert_int_equal(llmgw_saturation_kind("utilization", 11,
                                           &saturation.kind), 0);
    assert_true(llmgw_saturation(&saturation, candidates, 2)
                == (4.0 / 5.0 + 0.5 / 0.8) / 2);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 1);

    assert_int_equal(llmgw_saturation_kind("concurrency", 11,
                                           &saturation.kind), 0);
    assert_true(llmgw_saturation(&saturation, candidates, 2) == 15.0 / 20.0);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 1);

    assert_int_equal(llmgw_saturation_kind("always", 6, &saturation.kind),
                     -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(lowest_priority_goes_then_the_newest),
        cmocka_unit_test(request_that_has_ended_is_no_victim),
        cmocka_unit_test(equal_ones_leave_in_the_heaps_order),
        cmocka_unit_test(fleet_is_as_full_as_its_mean)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

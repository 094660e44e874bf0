
/* Records that come twice are found in any order: proto/usage/seen.h. */

#include "common/rnd.h"
#include "proto/usage/seen.h"
#include "t/unit/proto/usage/usage_scene.h"


#define NUMBERS  3000


static void
each_record_is_new_once(void **state)
{
    rnd_t                  rnd;
    uint32_t               i, window;
    uint64_t               n, seed;
    llmgw_seen_t          *seen;
    llmgw_usage_source_t   from[2] = { source, source };
    static uint8_t         was[2][NUMBERS + 1];

    from[1].birth[0] = 'f';

    for (seed = 1; seed <= 20; seed++) {
        rnd.state = seed;
        window = 1 + (uint32_t) rnd_below(&rnd, NUMBERS);
        memset(was, 0, sizeof(was));
        seen = llmgw_seen_create();

        for (i = 0; i < 5 * NUMBERS; i++) {
            n = 1 + (i / 5 + rnd_below(&rnd, window)) % NUMBERS;
            assert_int_equal(llmgw_seen_add(seen, &from[i % 2], n),
                             was[i % 2][n] ? LLMGW_SEEN_DOUBLE
                                           : LLMGW_SEEN_NEW);
            was[i % 2][n] = 1;
        }

        llmgw_seen_destroy(seen);
    }
}


static void
gateways_count_by_themselves(void **state)
{
    llmgw_seen_t          *seen = llmgw_seen_create();
    llmgw_usage_source_t   other = source;

    strcpy(other.gateway, "gw2");
    assert_int_equal(llmgw_seen_add(seen, &source, 1), LLMGW_SEEN_NEW);
    assert_int_equal(llmgw_seen_add(seen, &other, 1), LLMGW_SEEN_NEW);
    assert_int_equal(llmgw_seen_add(seen, &source, 1), LLMGW_SEEN_DOUBLE);
    llmgw_seen_destroy(seen);
}


/* Each number leaves a gap, which is the worst case. */
static void
gaps_are_bounded(void **state)
{
    uint64_t       n;
    llmgw_seen_t  *seen = llmgw_seen_create();

    for (n = 1; n <= LLMGW_SEEN_RANGES; n++) {
        assert_int_equal(llmgw_seen_add(seen, &source, 2 * n),
                         LLMGW_SEEN_NEW);
    }

    assert_int_equal(llmgw_seen_add(seen, &source, 2 * n), LLMGW_SEEN_FULL);
    assert_int_equal(llmgw_seen_add(seen, &source, 4), LLMGW_SEEN_DOUBLE);
    assert_int_equal(llmgw_seen_add(seen, &source, 2 * n - 3),
                     LLMGW_SEEN_NEW);                   /* closes a gap */
    assert_int_equal(llmgw_seen_add(seen, &source, 2 * n), LLMGW_SEEN_NEW);
    llmgw_seen_destroy(seen);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_record_is_new_once),
        cmocka_unit_test(gateways_count_by_themselves),
        cmocka_unit_test(gaps_are_bounded)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

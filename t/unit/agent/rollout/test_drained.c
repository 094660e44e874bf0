
/* When a replica counts as drained. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rollout/drained.h"


static void
drained_is_the_last_word_of_a_replica(void **state)
{
    llmgw_member_t       facts;
    llmgw_member_load_t  load;

    memset(&facts, 0, sizeof(facts));
    memset(&load, 0, sizeof(load));
    facts.service = LLMGW_SERVICE_READY;

    /* No figure was reported, which does not count as zero. */
    assert_false(drained_is(&facts, &load, 0));

    load.reported_ms = 5;
    assert_true(drained_is(&facts, &load, 0));
    assert_true(drained_is(&facts, &load, 5000));
    assert_false(drained_is(&facts, &load, 5001));

    load.active_requests = 1;
    assert_false(drained_is(&facts, &load, 0));
    facts.service = LLMGW_SERVICE_STALLED;
    assert_false(drained_is(&facts, &load, 0));

    facts.service = LLMGW_SERVICE_STOPPED;
    assert_true(drained_is(&facts, &load, UINT64_MAX));
    facts.service = LLMGW_SERVICE_DOWN;
    assert_true(drained_is(&facts, &load, UINT64_MAX));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(drained_is_the_last_word_of_a_replica),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

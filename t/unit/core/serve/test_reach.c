
/* A replica as one process of a gateway sees it: core/serve/reach.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/serve/reach.h"


#define NOW_MS  1000000

#define ALIVE    LLMGW_LIVENESS_ALIVE
#define SUSPECT  LLMGW_LIVENESS_SUSPECT
#define DEAD     LLMGW_LIVENESS_DEAD
#define READY    LLMGW_SERVICE_READY


static void
gossip_and_back_off_make_a_state(void **state)
{
    size_t         i;
    llmgw_reach_t  reach;

    static const struct {
        llmgw_reach_facts_t  facts;
        llmgw_peer_state_t   said;
        llmgw_peer_state_t   backs_off;
    } cases[] = {
        { { ALIVE, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          LLMGW_PEER_ALIVE, LLMGW_PEER_SUSPECT },
        { { ALIVE, READY, LLMGW_STANDING_FREE, 1, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { SUSPECT, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          LLMGW_PEER_SUSPECT, LLMGW_PEER_SUSPECT },
        { { DEAD, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { DEAD, READY, LLMGW_STANDING_FREE, 0, 0, 1, 0 },
          LLMGW_PEER_SUSPECT, LLMGW_PEER_SUSPECT },
        { { LLMGW_LIVENESS_LEFT, READY, LLMGW_STANDING_FREE, 0, 0, 1, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { ALIVE, LLMGW_SERVICE_STARTING, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { ALIVE, LLMGW_SERVICE_STALLED, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },

        /* groups */
        { { ALIVE, READY, LLMGW_STANDING_LEADS, 0, 0, 0, 0 },
          LLMGW_PEER_ALIVE, LLMGW_PEER_SUSPECT },
        { { ALIVE, READY, LLMGW_STANDING_LEADS, 0, 1, 0, 0 },
          LLMGW_PEER_ALIVE, LLMGW_PEER_UNUSABLE },
        { { ALIVE, READY, LLMGW_STANDING_PAST, 0, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { ALIVE, READY, LLMGW_STANDING_OUT, 0, 0, 0, 0 },
          LLMGW_PEER_UNUSABLE, LLMGW_PEER_UNUSABLE },
        { { ALIVE, LLMGW_SERVICE_STARTING, LLMGW_STANDING_WARM, 0, 1, 0, 0 },
          LLMGW_PEER_STANDBY, LLMGW_PEER_STANDBY }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&reach, 0, sizeof(reach));
        assert_int_equal(llmgw_reach_by_gossip(&cases[i].facts), cases[i].said);
        assert_int_equal(llmgw_reach_state(&reach, &cases[i].facts, NOW_MS),
                         cases[i].said);

        (void) llmgw_reach_failed(&reach, NOW_MS);
        assert_int_equal(llmgw_reach_by_gossip(&cases[i].facts), cases[i].said);
        assert_int_equal(llmgw_reach_state(&reach, &cases[i].facts, NOW_MS),
                         cases[i].backs_off);
    }
}


static void
standby_is_the_last_choice_where_the_view_cannot_tell(void **state)
{
    llmgw_reach_t        reach = { 0 };
    llmgw_reach_facts_t  facts = { .standing = LLMGW_STANDING_WARM };

    facts.is_stale = 1;
    assert_int_equal(llmgw_reach_by_gossip(&facts), LLMGW_PEER_STANDBY);
    assert_int_equal(llmgw_reach_state(&reach, &facts, NOW_MS),
                     LLMGW_PEER_LAST);
    facts.is_stale = 0;
    facts.is_isolated = 1;
    assert_int_equal(llmgw_reach_state(&reach, &facts, NOW_MS),
                     LLMGW_PEER_LAST);
    (void) llmgw_reach_failed(&reach, NOW_MS);
    assert_int_equal(llmgw_reach_state(&reach, &facts, NOW_MS),
                     LLMGW_PEER_STANDBY);
}


static void
back_off_doubles_up_to_two_seconds(void **state)
{
    size_t               i;
    uint64_t             now_ms = NOW_MS;
    llmgw_reach_t        reach = { 0 };
    llmgw_reach_facts_t  facts = { .service = READY };

    static const uint32_t  waits[] = {
        50, 100, 200, 400, 800, 1600, 2000, 2000
    };

    for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_int_equal(llmgw_reach_failed(&reach, now_ms), waits[i]);
        assert_int_equal(llmgw_reach_wait_ms(&reach, now_ms), waits[i]);
        now_ms += waits[i] - 1;
        assert_int_equal(llmgw_reach_state(&reach, &facts, now_ms),
                         LLMGW_PEER_SUSPECT);
        now_ms++;
        assert_int_equal(llmgw_reach_wait_ms(&reach, now_ms), 0);
        assert_int_equal(llmgw_reach_state(&reach, &facts, now_ms),
                         LLMGW_PEER_ALIVE);
    }

    (void) llmgw_reach_failed(&reach, now_ms);
    llmgw_reach_renewed(&reach);
    assert_int_equal(llmgw_reach_wait_ms(&reach, now_ms), 0);
    assert_int_equal(llmgw_reach_failed(&reach, now_ms), waits[0]);
}


static void
refused_connection_is_no_failure_where_another_one_takes_over(void **state)
{
    llmgw_reach_facts_t  facts = { .standing = LLMGW_STANDING_FREE };

    facts.has_standby = 1;
    assert_false(llmgw_reach_is_absent(&facts));
    facts.standing = LLMGW_STANDING_LEADS;
    assert_true(llmgw_reach_is_absent(&facts));
    facts.has_standby = 0;
    assert_false(llmgw_reach_is_absent(&facts));
    facts.standing = LLMGW_STANDING_WARM;
    assert_true(llmgw_reach_is_absent(&facts));
}


/* Gossip suspected the replica at NOW_MS. */
static void
attempts_leave_for_what_gossip_says(void **state)
{
    size_t           i;
    llmgw_reach_t    reach = { 0 };
    llmgw_attempt_t  attempt = { 0 };

    static const struct {
        llmgw_reach_facts_t  facts;
        int                  heard_ms;          /* after NOW_MS */
        int                  has_begun;
        llmgw_cause_t        cause;
    } cases[] = {
        { { ALIVE, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 }, -1, 0,
          LLMGW_CAUSE_NONE },
        { { ALIVE, READY, LLMGW_STANDING_FREE, 1, 0, 0, 0 }, -1, 0,
          LLMGW_CAUSE_NONE },
        { { ALIVE, LLMGW_SERVICE_DOWN, LLMGW_STANDING_FREE, 0, 0, 0, 0 }, 1, 1,
          LLMGW_CAUSE_MEMBER_DOWN },
        { { ALIVE, LLMGW_SERVICE_STOPPED, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          -1, 0, LLMGW_CAUSE_NONE },
        { { ALIVE, READY, LLMGW_STANDING_PAST, 0, 0, 0, 0 }, 1, 1,
          LLMGW_CAUSE_MEMBER_SUPERSEDED },

        /* a machine that is silent: streams that it still serves stay */
        { { SUSPECT, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 }, -1, 0,
          LLMGW_CAUSE_NONE },
        { { DEAD, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 }, -1, 1,
          LLMGW_CAUSE_MEMBER_DEAD },
        { { DEAD, READY, LLMGW_STANDING_FREE, 0, 0, 0, 0 }, 0, 1,
          LLMGW_CAUSE_NONE },
        { { DEAD, READY, LLMGW_STANDING_FREE, 0, 0, 1, 0 }, -1, 1,
          LLMGW_CAUSE_NONE },

        /* an engine that hangs: attempts without a token leave */
        { { ALIVE, LLMGW_SERVICE_STALLED, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          -1, 0, LLMGW_CAUSE_MEMBER_STALLED },
        { { ALIVE, LLMGW_SERVICE_STALLED, LLMGW_STANDING_FREE, 0, 0, 0, 0 },
          -1, 1, LLMGW_CAUSE_NONE }
    };

    llmgw_reach_update(&reach, SUSPECT, NOW_MS);
    llmgw_reach_update(&reach, DEAD, NOW_MS + 3000);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        attempt.has_begun = (cases[i].has_begun != 0);
        attempt.heard_ms = (uint64_t) (NOW_MS + cases[i].heard_ms);
        assert_int_equal(llmgw_reach_leaves(&reach, &cases[i].facts, &attempt),
                         cases[i].cause);
    }

    llmgw_reach_update(&reach, ALIVE, NOW_MS + 4000);
    assert_int_equal(reach.suspect_ms, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(gossip_and_back_off_make_a_state),
        cmocka_unit_test(standby_is_the_last_choice_where_the_view_cannot_tell),
        cmocka_unit_test(back_off_doubles_up_to_two_seconds),
        cmocka_unit_test(
            refused_connection_is_no_failure_where_another_one_takes_over),
        cmocka_unit_test(attempts_leave_for_what_gossip_says)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

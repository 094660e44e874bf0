
/*
 * The active member of a standby group, and the members that could take over.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/members/member.h"


static llmgw_member_t
member(llmgw_group_state_t state, llmgw_service_t service,
    llmgw_liveness_t liveness, uint64_t epoch)
{
    llmgw_member_t  m;

    memset(&m, 0, sizeof(m));
    strcpy(m.group, "g");
    m.group_state = state;
    m.group_epoch = epoch;
    m.service = service;
    m.liveness = liveness;

    return m;
}


/* Checks what the record is in its group: "a" active, "s" a standby, "p" it
   has a process; and that it is nothing in another group. */
static void
assert_is(llmgw_group_state_t state, llmgw_service_t service,
    llmgw_liveness_t liveness, const char *what)
{
    llmgw_member_t  m;

    m = member(state, service, liveness, 1);
    assert_int_equal(llmgw_group_is_active(&m, "g"),
                     strchr(what, 'a') != NULL);
    assert_int_equal(llmgw_group_is_standby(&m, "g"),
                     strchr(what, 's') != NULL);
    assert_int_equal(llmgw_group_has_process(&m, "g"),
                     strchr(what, 'p') != NULL);

    assert_false(llmgw_group_is_active(&m, "h"));
    assert_false(llmgw_group_is_standby(&m, "h"));
    assert_false(llmgw_group_has_process(&m, "h"));
}


static void
state_counts_with_its_process_and_its_agent(void **state)
{
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY, LLMGW_LIVENESS_ALIVE,
              "ap");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_STALLED,
              LLMGW_LIVENESS_SUSPECT, "ap");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_STARTING,
              LLMGW_LIVENESS_ALIVE, "p");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_DOWN, LLMGW_LIVENESS_ALIVE,
              "");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_STOPPED, LLMGW_LIVENESS_ALIVE,
              "");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY, LLMGW_LIVENESS_DEAD,
              "");
    assert_is(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY, LLMGW_LIVENESS_LEFT,
              "");

    assert_is(LLMGW_GROUP_STANDBY, LLMGW_SERVICE_STARTING,
              LLMGW_LIVENESS_ALIVE, "sp");
    assert_is(LLMGW_GROUP_STANDBY, LLMGW_SERVICE_STARTING,
              LLMGW_LIVENESS_SUSPECT, "p");
    assert_is(LLMGW_GROUP_STANDBY, LLMGW_SERVICE_DOWN, LLMGW_LIVENESS_ALIVE,
              "");
    assert_is(LLMGW_GROUP_STANDBY, LLMGW_SERVICE_STALLED,
              LLMGW_LIVENESS_ALIVE, "p");

    assert_is(LLMGW_GROUP_WAKING, LLMGW_SERVICE_STARTING,
              LLMGW_LIVENESS_ALIVE, "p");
    assert_is(LLMGW_GROUP_NONE, LLMGW_SERVICE_READY, LLMGW_LIVENESS_ALIVE,
              "");
}


static void
no_group_has_no_members(void **state)
{
    llmgw_member_t  m;

    m = member(LLMGW_GROUP_NONE, LLMGW_SERVICE_READY, LLMGW_LIVENESS_ALIVE, 0);
    m.group[0] = '\0';
    assert_false(llmgw_group_has_process(&m, ""));
    assert_null(llmgw_group_active(&m, 1, ""));
    assert_null(llmgw_group_active(NULL, 0, "g"));
}


static void
greatest_epoch_is_the_active_one(void **state)
{
    llmgw_member_t  members[3];

    members[0] = member(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY,
                        LLMGW_LIVENESS_ALIVE, 7);
    members[1] = member(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY,
                        LLMGW_LIVENESS_ALIVE, 9);
    members[2] = member(LLMGW_GROUP_ACTIVE, LLMGW_SERVICE_READY,
                        LLMGW_LIVENESS_DEAD, 11);
    assert_ptr_equal(llmgw_group_active(members, 3, "g"), &members[1]);
    strcpy(members[1].group, "h");
    assert_ptr_equal(llmgw_group_active(members, 3, "g"), &members[0]);
    assert_ptr_equal(llmgw_group_active(members, 3, "h"), &members[1]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(state_counts_with_its_process_and_its_agent),
        cmocka_unit_test(no_group_has_no_members),
        cmocka_unit_test(greatest_epoch_is_the_active_one)
    };

    return cmocka_run_group_tests_name("members_standby", tests, NULL, NULL);
}


/* The order of updates, and what each changes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "swim/table/member.h"


static llmgw_member_t
at(uint64_t epoch, uint64_t incarnation, llmgw_liveness_t liveness)
{
    llmgw_member_t  facts;

    memset(&facts, 0, sizeof(facts));
    strcpy(facts.id, "r1");
    facts.epoch = epoch;
    facts.incarnation = incarnation;
    facts.liveness = liveness;

    return facts;
}


static member_update_t
update(uint64_t epoch, uint64_t incarnation, llmgw_liveness_t liveness)
{
    member_update_t  said;

    memset(&said, 0, sizeof(said));
    said.facts = at(epoch, incarnation, liveness);

    return said;
}


/* Each update is newer than all before it in the table, and older than all
   after it. */
static void
updates_are_ordered(void **state)
{
    size_t          i, j;
    llmgw_member_t  order[] = {
        at(1, 0, LLMGW_LIVENESS_ALIVE),
        at(1, 0, LLMGW_LIVENESS_SUSPECT),
        at(1, 0, LLMGW_LIVENESS_DEAD),
        at(1, 1, LLMGW_LIVENESS_ALIVE),
        at(1, 1, LLMGW_LIVENESS_SUSPECT),
        at(1, 7, LLMGW_LIVENESS_ALIVE),
        at(1, 7, LLMGW_LIVENESS_DEAD),
        at(1, 7, LLMGW_LIVENESS_LEFT),
        at(2, 0, LLMGW_LIVENESS_ALIVE),
        at(2, 0, LLMGW_LIVENESS_DEAD),
        at(UINT64_MAX, 0, LLMGW_LIVENESS_ALIVE)
    };

    for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        for (j = 0; j < sizeof(order) / sizeof(order[0]); j++) {
            assert_int_equal(member_is_newer(&order[i], &order[j]), j > i);
        }
    }
}


static void
LEFT_is_final_for_its_epoch_alone(void **state)
{
    llmgw_member_t  left, later, reborn;

    left = at(5, 3, LLMGW_LIVENESS_LEFT);
    later = at(5, 900, LLMGW_LIVENESS_ALIVE);
    reborn = at(6, 0, LLMGW_LIVENESS_ALIVE);

    assert_false(member_is_newer(&left, &later));
    assert_true(member_is_newer(&left, &reborn));
}


static void
incarnation_may_jump_by_2_to_the_20_and_no_further(void **state)
{
    llmgw_member_t  known, said;

    known = at(1, 10, LLMGW_LIVENESS_ALIVE);

    said = at(1, 10 + (1 << 20), LLMGW_LIVENESS_ALIVE);
    assert_true(member_is_plausible(&known, &said));
    said.incarnation++;
    assert_false(member_is_plausible(&known, &said));
    said.epoch = 2;
    assert_true(member_is_plausible(&known, &said));
    said = at(1, 0, LLMGW_LIVENESS_ALIVE);
    assert_true(member_is_plausible(&known, &said));
}


static void
suspicion_changes_liveness_and_no_fact(void **state)
{
    member_t         member;
    member_update_t  first, suspicion;

    first = update(1, 4, LLMGW_LIVENESS_ALIVE);
    first.facts.service = LLMGW_SERVICE_READY;
    member_init(&member, &first, 1000);

    suspicion = update(1, 4, LLMGW_LIVENESS_SUSPECT);
    suspicion.facts.service = LLMGW_SERVICE_DOWN;

    assert_int_equal(member_merge(&member, &suspicion, 0, 2000),
                     MEMBER_LIVENESS);
    assert_int_equal(member.facts.service, LLMGW_SERVICE_READY);
    assert_int_equal(member.since_us, 2000);
    assert_int_equal(member_merge(&member, &suspicion, 0, 3000), 0);
    assert_int_equal(member.since_us, 2000);
}


static void
service_changes_no_liveness_but_by_incarnation(void **state)
{
    member_t         member;
    member_update_t  first, down;

    first = update(1, 4, LLMGW_LIVENESS_SUSPECT);
    member_init(&member, &first, 1000);

    down = update(1, 5, LLMGW_LIVENESS_ALIVE);
    down.facts.service = LLMGW_SERVICE_DOWN;

    assert_int_equal(member_merge(&member, &down, 1, 2000),
                     MEMBER_FACTS|MEMBER_LIVENESS);
    assert_int_equal(member.facts.service, LLMGW_SERVICE_DOWN);
    assert_true(member_is_present(&member));
}


static void
load_has_an_order_of_its_own(void **state)
{
    member_t         member;
    member_update_t  said;

    said = update(1, 4, LLMGW_LIVENESS_ALIVE);
    said.load_seq = 8;
    member_init(&member, &said, 1000);
    assert_int_equal(member.load.reported_ms, 0);

    said.active_requests = 3;
    assert_int_equal(member_merge(&member, &said, 1, 5000000), 0);

    said.load_seq = 9;
    assert_int_equal(member_merge(&member, &said, 1, 5000000), MEMBER_LOAD);
    assert_int_equal(member.load.active_requests, 3);
    assert_int_equal(member.load.reported_ms, 5000);

    /* With an older incarnation a newer load is accepted, and an older load is
       not. */
    said.facts.incarnation = 2;
    said.active_requests = 4;
    said.load_seq = 10;
    assert_int_equal(member_merge(&member, &said, 0, 9000000), MEMBER_LOAD);
    assert_int_equal(member.load.active_requests, 4);
    assert_int_equal(member.load.reported_ms, 5000);    /* from another */
    assert_int_equal(member.facts.incarnation, 4);

    said.load_seq = 7;
    assert_int_equal(member_merge(&member, &said, 1, 9000000), 0);

    /* After a restart the load's sequence starts again. */
    said = update(2, 0, LLMGW_LIVENESS_ALIVE);
    said.load_seq = 1;
    said.active_requests = 1;
    assert_int_equal(member_merge(&member, &said, 1, 9000000),
                     MEMBER_FACTS|MEMBER_LOAD);
    assert_int_equal(member.load.active_requests, 1);
}


static void
age_counts_from_death_here_or_as_told(void **state)
{
    member_t         member;
    member_update_t  said;

    said = update(1, 0, LLMGW_LIVENESS_DEAD);
    said.age_s = 100;
    member_init(&member, &said, 500000000);
    assert_int_equal(member_age_s(&member, 500000000), 100);
    assert_int_equal(member_age_s(&member, 530000000), 130);

    /* An age beyond this machine's clock becomes the largest that it can
       express. */
    said.age_s = UINT32_MAX;
    member_init(&member, &said, 500000000);
    assert_int_equal(member_age_s(&member, 500000000), 500);

    said = update(1, 0, LLMGW_LIVENESS_ALIVE);
    member_init(&member, &said, 500000000);
    assert_int_equal(member_age_s(&member, 900000000), 0);

    said = update(1, 0, LLMGW_LIVENESS_DEAD);
    said.age_s = 7;
    member_merge(&member, &said, 0, 600000000);
    assert_int_equal(member_age_s(&member, 600000000), 7);
}


/* Ages are whole seconds: if each report of an age were taken, a member's age
   would never grow. */
static void
age_that_is_lacking_is_taken_once(void **state)
{
    member_t         member;
    member_update_t  said, other;

    said = update(1, 4, LLMGW_LIVENESS_DEAD);
    said.age_s = 300;
    member_init(&member, &said, 500000000);
    member.lacks_age = 1;

    other = update(1, 3, LLMGW_LIVENESS_DEAD);
    other.age_s = 50;
    assert_int_equal(member_merge(&member, &other, 0, 500000000), 0);
    assert_int_equal(member_age_s(&member, 500000000), 300);

    said.age_s = 40;
    assert_int_equal(member_merge(&member, &said, 0, 500000000), 0);
    assert_int_equal(member_age_s(&member, 500000000), 40);
    said.age_s = 20;
    assert_int_equal(member_merge(&member, &said, 0, 500000000), 0);
    assert_int_equal(member_age_s(&member, 500000000), 40);

    member.lacks_age = 1;
    said = update(1, 5, LLMGW_LIVENESS_ALIVE);
    member_merge(&member, &said, 0, 500000000);
    assert_false(member.lacks_age);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(updates_are_ordered),
        cmocka_unit_test(LEFT_is_final_for_its_epoch_alone),
        cmocka_unit_test(incarnation_may_jump_by_2_to_the_20_and_no_further),
        cmocka_unit_test(suspicion_changes_liveness_and_no_fact),
        cmocka_unit_test(service_changes_no_liveness_but_by_incarnation),
        cmocka_unit_test(load_has_an_order_of_its_own),
        cmocka_unit_test(age_counts_from_death_here_or_as_told),
        cmocka_unit_test(age_that_is_lacking_is_taken_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

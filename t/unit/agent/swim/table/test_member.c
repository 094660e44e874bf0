
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


/* Each line is newer than all before it, and none after it. */
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

    /* An older incarnation may bring a newer load, but no older one. */
    said.facts.incarnation = 2;
    said.active_requests = 4;
    said.load_seq = 10;
    assert_int_equal(member_merge(&member, &said, 0, 9000000), MEMBER_LOAD);
    assert_int_equal(member.load.active_requests, 4);
    assert_int_equal(member.load.reported_ms, 5000);    /* hearsay */
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

    /* Older than this machine's clock: the oldest it can express. */
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


/* An update with a group, or, where that is NULL, without `more`. */
static member_update_t
grouped(uint64_t epoch, uint64_t incarnation, const char *group)
{
    member_update_t  said;

    said = update(epoch, incarnation, LLMGW_LIVENESS_ALIVE);
    said.has_more = group != NULL;

    if (group != NULL) {
        strcpy(said.facts.resume_group, group);
    }

    return said;
}


static void
record_without_more_is_not_seen_until_it_is_completed(void **state)
{
    member_t         member;
    member_update_t  said;

    said = grouped(1, 1, "a");
    member_init(&member, &said, 0);
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* A later place, passed on by a member that does not know `more`. */
    said = grouped(1, 2, NULL);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_int_equal(member_has(&member), 0);
    assert_string_equal(member.facts.resume_group, "a");

    /* The same again is no update; another place's `more` is not accepted. */
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said = grouped(1, 1, "b");
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    assert_string_equal(member.facts.resume_group, "a");

    said = grouped(1, 2, "b");
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_string_equal(member.facts.resume_group, "b");
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* Once complete, neither a lack nor another value changes it. */
    said = grouped(1, 2, NULL);
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said = grouped(1, 2, "c");
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    assert_string_equal(member.facts.resume_group, "b");
    assert_int_equal(member_has(&member), member_seen(&member.facts));
}


static void
graver_word_completes_too(void **state)
{
    member_t         member;
    member_update_t  said;

    said = grouped(1, 1, "a");
    member_init(&member, &said, 0);
    said = grouped(1, 2, NULL);
    member_merge(&member, &said, 0, 1);

    said = grouped(1, 2, "b");
    said.facts.liveness = LLMGW_LIVENESS_SUSPECT;
    assert_int_equal(member_merge(&member, &said, 0, 1),
                     MEMBER_MORE|MEMBER_LIVENESS);
    assert_string_equal(member.facts.resume_group, "b");
}


static void
own_word_without_more_is_that_of_an_old_agent(void **state)
{
    member_t         member;
    member_update_t  said;

    said = grouped(1, 1, "a");
    member_init(&member, &said, 0);

    /* Restarted with an old binary, first heard of through others. */
    said = grouped(2, 0, NULL);
    member_merge(&member, &said, 0, 1);
    assert_int_equal(member_has(&member), 0);

    assert_string_equal(member.facts.resume_group, "a");
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_MORE);
    assert_string_equal(member.facts.resume_group, "");
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* The same, heard from itself first. */
    said = grouped(3, 0, "b");
    member_merge(&member, &said, 1, 1);
    said = grouped(4, 0, NULL);
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_FACTS);
    assert_int_equal(member_has(&member), member_seen(&member.facts));
    assert_string_equal(member.facts.resume_group, "");
}


/* An update with these models, each a letter. */
static member_update_t
serving(uint64_t incarnation, const char *models, size_t bytes)
{
    member_update_t  said;

    said = grouped(1, incarnation, "");
    said.models = models;
    said.models_bytes = bytes;
    said.facts.models = bytes ? llmgw_members_list_hash(models, bytes) : 0;
    said.facts.models_cut = bytes;

    return said;
}


static void
assert_serves(const member_t *member, const char *models, size_t bytes)
{
    assert_int_equal(member->models_bytes, bytes);
    assert_int_equal(member->facts.models_cut, bytes);
    assert_true(member->facts.models
                == (bytes ? llmgw_members_list_hash(models, bytes) : 0));

    if (bytes != 0) {
        assert_memory_equal(member->models, models, bytes);
    }
}


/* A list is copied, kept where it lacks, and replaced by a later word. */
static void
models_come_with_more_and_stay_without(void **state)
{
    char             said_by[4] = "a\0b";
    member_t         member;
    member_update_t  said;

    said = serving(1, said_by, 4);
    member_init(&member, &said, 0);
    memset(said_by, 'x', sizeof(said_by));
    assert_serves(&member, "a\0b", 4);

    said = grouped(1, 2, NULL);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_serves(&member, "a\0b", 4);
    assert_int_equal(member_has(&member), 0);
    said = serving(2, "c", 2);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_serves(&member, "c", 2);

    said = serving(3, "c", 2);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_serves(&member, "c", 2);
    said = serving(4, NULL, 0);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_serves(&member, NULL, 0);
    assert_null(member.models);

    said = serving(5, "d", 2);
    member_merge(&member, &said, 0, 1);
    assert_false(member_says_as_much(&member,
                                     &(member_update_t) { .has_more = 0 }));

    /* Started anew as an old agent, by its own word. */
    said = grouped(2, 0, NULL);
    member_merge(&member, &said, 1, 1);
    assert_serves(&member, NULL, 0);
    member_done(&member);
}


/* What an older agent passes on says nothing of the engine. */
static void
engine_load_is_as_old_as_the_load(void **state)
{
    member_t             member;
    member_update_t      said;
    llmgw_engine_load_t  none = { 0 };

    said = grouped(1, 1, "");
    said.load_seq = 1;
    said.engine = (llmgw_engine_load_t) { 7, 8, 9, LLMGW_ENGINE_ALL, 6, 7, 0 };
    member_init(&member, &said, 0);
    assert_int_equal(member.load.engine.waiting, 8);

    said = grouped(1, 1, NULL);
    said.load_seq = 2;
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_LOAD);
    assert_int_equal(member.load.engine.waiting, 8);

    said = grouped(1, 1, "");
    said.engine.waiting = 5;
    said.engine.told = LLMGW_ENGINE_WAITING;
    said.load_seq = 2;
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said.load_seq = 3;
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_LOAD);
    assert_int_equal(member.load.engine.waiting, 5);
    assert_int_equal(member.load.engine.told, LLMGW_ENGINE_WAITING);

    /* Its own short form. */
    assert_int_equal(member_merge_load(&member, 1, &none, 4, 1), MEMBER_LOAD);
    assert_int_equal(member.load.engine.told, 0);
    member_done(&member);
}


static void
copy_that_lacks_what_we_know_tells_less_than_ours(void **state)
{
    member_t         member;
    member_update_t  with, without;

    with = grouped(1, 1, "a");
    without = grouped(1, 1, NULL);
    member_init(&member, &with, 0);
    assert_true(member_says_as_much(&member, &with));
    assert_false(member_says_as_much(&member, &without));

    member.facts.resume_group[0] = '\0';
    assert_true(member_says_as_much(&member, &without));
}


static void
digest_and_order_do_not_look_at_more(void **state)
{
    member_t         one, other;
    member_update_t  with, without;

    with = grouped(1, 1, "a");
    without = grouped(1, 1, NULL);
    member_init(&one, &with, 0);
    member_init(&other, &without, 0);
    other.lacks_more = 1;

    assert_int_equal(member_digest(&one), member_digest(&other));
    assert_false(member_is_newer(&one.facts, &other.facts));
    assert_false(member_is_newer(&other.facts, &one.facts));
    assert_true(member_is_same(&one.facts, &other.facts));
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
        cmocka_unit_test(
            record_without_more_is_not_seen_until_it_is_completed),
        cmocka_unit_test(graver_word_completes_too),
        cmocka_unit_test(own_word_without_more_is_that_of_an_old_agent),
        cmocka_unit_test(models_come_with_more_and_stay_without),
        cmocka_unit_test(engine_load_is_as_old_as_the_load),
        cmocka_unit_test(copy_that_lacks_what_we_know_tells_less_than_ours),
        cmocka_unit_test(digest_and_order_do_not_look_at_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

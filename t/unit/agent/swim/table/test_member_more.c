
/*
 * What came with MemberMore (proto/gossip.proto): a record that is passed on
 * without it, or without a part of it, erases nothing.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "swim/table/member.h"


/* An update with this resume group; NULL: an update without `more`. */
static member_update_t
grouped(uint64_t epoch, uint64_t incarnation, const char *group)
{
    member_update_t  said;

    memset(&said, 0, sizeof(said));
    strcpy(said.facts.id, "r1");
    said.facts.epoch = epoch;
    said.facts.incarnation = incarnation;
    said.more = group != NULL ? MEMBER_MORE_ALL : MEMBER_MORE_NONE;

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

    /* An update later in the order, passed on by an agent that does not know
       `more`. */
    said = grouped(1, 2, NULL);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_int_equal(member_has(&member), 0);
    assert_string_equal(member.facts.resume_group, "a");

    /* The same update again changes nothing; `more` of another place in the
       order is not accepted. */
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said = grouped(1, 1, "b");
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    assert_string_equal(member.facts.resume_group, "a");

    said = grouped(1, 2, "b");
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_string_equal(member.facts.resume_group, "b");
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* Once a record is complete, neither a lack nor another value
       changes it. */
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

    /* A member restarted with an old binary; its record comes from others
       first. */
    said = grouped(2, 0, NULL);
    member_merge(&member, &said, 0, 1);
    assert_int_equal(member_has(&member), 0);

    assert_string_equal(member.facts.resume_group, "a");
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_MORE);
    assert_string_equal(member.facts.resume_group, "");
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* The same, but its record comes from the member itself first. */
    said = grouped(3, 0, "b");
    member_merge(&member, &said, 1, 1);
    said = grouped(4, 0, NULL);
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_FACTS);
    assert_int_equal(member_has(&member), member_seen(&member.facts));
    assert_string_equal(member.facts.resume_group, "");
}


/* As grouped(), with an epoch of the standby group "g"; 0: from an agent of
   the older edition. */
static member_update_t
standing_by(uint64_t incarnation, const char *resume_group, uint64_t epoch)
{
    member_update_t  said;

    said = grouped(1, incarnation, resume_group);
    said.more = epoch ? MEMBER_MORE_ALL : MEMBER_MORE_FIRST;

    if (epoch != 0) {
        strcpy(said.facts.group, "g");
        said.facts.group_state = LLMGW_GROUP_ACTIVE;
        said.facts.group_epoch = epoch;
        said.facts.group_lock = epoch + 1;
    }

    return said;
}


static void
assert_epoch(const member_t *member, const char *resume_group, uint64_t epoch)
{
    assert_string_equal(member->facts.resume_group, resume_group);
    assert_string_equal(member->facts.group, epoch ? "g" : "");
    assert_int_equal(member->facts.group_state,
                     epoch ? LLMGW_GROUP_ACTIVE : LLMGW_GROUP_NONE);
    assert_int_equal(member->facts.group_epoch, epoch);
    assert_int_equal(member->facts.group_lock, epoch ? epoch + 1 : 0);
}


/* An agent that knows `more` and no groups passes a record on. */
static void
older_edition_takes_no_group_away(void **state)
{
    member_t         member;
    member_update_t  said;

    said = standing_by(1, "a", 5);
    member_init(&member, &said, 0);
    assert_epoch(&member, "a", 5);

    said = standing_by(2, "b", 0);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_epoch(&member, "b", 5);
    assert_int_equal(member_has(&member), 0);

    /* A record from before `more` adds nothing, and the same
       edition neither. */
    said = grouped(1, 2, NULL);
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said = standing_by(2, "c", 0);
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    assert_epoch(&member, "b", 5);

    said = standing_by(2, "b", 6);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_epoch(&member, "b", 6);
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* First `more` is lacking, then only the group, then nothing. */
    said = grouped(1, 3, NULL);
    member_merge(&member, &said, 0, 1);
    said = standing_by(3, "d", 0);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_epoch(&member, "d", 6);
    assert_int_equal(member_has(&member), 0);
    said = standing_by(3, "d", 7);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_epoch(&member, "d", 7);
}


static void
own_word_of_an_older_edition_ends_the_group(void **state)
{
    member_t         member;
    member_update_t  said;

    said = standing_by(1, "a", 5);
    member_init(&member, &said, 0);

    /* The record comes from others, then from the member itself, whose agent
       is an older one. */
    said = standing_by(2, "a", 0);
    member_merge(&member, &said, 0, 1);
    assert_epoch(&member, "a", 5);
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_MORE);
    assert_epoch(&member, "a", 0);
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    said = standing_by(3, "a", 6);
    member_merge(&member, &said, 0, 1);
    said = standing_by(4, "a", 0);
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_FACTS);
    assert_epoch(&member, "a", 0);
}


/* A member keeps its group's epoch, dead or alive, until a later record has
   another. */
static void
dead_member_keeps_its_group(void **state)
{
    member_t         member;
    member_update_t  said;

    said = standing_by(1, "a", 5);
    member_init(&member, &said, 0);
    said.facts.liveness = LLMGW_LIVENESS_DEAD;
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_LIVENESS);
    assert_epoch(&member, "a", 5);

    said = standing_by(2, "a", 0);
    said.facts.liveness = LLMGW_LIVENESS_LEFT;
    assert_int_equal(member_merge(&member, &said, 0, 1),
                     MEMBER_LIVENESS|MEMBER_FACTS);
    assert_epoch(&member, "a", 5);
}


static void
copy_without_the_group_tells_less_than_ours(void **state)
{
    member_t         member;
    member_update_t  first, none;

    first = standing_by(1, "", 0);
    none = grouped(1, 1, NULL);
    member_init(&member, &(member_update_t) { .more = MEMBER_MORE_ALL }, 0);
    assert_true(member_says_as_much(&member, &none));
    strcpy(member.facts.group, "g");
    assert_false(member_says_as_much(&member, &first));
    assert_false(member_says_as_much(&member, &none));
    member.lacks_more = MEMBER_MORE_ALL - MEMBER_MORE_FIRST;
    assert_true(member_says_as_much(&member, &first));
}


/* An update with these models, whose names are one letter each. */
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


/* A list is copied, kept if an update lacks it, and replaced by a later one. */
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
    assert_false(member_says_as_much(&member, &(member_update_t) {
                                                  .more = MEMBER_MORE_NONE }));

    /* The member restarts as an old agent, and its own record
       lacks the list. */
    said = grouped(2, 0, NULL);
    member_merge(&member, &said, 1, 1);
    assert_serves(&member, NULL, 0);
    member_done(&member);
}


/* A load that an older agent passes on has no figures of the engine. */
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
    said.engine.reported = LLMGW_ENGINE_WAITING;
    said.load_seq = 2;
    assert_int_equal(member_merge(&member, &said, 0, 1), 0);
    said.load_seq = 3;
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_LOAD);
    assert_int_equal(member.load.engine.waiting, 5);
    assert_int_equal(member.load.engine.reported, LLMGW_ENGINE_WAITING);

    /* A short form, which the member itself sends. */
    assert_int_equal(member_merge_load(&member, 1, &none, 4, 1), MEMBER_LOAD);
    assert_int_equal(member.load.engine.reported, 0);
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


/* An update of a shard with these layers; 0: not of a shard. */
static member_update_t
computing(uint64_t incarnation, unsigned first, unsigned layers)
{
    member_update_t  said;

    said = grouped(1, incarnation, "");
    said.facts.role = LLMGW_ROLE_GATEWAY;
    said.facts.is_shard = layers != 0;
    said.facts.shard.first = (uint16_t) first;
    said.facts.shard.last = (uint16_t) first;
    said.facts.shard.layers = (uint16_t) layers;

    return said;
}


/* A shard's record has its facts in place of a resume group.  Older agents
   pass on the resume group alone: it is not taken for the shard's, nor the
   reverse. */
static void
shard_stays_one_where_an_older_agent_speaks_of_it(void **state)
{
    member_t         member;
    member_update_t  said;

    said = computing(1, 4, 8);
    member_init(&member, &said, 0);

    said = computing(2, 0, 0);
    said.more = MEMBER_MORE_GROUP;
    assert_false(member_says_as_much(&member, &said));
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_int_equal(member.facts.shard.first, 4);
    assert_int_equal(llmgw_member_role(&member.facts), LLMGW_ROLE_SHARD);
    assert_int_equal(member_has(&member), 0);

    said = computing(2, 5, 8);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_MORE);
    assert_int_equal(member.facts.shard.first, 5);
    assert_int_equal(member_has(&member), member_seen(&member.facts));

    /* By its own record the member is no shard any more, but a replica. */
    said = grouped(1, 3, "g");
    assert_int_equal(member_merge(&member, &said, 1, 1), MEMBER_FACTS);
    assert_int_equal(llmgw_member_role(&member.facts), LLMGW_ROLE_REPLICA);
    assert_string_equal(member.facts.resume_group, "g");
    said = computing(4, 6, 8);
    assert_int_equal(member_merge(&member, &said, 0, 1), MEMBER_FACTS);
    assert_int_equal(member.facts.shard.first, 6);
    assert_int_equal(member.facts.resume_group[0], 0);
}


static void
use_of_shards_is_known_until_the_member_says_otherwise(void **state)
{
    member_t         member;
    member_update_t  said;

    said = grouped(1, 1, "");
    said.traits.orchestrates = 1;
    member_init(&member, &said, 0);
    assert_int_equal(member.traits.orchestrates, 1);

    said = grouped(1, 2, "");
    said.more = MEMBER_MORE_GROUP;
    said.traits.can_restart = 1;
    assert_false(member_says_as_much(&member, &said));
    member_merge(&member, &said, 0, 1);
    assert_int_equal(member.traits.orchestrates, 1);
    assert_int_equal(member.traits.can_restart, 1);

    said = grouped(1, 3, "");
    member_merge(&member, &said, 0, 1);
    assert_int_equal(member.traits.orchestrates, 0);
    said.more = MEMBER_MORE_GROUP;
    assert_true(member_says_as_much(&member, &said));
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
    other.lacks_more = MEMBER_MORE_ALL;

    assert_int_equal(member_digest(&one), member_digest(&other));
    assert_false(member_is_newer(&one.facts, &other.facts));
    assert_false(member_is_newer(&other.facts, &one.facts));
    assert_true(member_is_same(&one.facts, &other.facts));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(record_without_more_is_not_seen_until_it_is_completed),
        cmocka_unit_test(graver_word_completes_too),
        cmocka_unit_test(own_word_without_more_is_that_of_an_old_agent),
        cmocka_unit_test(older_edition_takes_no_group_away),
        cmocka_unit_test(own_word_of_an_older_edition_ends_the_group),
        cmocka_unit_test(dead_member_keeps_its_group),
        cmocka_unit_test(copy_without_the_group_tells_less_than_ours),
        cmocka_unit_test(models_come_with_more_and_stay_without),
        cmocka_unit_test(engine_load_is_as_old_as_the_load),
        cmocka_unit_test(copy_that_lacks_what_we_know_tells_less_than_ours),
        cmocka_unit_test(shard_stays_one_where_an_older_agent_speaks_of_it),
        cmocka_unit_test(
            use_of_shards_is_known_until_the_member_says_otherwise),
        cmocka_unit_test(digest_and_order_do_not_look_at_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

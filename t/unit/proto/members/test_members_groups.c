
/*
 * Standby groups in the segment: nginx routes by them, and without a group's
 * name a member's other facts about it are ignored.
 */

#include "t/unit/proto/members/test_members_support.h"


#define CAPACITY  8


static llmgw_members_rc_t
publish_one(fixture_t *f, const llmgw_member_t *m)
{
    return publish_array(f->writer, m, NULL, 1, 0);
}


/* Publishes, and checks the record that is read; returns whether the
   generation moved, which it does by one at most. */
static int
moves(fixture_t *f, const llmgw_member_t *m)
{
    uint64_t               before;
    const llmgw_member_t  *read;

    before = f->view.generation;
    assert_int_equal(publish_one(f, m), LLMGW_MEMBERS_DONE);
    fixture_read(f);
    read = &f->view.members[0];
    assert_in_range(f->view.generation, before, before + 1);

    assert_string_equal(read->group, m->group);
    assert_int_equal(read->group_state, m->group_state);
    assert_int_equal(read->group_epoch, m->group_epoch);
    assert_int_equal(read->group_lock, m->group_lock);

    return f->view.generation != before;
}


static void
test_group_routes(void **state)
{
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    assert_int_equal(publish_one(f, &m), LLMGW_MEMBERS_DONE);
    fixture_read(f);

    strcpy(m.group, "0123456789012345678901234567890");
    m.group_state = LLMGW_GROUP_INIT;
    assert_int_equal(moves(f, &m), 1);
    m.group_state = LLMGW_GROUP_ACTIVE;
    assert_int_equal(moves(f, &m), 1);
    m.group_epoch = UINT64_MAX;
    assert_int_equal(moves(f, &m), 1);
    m.group_lock = 0x0123456789abcdefULL;
    assert_int_equal(moves(f, &m), 1);
    assert_int_equal(moves(f, &m), 0);

    /* A dead member's epoch still counts. */
    m.liveness = LLMGW_LIVENESS_DEAD;
    assert_int_equal(moves(f, &m), 1);
}


static void
test_group_of_no_name_says_nothing(void **state)
{
    size_t          i;
    fixture_t      *f = *state;
    llmgw_member_t  m, bad[6];

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    strcpy(m.group, "g");
    m.group_state = LLMGW_GROUP_STANDBY;

    for (i = 0; i < 6; i++) {
        bad[i] = m;
    }

    strcpy(bad[0].group, ".g");
    strcpy(bad[1].group, "a/b");
    bad[2].group_state = LLMGW_GROUP_ACTIVE + 1;
    bad[3].group[0] = '\0';
    bad[4].group[0] = '\0';
    bad[4].group_state = LLMGW_GROUP_NONE;
    bad[4].group_epoch = 1;
    bad[5].group_state = LLMGW_GROUP_NONE;

    for (i = 0; i < 6; i++) {
        assert_int_equal(publish_one(f, &bad[i]), LLMGW_MEMBERS_REFUSED);
    }

    assert_int_equal(publish_one(f, &m), LLMGW_MEMBERS_DONE);
}


static void
test_group_outlives_its_writer(void **state)
{
    fixture_t             *f = *state;
    llmgw_member_t         m;
    llmgw_members_view_t   view = { 0 };

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    strcpy(m.group, "g");
    m.group_state = LLMGW_GROUP_ACTIVE;
    m.group_epoch = 7;
    assert_int_equal(publish_one(f, &m), LLMGW_MEMBERS_DONE);

    fixture_rewrite(f, CAPACITY);
    assert_int_equal(fixture_judge(f, &view), LLMGW_MEMBERS_DONE);
    assert_int_equal(view.n, 1);
    assert_string_equal(view.members[0].group, "g");
    assert_int_equal(view.members[0].group_epoch, 7);
    llmgw_members_view_done(&view);
}


static void
test_only_the_active_one_is_routable(void **state)
{
    unsigned        i;
    llmgw_member_t  m;

    member_make(&m, 1, 1);
    m.role = LLMGW_ROLE_REPLICA;
    m.liveness = LLMGW_LIVENESS_ALIVE;
    m.service = LLMGW_SERVICE_READY;
    m.draining = 0;
    assert_true(llmgw_member_is_routable(&m));
    strcpy(m.group, "g");

    for (i = LLMGW_GROUP_NONE; i <= LLMGW_GROUP_ACTIVE; i++) {
        m.group_state = i;
        assert_int_equal(llmgw_member_is_routable(&m),
                         i == LLMGW_GROUP_ACTIVE);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_group_routes),
        fixture_test(test_group_of_no_name_says_nothing),
        fixture_test(test_group_outlives_its_writer),
        cmocka_unit_test(test_only_the_active_one_is_routable),
    };

    return cmocka_run_group_tests_name("members_groups", tests, NULL, NULL);
}

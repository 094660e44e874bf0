
/*
 * Standby groups in the segment: they route, they are there in layout 2 alone,
 * and a member's group says nothing without a name.
 */

#include "t/unit/proto/members/test_members_support.h"


#define CAPACITY  8


static llmgw_members_rc_t
publish_one(fixture_t *f, const llmgw_member_t *m)
{
    return publish_array(f->writer, m, NULL, 1, 0);
}


/* Whether the generation moved, by one, and the readers have the record. */
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

    if (f->layout == LLMGW_MEMBERS_LAYOUT_1) {
        assert_string_equal(read->group, "");
        assert_int_equal(read->group_state, LLMGW_GROUP_NONE);
        assert_int_equal(read->group_epoch, 0);
        assert_int_equal(read->group_lock, 0);

    } else {
        assert_string_equal(read->group, m->group);
        assert_int_equal(read->group_state, m->group_state);
        assert_int_equal(read->group_epoch, m->group_epoch);
        assert_int_equal(read->group_lock, m->group_lock);
    }

    return f->view.generation != before;
}


static void
test_group_routes_where_there_is_a_place_for_it(void **state)
{
    int             is_told;
    fixture_t      *f = *state;
    llmgw_member_t  m;

    is_told = f->layout == LLMGW_MEMBERS_LAYOUT_2;
    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    assert_int_equal(publish_one(f, &m), LLMGW_MEMBERS_DONE);
    fixture_read(f);

    strcpy(m.group, "0123456789012345678901234567890");
    m.group_state = LLMGW_GROUP_INIT;
    assert_int_equal(moves(f, &m), is_told);
    m.group_state = LLMGW_GROUP_ACTIVE;
    assert_int_equal(moves(f, &m), is_told);
    m.group_epoch = UINT64_MAX;
    assert_int_equal(moves(f, &m), is_told);
    m.group_lock = 0x0123456789abcdefULL;
    assert_int_equal(moves(f, &m), is_told);
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


/* A new writer, of this layout, takes over; what a new reader then finds. */
static void
take_over(fixture_t *f, unsigned layout, const char *group, uint64_t epoch)
{
    llmgw_members_view_t  view = { 0 };

    f->layout = layout;
    fixture_rewrite(f, CAPACITY);
    assert_int_equal(fixture_judge(f, &view), LLMGW_MEMBERS_DONE);
    assert_int_equal(view.n, 1);
    assert_string_equal(view.members[0].group, group);
    assert_int_equal(view.members[0].group_epoch, epoch);
    llmgw_members_view_done(&view);
}


/* Layout 1 has none, so neither has a segment that was made out of one. */
static void
test_group_outlives_its_writer(void **state)
{
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    strcpy(m.group, "g");
    m.group_state = LLMGW_GROUP_ACTIVE;
    m.group_epoch = 7;
    assert_int_equal(publish_one(f, &m), LLMGW_MEMBERS_DONE);

    take_over(f, LLMGW_MEMBERS_LAYOUT_2, "g", 7);
    take_over(f, LLMGW_MEMBERS_LAYOUT_1, "", 0);
    take_over(f, LLMGW_MEMBERS_LAYOUT_2, "", 0);
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


static void
test_names_of_groups_and_states(void **state)
{
    assert_true(llmgw_group_is_valid("-", 1));
    assert_true(llmgw_group_is_valid("_a.b-C9", 7));
    assert_true(llmgw_group_is_valid("0123456789012345678901234567890", 31));
    assert_false(llmgw_group_is_valid("", 0));
    assert_false(llmgw_group_is_valid(".lock", 5));
    assert_false(llmgw_group_is_valid("a b", 3));
    assert_false(llmgw_group_is_valid("a\0b", 3));
    assert_false(llmgw_group_is_valid("01234567890123456789012345678901", 32));

    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_NONE), "none");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_INIT), "init");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_STANDBY),
                        "standby");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_WAKING), "waking");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_ACTIVE), "active");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_ACTIVE + 1),
                        "unknown");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_group_routes_where_there_is_a_place_for_it),
        fixture_test_2(test_group_of_no_name_says_nothing),
        fixture_test_2(test_group_outlives_its_writer),
        cmocka_unit_test(test_only_the_active_one_is_routable),
        cmocka_unit_test(test_names_of_groups_and_states),
    };

    return cmocka_run_group_tests_name("members_groups", tests, NULL, NULL);
}

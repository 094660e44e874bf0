
/* The rules of writing and reading weights, one by one. */

#include "t/unit/weights/roles_scene.h"


#define WINDOW_MS  10000


/* Checks and removes the next event. */
static void
assert_told(int client, roles_event_t event, roles_role_t role)
{
    assert_true(s.ntold > 0);
    assert_int_equal(s.told[0].client, client);
    assert_int_equal(s.told[0].event, event);
    assert_int_equal(s.clients[client].role, role);
    memmove(&s.told[0], &s.told[1], --s.ntold * sizeof(s.told[0]));
}


static void
assert_silence(void)
{
    assert_int_equal(s.ntold, 0);
}


/* Client 0 has written and committed. */
static void
scene_committed(void)
{
    scene_begin(0);
    assert_null(ask(0, ROLES_RW_OR_RO, 0));
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    assert_null(roles_put(&s.roles, &s.clients[0]));
    assert_null(roles_may_commit(&s.roles, &s.clients[0]));
    roles_commit(&s.roles);
    roles_hashed(&s.roles, 1, s.now_ms);
    assert_told(0, ROLES_DONE, ROLES_READER);
}


/* --- each rule */

static void
empty_slot_makes_one_writer(void **state)
{
    scene_begin(0);
    assert_null(ask(0, ROLES_RW_OR_RO, 100));
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    assert_null(ask(1, ROLES_RW_OR_RO, 100));
    assert_null(ask(2, ROLES_RW_OR_RO, 100));
    assert_null(ask(3, ROLES_RO, 100));
    assert_silence();
}


static void
commit_makes_readers(void **state)
{
    scene_begin(0);
    ask(0, ROLES_RW_OR_RO, 0);
    ask(1, ROLES_RW_OR_RO, 100);
    ask(2, ROLES_RO, 100);
    ask(3, ROLES_RW_OR_RO, 100);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    roles_put(&s.roles, &s.clients[0]);
    roles_commit(&s.roles);
    assert_silence();
    roles_hashed(&s.roles, 1, s.now_ms);

    assert_told(0, ROLES_DONE, ROLES_READER);
    assert_told(1, ROLES_GRANTED, ROLES_READER);
    assert_told(2, ROLES_GRANTED, ROLES_READER);
    assert_told(3, ROLES_GRANTED, ROLES_READER);
    assert_silence();
}


static void
writers_end_before_commit_makes_the_next_writer(void **state)
{
    scene_begin(0);
    ask(0, ROLES_RW_OR_RO, 0);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    ask(1, ROLES_RO, 100);
    ask(2, ROLES_RW_OR_RO, 100);
    roles_gone(&s.roles, &s.clients[0], s.now_ms);
    assert_told(2, ROLES_GRANTED, ROLES_WRITER);
    assert_int_equal(s.nreclaims, 0);

    /* A writer that has put bytes aborts: the bytes are freed first. */
    roles_put(&s.roles, &s.clients[2]);
    ask(3, ROLES_RW_OR_RO, 100);
    assert_null(roles_abort(&s.roles, &s.clients[2], s.now_ms));
    assert_int_equal(s.nreclaims, 1);
    assert_silence();
    roles_reclaimed(&s.roles, s.now_ms);
    assert_told(3, ROLES_GRANTED, ROLES_WRITER);
    assert_silence();
}


static void
writers_end_while_hashing_loses_nothing(void **state)
{
    scene_begin(0);
    ask(0, ROLES_RW_OR_RO, 0);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    ask(1, ROLES_RO, 100);
    roles_put(&s.roles, &s.clients[0]);
    roles_commit(&s.roles);
    roles_gone(&s.roles, &s.clients[0], s.now_ms);
    assert_silence();
    roles_hashed(&s.roles, 1, s.now_ms);
    assert_told(1, ROLES_GRANTED, ROLES_READER);
    assert_int_equal(s.nreclaims, 0);
}


static void
last_readers_end_keeps_what_is_committed(void **state)
{
    scene_committed();
    roles_gone(&s.roles, &s.clients[0], s.now_ms);
    assert_int_equal(s.roles.state, ROLES_COMMITTED);
    assert_null(ask(1, ROLES_RO, 0));
    assert_told(1, ROLES_GRANTED, ROLES_READER);
}


static void
every_wait_has_an_end(void **state)
{
    scene_begin(0);
    ask(0, ROLES_RW_OR_RO, 0);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    ask(1, ROLES_RO, 0);
    assert_told(1, ROLES_TIMED_OUT, ROLES_NONE);

    ask(1, ROLES_RO, 300);
    ask(2, ROLES_RW_OR_RO, 200);
    assert_int_equal(roles_next_ms(&s.roles), s.now_ms + 200);
    pass(199);
    assert_silence();
    pass(1);
    assert_told(2, ROLES_TIMED_OUT, ROLES_NONE);
    assert_int_equal(roles_next_ms(&s.roles), s.now_ms + 100);

    /* Granted at the moment at which its time is over: the grant counts. */
    s.now_ms += 100;
    roles_put(&s.roles, &s.clients[0]);
    roles_commit(&s.roles);
    roles_hashed(&s.roles, 1, s.now_ms);
    assert_told(0, ROLES_DONE, ROLES_READER);
    assert_told(1, ROLES_GRANTED, ROLES_READER);
    assert_true(roles_next_ms(&s.roles) == UINT64_MAX);
}


static void
nobody_writes_in_the_window(void **state)
{
    scene_begin(WINDOW_MS);
    ask(0, ROLES_RW_OR_RO, 60000);
    ask(1, ROLES_RW_OR_RO, 60000);
    assert_int_equal(roles_next_ms(&s.roles), s.now_ms + WINDOW_MS);
    pass(WINDOW_MS - 1);
    assert_silence();
    pass(1);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    assert_silence();
}


static void
adoption_holds_the_writers_back(void **state)
{
    scene_begin(WINDOW_MS);
    assert_null(roles_may_adopt(&s.roles, &s.clients[0]));
    roles_adopt(&s.roles, &s.clients[0]);
    ask(1, ROLES_RW_OR_RO, 60000);
    ask(2, ROLES_RO, 60000);
    pass(WINDOW_MS + 1);
    assert_silence();

    /* A second holder joins; when the first one ends, nothing changes. */
    assert_null(roles_may_adopt(&s.roles, &s.clients[3]));
    roles_adopt(&s.roles, &s.clients[3]);
    roles_gone(&s.roles, &s.clients[0], s.now_ms);
    roles_hashed(&s.roles, 1, s.now_ms);
    assert_told(3, ROLES_DONE, ROLES_READER);
    assert_told(1, ROLES_GRANTED, ROLES_READER);
    assert_told(2, ROLES_GRANTED, ROLES_READER);

    /* A client that comes later is a reader at once. */
    assert_null(roles_may_adopt(&s.roles, &s.clients[0]));
    roles_adopt(&s.roles, &s.clients[0]);
    assert_told(0, ROLES_DONE, ROLES_READER);
    assert_silence();
}


/* As long as the service examines a file, no other client may write. */
static void
last_adopters_end_frees_the_slot(void **state)
{
    scene_begin(0);
    roles_adopt(&s.roles, &s.clients[0]);
    roles_adopt(&s.roles, &s.clients[1]);
    ask(2, ROLES_RW_OR_RO, 60000);
    roles_gone(&s.roles, &s.clients[0], s.now_ms);
    assert_int_equal(s.roles.state, ROLES_ADOPTING);
    roles_gone(&s.roles, &s.clients[1], s.now_ms);
    assert_int_equal(s.roles.state, ROLES_RECLAIMING);
    assert_int_equal(s.nreclaims, 1);
    assert_string_equal(roles_may_adopt(&s.roles, &s.clients[0]),
                        "reclaiming");
    assert_silence();
    roles_reclaimed(&s.roles, s.now_ms);
    assert_told(2, ROLES_GRANTED, ROLES_WRITER);
    assert_silence();
}


static void
wrong_adoption_frees_the_slot(void **state)
{
    scene_begin(0);
    roles_adopt(&s.roles, &s.clients[0]);
    ask(1, ROLES_RW_OR_RO, 60000);
    roles_hashed(&s.roles, 0, s.now_ms);
    assert_told(0, ROLES_FAILED, ROLES_NONE);
    assert_string_equal(roles_may_adopt(&s.roles, &s.clients[2]),
                        "reclaiming");
    assert_silence();
    roles_reclaimed(&s.roles, s.now_ms);
    assert_told(1, ROLES_GRANTED, ROLES_WRITER);
    assert_string_equal(roles_may_adopt(&s.roles, &s.clients[2]), "writer");
}


static void
what_has_no_right_is_refused(void **state)
{
    scene_begin(0);
    assert_string_equal(roles_put(&s.roles, &s.clients[0]), "not_writer");
    assert_string_equal(roles_may_commit(&s.roles, &s.clients[0]),
                        "not_writer");
    assert_string_equal(roles_abort(&s.roles, &s.clients[0], s.now_ms),
                        "not_writer");
    ask(0, ROLES_RW_OR_RO, 0);
    assert_told(0, ROLES_GRANTED, ROLES_WRITER);
    assert_string_equal(ask(0, ROLES_RW_OR_RO, 0), "again");
    assert_string_equal(roles_may_adopt(&s.roles, &s.clients[0]), "again");
    assert_string_equal(roles_may_commit(&s.roles, &s.clients[0]), "no_put");
    assert_null(roles_put(&s.roles, &s.clients[0]));
    assert_string_equal(roles_put(&s.roles, &s.clients[0]), "second_put");
    roles_commit(&s.roles);
    assert_string_equal(roles_put(&s.roles, &s.clients[0]), "committing");
    assert_string_equal(roles_may_commit(&s.roles, &s.clients[0]),
                        "committing");
    assert_string_equal(roles_abort(&s.roles, &s.clients[0], s.now_ms),
                        "committing");
    assert_silence();
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(empty_slot_makes_one_writer),
        cmocka_unit_test(commit_makes_readers),
        cmocka_unit_test(writers_end_before_commit_makes_the_next_writer),
        cmocka_unit_test(writers_end_while_hashing_loses_nothing),
        cmocka_unit_test(last_readers_end_keeps_what_is_committed),
        cmocka_unit_test(every_wait_has_an_end),
        cmocka_unit_test(nobody_writes_in_the_window),
        cmocka_unit_test(adoption_holds_the_writers_back),
        cmocka_unit_test(last_adopters_end_frees_the_slot),
        cmocka_unit_test(wrong_adoption_frees_the_slot),
        cmocka_unit_test(what_has_no_right_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

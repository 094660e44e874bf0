
/* The pick among replicas with standbys, which are not asked or come last. */

#include "t/unit/core/policy/pick_scene.h"


#define STANDBY  LLMGW_PEER_STANDBY
#define LAST     LLMGW_PEER_LAST


static void
assert_waits(scene_t *s, llmgw_pick_rc_t rc)
{
    assert_int_equal(llmgw_pick_waits(&s->pool, &s->key), rc);
}


/* An active one, and its standby. */
static void
standby_init(scene_t *s, llmgw_peer_state_t state)
{
    scene_init(s, 2);
    s->peers[1].state = (uint8_t) state;
    s->pool.nstandbys = 1;
}


static void
standby_is_never_picked(void **state)
{
    int      i;
    scene_t  s;

    standby_init(&s, STANDBY);

    for (i = 0; i < 10000; i++) {
        scene_set_key(&s, (uint64_t) i * 0x9e3779b97f4a7c15ull);
        s.key.random = (uint64_t) i;
        assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked),
                         LLMGW_PICK_OK);
        assert_int_equal(s.picked.peer, 0);
    }

    s.peers[0].state = UNUSABLE;
    assert_refuses(&s, LLMGW_PICK_NONE);
    scene_done(&s);
}


static void
standby_is_waited_for_where_nobody_is_left(void **state)
{
    scene_t  s;

    standby_init(&s, STANDBY);
    s.peers[0].state = UNUSABLE;
    assert_waits(&s, LLMGW_PICK_FULL);

    s.peers[1].state = UNUSABLE;
    s.pool.nstandbys = 0;
    assert_waits(&s, LLMGW_PICK_NONE);
    scene_done(&s);
}


static void
standby_that_was_tried_is_waited_for_all_the_same(void **state)
{
    scene_t  s;

    standby_init(&s, LAST);
    s.peers[0].state = UNUSABLE;
    scene_exclude(&s, 1);
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);
    assert_waits(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


static void
others_need_not_wait_where_another_replica_is_free(void **state)
{
    scene_t  s;

    standby_init(&s, STANDBY);
    scene_exclude(&s, 0);
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);
    assert_waits(&s, LLMGW_PICK_SKIPPABLE);

    s.fulls[0].until_ms = s.key.now_ms + 1;
    assert_waits(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


static void
standby_of_another_resume_group_is_not_waited_for(void **state)
{
    scene_t  s;

    standby_init(&s, STANDBY);
    s.peers[0].state = UNUSABLE;
    s.peers[1].resume_group = 8;
    s.key.resumes = 1;
    s.key.resume_group = 7;
    assert_waits(&s, LLMGW_PICK_NONE);

    s.key.resume_group = 8;
    assert_waits(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


static void
standby_that_does_not_serve_the_model_is_not_waited_for(void **state)
{
    scene_t            s;
    llmgw_model_set_t  serving = { { 1u << 3 } };

    standby_init(&s, STANDBY);
    s.peers[0].state = UNUSABLE;
    s.peers[1].models = 2;
    s.key.serving = &serving;
    assert_waits(&s, LLMGW_PICK_NONE);

    s.peers[1].models = 3;
    assert_waits(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


static void
last_choice_comes_behind_suspects_and_before_open_circuits(void **state)
{
    scene_t  s;

    scene_init(&s, 3);
    s.peers[1].state = LAST;
    s.peers[2].state = SUSPECT;
    s.pool.nstandbys = 1;
    scene_open(&s, 0, s.key.now_ms);
    assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked), LLMGW_PICK_OK);
    assert_int_equal(s.picked.peer, 2);

    scene_exclude(&s, 2);
    assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked), LLMGW_PICK_OK);
    assert_int_equal(s.picked.peer, 1);

    scene_exclude(&s, 1);
    assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked), LLMGW_PICK_OPEN);
    assert_int_equal(s.picked.peer, 0);
    scene_done(&s);
}


static void
full_replica_is_waited_for_before_the_last_choice_is_tried(void **state)
{
    scene_t  s;

    standby_init(&s, LAST);
    s.fulls[0].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(standby_is_never_picked),
        cmocka_unit_test(standby_is_waited_for_where_nobody_is_left),
        cmocka_unit_test(standby_that_was_tried_is_waited_for_all_the_same),
        cmocka_unit_test(others_need_not_wait_where_another_replica_is_free),
        cmocka_unit_test(standby_of_another_resume_group_is_not_waited_for),
        cmocka_unit_test(
            standby_that_does_not_serve_the_model_is_not_waited_for),
        cmocka_unit_test(
            last_choice_comes_behind_suspects_and_before_open_circuits),
        cmocka_unit_test(
            full_replica_is_waited_for_before_the_last_choice_is_tried),
    };

    return cmocka_run_group_tests_name("pick_standby", tests, NULL, NULL);
}


/* Why a peer is not eligible: core/policy/peer.h. */

#include "t/unit/core/policy/pick_scene.h"


static int
setup(void **state)
{
    static scene_t  scene;

    scene_init(&scene, 2);
    *state = &scene;

    return 0;
}


static int
teardown(void **state)
{
    scene_done(*state);

    return 0;
}


static void
assert_lacks(scene_t *scene, llmgw_lacks_t lacks)
{
    assert_int_equal(llmgw_peer_lacks(&scene->pool, &scene->key, ALIVE, 0),
                     lacks);
    assert_int_equal(llmgw_peer_lacks(&scene->pool, &scene->key, ALIVE, 1),
                     LLMGW_LACKS_NOTHING);
}


static void
peer_of_another_state_is_not_looked_at(void **state)
{
    scene_t  *scene = *state;

    scene->peers[0].state = SUSPECT;
    assert_lacks(scene, LLMGW_LACKS_STATE);
    assert_int_equal(llmgw_peer_lacks(&scene->pool, &scene->key, SUSPECT, 0),
                     LLMGW_LACKS_NOTHING);
}


static void
unproven_peer_is_tried_by_one_attempt_where_the_key_asks_for_it(void **state)
{
    scene_t  *scene = *state;

    scene->peers[0].is_unproven = 1;
    scene->key.spares_unproven = 1;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);

    scene->counts[0].in_flight = 1;
    assert_lacks(scene, LLMGW_LACKS_CAPACITY);

    scene->key.spares_unproven = 0;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);

    scene->peers[0].is_unproven = 0;
    scene->key.spares_unproven = 1;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);
}


static void
excluded_peer_lacks_trust_whatever_else(void **state)
{
    scene_t  *scene = *state;

    scene->fulls[0].until_ms = scene->key.now_ms + 1;
    scene_open(scene, 0, scene->key.now_ms);
    scene_exclude(scene, 0);
    assert_lacks(scene, LLMGW_LACKS_TRUST);
}


static void
full_peer_lacks_room_by_count_or_by_its_word(void **state)
{
    scene_t  *scene = *state;

    scene->peers[0].max_capacity = 3;
    scene->counts[0].in_flight = 2;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);

    scene->counts[0].in_flight = 3;
    assert_lacks(scene, LLMGW_LACKS_CAPACITY);

    scene->peers[0].max_capacity = 0;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);

    scene->fulls[0].until_ms = scene->key.now_ms + 1;
    assert_lacks(scene, LLMGW_LACKS_CAPACITY);

    scene->fulls[0].until_ms = scene->key.now_ms;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);
}


static void
peer_with_room_and_an_open_circuit_lacks_that(void **state)
{
    scene_t  *scene = *state;

    scene_open(scene, 0, scene->key.now_ms - 499);
    assert_lacks(scene, LLMGW_LACKS_CIRCUIT);

    scene_open(scene, 0, scene->key.now_ms - 500);
    assert_lacks(scene, LLMGW_LACKS_NOTHING);       /* as a probe */

    scene_open(scene, 0, scene->key.now_ms);
    scene->pool.breaker_conf = NULL;
    assert_lacks(scene, LLMGW_LACKS_NOTHING);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            peer_of_another_state_is_not_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(
            excluded_peer_lacks_trust_whatever_else, setup, teardown),
        cmocka_unit_test_setup_teardown(
            unproven_peer_is_tried_by_one_attempt_where_the_key_asks_for_it,
            setup, teardown),
        cmocka_unit_test_setup_teardown(
            full_peer_lacks_room_by_count_or_by_its_word, setup, teardown),
        cmocka_unit_test_setup_teardown(
            peer_with_room_and_an_open_circuit_lacks_that, setup, teardown),
    };

    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}


/* The pick for a model that not every peer serves. */

#include "t/unit/core/policy/pick_scene.h"


#define HAS    200
#define LACKS  3


/* The first two peers do not serve the model, and are far less loaded. */
static void
models_init(scene_t *s, llmgw_model_set_t *set)
{
    size_t  i;

    scene_init(s, 5);
    *set = (llmgw_model_set_t) { { 0 } };
    set->words[HAS / 64] = 1ULL << HAS % 64;

    for (i = 0; i < 5; i++) {
        s->peers[s->order[i]].models = i < 2 ? LACKS : HAS;
        s->counts[s->order[i]].in_flight = i < 2 ? 0 : 5;
    }

    s->key.serving = set;
}


static void
first_that_serves_it_clockwise_is_picked(void **state)
{
    scene_t            s;
    llmgw_model_set_t  set;

    models_init(&s, &set);
    assert_picks(&s, s.order[2], LLMGW_ROUTE_SPILL);

    s.key.serving = NULL;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);
    scene_done(&s);
}


/* Peers with the model are full: other requests may use what is left. */
static void
request_for_a_model_of_full_peers_is_skippable(void **state)
{
    size_t             i;
    scene_t            s;
    llmgw_model_set_t  set;

    models_init(&s, &set);

    for (i = 2; i < 5; i++) {
        s.peers[s.order[i]].max_capacity = 5;
    }

    assert_refuses(&s, LLMGW_PICK_SKIPPABLE);
    scene_done(&s);
}


static void
model_that_no_usable_peer_serves_is_refused(void **state)
{
    size_t             i;
    scene_t            s;
    llmgw_model_set_t  set;

    models_init(&s, &set);

    for (i = 2; i < 5; i++) {
        s.peers[s.order[i]].state = LLMGW_PEER_UNUSABLE;
    }

    assert_refuses(&s, LLMGW_PICK_EXCLUDED);
    scene_done(&s);
}


/* A suspect peer that serves the model is better than none. */
static void
suspect_that_serves_it_is_the_last_resort(void **state)
{
    size_t             i;
    scene_t            s;
    llmgw_model_set_t  set;

    models_init(&s, &set);

    for (i = 2; i < 5; i++) {
        s.peers[s.order[i]].state = LLMGW_PEER_SUSPECT;
    }

    assert_picks(&s, s.order[2], LLMGW_ROUTE_SPILL);
    scene_done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(first_that_serves_it_clockwise_is_picked),
        cmocka_unit_test(request_for_a_model_of_full_peers_is_skippable),
        cmocka_unit_test(model_that_no_usable_peer_serves_is_refused),
        cmocka_unit_test(suspect_that_serves_it_is_the_last_resort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Scorers that the simulator adds. */

#define SCENE_SCORERS  fleet_scorers

#include "sim/fleet/policy/scorers.h"
#include "t/unit/core/policy/score_scene.h"


static void
load_aware_ends_at_a_queue_of_128(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 5);
    scene.candidates[1].queue_depth = 1;
    scene.candidates[2].queue_depth = 127;
    scene.candidates[3].queue_depth = 128;
    scene.candidates[4].queue_depth = 1000000;

    assert_scores(&scene, "load-aware", 0.5, 0.5 * (1 - 1.0 / 128),
                  0.5 * (1 - 127.0 / 128), 0, 0);
}


static void
vllm_dp_counts_a_waiting_request_as_four(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[0].queue_depth = 1;        /* load 4 */
    scene.candidates[1].batch_size = 6;         /* load 6 */
    scene.candidates[2].queue_depth = 2;        /* load 10 */
    scene.candidates[2].batch_size = 2;

    assert_scores(&scene, "vllm-dp", 1, 4.0 / 6.0, 0);
}


static void
others_are_those_of_core(void **state)
{
    size_t         i;
    score_scene_t  scene;

    for (i = 0; llmgw_scorers[i] != NULL; i++) {
        assert_ptr_equal(fleet_scorers[i], llmgw_scorers[i]);
    }

    score_scene_init(&scene, 3);
    scene.candidates[0].in_flight = 4;
    scene.candidates[1].queue_depth = 2;
    assert_scores(&scene, "queue-depth", 1, 0, 1);
    assert_scores(&scene, "lora-affinity", 1, 1, 1);

    fleet_effective_depth.score(&scene.scoring, scene.scores);
    assert_true(scene.scores[0] == 0 && scene.scores[1] == 0.5
                && scene.scores[2] == 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(load_aware_ends_at_a_queue_of_128),
        cmocka_unit_test(vllm_dp_counts_a_waiting_request_as_four),
        cmocka_unit_test(others_are_those_of_core)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Scorers: each formula, and its edges. */

#include "t/unit/core/policy/score_scene.h"


static void
queue_depth_is_spread_between_extremes(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 4);
    scene.candidates[0].queue_depth = 2;
    scene.candidates[1].queue_depth = 5;
    scene.candidates[2].queue_depth = 9;
    scene.candidates[3].queue_depth = 2;

    assert_scores(&scene, "queue-depth", 1, 4.0 / 7.0, 0, 1);

    /* the scorer reads no other load */
    scene.candidates[0].in_flight = 100;
    scene.candidates[0].batch_size = 100;
    assert_scores(&scene, "queue-depth", 1, 4.0 / 7.0, 0, 1);
}


static void
equal_candidates_score_one(void **state)
{
    size_t         k;
    uint32_t       i;
    score_scene_t  scene;

    static const char *const  names[] = {
        "queue-depth", "running-requests", "precise-prefix-cache",
        "effective-load"
    };

    score_scene_init(&scene, 3);

    for (i = 0; i < 3; i++) {
        scene.candidates[i].queue_depth = 7;
        scene.candidates[i].batch_size = 7;
        scene.candidates[i].cached = 7;
    }

    for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        assert_scores(&scene, names[k], 1, 1, 1);
    }

    score_scene_init(&scene, 3);

    for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        assert_scores(&scene, names[k], 1, 1, 1);
    }
}


static void
effective_load_reads_all_that_is_there(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 4);
    scene.candidates[0].queue_depth = 9;
    scene.candidates[1].batch_size = 6;
    scene.candidates[2].in_flight = 5;
    scene.candidates[3].queue_depth = 1;
    scene.candidates[3].batch_size = 1;
    scene.candidates[3].in_flight = 1;

    assert_scores(&scene, "effective-load", 0, 3.0 / 6.0, 4.0 / 6.0, 1);
    assert_scores(&scene, "effective_load", 0, 3.0 / 6.0, 4.0 / 6.0, 1);
}


static void
running_requests_reads_the_batch(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[0].batch_size = 10;
    scene.candidates[1].batch_size = 4;
    scene.candidates[2].batch_size = 1;

    assert_scores(&scene, "running-requests", 0, 6.0 / 9.0, 1);
}


static void
kv_utilization_is_what_is_left(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[1].kv_utilization = 0.3;
    scene.candidates[2].kv_utilization = 1;

    assert_scores(&scene, "kv-utilization", 1, 1 - 0.3, 0);
}


static void
load_balance_is_the_inverse_of_all_load(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[1].queue_depth = 1;
    scene.candidates[1].batch_size = 2;
    scene.candidates[1].in_flight = 3;
    scene.candidates[2].in_flight = 1;

    assert_scores(&scene, "load-balance", 1, 1.0 / 7.0, 0.5);
}


static void
active_requests_is_measured_from_the_highest(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    assert_scores(&scene, "active-requests", 1, 1, 1);

    scene.candidates[0].in_flight = 4;
    scene.candidates[1].in_flight = 1;
    assert_scores(&scene, "active-requests", 0, 0.75, 1);

    /* equal and busy: 0, unlike running-requests */
    scene.candidates[1].in_flight = 4;
    scene.candidates[2].in_flight = 4;
    assert_scores(&scene, "active-requests", 0, 0, 0);
}


static void
prefix_affinity_is_the_matched_share(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.scoring.nblocks = 3;
    scene.matched[0] = 3;
    scene.matched[1] = 1;
    assert_scores(&scene, "prefix-affinity", 1, 1.0 / 3.0, 0);

    /* `matched` goes by replica, scores go by position */
    scene.candidates[0].replica = 2;
    scene.candidates[2].replica = 0;
    assert_scores(&scene, "prefix-affinity", 0, 1.0 / 3.0, 1);

    /* a prompt shorter than a block */
    scene.scoring.nblocks = 0;
    assert_scores(&scene, "prefix-affinity", 0, 0, 0);
}


static void
precise_prefix_cache_is_spread_upwards(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[0].cached = 2;
    scene.candidates[1].cached = 12;
    scene.candidates[2].cached = 5;

    assert_scores(&scene, "precise-prefix-cache", 0, 1, 3.0 / 10.0);
}


static void
choose(score_scene_t *scene, uint32_t chosen)
{
    llmgw_cold_note(scene->scoring.cold, scene->candidates, scene->scoring.n,
                    chosen);
}


static void
cold_requests_go_round_by_last_use(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    assert_scores(&scene, "no-hit-lru", 1, 0.5, 0);

    choose(&scene, 0);
    assert_scores(&scene, "no-hit-lru", 0, 1, 0.5);

    choose(&scene, 1);
    assert_scores(&scene, "no-hit-lru", 0.5, 0, 1);

    choose(&scene, 2);
    assert_scores(&scene, "no-hit-lru", 1, 0.5, 0);

    choose(&scene, 1);
    assert_scores(&scene, "no-hit-lru", 1, 0, 0.5);
    choose(&scene, 1);
    assert_scores(&scene, "no-hit-lru", 1, 0, 0.5);
}


static void
warm_request_says_nothing_about_cold_ones(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    scene.candidates[2].cached = 1;
    assert_scores(&scene, "no-hit-lru", 0.5, 0.5, 0.5);
}


static void
cold_request_to_the_only_candidate(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 1);
    assert_scores(&scene, "no-hit-lru", 1);
    choose(&scene, 0);
    assert_scores(&scene, "no-hit-lru", 1);
}


static void
replica_that_was_away_counts_as_never_used(void **state)
{
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    choose(&scene, 0);
    choose(&scene, 1);
    choose(&scene, 2);

    /* replica 0 is no candidate in a choice among two: it is forgotten */
    scene.candidates[0].replica = 1;
    scene.candidates[1].replica = 2;
    scene.scoring.n = 2;
    assert_scores(&scene, "no-hit-lru", 1, 0);
    choose(&scene, 0);

    scene.candidates[0].replica = 1;
    scene.candidates[1].replica = 2;
    scene.candidates[2].replica = 0;
    scene.scoring.n = 3;
    assert_scores(&scene, "no-hit-lru", 0, 0.5, 1);

    /* with a single candidate the others are remembered */
    choose(&scene, 2);
    scene.scoring.n = 1;
    choose(&scene, 0);
    scene.scoring.n = 3;
    assert_scores(&scene, "no-hit-lru", 0, 1, 0.5);
}


static const llmgw_scorer_t *
find(const char *name)
{
    return llmgw_scorer_find(llmgw_scorers, name, strlen(name));
}


static void
scorers_are_sorted_and_found_with_either_dash(void **state)
{
    size_t  i;

    for (i = 1; llmgw_scorers[i] != NULL; i++) {
        assert_true(strcmp(llmgw_scorers[i - 1]->name,
                           llmgw_scorers[i]->name) < 0);
    }

    assert_ptr_equal(find("no_hit_lru"), &llmgw_scorer_no_hit_lru);
    assert_ptr_equal(find("no-hit-lru"), &llmgw_scorer_no_hit_lru);
    assert_null(find("no-hit-lr"));
    assert_null(find("no-hit-lru2"));
    assert_null(find("no hit lru"));
    assert_null(find(""));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(queue_depth_is_spread_between_extremes),
        cmocka_unit_test(equal_candidates_score_one),
        cmocka_unit_test(effective_load_reads_all_that_is_there),
        cmocka_unit_test(running_requests_reads_the_batch),
        cmocka_unit_test(kv_utilization_is_what_is_left),
        cmocka_unit_test(load_balance_is_the_inverse_of_all_load),
        cmocka_unit_test(active_requests_is_measured_from_the_highest),
        cmocka_unit_test(prefix_affinity_is_the_matched_share),
        cmocka_unit_test(precise_prefix_cache_is_spread_upwards),
        cmocka_unit_test(cold_requests_go_round_by_last_use),
        cmocka_unit_test(warm_request_says_nothing_about_cold_ones),
        cmocka_unit_test(cold_request_to_the_only_candidate),
        cmocka_unit_test(replica_that_was_away_counts_as_never_used),
        cmocka_unit_test(scorers_are_sorted_and_found_with_either_dash)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

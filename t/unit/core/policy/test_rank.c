
/* Policies that read the fleet: ranks, ties, weights, what is remembered. */

#include <math.h>
#include <stdio.h>

#include "core/policy/order.h"
#include "core/prefix/index.h"
#include "t/unit/core/policy/score_scene.h"


#define FLEETS  500


static uint64_t
mix(uint64_t *seed)
{
    uint64_t  x;

    x = *seed += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;

    return x ^ x >> 27;
}


static llmgw_ranker_t
ranker(const char *policy, const char *weights)
{
    char            error[128];
    llmgw_ranker_t  ranker = { 0 };

    assert_int_equal(llmgw_rank_policy(policy, strlen(policy), &ranker.policy),
                     0);

    if (weights != NULL) {
        assert_int_equal(llmgw_weighted_parse(&ranker.weighted, llmgw_scorers,
                                              weights, strlen(weights), error,
                                              sizeof(error)), 0);
    }

    return ranker;
}


/* The best candidate; of equal ones the first. */
static uint32_t
choice(const llmgw_ranker_t *ranker, score_scene_t *scene)
{
    uint32_t       heap[SCENE_MAX];
    llmgw_order_t  order;

    llmgw_rank(ranker, &scene->scoring, scene->scores, scene->more);
    llmgw_order_init(&order, scene->scores, scene->scoring.n, heap, NULL);

    return llmgw_order_next(&order);
}


static void
round_robin_takes_turns(void **state)
{
    score_scene_t   scene;
    llmgw_ranker_t  robin;

    score_scene_init(&scene, 3);
    robin = ranker("round_robin", NULL);

    for (robin.turn = 0; robin.turn < 7; robin.turn++) {
        assert_int_equal(choice(&robin, &scene), robin.turn % 3);
    }

    /* turn 7, counted from 0, among two candidates */
    scene.scoring.n = 2;
    assert_int_equal(choice(&robin, &scene), 1);
}


static void
least_loaded_counts_all_load_and_takes_the_first(void **state)
{
    score_scene_t   scene;
    llmgw_ranker_t  least;

    score_scene_init(&scene, 4);
    scene.candidates[0].in_flight = 3;
    scene.candidates[1].batch_size = 2;
    scene.candidates[2].queue_depth = 2;
    scene.candidates[3].queue_depth = 9;

    least = ranker("least-loaded", NULL);
    assert_int_equal(choice(&least, &scene), 1);
    assert_true(scene.scores[0] == -3 && scene.scores[3] == -9);
}


/*
 * 3:2:2 of matched 1/2 and 0, queue 4 and 0, KV 0.5 for both:
 * 3/7 x 0.5 + 2/7 x 0 + 2/7 x 0.5 against 0 + 2/7 + 2/7 x 0.5.
 */
static void
weighted_sums_scores_by_share(void **state)
{
    double          share3, share2;
    score_scene_t   scene;
    llmgw_ranker_t  weighted;

    score_scene_init(&scene, 2);
    scene.scoring.nblocks = 2;
    scene.matched[0] = 1;
    scene.candidates[0].queue_depth = 4;
    scene.candidates[0].kv_utilization = 0.5;
    scene.candidates[1].kv_utilization = 0.5;

    weighted = ranker("weighted", "blis");
    assert_int_equal(llmgw_rank_needs(&weighted), LLMGW_NEEDS_MATCHED);
    assert_int_equal(choice(&weighted, &scene), 1);

    share3 = 3.0 / 7.0;
    share2 = 2.0 / 7.0;
    assert_true(scene.scores[0] == 0.5 * share3 + 0 * share2 + 0.5 * share2);
    assert_true(scene.scores[1] == 0 * share3 + 1 * share2 + 0.5 * share2);

    assert_int_equal(llmgw_rank_needs(&(llmgw_ranker_t) {
                         .policy = LLMGW_RANK_LEAST_LOADED }), 0);
}


static void
fill_at_random(score_scene_t *scene, uint64_t *seed)
{
    uint32_t  i;

    score_scene_init(scene, 1 + (uint32_t) (mix(seed) % SCENE_MAX));
    scene->scoring.nblocks = (uint32_t) (mix(seed) % 4);

    for (i = 0; i < scene->scoring.n; i++) {
        scene->candidates[i].in_flight = (int32_t) (mix(seed) % 4);
        scene->candidates[i].queue_depth = (int32_t) (mix(seed) % 4);
        scene->candidates[i].batch_size = (int32_t) (mix(seed) % 4);
        scene->candidates[i].cached = (uint32_t) (mix(seed) % 2);
        scene->candidates[i].kv_utilization
            = (double) (mix(seed) % 1000) / 999;
        scene->matched[i] = scene->scoring.nblocks == 0
                            ? 0 : (uint32_t) mix(seed)
                                  % (scene->scoring.nblocks + 1);
    }
}


static void
metamorphic_relations_hold(void **state)
{
    uint32_t        i, k, f;
    uint64_t        seed;
    score_scene_t   scene;
    llmgw_ranker_t  weights, twice, balance, least;

    seed = 1;
    weights = ranker("weighted", "prefix-affinity:3,queue-depth:2,"
                                 "kv-utilization:2");
    twice = ranker("weighted", "prefix-affinity:6,queue-depth:4,"
                               "kv-utilization:4");
    balance = ranker("weighted", "load-balance:1");
    least = ranker("least-loaded", NULL);

    for (f = 0; f < FLEETS; f++) {
        fill_at_random(&scene, &seed);

        assert_int_equal(choice(&weights, &scene), choice(&twice, &scene));
        assert_int_equal(choice(&balance, &scene), choice(&least, &scene));

        for (k = 0; llmgw_scorers[k] != NULL; k++) {
            llmgw_scorers[k]->score(&scene.scoring, scene.scores);

            for (i = 0; i < scene.scoring.n; i++) {
                assert_true(scene.scores[i] >= 0 && scene.scores[i] <= 1);
            }
        }
    }
}


static void
order_draws_all_from_the_best(void **state)
{
    double          ranks[64];
    uint32_t        i, n, k, last, drawn, heap[64];
    uint64_t        seed, random;
    llmgw_order_t   order;
    const uint64_t  *lots;

    seed = 7;

    for (k = 0; k < FLEETS; k++) {
        n = (uint32_t) (mix(&seed) % 64);
        random = mix(&seed);
        lots = k % 2 ? &random : NULL;

        for (i = 0; i < n; i++) {
            ranks[i] = (double) (mix(&seed) % 5);
        }

        llmgw_order_init(&order, ranks, n, heap, lots);
        last = llmgw_order_next(&order);

        for (drawn = 1; drawn < n; drawn++) {
            i = llmgw_order_next(&order);
            assert_true(ranks[i] < ranks[last]
                        || (ranks[i] == ranks[last] && i != last
                            && (lots != NULL || i > last)));
            last = i;
        }

        assert_int_equal(llmgw_order_next(&order), UINT32_MAX);
    }
}


static void
what_is_remembered_moves_the_choice(void **state)
{
    void                  *memory;
    uint64_t               scratch[2];
    score_scene_t          scene;
    llmgw_ranker_t         weighted;
    llmgw_prefix_size_t    size = { .replicas = SCENE_MAX, .blocks = 10 };
    llmgw_prefix_index_t  *index;

    static const uint64_t  blocks[] = { 11, 12, 13 };

    score_scene_init(&scene, 3);
    weighted = ranker("weighted", "prefix-affinity:1,no-hit-lru:1");
    assert_int_equal(llmgw_rank_needs(&weighted), LLMGW_NEEDS_MATCHED
                     | LLMGW_NEEDS_CACHED | LLMGW_NEEDS_COLD);

    memory = calloc(1, llmgw_prefix_bytes(&size));
    assert_non_null(memory);
    index = llmgw_prefix_init(memory, &size);
    scene.scoring.blocks = blocks;
    scene.scoring.nblocks = 3;

    assert_int_equal(choice(&weighted, &scene), 0);
    llmgw_prefix_record(index, 0, blocks, 3);
    llmgw_cold_note(scene.scoring.cold, scene.candidates, 3, 0);

    /* the prefix outweighs that 0 had the last cold request */
    assert_true(llmgw_prefix_scratch(index) <= 2);
    llmgw_prefix_match(index, blocks, 3, scene.matched, scratch);
    assert_int_equal(choice(&weighted, &scene), 0);
    assert_true(scene.scores[0] == 0.5 && scene.scores[1] == 0.5);
    assert_true(scene.scores[2] == 0.25);

    free(memory);
}


static void
parse_fails(const char *text, const char *want)
{
    char              error[128];
    llmgw_weighted_t  weighted = { .n = 77 };

    assert_int_equal(llmgw_weighted_parse(&weighted, llmgw_scorers, text,
                                          strlen(text), error, sizeof(error)),
                     -1);
    assert_string_equal(error, want);
    assert_int_equal(weighted.n, 77);
}


static void
weights_that_are_none_are_refused(void **state)
{
    parse_fails("", "\"\" is not NAME:WEIGHT");
    parse_fails("queue-depth", "\"queue-depth\" is not NAME:WEIGHT");
    parse_fails("queue-depth:1,", "\"\" is not NAME:WEIGHT");
    parse_fails(",queue-depth:1", "\"\" is not NAME:WEIGHT");
    parse_fails("queue:1", "unknown scorer \"queue\"");
    parse_fails("queue-depth:1,queue_depth:1",
                "scorer \"queue-depth\" is named twice");
    parse_fails("queue-depth:0", "weight \"0\" of scorer \"queue-depth\" is"
                " not a finite number above 0");
    parse_fails("queue-depth:-1", "weight \"-1\" of scorer \"queue-depth\" is"
                " not a finite number above 0");
    parse_fails("queue-depth:nan", "weight \"nan\" of scorer \"queue-depth\""
                " is not a finite number above 0");
    parse_fails("queue-depth:inf", "weight \"inf\" of scorer \"queue-depth\""
                " is not a finite number above 0");
    parse_fails("queue-depth:1e999", "weight \"1e999\" of scorer"
                " \"queue-depth\" is not a finite number above 0");
    parse_fails("queue-depth:1:2", "weight \"1:2\" of scorer \"queue-depth\""
                " is not a finite number above 0");
    parse_fails("queue-depth:", "weight \"\" of scorer \"queue-depth\" is not"
                " a finite number above 0");
    parse_fails("queue-depth:1e308,load-balance:1e308",
                "the sum of the weights is not finite");
}


static void
weights_are_shares_of_their_sum(void **state)
{
    char              error[128];
    const char       *text = " queue_depth : 1.5 , load-balance:0.5";
    llmgw_weighted_t  weighted;

    assert_int_equal(llmgw_weighted_parse(&weighted, llmgw_scorers, text,
                                          strlen(text), error, sizeof(error)),
                     0);

    assert_int_equal(weighted.n, 2);
    assert_ptr_equal(weighted.weights[0].scorer, &llmgw_scorer_queue_depth);
    assert_true(weighted.weights[0].given == 1.5);
    assert_true(weighted.weights[0].share == 0.75);
    assert_true(weighted.weights[1].share == 0.25);

    assert_int_equal(llmgw_weighted_parse(&weighted, llmgw_scorers, "llm-d", 5,
                                          error, sizeof(error)), 0);
    assert_int_equal(weighted.n, 3);
    assert_int_equal(weighted.needs, LLMGW_NEEDS_CACHED);
    assert_true(weighted.weights[0].share == 0.5);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(round_robin_takes_turns),
        cmocka_unit_test(least_loaded_counts_all_load_and_takes_the_first),
        cmocka_unit_test(weighted_sums_scores_by_share),
        cmocka_unit_test(metamorphic_relations_hold),
        cmocka_unit_test(order_draws_all_from_the_best),
        cmocka_unit_test(what_is_remembered_moves_the_choice),
        cmocka_unit_test(weights_that_are_none_are_refused),
        cmocka_unit_test(weights_are_shares_of_their_sum)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

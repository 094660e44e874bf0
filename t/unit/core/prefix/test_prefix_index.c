
/* The prefix index, against one list per replica that is searched. */

#include "core/prefix/index_inner.h"
#include "t/unit/core/prefix/prefix_model.h"


#define CHANGES  4000

typedef struct {
    llmgw_prefix_size_t    size;
    llmgw_prefix_index_t  *index;
    model_t               *models;
    uint32_t              *matched;
    uint64_t              *scratch;
    uint64_t               seed;
} scene_t;


static void
scene_init(scene_t *scene, uint32_t replicas, uint32_t blocks)
{
    void  *memory;

    memset(scene, 0, sizeof(*scene));
    scene->size.replicas = replicas;
    scene->size.blocks = blocks;

    memory = calloc(1, llmgw_prefix_bytes(&scene->size));
    assert_non_null(memory);
    scene->index = llmgw_prefix_init(memory, &scene->size);
    assert_non_null(scene->index);

    scene->models = calloc(replicas, sizeof(model_t));
    scene->matched = calloc(replicas, sizeof(uint32_t));
    scene->scratch = calloc(llmgw_prefix_scratch(scene->index),
                            sizeof(uint64_t));
}


static void
scene_done(scene_t *scene)
{
    free(scene->index);
    free(scene->models);
    free(scene->matched);
    free(scene->scratch);
}


static void
match_is_the_models(scene_t *scene, const uint64_t *blocks, uint32_t n)
{
    uint32_t        r;
    const model_t  *model;

    llmgw_prefix_match(scene->index, blocks, n, scene->matched,
                       scene->scratch);

    for (r = 0; r < scene->size.replicas; r++) {
        model = &scene->models[r];
        assert_int_equal(scene->matched[r], model_match(model, blocks, n));
        assert_int_equal(prefix_list(scene->index, r)->n, model->n);
    }
}


/*
 * Records blocks one by one; returns how many, from the first on, were there.
 */
static uint32_t
had_at_first(model_t *model, uint32_t limit, const uint64_t *blocks,
    uint32_t n)
{
    uint32_t  had;

    for (had = 0; had < n && model_find(model, blocks[had]) < model->n;
         had++)
    {
        model_record(model, limit, &blocks[had], 1);
    }

    model_record(model, limit, &blocks[had], n - had);

    return had;
}


static void
run(uint32_t replicas, uint32_t limit, uint32_t groups, uint32_t alone)
{
    uint32_t  i, n, r;
    scene_t   scene;
    uint64_t  blocks[MODEL_MAX];

    scene_init(&scene, replicas, limit);
    scene.seed = replicas + limit + groups;

    for (i = 0; i < CHANGES; i++) {
        n = model_prompt(&scene.seed, blocks, MODEL_MAX / 2, groups,
                         alone);
        r = model_draw(&scene.seed, replicas);

        if (model_draw(&scene.seed, 100) == 0) {
            llmgw_prefix_forget(scene.index, r);
            scene.models[r].n = 0;
            continue;
        }

        assert_int_equal(llmgw_prefix_record(scene.index, r, blocks, n),
                         had_at_first(&scene.models[r], limit, blocks, n));

        if (i % 8 == 0) {
            n = model_prompt(&scene.seed, blocks, MODEL_MAX / 2, groups,
                             alone);
            match_is_the_models(&scene, blocks, n);
        }
    }

    scene_done(&scene);
}


static void
index_is_an_exact_lru_of_each_replica(void **state)
{
    run(1, 5, 2, 3);
    run(3, 20, 2, 4);
    run(10, 40, 1, 50);
    run(64, 33, 3, 5);
    run(65, 64, 2, 2);
}


/* Many replicas: lists become sets and lists again. */
static void
shared_blocks_are_known_of_all_that_have_them(void **state)
{
    run(200, 12, 1, 1);
    run(200, 7, 3, 40);
    run(300, 40, 2, 2);
}


static void
match_does_not_count_as_use(void **state)
{
    scene_t  scene;

    static const uint64_t  a[] = { 1 }, b[] = { 2 }, c[] = { 3 };

    scene_init(&scene, 2, 2);
    llmgw_prefix_record(scene.index, 1, a, 1);
    llmgw_prefix_record(scene.index, 1, b, 1);
    llmgw_prefix_match(scene.index, a, 1, scene.matched, scene.scratch);
    assert_int_equal(scene.matched[1], 1);
    assert_int_equal(scene.matched[0], 0);

    llmgw_prefix_record(scene.index, 1, c, 1);
    llmgw_prefix_match(scene.index, a, 1, scene.matched, scene.scratch);
    assert_int_equal(scene.matched[1], 0);
    llmgw_prefix_match(scene.index, b, 1, scene.matched, scene.scratch);
    assert_int_equal(scene.matched[1], 1);

    scene_done(&scene);
}


/* The first block was recorded first, so it is the first to go. */
static void
prompt_longer_than_the_list_matches_nothing(void **state)
{
    uint32_t  b;
    scene_t   scene;
    uint64_t  blocks[8];

    scene_init(&scene, 1, 7);

    for (b = 0; b < 8; b++) {
        blocks[b] = b + 100;
    }

    llmgw_prefix_record(scene.index, 0, blocks, 7);
    llmgw_prefix_match(scene.index, blocks, 7, scene.matched, scene.scratch);
    assert_int_equal(scene.matched[0], 7);

    llmgw_prefix_record(scene.index, 0, blocks, 8);
    llmgw_prefix_match(scene.index, blocks, 8, scene.matched, scene.scratch);
    assert_int_equal(scene.matched[0], 0);
    assert_int_equal(prefix_list(scene.index, 0)->n, 7);

    scene_done(&scene);
}


/*
 * With memory for fewer blocks than all may have, a replica gives up its own,
 * or gets none.
 */
static void
index_without_memory_left_stays_whole(void **state)
{
    void                  *memory;
    uint32_t               matched[3];
    uint64_t               scratch[2];
    llmgw_prefix_size_t    size = { .replicas = 3, .blocks = 10, .total = 4 };
    llmgw_prefix_index_t  *index;

    static const uint64_t  a[] = { 1, 2, 3 }, b[] = { 4, 5, 6 };

    memory = calloc(1, llmgw_prefix_bytes(&size));
    index = llmgw_prefix_init(memory, &size);

    llmgw_prefix_record(index, 0, a, 3);
    llmgw_prefix_record(index, 1, b, 3);
    llmgw_prefix_record(index, 2, a, 3);
    assert_int_equal(prefix_list(index, 0)->n, 3);
    assert_int_equal(prefix_list(index, 1)->n, 1);
    assert_int_equal(prefix_list(index, 2)->n, 0);

    llmgw_prefix_match(index, &b[2], 1, matched, scratch);
    assert_int_equal(matched[1], 1);

    llmgw_prefix_forget(index, 0);
    llmgw_prefix_record(index, 2, a, 3);
    llmgw_prefix_match(index, a, 3, matched, scratch);
    assert_int_equal(matched[0], 0);
    assert_int_equal(matched[2], 3);

    free(memory);
}


static void
sizes_beyond_the_limits_are_refused(void **state)
{
    llmgw_prefix_size_t  size = { .replicas = 65535, .blocks = 1 };

    assert_true(llmgw_prefix_bytes(&size) != 0);
    size.replicas++;
    assert_int_equal(llmgw_prefix_bytes(&size), 0);

    size = (llmgw_prefix_size_t) { .replicas = 1, .blocks = 0x7fffffff };
    assert_true(llmgw_prefix_bytes(&size) != 0);
    size.blocks++;
    assert_int_equal(llmgw_prefix_bytes(&size), 0);
    size.total = 1000;
    assert_true(llmgw_prefix_bytes(&size) != 0);

    size.replicas = 0;
    assert_int_equal(llmgw_prefix_bytes(&size), 0);
    size = (llmgw_prefix_size_t) { .replicas = 1 };
    assert_int_equal(llmgw_prefix_bytes(&size), 0);
}


/*
 * The index takes what its header promises: 32 bytes for a node, 8 for buckets
 * and 8 for sets.
 */
static void
index_takes_at_most_48_bytes_a_block(void **state)
{
    uint32_t             replicas;
    llmgw_prefix_size_t  size;

    for (replicas = 1; replicas <= 10000; replicas *= 10) {
        size = (llmgw_prefix_size_t) { .replicas = replicas, .blocks = 2000 };

        assert_true(llmgw_prefix_bytes(&size)
                    < (size_t) replicas * (2000 * 48 + 12) + 4096);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(index_is_an_exact_lru_of_each_replica),
        cmocka_unit_test(shared_blocks_are_known_of_all_that_have_them),
        cmocka_unit_test(match_does_not_count_as_use),
        cmocka_unit_test(prompt_longer_than_the_list_matches_nothing),
        cmocka_unit_test(index_without_memory_left_stays_whole),
        cmocka_unit_test(sizes_beyond_the_limits_are_refused),
        cmocka_unit_test(index_takes_at_most_48_bytes_a_block)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

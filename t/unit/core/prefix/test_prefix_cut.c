
/*
 * A process that dies at any store while it writes the shared index: the
 * replica that it wrote is empty then, and the others are as they were, in
 * content and in order.
 */

#include <sys/mman.h>

#include "t/unit/core/cut.h"
#include "t/unit/core/prefix/prefix_model.h"

#include "core/prefix/index_inner.h"
#include "core/prefix/shared_index.h"


#define REPLICAS  70            /* a set has two words, a list up to 3 nodes */
#define BLOCKS    6             /* of each replica */
#define DYING     5             /* the replica that is being written */

typedef struct {
    llmgw_prefix_size_t     size;
    size_t                  bytes;
    llmgw_prefix_shared_t  *shared;
    model_t                 models[REPLICAS];
    model_t                 after;          /* DYING's, once it is written */
    uint64_t                owner;          /* of DYING */
    uint64_t                seed;
    uint32_t                n;              /* what the child records */
    uint64_t                blocks[MODEL_MAX];
} world_t;


static int
setup(void **state)
{
    world_t  *world;

    world = calloc(1, sizeof(world_t));
    assert_non_null(world);

    world->size = (llmgw_prefix_size_t) {
        .replicas = REPLICAS, .blocks = BLOCKS, .random = 12345
    };
    world->seed = 1;
    world->owner = DYING + 1;
    world->bytes = llmgw_prefix_shared_bytes(&world->size);
    world->shared = mmap(NULL, world->bytes, PROT_READ|PROT_WRITE,
                         MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(world->shared, MAP_FAILED);
    assert_ptr_equal(llmgw_prefix_shared_init(world->shared, &world->size),
                     world->shared);

    *state = world;

    return 0;
}


static int
teardown(void **state)
{
    world_t  *world = *state;

    munmap(world->shared, world->bytes);
    free(world);

    return 0;
}


static void
record(world_t *world, uint32_t replica, const uint64_t *blocks, uint32_t n)
{
    (void) llmgw_prefix_shared_record(world->shared, replica, replica + 1,
                                      blocks, n);
    model_record(&world->models[replica], BLOCKS, blocks, n);
}


/* Records prompts at so many replicas; some prompts have blocks in common. */
static void
fill(world_t *world, uint32_t replicas)
{
    uint32_t  i, n;
    uint64_t  blocks[MODEL_MAX];

    for (i = 0; i < 10 * replicas; i++) {
        n = model_prompt(&world->seed, blocks, BLOCKS, 3, 20);
        record(world, i % replicas, blocks, n);
    }
}


/* --- what is whole */

static int
list_is(const world_t *world, uint32_t replica, const model_t *model)
{
    uint32_t                     i, n, newer;
    const prefix_node_t         *node;
    const llmgw_prefix_index_t  *index;

    index = llmgw_prefix_shared_index(world->shared);
    newer = 0;

    for (i = prefix_list(index, replica)->newest, n = 0;
         i != 0 && n < model->n; i = node->older, n++)
    {
        node = prefix_node(index, i);

        if (node->hash != model->blocks[n] || node->newer != newer
            || node->replica != replica)
        {
            return 0;
        }

        newer = i;
    }

    return i == 0 && n == model->n
           && prefix_list(index, replica)->oldest == newer
           && prefix_list(index, replica)->n == n;
}


/* The head of a hash knows all nodes with it, in a list or in a set. */
static void
assert_holders_are_whole(const world_t *world, uint64_t hash)
{
    uint32_t                     r, head, have, listed, i;
    const uint64_t              *set;
    const prefix_node_t         *first;
    const llmgw_prefix_index_t  *index;

    have = 0;
    index = llmgw_prefix_shared_index(world->shared);
    head = prefix_head(index, hash);
    assert_int_not_equal(head, 0);
    first = prefix_node(index, head);
    set = first->set == 0 ? NULL : prefix_set(index, first->set);

    for (r = 0; r < REPLICAS; r++) {
        i = model_find(&world->models[r], hash) < world->models[r].n;
        have += i;

        if (set != NULL) {
            assert_int_equal(set[r / 64] >> r % 64 & 1, i);
        }
    }

    assert_int_equal(first->holders, have);

    if (set == NULL) {
        for (i = head, listed = 0; i != 0; i = prefix_node(index, i)->next) {
            assert_in_range(++listed, 1, have);
            assert_int_equal(prefix_node(index, i)->hash, hash);
        }

        assert_int_equal(listed, have);
    }
}


/*
 * Every node is free or in one list, and as many sets are counted as are used.
 */
static void
assert_memory_is_whole(const world_t *world)
{
    uint32_t                     i, r, nodes, sets;
    const prefix_node_t         *node;
    const llmgw_prefix_index_t  *index;

    nodes = sets = 0;
    index = llmgw_prefix_shared_index(world->shared);

    for (r = 0; r < REPLICAS; r++) {
        nodes += world->models[r].n;

        for (i = prefix_list(index, r)->newest; i != 0; i = node->older) {
            node = prefix_node(index, i);
            sets += node->holders != 0 && node->set != 0;
        }
    }

    for (i = index->free_node; i != 0; i = prefix_node(index, i)->chain) {
        assert_in_range(++nodes, 1, index->used_nodes);
    }

    for (i = index->free_set; i != 0;
         i = (uint32_t) prefix_set(index, i)[0])
    {
        assert_in_range(++sets, 1, index->used_sets);
    }

    assert_int_equal(nodes, index->used_nodes);
    assert_int_equal(sets, index->used_sets);
}


static void
assert_is_whole(const world_t *world)
{
    uint32_t  r, b;

    assert_false(llmgw_prefix_is_torn(world->shared));

    for (r = 0; r < REPLICAS; r++) {
        assert_true(list_is(world, r, &world->models[r]));

        for (b = 0; b < world->models[r].n; b++) {
            assert_holders_are_whole(world, world->models[r].blocks[b]);
        }
    }

    assert_memory_is_whole(world);
}


static void
assert_matches(world_t *world, const uint64_t *blocks, uint32_t n)
{
    uint32_t  r, matched[REPLICAS];
    uint64_t  scratch[4];

    assert_true(llmgw_prefix_shared_match(world->shared, blocks, n, matched,
                                          scratch));

    for (r = 0; r < REPLICAS; r++) {
        assert_int_equal(matched[r],
                         model_match(&world->models[r], blocks, n));
    }
}


/* --- the others go on */

static void
serve(world_t *world)
{
    uint32_t  i, n;
    uint64_t  blocks[MODEL_MAX];

    for (i = 0; i < 8; i++) {
        n = model_prompt(&world->seed, blocks, BLOCKS, 3, 20);
        record(world, i % 2 == 0 ? DYING : i * 8, blocks, n);
        n = model_prompt(&world->seed, blocks, BLOCKS, 3, 20);
        assert_matches(world, blocks, n);
    }
}


/* After a cut: readers, and then the next writer, use what is left. */
static void
others_go_on(void *data)
{
    world_t   world = *(world_t *) data;
    uint32_t  matched[REPLICAS];
    uint64_t  scratch[4];

    if (llmgw_prefix_is_torn(world.shared)) {
        assert_false(llmgw_prefix_shared_match(world.shared, world.blocks,
                                               world.n, matched, scratch));
        llmgw_prefix_match(llmgw_prefix_shared_index(world.shared),
                           world.blocks, world.n, matched, scratch);

        assert_int_equal(world.shared->writing, DYING);
        llmgw_prefix_shared_mend(world.shared);
        world.models[DYING].n = 0;

    } else if (!list_is(&world, DYING, &world.models[DYING])) {
        world.models[DYING] = world.after;
    }

    assert_is_whole(&world);
    serve(&world);
    assert_is_whole(&world);
}


static void
records(void *data)
{
    world_t  *world = data;

    (void) llmgw_prefix_shared_record(world->shared, DYING, world->owner,
                                      world->blocks, world->n);
}


static void
mends(void *data)
{
    world_t  *world = data;

    llmgw_prefix_shared_mend(world->shared);
}


static void
cut(world_t *world, void (*change)(void *data), uint32_t least)
{
    world->after = world->models[DYING];

    if (world->owner != DYING + 1) {
        world->after.n = 0;
    }

    model_record(&world->after, BLOCKS, world->blocks, world->n);
    cut_at_each_store(world->shared, world->bytes, change, others_go_on,
                      world, least);

    world->models[DYING] = world->after;
    assert_is_whole(world);
}


/* --- the changes that are cut */

static void
first_prompt_of_all(void **state)
{
    world_t  *world = *state;

    world->n = model_prompt(&world->seed, world->blocks, BLOCKS, 1, 1);
    world->blocks[0] = 1;
    world->n = 3;
    cut(world, records, 20);
}


/* The replica's oldest blocks go, some of which are heads, and in sets. */
static void
prompts_of_a_full_replica(void **state)
{
    uint32_t   i;
    world_t   *world = *state;

    fill(world, REPLICAS);

    for (i = 0; i < 4; i++) {
        world->n = model_prompt(&world->seed, world->blocks, BLOCKS, 3, 20);
        cut(world, records, 2);
    }
}


static void
prompt_that_it_has(void **state)
{
    uint32_t   i;
    world_t   *world = *state;

    fill(world, REPLICAS);
    world->n = world->models[DYING].n;

    for (i = 0; i < world->n; i++) {
        world->blocks[i] = world->models[DYING].blocks[world->n - 1 - i];
    }

    cut(world, records, 10);
}


/*
 * So many replicas get the same block that its list becomes a set, and then
 * lose it again.
 */
static void
list_that_becomes_a_set_and_a_list(void **state)
{
    uint32_t   r;
    uint64_t   block = 777;
    world_t   *world = *state;

    for (r = DYING + 1; r < DYING + 4; r++) {
        record(world, r, &block, 1);
    }

    world->n = 1;
    world->blocks[0] = block;
    cut(world, records, 10);
    assert_int_not_equal(prefix_node(
        llmgw_prefix_shared_index(world->shared),
        prefix_head(llmgw_prefix_shared_index(world->shared), block))->set, 0);

    for (r = DYING + 3; r > DYING + 1; r--) {
        llmgw_prefix_forget(llmgw_prefix_shared_index(world->shared), r);
        world->models[r].n = 0;
    }

    world->n = BLOCKS;

    for (r = 0; r < BLOCKS; r++) {
        world->blocks[r] = 1000 + r;
    }

    cut(world, records, 30);
}


static void
replica_that_is_another_one_now(void **state)
{
    world_t  *world = *state;

    fill(world, REPLICAS);
    world->owner = 4711;
    world->n = 2;
    world->blocks[0] = 1;
    world->blocks[1] = 2;
    cut(world, records, 30);
    assert_int_equal(llmgw_prefix_owner(world->shared, DYING), 4711);
}


/*
 * A process died while it recorded, and then another one while it mended that.
 */
static void
mending(void **state)
{
    pid_t      pid;
    uint32_t   steps;
    world_t   *world = *state;

    fill(world, DYING + 5);
    world->n = 4;
    memcpy(world->blocks, (uint64_t[]) { 1, 2, 3, 4 }, 4 * sizeof(uint64_t));

    pid = cut_child(records, world);

    for (steps = 0; steps < 400; steps++) {
        assert_true(cut_step(pid));
    }

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    assert_true(llmgw_prefix_is_torn(world->shared));

    world->models[DYING].n = 0;
    world->n = 0;
    cut(world, mends, 200);
}


/* Readers walk through any garbage to an end, and stay within the memory. */
static void
torn_memory_is_read_without_harm(void **state)
{
    uint32_t               i, w, words, n, matched[REPLICAS + 1];
    uint64_t               scratch[4], blocks[MODEL_MAX];
    world_t               *world = *state;
    llmgw_prefix_index_t  *index;

    fill(world, REPLICAS);
    index = llmgw_prefix_shared_index(world->shared);
    words = (uint32_t) ((char *) world->shared + world->bytes
                        - (char *) index - index->nodes) / 4;
    matched[REPLICAS] = 4711;

    for (i = 0; i < 20000; i++) {
        w = model_draw(&world->seed, words);
        ((uint32_t *) ((char *) index + index->nodes))[w]
            = model_draw(&world->seed, i % 2 ? UINT32_MAX : 450);

        n = model_prompt(&world->seed, blocks, BLOCKS, 3, 20);
        llmgw_prefix_match(index, blocks, n, matched, scratch);
    }

    assert_int_equal(matched[REPLICAS], 4711);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(first_prompt_of_all),
        TEST(prompts_of_a_full_replica),
        TEST(prompt_that_it_has),
        TEST(list_that_becomes_a_set_and_a_list),
        TEST(replica_that_is_another_one_now),
        TEST(mending),
        TEST(torn_memory_is_read_without_harm),
    };

    return cmocka_run_group_tests_name("prefix_cut", tests, NULL, NULL);
}

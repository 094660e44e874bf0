
/*
 * The cold list as workers share it: copied without a lock, and cut at every
 * store.
 */

#include <sys/mman.h>

#include "t/unit/core/cut.h"

#include "core/policy/cold.h"


#define REPLICAS  8

typedef struct {
    llmgw_cold_t       *cold;
    size_t              bytes;
    uint32_t            before[REPLICAS];   /* the list, the oldest first */
    uint32_t            n;
    llmgw_candidate_t   candidates[REPLICAS];
    uint32_t            ncandidates;
    uint32_t            chosen;
} world_t;


static int
setup(void **state)
{
    uint32_t   i;
    world_t   *world;

    world = calloc(1, sizeof(world_t));
    assert_non_null(world);
    world->bytes = llmgw_cold_bytes(REPLICAS);
    world->cold = mmap(NULL, world->bytes, PROT_READ|PROT_WRITE,
                       MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(world->cold, MAP_FAILED);
    (void) llmgw_cold_init(world->cold, REPLICAS);

    world->ncandidates = REPLICAS;

    for (i = 0; i < REPLICAS; i++) {
        world->candidates[i].replica = i;
    }

    *state = world;

    return 0;
}


static int
teardown(void **state)
{
    world_t  *world = *state;

    munmap(world->cold, world->bytes);
    free(world);

    return 0;
}


static void
notes(void *data)
{
    world_t  *world = data;

    llmgw_cold_note(world->cold, world->candidates, world->ncandidates,
                    world->chosen);
}


static void
note(world_t *world, uint32_t chosen)
{
    world->chosen = chosen;
    notes(world);
}


/*
 * Copies the list, the oldest first; its links are checked both ways, and its
 * marks.
 */
static uint32_t
list_of(const llmgw_cold_t *cold, uint32_t *list)
{
    uint32_t  i, n, older, listed;

    n = older = listed = 0;

    for (i = cold->oldest; i != 0; i = cold->links[i - 1].newer) {
        assert_in_range(i, 1, REPLICAS);
        assert_int_equal(cold->links[i - 1].older, older);
        assert_true(n < REPLICAS);
        list[n++] = i - 1;
        older = i;
    }

    assert_int_equal(cold->newest, older);

    for (i = 0; i < REPLICAS; i++) {
        listed += cold->links[i].is_listed;
    }

    assert_int_equal(listed, n);

    return n;
}


static void
assert_list(const llmgw_cold_t *cold, uint32_t n, const uint32_t *list)
{
    uint32_t  got[REPLICAS];

    assert_int_equal(list_of(cold, got), n);
    assert_memory_equal(got, list, n * sizeof(uint32_t));
}


static int
is_candidate(const world_t *world, uint32_t replica)
{
    uint32_t  i;

    for (i = 0; i < world->ncandidates; i++) {
        if (world->candidates[i].replica == replica) {
            return 1;
        }
    }

    return 0;
}


/*
 * After a cut, candidates are on the list, in their order; the chosen one is
 * where it was, at the end, or gone; others may be gone.
 */
static void
others_go_on(void *data)
{
    uint32_t        i, k, n, got[REPLICAS], who;
    const world_t  *world = data;
    llmgw_cold_t   *cold;

    cold = world->cold;
    who = world->candidates[world->chosen].replica;

    if (llmgw_cold_is_torn(cold)) {
        llmgw_cold_mend(cold);
    }

    assert_false(llmgw_cold_is_torn(cold));
    n = list_of(cold, got);

    for (i = k = 0; i < world->n; i++) {
        while (k < n && got[k] == who) {
            k++;
        }

        if (k < n && got[k] == world->before[i]) {
            k++;

        } else {
            assert_true(world->before[i] == who
                        || !is_candidate(world, world->before[i]));
        }
    }

    assert_true(k == n || (k == n - 1 && got[k] == who));

    llmgw_cold_note(cold, world->candidates, world->ncandidates, 0);
    n = list_of(cold, got);
    assert_int_equal(got[n - 1], world->candidates[0].replica);
}


static void
cut(world_t *world, uint32_t chosen, uint32_t least)
{
    world->chosen = chosen;
    world->n = list_of(world->cold, world->before);
    cut_at_each_store(world->cold, world->bytes, notes, others_go_on, world,
                      least);
    assert_false(llmgw_cold_is_torn(world->cold));
}


static void
first_one(void **state)
{
    world_t  *world = *state;

    cut(world, 3, 5);
    assert_list(world->cold, 1, (uint32_t[]) { 3 });
}


static void
newest_oldest_and_those_between(void **state)
{
    uint32_t   i;
    world_t   *world = *state;

    for (i = 0; i < 5; i++) {
        note(world, i);
    }

    cut(world, 0, 5);
    assert_list(world->cold, 5, (uint32_t[]) { 1, 2, 3, 4, 0 });
    cut(world, 3, 5);
    assert_list(world->cold, 5, (uint32_t[]) { 1, 2, 4, 0, 3 });
    cut(world, 3, 5);
    assert_list(world->cold, 5, (uint32_t[]) { 1, 2, 4, 0, 3 });
    cut(world, 7, 5);
    assert_list(world->cold, 6, (uint32_t[]) { 1, 2, 4, 0, 3, 7 });
}


static void
those_that_are_gone(void **state)
{
    uint32_t   i;
    world_t   *world = *state;

    for (i = 0; i < REPLICAS; i++) {
        note(world, i);
    }

    world->ncandidates = 3;
    world->candidates[0].replica = 6;
    world->candidates[1].replica = 2;
    world->candidates[2].replica = 4;
    cut(world, 1, 15);
    assert_list(world->cold, 3, (uint32_t[]) { 4, 6, 2 });
}


static void
replica_is_forgotten(void **state)
{
    uint32_t   i;
    world_t   *world = *state;

    for (i = 0; i < 4; i++) {
        note(world, i);
    }

    llmgw_cold_forget(world->cold, 1);
    assert_list(world->cold, 3, (uint32_t[]) { 0, 2, 3 });
    llmgw_cold_forget(world->cold, 1);
    llmgw_cold_forget(world->cold, 3);
    llmgw_cold_forget(world->cold, 0);
    assert_list(world->cold, 1, (uint32_t[]) { 2 });
    llmgw_cold_forget(world->cold, 2);
    assert_list(world->cold, 0, NULL);
}


static void
copy_is_the_same_list(void **state)
{
    uint32_t       i;
    world_t       *world = *state;
    llmgw_cold_t  *copy;

    copy = llmgw_cold_init(calloc(1, world->bytes), REPLICAS);

    assert_true(llmgw_cold_copy(world->cold, copy));
    assert_list(copy, 0, NULL);

    for (i = 0; i < 4; i++) {
        note(world, (i * 3) % REPLICAS);
    }

    assert_true(llmgw_cold_copy(world->cold, copy));
    assert_list(copy, 4, (uint32_t[]) { 0, 3, 6, 1 });
    note(world, 3);
    assert_list(copy, 4, (uint32_t[]) { 0, 3, 6, 1 });
    assert_true(llmgw_cold_copy(world->cold, copy));
    assert_list(copy, 4, (uint32_t[]) { 0, 6, 1, 3 });

    free(copy);
}


/*
 * A list that is being changed is not copied, and no walk through a torn one
 * is endless.
 */
static void
copy_of_a_torn_list_is_empty(void **state)
{
    uint32_t       i;
    world_t       *world = *state;
    llmgw_cold_t  *copy;

    copy = llmgw_cold_init(calloc(1, world->bytes), REPLICAS);

    for (i = 0; i < 4; i++) {
        note(world, i);
    }

    world->cold->sequence++;
    assert_true(llmgw_cold_is_torn(world->cold));
    assert_false(llmgw_cold_copy(world->cold, copy));
    assert_list(copy, 0, NULL);

    world->cold->sequence++;
    world->cold->links[3].newer = 1;
    assert_true(llmgw_cold_copy(world->cold, copy));
    world->cold->links[3].newer = 4711;
    assert_true(llmgw_cold_copy(world->cold, copy));
    assert_list(copy, 4, (uint32_t[]) { 0, 1, 2, 3 });

    free(copy);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(first_one),
        TEST(newest_oldest_and_those_between),
        TEST(those_that_are_gone),
        TEST(replica_is_forgotten),
        TEST(copy_is_the_same_list),
        TEST(copy_of_a_torn_list_is_empty),
    };

    return cmocka_run_group_tests_name("cold", tests, NULL, NULL);
}

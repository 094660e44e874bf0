
/*
 * The directory of an upstream's models: the assignment of places and its
 * duration, and the state after a process was killed at any store of a change.
 */

#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

#include "t/unit/core/cut.h"

#include "core/directory.h"


#define MINUTE  60000

typedef struct {
    llmgw_directory_t  *directory;      /* shared with the process that dies */
    uint32_t            place;          /* that is changed */
} scene_t;


static int
setup(void **state)
{
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    if (s == NULL) {
        return -1;
    }

    s->directory = mmap(NULL, sizeof(llmgw_directory_t),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
    *state = s;

    return s->directory != MAP_FAILED ? 0 : -1;
}


static int
teardown(void **state)
{
    scene_t  *s = *state;

    (void) munmap(s->directory, sizeof(llmgw_directory_t));
    free(s);

    return 0;
}


/* The hash of a name of the form "model 7": the tests need no true one. */
static uint64_t
hash(const char *name)
{
    return strtoull(strchr(name, ' '), NULL, 10) + 1000;
}


static uint32_t
bind(scene_t *s, uint32_t n, const char *name, uint64_t now)
{
    return llmgw_directory_bind(s->directory, n, name, hash(name), now);
}


static void
models_get_the_first_places_and_keep_them(void **state)
{
    scene_t  *s = *state;

    assert_int_equal(bind(s, 3, "model 1", 0), 0);
    assert_int_equal(bind(s, 3, "model 2", 0), 1);
    assert_int_equal(bind(s, 3, "model 1", 0), 0);
    assert_int_equal(bind(s, 3, "model 3", 0), 2);
    assert_string_equal(s->directory->places[1].name, "model 2");

    llmgw_directory_unbind(s->directory, 1);
    assert_int_equal(llmgw_directory_find(s->directory, 3, hash("model 2")),
                     LLMGW_DIRECTORY_NONE);
    assert_int_equal(bind(s, 3, "model 4", 0), 1);
    assert_int_equal(bind(s, 3, "model 3", 0), 2);
}


/*
 * As many models get places as there are pools; one more waits until one is
 * free.
 */
static void
one_model_too_many_waits_for_a_place(void **state)
{
    char       name[32];
    uint32_t   i;
    scene_t   *s = *state;

    for (i = 0; i < LLMGW_DIRECTORY_PLACES; i++) {
        (void) snprintf(name, sizeof(name), "model %u", i);
        assert_int_equal(bind(s, LLMGW_DIRECTORY_PLACES, name, 0), i);
    }

    assert_int_equal(bind(s, LLMGW_DIRECTORY_PLACES, "model 64", 0),
                     LLMGW_DIRECTORY_NONE);
    assert_int_equal(llmgw_directory_free(s->directory,
                                          LLMGW_DIRECTORY_PLACES),
                     LLMGW_DIRECTORY_NONE);

    /* Refusals are reported once, and again only if there are more. */
    assert_true(llmgw_directory_refused(s->directory, 1));
    assert_false(llmgw_directory_refused(s->directory, 1));
    assert_true(llmgw_directory_refused(s->directory, 2));
    assert_false(llmgw_directory_refused(s->directory, 0));
    assert_true(llmgw_directory_refused(s->directory, 1));

    llmgw_directory_unbind(s->directory, 40);
    assert_int_equal(bind(s, LLMGW_DIRECTORY_PLACES, "model 64", 0), 40);
}


static void
place_that_is_used_again_has_another_binding(void **state)
{
    uint64_t  first;
    scene_t  *s = *state;

    (void) bind(s, 1, "model 1", 0);
    first = s->directory->places[0].binding;
    assert_int_not_equal(first, 0);

    llmgw_directory_unbind(s->directory, 0);
    (void) bind(s, 1, "model 1", 0);
    assert_int_not_equal(s->directory->places[0].binding, first);
}


static void
place_that_is_wanted_is_unused_after_ten_minutes(void **state)
{
    scene_t            *s = *state;
    llmgw_directory_t  *d = s->directory;

    assert_false(llmgw_directory_is_unused(d, 0, 1, 99 * MINUTE));
    (void) bind(s, 2, "model 1", 5 * MINUTE);
    assert_false(llmgw_directory_is_unused(d, 0, 1, 15 * MINUTE - 1));
    assert_true(llmgw_directory_is_unused(d, 0, 1, 15 * MINUTE));

    llmgw_directory_use(d, 0, 15 * MINUTE);
    assert_false(llmgw_directory_is_unused(d, 0, 1, 25 * MINUTE - 1));
    assert_true(llmgw_directory_is_unused(d, 0, 1, 25 * MINUTE));

    /* Another process has a clock that is a little ahead of ours. */
    llmgw_directory_use(d, 0, 15 * MINUTE + 1);
    assert_false(llmgw_directory_is_unused(d, 0, 1, 15 * MINUTE));
}


static void
place_that_is_not_wanted_is_kept_for_a_day(void **state)
{
    scene_t            *s = *state;
    llmgw_directory_t  *d = s->directory;

    (void) bind(s, 2, "model 1", 5 * MINUTE);
    assert_false(llmgw_directory_is_unused(d, 0, 0, 1445 * MINUTE - 1));
    assert_true(llmgw_directory_is_unused(d, 0, 0, 1445 * MINUTE));
}


/* A reload changes the number of pools. */
static void
fewer_or_more_places_keep_the_bindings_that_remain(void **state)
{
    scene_t  *s = *state;

    (void) bind(s, 4, "model 0", 0);
    (void) bind(s, 4, "model 1", 0);
    (void) bind(s, 4, "model 2", 0);

    assert_int_equal(bind(s, 2, "model 1", 0), 1);
    assert_int_equal(bind(s, 2, "model 2", 0), LLMGW_DIRECTORY_NONE);
    assert_int_equal(bind(s, 4, "model 2", 0), 2);
    assert_int_equal(bind(s, 16, "model 2", 0), 2);
    assert_int_equal(bind(s, 16, "model 3", 0), 3);
}


static void
name_that_does_not_fit_is_not_bound(void **state)
{
    char      name[LLMGW_DIRECTORY_NAME_BYTES + 1];
    scene_t  *s = *state;

    memset(name, 'x', sizeof(name));
    name[LLMGW_DIRECTORY_NAME_BYTES] = '\0';

    assert_int_equal(llmgw_directory_bind(s->directory, 4, name, 7, 0),
                     LLMGW_DIRECTORY_NONE);
    name[LLMGW_DIRECTORY_NAME_BYTES - 1] = '\0';
    assert_int_equal(llmgw_directory_bind(s->directory, 4, name, 7, 0), 0);
    assert_string_equal(s->directory->places[0].name, name);
    assert_int_equal(llmgw_directory_bind(s->directory, 4, "", 8, 0),
                     LLMGW_DIRECTORY_NONE);
}


/* --- killed at any store */

static void
binds(void *data)
{
    scene_t  *s = data;

    (void) bind(s, 4, "model 7", 5);
}


static void
unbinds(void *data)
{
    scene_t  *s = data;

    llmgw_directory_unbind(s->directory, s->place);
}


/*
 * After a cut: each place is free, or has the whole of one model; and the
 * directory can still be changed.
 */
static void
looks(void *data)
{
    uint32_t                        i;
    scene_t                        *s = data;
    const llmgw_directory_place_t  *place;

    for (i = 0; i < 4; i++) {
        place = &s->directory->places[i];

        if (place->hash != 0) {
            assert_int_equal(hash(place->name), place->hash);
            assert_int_not_equal(place->binding, 0);
        }
    }

    assert_int_equal(llmgw_directory_find(s->directory, 4, hash("model 1")),
                     0);

    i = bind(s, 4, "model 7", 6);
    assert_in_range(i, 1, 3);
    assert_string_equal(s->directory->places[i].name, "model 7");
    assert_int_equal(bind(s, 4, "model 7", 7), i);
}


static void
directory_is_whole_after_each_store(void **state)
{
    scene_t  *s = *state;

    (void) bind(s, 4, "model 1", 0);
    (void) bind(s, 4, "a longer name of model 2", 0);
    llmgw_directory_unbind(s->directory, 1);

    cut_at_each_store(s->directory, sizeof(llmgw_directory_t), binds, looks,
                      s, 4);

    s->place = 1;
    cut_at_each_store(s->directory, sizeof(llmgw_directory_t), unbinds, looks,
                      s, 1);
    assert_int_equal(llmgw_directory_find(s->directory, 4, hash("model 7")),
                     LLMGW_DIRECTORY_NONE);
}


/* --- many processes, any of which is killed at any time */

#define WORKERS   4
#define BINDINGS  1000

/* nginx's own way: the master frees the lock of a worker that has died. */
typedef struct {
    pid_t              lock;
    llmgw_directory_t  directory;
} world_t;


static void
lock(world_t *world)
{
    pid_t  none;

    do {
        none = 0;
        (void) sched_yield();
    } while (!__atomic_compare_exchange_n(&world->lock, &none, getpid(), 0,
                                          __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
}


static void
unlock(world_t *world, pid_t holder)
{
    (void) __atomic_compare_exchange_n(&world->lock, &holder, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}


/* Binds the same name and unbinds it, for ever. */
static pid_t
worker(world_t *world)
{
    pid_t     pid;
    uint32_t  place;

    pid = fork();

    if (pid != 0) {
        assert_int_not_equal(pid, -1);
        return pid;
    }

    for ( ;; ) {
        lock(world);

        place = llmgw_directory_find(&world->directory, 4, hash("model 7"));

        if (place == LLMGW_DIRECTORY_NONE) {
            (void) llmgw_directory_bind(&world->directory, 4, "model 7",
                                        hash("model 7"), 5);

        } else {
            llmgw_directory_unbind(&world->directory, place);
        }

        unlock(world, getpid());
    }
}


/* The name is bound once at most, and the other one is where it was. */
static void
inspect(world_t *world)
{
    uint32_t                        i, n;
    const llmgw_directory_place_t  *place;

    lock(world);

    for (i = 0, n = 0; i < 4; i++) {
        place = &world->directory.places[i];

        if (place->hash != 0) {
            assert_int_equal(hash(place->name), place->hash);
            n += (place->hash == hash("model 7"));
        }
    }

    assert_in_range(n, 0, 1);
    assert_int_equal(llmgw_directory_find(&world->directory, 4,
                                          hash("model 1")), 0);
    unlock(world, getpid());
}


static void
bindings_are_whole_while_workers_are_killed(void **state)
{
    pid_t     pids[WORKERS];
    world_t  *world;
    uint32_t  i, kills;

    (void) state;

    world = mmap(NULL, sizeof(world_t), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(world != MAP_FAILED);
    (void) llmgw_directory_bind(&world->directory, 4, "model 1",
                                hash("model 1"), 0);

    for (i = 0; i < WORKERS; i++) {
        pids[i] = worker(world);
    }

    for (kills = 0; world->directory.nbindings < BINDINGS || kills < 50;
         kills++)
    {
        i = kills % WORKERS;
        (void) usleep(kills % 7 * 100);
        (void) kill(pids[i], SIGKILL);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        unlock(world, pids[i]);
        inspect(world);
        pids[i] = worker(world);
    }

    for (i = 0; i < WORKERS; i++) {
        (void) kill(pids[i], SIGKILL);
        (void) waitpid(pids[i], NULL, 0);
    }

    (void) munmap(world, sizeof(world_t));
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(models_get_the_first_places_and_keep_them),
        TEST(one_model_too_many_waits_for_a_place),
        TEST(place_that_is_used_again_has_another_binding),
        TEST(place_that_is_wanted_is_unused_after_ten_minutes),
        TEST(place_that_is_not_wanted_is_kept_for_a_day),
        TEST(fewer_or_more_places_keep_the_bindings_that_remain),
        TEST(name_that_does_not_fit_is_not_bound),
        TEST(directory_is_whole_after_each_store),
        TEST(bindings_are_whole_while_workers_are_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

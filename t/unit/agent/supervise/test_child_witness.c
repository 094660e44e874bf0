
/* The shared page: a process dies with its mutex; pages with wrong values. */

#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervise/witness.h"
#include "replica/lifelock.h"


/* Longer than it takes to notice any death; only a failing test
   waits for it. */
#define LONG_S   60.
#define SHORT_S  0.1

typedef struct {
    struct ev_loop  *loop;
    int              deaths;
} scene_t;


static void
scene_dead(void *data)
{
    scene_t  *scene = data;

    scene->deaths++;
    ev_break(scene->loop, EVBREAK_ALL);
}


static void
scene_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    ev_break(loop, EVBREAK_ALL);
}


/* Waits for a death or the end of the time; returns the deaths noticed. */
static int
scene_run(scene_t *scene, double seconds)
{
    ev_timer  timer;

    ev_timer_init(&timer, scene_late, seconds, 0.);
    ev_timer_start(scene->loop, &timer);
    ev_run(scene->loop, 0);
    ev_timer_stop(scene->loop, &timer);

    return scene->deaths;
}


/* A child that holds a lifelock, and its page here. */
static pid_t
holder(int *page_fd)
{
    int         pipe_fds[2];
    char        path[64];
    pid_t       pid;
    lifelock_t  lock;

    assert_int_equal(pipe(pipe_fds), 0);
    pid = fork();

    if (pid == 0) {
        lifelock_init(&lock);

        if (write(pipe_fds[1], &lock.fd, sizeof(int)) == sizeof(int)) {
            pause();
        }

        _exit(0);
    }

    assert_int_equal(read(pipe_fds[0], page_fd, sizeof(int)), sizeof(int));
    close(pipe_fds[0]);
    close(pipe_fds[1]);

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) pid, *page_fd);
    *page_fd = open(path, O_RDWR|O_CLOEXEC);
    assert_true(*page_fd != -1);

    return pid;
}


static void
a_holders_death_is_heard_and_not_before(void **state)
{
    int         fd;
    pid_t       pid;
    scene_t     scene = { NULL, 0 };
    witness_t  *witness;

    scene.loop = ev_loop_new(0);
    pid = holder(&fd);
    witness = witness_create(scene.loop, fd, scene_dead, &scene);
    assert_non_null(witness);
    assert_int_equal(scene_run(&scene, SHORT_S), 0);

    kill(pid, SIGKILL);
    assert_int_equal(scene_run(&scene, LONG_S), 1);

    witness_destroy(witness);
    waitpid(pid, NULL, 0);
    ev_loop_destroy(scene.loop);
}


static void
letting_go_is_no_death(void **state)
{
    scene_t      scene = { NULL, 0 };
    witness_t   *witness;
    lifelock_t   lock;

    scene.loop = ev_loop_new(0);
    lifelock_init(&lock);
    witness = witness_create(scene.loop, dup(lock.fd), scene_dead, &scene);
    assert_non_null(witness);
    assert_int_equal(scene_run(&scene, SHORT_S), 0);

    lifelock_done(&lock);
    assert_int_equal(scene_run(&scene, SHORT_S), 0);

    witness_destroy(witness);
    ev_loop_destroy(scene.loop);
}


static void
a_witness_ends_while_the_holder_lives(void **state)
{
    int          i;
    scene_t      scene = { NULL, 0 };
    witness_t   *witness;
    lifelock_t   lock;

    scene.loop = ev_loop_new(0);
    lifelock_init(&lock);

    for (i = 0; i < 100; i++) {
        witness = witness_create(scene.loop, dup(lock.fd), scene_dead,
                                 &scene);
        assert_non_null(witness);
        witness_destroy(witness);
    }

    assert_int_equal(scene.deaths, 0);
    lifelock_done(&lock);
    ev_loop_destroy(scene.loop);
}


static int
page(size_t bytes, int seals)
{
    int  fd;

    fd = memfd_create("page", MFD_CLOEXEC|MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);

    return fd;
}


static void
what_could_be_taken_away_is_refused(void **state)
{
    int              pipe_fds[2];
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    assert_null(witness_create(loop, page(4096, 0), scene_dead, NULL));
    assert_null(witness_create(loop, page(4095, F_SEAL_SHRINK), scene_dead,
                               NULL));
    assert_null(witness_create(loop, page(4096, F_SEAL_SHRINK|F_SEAL_WRITE),
                               scene_dead, NULL));

    assert_int_equal(pipe(pipe_fds), 0);
    assert_null(witness_create(loop, pipe_fds[0], scene_dead, NULL));
    close(pipe_fds[1]);
    ev_loop_destroy(loop);
}


/* Every value that a child could leave in the page; with none may the end
   hang. */
static void
any_word_is_survived(void **state)
{
    int         fd;
    size_t      i;
    uint32_t   *word;
    scene_t     scene;
    witness_t  *witness;

    static const struct {
        uint32_t  word;
        int       is_held;
    } words[] = {
        { 0, 0 }, { FUTEX_WAITERS, 0 }, { FUTEX_OWNER_DIED, 0 },
        { FUTEX_OWNER_DIED | FUTEX_WAITERS, 0 }, { UINT32_MAX, 0 },
        { 1, 1 }, { FUTEX_TID_MASK, 1 }, { FUTEX_WAITERS | 1, 1 }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        scene.deaths = 0;
        scene.loop = ev_loop_new(0);

        fd = page(4096, F_SEAL_SHRINK);
        word = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
        memset(word, 0xff, 4096);
        word[0] = words[i].word;

        witness = witness_create(scene.loop, fd, scene_dead, &scene);
        assert_int_equal(witness != NULL, words[i].is_held);

        if (witness != NULL) {
            assert_int_equal(scene_run(&scene, SHORT_S), 0);
            witness_destroy(witness);
        }

        munmap(word, 4096);
        ev_loop_destroy(scene.loop);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_holders_death_is_heard_and_not_before),
        cmocka_unit_test(letting_go_is_no_death),
        cmocka_unit_test(a_witness_ends_while_the_holder_lives),
        cmocka_unit_test(what_could_be_taken_away_is_refused),
        cmocka_unit_test(any_word_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * Processes that start at one path: one of them listens there, whatever was
 * left there before.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/line_conn.h"
#include "common/unix_listener.h"


#define STARTERS  4
#define ROUNDS    200

typedef struct {
    struct ev_loop  *loop;
    char             dir[64];
    char             path[96];
} fixture_t;


static void
on_accept(void *data, int fd, const address_t *peer)
{
    close(fd);
}


static int
setup(void **state)
{
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    strcpy(f->dir, "/tmp/llmgw-listener-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
    *state = f;

    return 0;
}


static int
teardown(void **state)
{
    fixture_t  *f;

    f = *state;
    assert_int_equal(rmdir(f->dir), 0);
    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


static int
init(fixture_t *f, unix_listener_t *listener)
{
    char  error[UNIX_LISTENER_ERROR_BYTES];

    return unix_listener_init(listener, f->loop, f->path, on_accept, NULL,
                              error);
}


static int
is_served(const fixture_t *f)
{
    int  fd;

    fd = line_conn_connect(f->path);

    if (fd != -1) {
        close(fd);
    }

    return fd != -1;
}


/* Runs in a process: begins when go is closed, reports over said whether it
   listens, and dies when stay is closed, leaving its socket file there. */
static void
starter(fixture_t *f, int go, int said, int stay)
{
    char             c;
    unix_listener_t  listener;

    (void) !read(go, &c, 1);
    c = init(f, &listener) == 0;
    (void) !write(said, &c, 1);
    (void) !read(stay, &c, 1);
    _exit(0);
}


static void
start(fixture_t *f, pid_t *pid, const int go[2], const int said[2],
    const int stay[2])
{
    *pid = fork();
    assert_int_not_equal(*pid, -1);

    if (*pid == 0) {
        close(go[1]);
        close(stay[1]);
        starter(f, go[0], said[1], stay[0]);
    }
}


/* Starts all processes at once; returns how many of them listen.  All that do
   can be reached. */
static int
round_of_starters(fixture_t *f)
{
    int    i, go[2], said[2], stay[2], listening;
    char   c;
    pid_t  pids[STARTERS];

    assert_int_equal(pipe(go) | pipe(said) | pipe(stay), 0);

    for (i = 0; i < STARTERS; i++) {
        start(f, &pids[i], go, said, stay);
    }

    close(go[0]);
    close(go[1]);
    close(stay[0]);
    listening = 0;

    for (i = 0; i < STARTERS; i++) {
        assert_int_equal(read(said[0], &c, 1), 1);
        listening += c;
    }

    assert_true(is_served(f));
    close(stay[1]);

    for (i = 0; i < STARTERS; i++) {
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }

    close(said[0]);
    close(said[1]);

    return listening;
}


/* --- tests */

/* In the first round the path is free, later a dead process's file is there. */
static void
one_of_many_that_start_at_once_listens(void **state)
{
    int         i;
    fixture_t  *f;

    f = *state;

    for (i = 0; i < ROUNDS; i++) {
        assert_int_equal(round_of_starters(f), 1);
        assert_false(is_served(f));
    }

    assert_int_equal(unlink(f->path), 0);
}


static void
a_living_ones_path_is_not_taken_and_its_end_removes_it(void **state)
{
    fixture_t        *f;
    unix_listener_t   first, second;

    f = *state;
    assert_int_equal(init(f, &first), 0);
    assert_int_equal(init(f, &second), -1);
    assert_true(unix_listener_is_there(&first));
    unix_listener_done(&first);
    assert_int_equal(access(f->path, F_OK), -1);
}


static void
a_folder_that_somebody_keeps_locked_is_no_obstacle(void **state)
{
    int               fd;
    fixture_t        *f;
    unix_listener_t   listener;

    f = *state;
    fd = open(f->dir, O_RDONLY|O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(init(f, &listener), 0);
    assert_true(is_served(f));
    unix_listener_done(&listener);
    close(fd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            one_of_many_that_start_at_once_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_living_ones_path_is_not_taken_and_its_end_removes_it, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_folder_that_somebody_keeps_locked_is_no_obstacle, setup,
            teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

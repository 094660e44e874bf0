
/* Real trees of processes, which ignore signals and have several sessions. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/child/tree.h"
#include "common/os/pidfd.h"


#define TREE_MEMBERS  3


/* Writes its pid, and lives on through SIGHUP and SIGTERM. */
static void __attribute__((noreturn))
tree_live(int fd)
{
    pid_t    pid;
    ssize_t  n;

    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    pid = getpid();
    n = write(fd, &pid, sizeof(pid));
    (void) n;

    for ( ;; ) {
        pause();
    }
}


/* Starts three processes: a front; a daemon, forked twice and in its own
   session; and a child of the front in its own session. */
static void
tree_grow(pid_t pids[TREE_MEMBERS])
{
    int      i, ends[2];
    pid_t    front, middle;
    ssize_t  n;

    assert_int_equal(pipe(ends), 0);
    front = fork();

    if (front == 0) {
        if (fork() == 0) {
            setsid();
            tree_live(ends[1]);
        }

        middle = fork();

        if (middle == 0) {
            setsid();

            if (fork() == 0) {
                tree_live(ends[1]);
            }

            _exit(0);
        }

        waitpid(middle, NULL, 0);
        tree_live(ends[1]);
    }

    for (i = 0; i < TREE_MEMBERS; i++) {
        n = read(ends[0], &pids[i], sizeof(pid_t));
        assert_int_equal(n, sizeof(pid_t));
    }

    close(ends[0]);
    close(ends[1]);
}


static void
all_of_a_tree_is_killed_whoever_its_parent_is(void **state)
{
    int    i, fds[TREE_MEMBERS];
    char   text[TREE_TEXT_BYTES];
    pid_t  pids[TREE_MEMBERS];

    assert_true(tree_is_gone());
    tree_describe(text);
    assert_string_equal(text, "");
    assert_int_equal(tree_adopt(), 0);
    tree_grow(pids);

    for (i = 0; i < TREE_MEMBERS; i++) {
        fds[i] = pidfd_open(pids[i], 0);
        assert_true(fds[i] != -1);
    }

    assert_false(tree_is_gone());
    tree_describe(text);
    assert_non_null(strstr(text, " test_tree"));

    while (!tree_is_gone()) {
        tree_kill(NULL);
        (void) waitpid(-1, NULL, 0);
    }

    for (i = 0; i < TREE_MEMBERS; i++) {
        assert_true(pidfd_is_dead(fds[i]));
        close(fds[i]);
    }
}


/* To the kernel a dead child exists until its parent has waited for it. */
static void
a_child_that_was_not_waited_for_is_left(void **state)
{
    pid_t      pid;
    siginfo_t  info;

    pid = fork();

    if (pid == 0) {
        _exit(0);
    }

    assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED|WNOWAIT), 0);
    assert_false(tree_is_gone());
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(tree_is_gone());
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_of_a_tree_is_killed_whoever_its_parent_is),
        cmocka_unit_test(a_child_that_was_not_waited_for_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

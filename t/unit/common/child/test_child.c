
/* Real child processes, which write to a pipe what they were started with. */

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/child/child.h"


typedef struct {
    child_t          child;
    struct ev_loop  *loop;
    pid_t            gone;
    char             how[CHILD_END_BYTES];
} scene_t;


static void
scene_gone(void *data, pid_t pid, const char *how)
{
    scene_t  *scene = data;

    scene->gone = pid;
    snprintf(scene->how, sizeof(scene->how), "%s", how);
    ev_break(scene->loop, EVBREAK_ALL);
}


static void
scene_init(scene_t *scene)
{
    memset(scene, 0, sizeof(scene_t));
    scene->loop = ev_default_loop(0);
    child_init(&scene->child, scene->loop, scene_gone, scene);
}


static pid_t
scene_start(scene_t *scene, const char *script)
{
    char        error[CHILD_ERROR_BYTES];
    char *const argv[] = { "sh", "-c", (char *) script, NULL };

    assert_int_equal(child_start(&scene->child, argv, error), 0);

    return scene->child.pid;
}


static void
the_end_is_told_with_its_status(void **state)
{
    pid_t    pid;
    scene_t  scene;

    scene_init(&scene);
    pid = scene_start(&scene, "exit 3");
    ev_run(scene.loop, 0);
    assert_int_equal(scene.gone, pid);
    assert_string_equal(scene.how, "exit status 3");
    assert_int_equal(scene.child.pid, 0);

    /* The child has been reaped. */
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    child_done(&scene.child);
}


static void
signals_reach_it(void **state)
{
    scene_t  scene;

    scene_init(&scene);
    scene_start(&scene, "kill -STOP $$; exit 0");
    child_signal(&scene.child, SIGKILL);
    ev_run(scene.loop, 0);
    assert_string_equal(scene.how, "signal 9");

    child_signal(&scene.child, SIGKILL);    /* there is no process now */
    child_done(&scene.child);
}


static void
it_gets_nothing_of_ours(void **state)
{
    int      rc, leaked;
    scene_t  scene;

    scene_init(&scene);
    signal(SIGPIPE, SIG_IGN);
    leaked = fcntl(0, F_DUPFD, 57);     /* not close-on-exec */
    assert_true(leaked >= 57);

    /* Checked by the script: standard input is at its end, no descriptor
       leaked, SIGPIPE kills. */
    scene_start(&scene, "read x && exit 11; "
                        "for i in /proc/$$/fd/*; do "
                        "  test ${i##*/} -ge 57 && exit 12; done; "
                        "test $(cut -d' ' -f5 /proc/$$/stat) = $$ || exit 13; "
                        "(kill -PIPE 0) ; exit 14");
    ev_run(scene.loop, 0);
    assert_string_equal(scene.how, "signal 13");

    rc = close(leaked);
    assert_int_equal(rc, 0);
    signal(SIGPIPE, SIG_DFL);
    child_done(&scene.child);
}


/*
 * Starts a child with two kept descriptors that lie at each other's numbers in
 * the child.  Runs in a process of its own, since it takes over 3 and 4.  Does
 * not return.
 */
static void __attribute__((noreturn))
give(const int first[2], const int second[2], const int output[2])
{
    int          status;
    char         error[CHILD_ERROR_BYTES];
    pid_t        pid;
    child_t      child;
    char *const  argv[] = {
        "sh", "-c", "echo 1 >&3; echo 2 >&4; echo o; echo e >&2; "
        "test $(cut -d' ' -f6 /proc/$$/stat) = $$", NULL
    };

    if (dup2(first[1], 24) != 24 || dup2(second[1], 23) != 23
        || dup2(output[1], 25) != 25 || dup2(24, 4) != 4 || dup2(23, 3) != 3)
    {
        _exit(90);
    }

    child_spec(&child);
    child.output_fd = 25;
    child.kept_fds[0] = 4;
    child.kept_fds[1] = 3;
    child.is_session = 1;
    pid = child_spawn(&child, argv, error);

    if (pid == -1 || waitpid(pid, &status, 0) != pid) {
        _exit(91);
    }

    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 92);
}


static void
assert_says(int fd, const char *text)
{
    char     said[16];
    ssize_t  n;

    n = read(fd, said, sizeof(said));
    assert_int_equal(n, strlen(text));
    assert_memory_equal(said, text, strlen(text));
}


static void
it_gets_what_it_is_given(void **state)
{
    int    first[2], output[2], second[2], status;
    pid_t  pid;

    assert_int_equal(pipe(first), 0);
    assert_int_equal(pipe(second), 0);
    assert_int_equal(pipe(output), 0);
    pid = fork();

    if (pid == 0) {
        give(first, second, output);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_says(first[0], "1\n");
    assert_says(second[0], "2\n");
    assert_says(output[0], "o\ne\n");

    close(first[0]);
    close(first[1]);
    close(second[0]);
    close(second[1]);
    close(output[0]);
    close(output[1]);
}


static void
a_command_that_is_not_there_is_an_error_with_its_name(void **state)
{
    char         error[CHILD_ERROR_BYTES];
    char *const  argv[] = { "llmgw-no-such-command", NULL };
    scene_t      scene;

    scene_init(&scene);
    assert_int_equal(child_start(&scene.child, argv, error), -1);
    assert_non_null(strstr(error, "\"llmgw-no-such-command\""));
    assert_int_equal(scene.child.pid, 0);
    child_done(&scene.child);
}


/* Returns the pid of a grandchild, which this process cannot wait for. */
static pid_t
orphan(void)
{
    FILE  *out;
    int    pid;

    out = popen("sleep 60 >/dev/null & echo $!", "r");
    assert_int_equal(fscanf(out, "%d", &pid), 1);
    pclose(out);

    return pid;
}


static void
an_adopted_one_is_watched_and_signalled(void **state)
{
    pid_t    pid;
    scene_t  scene;

    scene_init(&scene);
    pid = orphan();
    child_adopt(&scene.child, pid, pidfd_open(pid, 0));
    child_signal(&scene.child, SIGTERM);
    ev_run(scene.loop, 0);
    assert_int_equal(scene.gone, pid);
    assert_string_equal(scene.how, "ended");
    child_done(&scene.child);
}


/* Runs a script that prints the pids of two processes, which live on. */
static void
two_processes(const char *script, pid_t pids[2])
{
    FILE  *out;

    out = popen(script, "r");
    assert_int_equal(fscanf(out, "%d %d", &pids[0], &pids[1]), 2);
    pclose(out);
}


/* Checks that a killed process ends within 20 s, whichever process reaps it. */
static void
assert_ends(int pidfd)
{
    struct pollfd  poll_fd = { .fd = pidfd, .events = POLLIN };

    assert_int_equal(poll(&poll_fd, 1, 20000), 1);
    close(pidfd);
}


static void
assert_runs_and_end(int pidfd)
{
    struct pollfd  poll_fd = { .fd = pidfd, .events = POLLIN };

    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    assert_int_equal(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), 0);
    close(pidfd);
}


/* Starts a child that starts a worker in its group, and then runs `then`. */
static int
worker_of(scene_t *scene, const char *then)
{
    int   fds[2], n, out;
    char  script[128], text[16];

    assert_int_equal(pipe(fds), 0);
    out = dup(STDOUT_FILENO);
    assert_int_equal(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
    snprintf(script, sizeof(script),
             "sleep 60 >/dev/null & echo $!; %s", then);
    scene_start(scene, script);
    n = read(fds[0], text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    dup2(out, STDOUT_FILENO);
    close(out);
    close(fds[0]);
    close(fds[1]);

    return pidfd_open(atoi(text), 0);
}


static void
a_child_that_is_killed_takes_its_workers_along(void **state)
{
    int      worker;
    scene_t  scene;

    scene_init(&scene);
    worker = worker_of(&scene, "trap '' TERM; exec sleep 60 >/dev/null");
    child_kill(&scene.child);
    ev_run(scene.loop, 0);
    assert_string_equal(scene.how, "signal 9");
    assert_ends(worker);

    child_kill(&scene.child);               /* there is none */
    child_done(&scene.child);
}


static void
a_child_that_ends_by_itself_leaves_its_workers_alone(void **state)
{
    int      worker;
    scene_t  scene;

    scene_init(&scene);
    worker = worker_of(&scene, "exit 1");
    ev_run(scene.loop, 0);
    assert_string_equal(scene.how, "exit status 1");
    child_kill(&scene.child);
    assert_runs_and_end(worker);
    child_done(&scene.child);
}


static void
an_adopted_leader_is_killed_with_its_group_and_another_alone(void **state)
{
    int      worker;
    pid_t    pids[2];
    scene_t  scene;

    scene_init(&scene);
    two_processes("setsid sh -c 'sleep 60 >/dev/null & echo $$ $!; "
                  "exec sleep 60 >/dev/null' &", pids);
    worker = pidfd_open(pids[1], 0);
    child_adopt(&scene.child, pids[0], pidfd_open(pids[0], 0));
    child_kill(&scene.child);
    ev_run(scene.loop, 0);
    assert_int_equal(scene.gone, pids[0]);
    assert_ends(worker);

    /* Two processes that are in this test's own group. */
    two_processes("sleep 60 >/dev/null & echo $!; "
                  "sleep 60 >/dev/null & echo $!", pids);
    worker = pidfd_open(pids[1], 0);
    child_adopt(&scene.child, pids[0], pidfd_open(pids[0], 0));
    child_kill(&scene.child);
    ev_run(scene.loop, 0);
    assert_int_equal(scene.gone, pids[0]);
    assert_runs_and_end(worker);
    child_done(&scene.child);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_end_is_told_with_its_status),
        cmocka_unit_test(signals_reach_it),
        cmocka_unit_test(it_gets_nothing_of_ours),
        cmocka_unit_test(it_gets_what_it_is_given),
        cmocka_unit_test(
            a_command_that_is_not_there_is_an_error_with_its_name),
        cmocka_unit_test(an_adopted_one_is_watched_and_signalled),
        cmocka_unit_test(a_child_that_is_killed_takes_its_workers_along),
        cmocka_unit_test(a_child_that_ends_by_itself_leaves_its_workers_alone),
        cmocka_unit_test(
            an_adopted_leader_is_killed_with_its_group_and_another_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

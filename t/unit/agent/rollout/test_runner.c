
/*
 * An operator's commands: how they end, what they are given, what they leave.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rollout/runner.h"


/* By this limit a shell has surely executed the first commands of its text. */
#define SHELL_MS  1500

typedef struct {
    struct ev_loop  *loop;
    runner_spec_t    spec;
    int              calls;
    int              is_done;       /* without an error */
    char             error[RUNNER_ERROR_BYTES];
} scene_t;

static const char *const  scene_env[] = {
    "LLMGW_ID=r1", "LLMGW_VERSION=v2", "HOME=/nowhere", NULL
};


static void
scene_on_done(void *data, const char *error)
{
    scene_t  *scene = data;

    scene->calls++;
    scene->is_done = error == NULL;
    snprintf(scene->error, sizeof(scene->error), "%s", error ? error : "");
    ev_break(scene->loop, EVBREAK_ALL);
}


static void
scene_init(scene_t *scene, const char *command)
{
    memset(scene, 0, sizeof(scene_t));
    scene->loop = ev_default_loop(0);
    scene->spec.command = command;
    scene->spec.env = scene_env;
    scene->spec.timeout_ms = 60000;
}


static void
scene_run(scene_t *scene)
{
    char  error[RUNNER_ERROR_BYTES];

    assert_non_null(runner_start(scene->loop, &scene->spec, scene_on_done,
                                 scene, error));
    ev_run(scene->loop, 0);
    assert_int_equal(scene->calls, 1);
}


static void
assert_ends(const char *command, const char *error)
{
    scene_t  scene;

    scene_init(&scene, command);
    scene_run(&scene);
    assert_string_equal(scene.error, error);
    assert_int_equal(scene.is_done, error[0] == '\0');
}


static void
done_is_exit_status_0(void **state)
{
    assert_ends("true", "");
    assert_ends("exit 3", "exit status 3");
    assert_ends("kill -9 $$", "signal 9");
    assert_ends("llmgw-no-such-command 2>/dev/null", "exit status 127");
}


static void
last_line_is_told(void **state)
{
    assert_ends("echo one; echo two >&2; echo; exit 1",
                "exit status 1: two");
    assert_ends("printf 'no newline'; exit 1", "exit status 1: no newline");
    assert_ends("printf 'a\\033[31m\\377b\\n'; exit 1",
                "exit status 1: a\033[31m\377b");
    assert_ends("echo fine", "");
}


static void
long_output_is_bounded(void **state)
{
    scene_t  scene;

    scene_init(&scene, "yes x | tr -d '\\n' | head -c 5000; exit 1");
    scene_run(&scene);
    assert_true(strlen(scene.error) < 400);

    /* A command that writes more than the limit is not killed, but its write
       fails, which is reported. */
    scene_init(&scene, "head -c 2000000 /dev/zero; echo $? >/dev/null; "
                       "exit 5");
    scene_run(&scene);
    assert_int_equal(strncmp(scene.error, "exit status 5", 13), 0);
    assert_ends("yes x | head -c 2000000",
                "exit status 1: it wrote more than 1024 KiB, which belongs "
                "in a log of its own");
}


static void
talkative_command_is_no_failure(void **state)
{
    assert_ends("yes x | head -c 300000", "");
}


static void
it_gets_what_it_needs_and_nothing_of_ours(void **state)
{
    int      leaked;
    scene_t  scene;

    leaked = fcntl(0, F_DUPFD, 57);     /* not close-on-exec */
    assert_true(leaked >= 57);
    signal(SIGPIPE, SIG_IGN);

    scene_init(&scene,
               "read x && exit 11; "
               "for i in /proc/$$/fd/*; do "
               "  test ${i##*/} -gt 9 && exit 12; done; "
               "test $(cut -d' ' -f5 /proc/$$/stat) = $$ || exit 13; "
               "test $LLMGW_ID$LLMGW_VERSION = r1v2 || exit 14; "
               "test $(env | grep -c ^HOME=) = 1 || exit 15; "
               "test $HOME = /nowhere || exit 16; "
               "test -n \"$PATH\" || exit 17; "
               "kill -PIPE $$");
    scene_run(&scene);
    assert_string_equal(scene.error, "signal 13");

    signal(SIGPIPE, SIG_DFL);
    close(leaked);
}


static void
group_is_ended_at_the_limit(void **state)
{
    int      pid;
    char     path[] = "/tmp/llmgw-runner-XXXXXX";
    char     command[256];
    FILE    *file;
    scene_t  scene;

    close(mkstemp(path));
    snprintf(command, sizeof(command),
             "sleep 1000 & echo $! > %s; echo working; wait", path);
    scene_init(&scene, command);
    scene.spec.timeout_ms = SHELL_MS;
    scene_run(&scene);
    assert_string_equal(scene.error, "not done after 1.5 s: working");

    file = fopen(path, "r");
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    unlink(path);

    /* init reaps it: a zombie counts as ended. */
    snprintf(command, sizeof(command),
             "for i in $(seq 200); do test -e /proc/%d && ! grep -q "
             "'State:.Z' /proc/%d/status || exit 0; sleep 0.05; done; exit 1",
             pid, pid);
    assert_ends(command, "");
}


static void
who_is_deaf_is_killed(void **state)
{
    scene_t          scene;
    struct timespec  from, to;

    scene_init(&scene, "trap '' TERM; while :; do sleep 0.1; done");
    scene.spec.timeout_ms = SHELL_MS;
    clock_gettime(CLOCK_MONOTONIC, &from);
    scene_run(&scene);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_string_equal(scene.error, "not done after 1.5 s");
    assert_true(to.tv_sec - from.tv_sec >= 3);
}


/* A command's own children are not waited for, and may still write. */
static void
background_lives_on(void **state)
{
    char     path[] = "/tmp/llmgw-runner-XXXXXX";
    char     command[512];
    scene_t  scene;

    close(mkstemp(path));
    snprintf(command, sizeof(command),
             "(i=0; while test $i -lt 30; do head -c 10000 /dev/zero; "
             "sleep 0.01; i=$((i+1)); done; echo alive > %s) &", path);
    scene_init(&scene, command);
    scene_run(&scene);
    assert_true(scene.is_done);

    snprintf(command, sizeof(command),
             "for i in $(seq 400); do grep -q alive %s && exit 0; sleep 0.05; "
             "done; exit 1", path);
    assert_ends(command, "");
    unlink(path);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(done_is_exit_status_0),
        cmocka_unit_test(last_line_is_told),
        cmocka_unit_test(long_output_is_bounded),
        cmocka_unit_test(talkative_command_is_no_failure),
        cmocka_unit_test(it_gets_what_it_needs_and_nothing_of_ours),
        cmocka_unit_test(group_is_ended_at_the_limit),
        cmocka_unit_test(who_is_deaf_is_killed),
        cmocka_unit_test(background_lives_on)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

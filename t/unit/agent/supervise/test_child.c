
/* Real child processes, which write to a pipe what they were given. */

#include <fcntl.h>
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

#include "supervise/child.h"


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

    /* And it is reaped. */
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

    child_signal(&scene.child, SIGKILL);    /* to no process */
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

    /* 0: standard input ends at once, no descriptor leaked, SIGPIPE kills. */
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


/* A grandchild, which we cannot wait for. */
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_end_is_told_with_its_status),
        cmocka_unit_test(signals_reach_it),
        cmocka_unit_test(it_gets_nothing_of_ours),
        cmocka_unit_test(
            a_command_that_is_not_there_is_an_error_with_its_name),
        cmocka_unit_test(an_adopted_one_is_watched_and_signalled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

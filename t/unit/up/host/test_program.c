
/* Programs that a launcher keeps: real processes of /bin/sh. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "up/host/bound.h"
#include "up/host/program.h"


typedef struct {
    program_t        program;
    struct ev_loop  *loop;
    char             dir[64];
    int              gone;
} scene_t;


static void
scene_gone(void *data, program_t *program)
{
    scene_t  *s = data;

    s->gone++;
    ev_break(s->loop, EVBREAK_ALL);
}


static int
begin(void **state)
{
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    s->loop = ev_default_loop(0);
    strcpy(s->dir, "/tmp/llmgw-program-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    program_init(&s->program, s->loop, scene_gone, s);
    s->program.end_signal = SIGTERM;
    snprintf(s->program.log, sizeof(s->program.log), "%s/log", s->dir);
    *state = s;

    return 0;
}


static int
end(void **state)
{
    scene_t  *s = *state;

    program_done(&s->program);
    (void) unlink(s->program.log);
    (void) rmdir(s->dir);
    free(s);

    return 0;
}


static void
run_script(scene_t *s, const char *script)
{
    s->program.argv[0] = (char *) "/bin/sh";
    s->program.argv[1] = (char *) "-c";
    s->program.argv[2] = (char *) script;
    program_start(&s->program);
}


/* Waits until the program's log has these words. */
static void
wait_log(scene_t *s, const char *words)
{
    char   text[1024];
    FILE  *f;

    do {
        ev_run(s->loop, EVRUN_NOWAIT);
        usleep(1000);
        memset(text, 0, sizeof(text));
        f = fopen(s->program.log, "r");
        assert_true(f != NULL && fread(text, 1, sizeof(text) - 1, f) < 1024);
        fclose(f);
    } while (strstr(text, words) == NULL);
}


static void
program_that_ends_is_started_again(void **state)
{
    scene_t  *s = *state;

    run_script(s, "echo last words; exit 3");

    while (s->program.starts < 2) {
        ev_run(s->loop, EVRUN_ONCE);
    }

    assert_string_equal(s->program.why,
                        "exit status 3; its log ends: last words");
}


static void
program_that_is_stopped_stays_so_and_is_told_once(void **state)
{
    scene_t  *s = *state;

    run_script(s, "trap 'echo bye; exit 0' TERM; echo up; "
                  "while :; do sleep 0.01; done");
    wait_log(s, "up\n");
    program_stop(&s->program, 60);
    ev_run(s->loop, 0);
    wait_log(s, "bye\n");
    ev_run(s->loop, EVRUN_NOWAIT);
    assert_int_equal(s->gone, 1);
    assert_int_equal(s->program.starts, 1);
}


static void
deaf_program_is_killed_when_it_is_told_again(void **state)
{
    scene_t  *s = *state;

    run_script(s, "trap '' TERM; echo up; while :; do sleep 0.01; done");
    wait_log(s, "up\n");
    program_stop(&s->program, 60);
    program_stop(&s->program, 0.01);
    ev_run(s->loop, 0);
    assert_int_equal(s->gone, 1);
    assert_memory_equal(s->program.why, "signal 9", 8);
}


static void
program_that_waits_to_be_started_again_is_gone_at_once(void **state)
{
    scene_t  *s = *state;

    run_script(s, "exit 1");

    while (!program_is_broken(&s->program)) {
        ev_run(s->loop, EVRUN_ONCE);
    }

    program_stop(&s->program, 60);
    assert_int_equal(s->gone, 0);
    ev_run(s->loop, 0);
    assert_int_equal(s->gone, 1);
}


static void
what_cannot_be_executed_is_in_the_log(void **state)
{
    scene_t  *s = *state;

    s->program.argv[0] = (char *) "/nowhere/nginx";
    program_start(&s->program);

    while (!program_is_broken(&s->program)) {
        ev_run(s->loop, EVRUN_ONCE);
    }

    assert_string_equal(s->program.why, "exit status 127; its log ends: "
                        "/nowhere/nginx: cannot be executed: No such file or "
                        "directory");
}


static void
answer_of_a_command_is_cut_at_the_end_of_the_buffer(void **state)
{
    char         text[8];
    char *const  argv[] = {
        (char *) "/bin/sh", (char *) "-c",
        (char *) "echo 0123456789; echo error >&2; exit 4", NULL
    };

    assert_int_equal(bound_ask(argv, text, sizeof(text)), 4);
    assert_string_equal(text, "0123456");
}


static void
command_ends_with_its_parent(void **state)
{
    int      ends[2];
    char     byte;
    pid_t    parent;
    bound_t  bound;
    child_t  child;
    char     error[CHILD_ERROR_BYTES];

    char *const  argv[] = {
        (char *) "/bin/sh", (char *) "-c",
        (char *) "trap 'echo t; exit 0' TERM; echo u; "
                 "while :; do sleep 0.01; done", NULL
    };

    assert_int_equal(pipe(ends), 0);
    parent = fork();

    if (parent == 0) {
        child_spec(&child);
        child.program = BOUND_PROGRAM;
        child.output_fd = ends[1];
        bound_fill(&bound, SIGTERM, argv);
        _exit(child_spawn(&child, bound.words, error) > 0 && pause());
    }

    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'u');
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 't');
    close(ends[0]);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(answer_of_a_command_is_cut_at_the_end_of_the_buffer),
        cmocka_unit_test(command_ends_with_its_parent),
        cmocka_unit_test_setup_teardown(program_that_ends_is_started_again,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            program_that_is_stopped_stays_so_and_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(
            deaf_program_is_killed_when_it_is_told_again, begin, end),
        cmocka_unit_test_setup_teardown(
            program_that_waits_to_be_started_again_is_gone_at_once, begin,
            end),
        cmocka_unit_test_setup_teardown(what_cannot_be_executed_is_in_the_log,
                                        begin, end)
    };

    /* As in the launcher, this program begins its own programs. */
    if (argc > 1 && strcmp(argv[1], BOUND_COMMAND) == 0) {
        return bound_main(argc - 1, argv + 1);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}

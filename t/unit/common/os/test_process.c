
/* When a process began, whatever its name looks like. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/os/pidfd.h"
#include "common/os/process.h"


static void
a_process_began_before_now(void **state)
{
    uint64_t  began;

    began = process_start_ticks(getpid());
    assert_true(began > 0);
    assert_true(began <= pidfd_ticks());
    assert_int_equal(process_start_ticks(getpid()), began);
}


static void
a_name_of_parentheses_and_numbers_hides_nothing(void **state)
{
    char      name[16];
    uint64_t  began;

    began = process_start_ticks(getpid());
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b) 2 3"), 0);
    assert_int_equal(process_start_ticks(getpid()), began);
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
}


static void
a_process_that_is_gone_never_began(void **state)
{
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        _exit(0);
    }

    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(process_start_ticks(pid), 0);
}


static void
process_is_dead_only_if_that_is_certain(void **state)
{
    pid_t     pid;
    uint64_t  began;

    began = process_start_ticks(getpid());
    assert_int_equal(process_is_dead(getpid(), began), 0);
    assert_int_equal(process_is_dead(getpid(), 0), 0);
    assert_int_equal(process_is_dead(getpid(), began + 1), 1);

    pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }

    began = process_start_ticks(pid);
    assert_int_equal(process_is_dead(pid, began), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(process_is_dead(pid, began), 1);
    assert_int_equal(process_is_dead(pid, 0), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_process_began_before_now),
        cmocka_unit_test(a_name_of_parentheses_and_numbers_hides_nothing),
        cmocka_unit_test(a_process_that_is_gone_never_began),
        cmocka_unit_test(process_is_dead_only_if_that_is_certain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

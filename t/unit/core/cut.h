
/*
 * A change of memory that a child makes instruction by instruction, under
 * ptrace, so that a test sees the memory after each store of the code as it was
 * compiled.
 */

#ifndef CUT_H
#define CUT_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>


/* Called after each store; what it does to the memory is undone. */
typedef void (*cut_look_t)(void *data);


static inline pid_t
cut_child(void (*change)(void *data), void *data)
{
    int    status;
    pid_t  pid;

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid == 0) {
        (void) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void) raise(SIGSTOP);
        change(data);
        (void) raise(SIGSTOP);
        _exit(0);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL),
                     0);

    return pid;
}


/* Returns 0 when the child has made its change. */
static inline int
cut_step(pid_t pid)
{
    int  status;

    assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status));

    if (WSTOPSIG(status) == SIGSTOP) {
        return 0;
    }

    assert_int_equal(WSTOPSIG(status), SIGTRAP);

    return 1;
}


/*
 * Runs the change in a child, and calls look(data) after each of its stores.
 *
 * memory is what the two processes share; in the end it has the whole change.
 * The change makes `least` stores or more; fewer fail the test.
 */
static inline void
cut_at_each_store(void *memory, size_t bytes, void (*change)(void *data),
    cut_look_t look, void *data, uint32_t least)
{
    char      *last;
    pid_t      pid;
    uint32_t   stores;

    last = malloc(bytes);
    assert_non_null(last);
    memcpy(last, memory, bytes);

    stores = 0;
    pid = cut_child(change, data);

    while (cut_step(pid)) {
        if (memcmp(last, memory, bytes) != 0) {
            memcpy(last, memory, bytes);
            stores++;

            look(data);
            memcpy(memory, last, bytes);
        }
    }

    assert_true(stores >= least);

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    free(last);
}

#endif /* CUT_H */

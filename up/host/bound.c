
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child/child.h"
#include "common/os/mono.h"
#include "up/host/bound.h"


#define BOUND_NO_EXEC  127

/* Words before the command: program, "run", signal, parent. */
#define BOUND_NWORDS   4


void
bound_fill(bound_t *bound, int death_signal, char *const *argv)
{
    size_t  n;

    snprintf(bound->signal, sizeof(bound->signal), "%d", death_signal);
    snprintf(bound->parent, sizeof(bound->parent), "%d", (int) getpid());
    bound->words[0] = (char *) "llmgw";
    bound->words[1] = (char *) BOUND_COMMAND;
    bound->words[2] = bound->signal;
    bound->words[3] = bound->parent;

    for (n = 0; argv[n] != NULL; n++) {
        assert(BOUND_NWORDS + n < BOUND_WORDS_MAX - 1);
        bound->words[BOUND_NWORDS + n] = argv[n];
    }

    bound->words[BOUND_NWORDS + n] = NULL;
}


int
bound_main(int argc, char **argv)
{
    if (argc < BOUND_NWORDS) {
        return 2;
    }

    (void) prctl(PR_SET_PDEATHSIG, atoi(argv[1]));

    if (getppid() != (pid_t) atoi(argv[2])) {
        return 0;               /* the parent has ended: no signal comes */
    }

    (void) execv(argv[3], argv + 3);

    fprintf(stderr, "%s: cannot be executed: %s\n", argv[3], strerror(errno));

    return BOUND_NO_EXEC;
}


static int
bound_left_ms(uint64_t until_ms)
{
    uint64_t  now_ms;

    now_ms = mono_ms();

    return now_ms >= until_ms ? 0 : (int) (until_ms - now_ms);
}


/* Reads until the end of file.  0; -1: it took too long. */
static int
bound_read(int fd, char *text, size_t bytes)
{
    char           rest[512];
    size_t         len;
    ssize_t        n;
    uint64_t       until_ms;
    struct pollfd  ready = { fd, POLLIN, 0 };

    until_ms = mono_ms() + BOUND_ASK_S * 1000;
    len = 0;
    text[0] = '\0';

    while (poll(&ready, 1, bound_left_ms(until_ms)) == 1) {

        n = len < bytes - 1 ? read(fd, text + len, bytes - 1 - len)
                            : read(fd, rest, sizeof(rest));

        if (n <= 0) {
            return 0;
        }

        if (len < bytes - 1) {
            len += (size_t) n;
            text[len] = '\0';
        }
    }

    return -1;
}


int
bound_ask(char *const *argv, char *text, size_t bytes)
{
    int      status, is_late, fds[2];
    char     error[CHILD_ERROR_BYTES];
    pid_t    pid;
    bound_t  bound;
    child_t  child;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        snprintf(text, bytes, "%s", strerror(errno));
        return -1;
    }

    bound_fill(&bound, SIGKILL, argv);
    child_spec(&child);
    child.program = BOUND_PROGRAM;
    child.output_fd = fds[1];
    pid = child_spawn(&child, bound.words, error);
    close(fds[1]);

    if (pid == -1) {
        snprintf(text, bytes, "%s", error);
        close(fds[0]);
        return -1;
    }

    is_late = bound_read(fds[0], text, bytes) != 0;
    close(fds[0]);

    if (is_late) {
        (void) kill(-pid, SIGKILL);
        snprintf(text, bytes, "no answer within %d s", BOUND_ASK_S);
    }

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { /* void */ }

    return !is_late && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

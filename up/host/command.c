
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "up/host/command.h"


#define COMMAND_NO_EXEC  127


/* In the child, where only what is async-signal-safe may be called. */
static void
command_become(char *const *argv, int out, int err, int death_signal,
    pid_t parent)
{
    int       i, null;
    sigset_t  none;

    (void) setpgid(0, 0);
    (void) prctl(PR_SET_PDEATHSIG, death_signal);

    if (getppid() != parent) {
        _exit(0);               /* it died before, and no signal comes */
    }

    for (i = 1; i < NSIG; i++) {
        (void) signal(i, SIG_DFL);
    }

    sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    null = open("/dev/null", O_RDWR);

    if (null == -1 || dup2(null, STDIN_FILENO) == -1
        || dup2(out, STDOUT_FILENO) == -1 || dup2(err, STDERR_FILENO) == -1)
    {
        _exit(COMMAND_NO_EXEC);
    }

    (void) close_range(STDERR_FILENO + 1, ~0U, 0);
    (void) execv(argv[0], argv);

    (void) !write(STDERR_FILENO, argv[0], strlen(argv[0]));
    (void) !write(STDERR_FILENO, ": cannot be executed\n", 21);
    _exit(COMMAND_NO_EXEC);
}


pid_t
command_spawn(char *const *argv, int out, int err, int death_signal)
{
    pid_t     pid, parent;
    sigset_t  all, before;

    /* No handler of ours may run in the child. */

    sigfillset(&all);
    (void) sigprocmask(SIG_SETMASK, &all, &before);
    parent = getpid();
    pid = fork();

    if (pid == 0) {
        command_become(argv, out, err, death_signal, parent);
    }

    (void) sigprocmask(SIG_SETMASK, &before, NULL);

    if (pid > 0) {
        (void) setpgid(pid, pid);   /* whichever of the two is first */
    }

    return pid;
}


static int
command_left_ms(const struct timespec *begin)
{
    long             spent_ms;
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    spent_ms = (now.tv_sec - begin->tv_sec) * 1000
               + (now.tv_nsec - begin->tv_nsec) / 1000000;

    return spent_ms >= COMMAND_ASK_S * 1000
           ? 0 : (int) (COMMAND_ASK_S * 1000 - spent_ms);
}


/* Until its end of file.  0; -1: it took too long. */
static int
command_read(int fd, char *text, size_t bytes)
{
    char             rest[512];
    size_t           len;
    ssize_t          n;
    struct pollfd    ready = { fd, POLLIN, 0 };
    struct timespec  begin;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    len = 0;
    text[0] = '\0';

    while (poll(&ready, 1, command_left_ms(&begin)) == 1) {

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
command_ask(char *const *argv, int with_errors, char *text, size_t bytes)
{
    int    status, is_late, fds[2];
    pid_t  pid;

    text[0] = '\0';

    if (pipe2(fds, O_CLOEXEC) != 0) {
        snprintf(text, bytes, "%s", strerror(errno));
        return -1;
    }

    pid = command_spawn(argv, fds[1], with_errors ? fds[1] : STDERR_FILENO,
                        SIGKILL);
    close(fds[1]);

    if (pid == -1) {
        snprintf(text, bytes, "%s", strerror(errno));
        close(fds[0]);
        return -1;
    }

    is_late = command_read(fds[0], text, bytes) != 0;
    close(fds[0]);

    if (is_late) {
        (void) kill(-pid, SIGKILL);
        snprintf(text, bytes, "no answer within %d s", COMMAND_ASK_S);
    }

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { /* void */ }

    return !is_late && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

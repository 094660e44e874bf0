
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rollout/runner.h"


extern char  **environ;

#define RUNNER_SHELL       "/bin/sh"
#define RUNNER_NOT_RUN     127      /* exit status of a shell that could not run
                                       it */
#define RUNNER_LINE_BYTES  320      /* longest last line that is kept */

struct runner_s {
    struct ev_loop  *loop;
    runner_done_pt   on_done;
    void            *data;
    pid_t            pid;           /* and its process group */
    int              output;        /* a file without a name */
    uint64_t         timeout_ms;
    int              is_late;
    ev_child         reaper;
    ev_timer         limit;
};

/*
 * What the child needs.  It is made before the fork, so that nothing is
 * allocated after it.
 */
typedef struct {
    char   *argv[4];
    char  **env;
    int     null;
    int     output;
} runner_child_t;


/* --- the child */

static void
runner_default_signals(void)
{
    int       i;
    sigset_t  none;

    for (i = 1; i < NSIG; i++) {
        signal(i, SIG_DFL);
    }

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}


/*
 * Runs in the child.  It makes only async-signal-safe calls: another thread of
 * the parent may have held a lock at the fork.
 */
static void
runner_exec(const runner_child_t *child)
{
    static const char  failed[] = "cannot execute " RUNNER_SHELL "\n";

    setpgid(0, 0);
    runner_default_signals();

    if (dup2(child->null, STDIN_FILENO) == -1
        || dup2(child->output, STDOUT_FILENO) == -1
        || dup2(child->output, STDERR_FILENO) == -1
        || close_range(STDERR_FILENO + 1, ~0U, 0) == -1)
    {
        _exit(RUNNER_NOT_RUN);
    }

    execve(RUNNER_SHELL, child->argv, child->env);
    (void) !write(STDERR_FILENO, failed, sizeof(failed) - 1);
    _exit(RUNNER_NOT_RUN);
}


/* --- the parent */

static int
runner_open_output(void)
{
    int  fd;

    fd = memfd_create("llmgw-command", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    if (fd != -1
        && (ftruncate(fd, RUNNER_OUTPUT_BYTES) == -1
            || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW|F_SEAL_SHRINK) == -1))
    {
        close(fd);
        return -1;
    }

    return fd;
}


static int
runner_is_among(const char *const *env, const char *variable)
{
    size_t  len;

    len = strcspn(variable, "=") + 1;

    for ( /* void */ ; *env != NULL; env++) {
        if (strncmp(*env, variable, len) == 0) {
            return 1;
        }
    }

    return 0;
}


/*
 * Our own environment, with the variables of `more` in place of ours.  Only the
 * array is allocated.
 */
static char **
runner_build_env(const char *const *more)
{
    char    **env;
    size_t    i, n;

    for (n = 0; environ[n] != NULL; n++) { /* void */ }
    for (i = 0; more[i] != NULL; i++) { /* void */ }

    env = malloc((n + i + 1) * sizeof(char *));
    if (env == NULL) {
        return NULL;
    }

    memcpy(env, more, i * sizeof(char *));

    for (n = 0; environ[n] != NULL; n++) {
        if (!runner_is_among(more, environ[n])) {
            env[i++] = environ[n];
        }
    }

    env[i] = NULL;

    return env;
}


static pid_t
runner_fork(const runner_spec_t *spec, int output)
{
    pid_t           pid;
    runner_child_t  child;

    memset(&child, 0, sizeof(child));
    child.argv[0] = (char *) "sh";
    child.argv[1] = (char *) "-c";
    child.argv[2] = (char *) spec->command;
    child.output = output;

    child.null = open("/dev/null", O_RDONLY|O_CLOEXEC);
    if (child.null == -1) {
        return -1;
    }

    child.env = runner_build_env(spec->env);
    if (child.env == NULL) {
        close(child.null);
        return -1;
    }

    pid = fork();

    if (pid == 0) {
        runner_exec(&child);
    }

    if (pid != -1) {
        setpgid(pid, pid);          /* done by parent and child: the first one
                                       counts */
    }

    free(child.env);
    close(child.null);

    return pid;
}


/* The last line that is not empty, whatever bytes it has. */
static void
runner_last_line(int output, char *line, size_t size)
{
    char    *from, *to;
    char     text[1024];
    off_t    begin, end;
    ssize_t  n;

    line[0] = '\0';
    end = lseek(output, 0, SEEK_CUR);       /* the offset is shared with the
                                               child */

    if (end >= RUNNER_OUTPUT_BYTES) {       /* the output does not fit */
        snprintf(line, size, "it wrote more than %d KiB, which belongs in a "
                 "log of its own", RUNNER_OUTPUT_BYTES / 1024);
        return;
    }

    begin = end < (off_t) sizeof(text) ? 0 : end - (off_t) sizeof(text) + 1;

    n = end <= 0 ? 0 : pread(output, text, end - begin, begin);
    if (n <= 0) {
        return;
    }

    text[n] = '\0';

    for (to = text + n; to > text && isspace((unsigned char) to[-1]); to--) {
        to[-1] = '\0';
    }

    from = strrchr(text, '\n');
    snprintf(line, size, "%.*s", (int) size - 1, from ? from + 1 : text);
}


static void
runner_describe(const runner_t *runner, int status, char *error)
{
    char    how[64];
    char    line[RUNNER_LINE_BYTES];

    if (runner->is_late) {
        snprintf(how, sizeof(how), "not done after %.3g s",
                 runner->timeout_ms / 1e3);

    } else if (WIFSIGNALED(status)) {
        snprintf(how, sizeof(how), "signal %d", WTERMSIG(status));

    } else {
        snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
    }

    runner_last_line(runner->output, line, sizeof(line));
    snprintf(error, RUNNER_ERROR_BYTES, "%s%s%s", how, line[0] ? ": " : "",
             line);
}


static void
runner_reaped(struct ev_loop *loop, ev_child *reaper, int events)
{
    int              status;
    char             error[RUNNER_ERROR_BYTES];
    void            *data;
    runner_t        *runner = reaper->data;
    runner_done_pt   on_done;

    status = reaper->rstatus;
    on_done = runner->on_done;
    data = runner->data;

    if (runner->is_late) {
        kill(-runner->pid, SIGKILL);        /* ends what the shell left
                                               behind */
    }

    if (runner->is_late || status != 0) {
        runner_describe(runner, status, error);
        runner_destroy(runner);
        on_done(data, error);
        return;
    }

    runner_destroy(runner);
    on_done(data, NULL);
}


static void
runner_limit(struct ev_loop *loop, ev_timer *limit, int events)
{
    runner_t  *runner = limit->data;

    kill(-runner->pid, runner->is_late ? SIGKILL : SIGTERM);
    runner->is_late = 1;

    /* repeatedly: it may be in a call that nothing interrupts */
    limit->repeat = RUNNER_KILL_S;
    ev_timer_again(loop, limit);
}


static void
runner_watch(runner_t *runner)
{
    ev_child_init(&runner->reaper, runner_reaped, runner->pid, 0);
    runner->reaper.data = runner;
    ev_child_start(runner->loop, &runner->reaper);

    ev_timer_init(&runner->limit, runner_limit, runner->timeout_ms / 1e3, 0.);
    runner->limit.data = runner;
    ev_timer_start(runner->loop, &runner->limit);
}


runner_t *
runner_start(struct ev_loop *loop, const runner_spec_t *spec,
    runner_done_pt on_done, void *data, char *error)
{
    runner_t  *runner;

    runner = calloc(1, sizeof(runner_t));
    if (runner == NULL) {
        snprintf(error, RUNNER_ERROR_BYTES, "out of memory");
        return NULL;
    }

    runner->loop = loop;
    runner->on_done = on_done;
    runner->data = data;
    runner->timeout_ms = spec->timeout_ms;
    runner->output = runner_open_output();
    runner->pid = runner->output == -1 ? -1 : runner_fork(spec,
                                                          runner->output);

    if (runner->pid == -1) {
        snprintf(error, RUNNER_ERROR_BYTES, "cannot run it: %s",
                 strerror(errno));

        if (runner->output != -1) {
            close(runner->output);
        }

        free(runner);
        return NULL;
    }

    runner_watch(runner);

    return runner;
}


void
runner_destroy(runner_t *runner)
{
    ev_child_stop(runner->loop, &runner->reaper);
    ev_timer_stop(runner->loop, &runner->limit);
    close(runner->output);
    free(runner);
}

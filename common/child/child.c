
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child/child.h"


extern char  **environ;


static void
child_empty(child_t *child)
{
    ev_child_stop(child->loop, &child->reaper);
    ev_io_stop(child->loop, &child->watch);

    if (child->pidfd != -1) {
        close(child->pidfd);
    }

    child->pidfd = -1;
    child->pid = 0;
}


void
child_describe_end(int status, char how[CHILD_END_BYTES])
{
    if (WIFSIGNALED(status)) {
        snprintf(how, CHILD_END_BYTES, "signal %d", WTERMSIG(status));

    } else {
        snprintf(how, CHILD_END_BYTES, "exit status %d", WEXITSTATUS(status));
    }
}


static void
child_reaped(struct ev_loop *loop, ev_child *reaper, int events)
{
    char      how[CHILD_END_BYTES];
    pid_t     pid;
    child_t  *child = reaper->data;

    child_describe_end(reaper->rstatus, how);
    pid = child->pid;
    child_empty(child);
    child->on_gone(child->data, pid, how);
}


static void
child_vanished(struct ev_loop *loop, ev_io *watch, int events)
{
    pid_t     pid;
    child_t  *child = watch->data;

    pid = child->pid;
    child_empty(child);
    child->on_gone(child->data, pid, "ended");
}


void
child_spec(child_t *child)
{
    memset(child, 0, sizeof(child_t));
    child->pidfd = -1;
    child->output_fd = -1;
    child->kept_fds[0] = -1;
    child->kept_fds[1] = -1;
}


void
child_init(child_t *child, struct ev_loop *loop, child_gone_pt on_gone,
    void *data)
{
    child_spec(child);
    child->loop = loop;
    child->on_gone = on_gone;
    child->data = data;

    ev_init(&child->reaper, child_reaped);
    ev_init(&child->watch, child_vanished);
    child->reaper.data = child;
    child->watch.data = child;

    /* its last message on the report connection is read before */
    ev_set_priority(&child->reaper, -1);
    ev_set_priority(&child->watch, -1);
}


void
child_done(child_t *child)
{
    child_empty(child);
}


/*
 * Moves kept_fds to 3 and 4, by way of numbers above all of them: a direct move
 * could overwrite a descriptor that is still to be moved.
 */
static int
child_keep(const child_t *child, posix_spawn_file_actions_t *files)
{
    int  above, i, n, rc;

    above = STDERR_FILENO + 1 + CHILD_KEPT_MAX;

    for (n = 0; n < CHILD_KEPT_MAX && child->kept_fds[n] != -1; n++) {
        above = child->kept_fds[n] >= above ? child->kept_fds[n] + 1 : above;
    }

    for (i = rc = 0; i < n; i++) {
        rc = rc || posix_spawn_file_actions_adddup2(
                       files, child->kept_fds[i], above + i);
    }

    for (i = 0; i < n; i++) {
        rc = rc || posix_spawn_file_actions_adddup2(
                       files, above + i, STDERR_FILENO + 1 + i);
    }

    return rc || posix_spawn_file_actions_addclosefrom_np(
                     files, STDERR_FILENO + 1 + n);
}


static int
child_give(const child_t *child, posix_spawn_file_actions_t *files)
{
    int  fd;

    fd = child->output_fd;

    return posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null",
                                            O_RDONLY, 0)
           || (fd != -1
               && (posix_spawn_file_actions_adddup2(files, fd, STDOUT_FILENO)
                   || posix_spawn_file_actions_adddup2(files, fd,
                                                       STDERR_FILENO)))
           || child_keep(child, files);
}


/*
 * The C library does all of this between clone and exec.  No code of ours runs
 * there: locks of other threads may be held for ever.
 */
static int
child_clone(const child_t *child, pid_t *pid, char *const *argv)
{
    int                         rc;
    sigset_t                    all, none;
    posix_spawnattr_t           attr;
    posix_spawn_file_actions_t  files;

    sigfillset(&all);
    sigemptyset(&none);

    rc = posix_spawnattr_init(&attr);
    if (rc != 0) {
        return rc;
    }

    rc = posix_spawn_file_actions_init(&files);
    if (rc != 0) {
        posix_spawnattr_destroy(&attr);
        return rc;
    }

    rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF
                                         | POSIX_SPAWN_SETSIGMASK
                                         | (child->is_session
                                            ? POSIX_SPAWN_SETSID
                                            : POSIX_SPAWN_SETPGROUP))
         || posix_spawnattr_setsigdefault(&attr, &all)
         || posix_spawnattr_setsigmask(&attr, &none)
         || posix_spawnattr_setpgroup(&attr, 0)
         || child_give(child, &files);

    rc = rc ? ENOMEM : posix_spawnp(pid, child->program != NULL
                                    ? child->program : argv[0], &files, &attr,
                                    argv, environ);

    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);

    return rc;
}


pid_t
child_spawn(const child_t *child, char *const *argv, char *error)
{
    int    rc;
    pid_t  pid;

    rc = child_clone(child, &pid, argv);

    if (rc != 0) {
        snprintf(error, CHILD_ERROR_BYTES, "cannot execute \"%.128s\": %s",
                 argv[0], strerror(rc));
        return -1;
    }

    return pid;
}


int
child_start(child_t *child, char *const *argv, char *error)
{
    pid_t  pid;

    assert(child->pid == 0);

    pid = child_spawn(child, argv, error);

    if (pid == -1) {
        return -1;
    }

    child->pid = pid;
    child->pidfd = pidfd_open(pid, 0);

    ev_child_set(&child->reaper, pid, 0);
    ev_child_start(child->loop, &child->reaper);

    return 0;
}


void
child_adopt(child_t *child, pid_t pid, int pidfd)
{
    assert(child->pid == 0);

    child->pid = pid;
    child->pidfd = pidfd;

    ev_io_set(&child->watch, pidfd, EV_READ);
    ev_io_start(child->loop, &child->watch);
}


void
child_signal(const child_t *child, int signal_number)
{
    if (child->pid == 0) {
        return;
    }

    if (child->pidfd != -1) {
        (void) pidfd_send_signal(child->pidfd, signal_number, NULL, 0);

    } else {
        kill(child->pid, signal_number);    /* it is our child, and not reaped
                                               yet */
    }
}


/* Whether the process leads a group that is not our own. */
static int
child_leads_group(const child_t *child)
{
    return child->pid > 1 && child->pid != getpgrp()
           && getpgid(child->pid) == child->pid;
}


/*
 * The group has the number of its leader, which no other process gets while the
 * leader exists, even as a zombie; the pidfd tells whether it does.
 */
void
child_kill(const child_t *child)
{
    if (child_leads_group(child)
        && (child->pidfd == -1
            || pidfd_send_signal(child->pidfd, 0, NULL, 0) == 0))
    {
        kill(-child->pid, SIGKILL);
    }

    child_signal(child, SIGKILL);
}

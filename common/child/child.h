
/*
 * One child process: started, signalled, watched until it is gone.
 *
 * It gets /dev/null as standard input, the parent's standard output and error,
 * no other descriptor, and default signals.  It leads a process group, so that
 * Ctrl-C in a terminal reaches the parent alone, and so that a child that has
 * to be killed takes its workers along.  A parent that is killed leaves it
 * serving; the agent's next run adopts its replica by its pid.
 *
 * Signals go through a pidfd, which never means another process that was
 * given the same number.  The end of our own child comes from libev, whose
 * default loop reaps every child; an adopted one is another process's child,
 * and its pidfd becomes readable when it ends.
 */

#ifndef CHILD_H
#define CHILD_H

#include <ev.h>
#include <sys/types.h>


#define CHILD_ERROR_BYTES  256
#define CHILD_END_BYTES    64
#define CHILD_KEPT_MAX     2

/*
 * The child is gone.  how: "exit status 1", "signal 9", "ended".  Another child
 * may be started.
 */
typedef void (*child_gone_pt)(void *data, pid_t pid, const char *how);

typedef struct {
    struct ev_loop  *loop;
    child_gone_pt    on_gone;
    void            *data;

    /* settings for each start; the caller may change them in between */
    const char      *program;       /* NULL: argv[0] */
    int              output_fd;     /* for its output and error; -1: our own */
    int              kept_fds[CHILD_KEPT_MAX];  /* become its 3 and 4; -1:
                                                   none */
    int              is_session;    /* it leads a session of its own */

    pid_t            pid;       /* 0: none */
    int              pidfd;     /* -1: none */
    ev_child         reaper;    /* for our own child */
    ev_io            watch;     /* for an adopted one */
} child_t;


/* Prepares for child_spawn() alone, with no further descriptors. */
void child_spec(child_t *child);

/* loop: the default one.  No further descriptors are set. */
void child_init(child_t *child, struct ev_loop *loop, child_gone_pt on_gone,
    void *data);

/* Stops watching; the process keeps running. */
void child_done(child_t *child);

/* Writes "exit status 1" or "signal 9", from the status of waitpid(). */
void child_describe_end(int status, char how[CHILD_END_BYTES]);

/*
 * Starts a program, which is looked for in PATH.  0, or -1 and a reason in
 * error.
 */
int child_start(child_t *child, char *const *argv, char *error);

/*
 * The same without a loop, for a process that waits for its children itself.
 * Returns the pid; or -1 and a reason in error.
 */
pid_t child_spawn(const child_t *child, char *const *argv, char *error);

/* Takes over pidfd.  If the process is gone already, on_gone is called, too. */
void child_adopt(child_t *child, pid_t pid, int pidfd);

/* Signals only the process, which ends its workers itself. */
void child_signal(const child_t *child, int signal_number);

/*
 * SIGKILL to the process and, if it leads a process group, to that group: a
 * killed engine cannot end its workers, and they would keep its port and its
 * device.  Processes left behind by a child that ended by itself are not
 * killed.
 */
void child_kill(const child_t *child);

#endif /* CHILD_H */

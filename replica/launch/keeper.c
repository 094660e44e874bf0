
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child/cgroup.h"
#include "common/child/child.h"
#include "common/child/tree.h"
#include "replica/launch/keeper.h"


#define KEEPER_SOCKET_FD  3
#define KEEPER_LOCK_FD    4
#define KEEPER_AGAIN_MS   20

/* Words before the command: name, depth, cgroup, "--". */
#define KEEPER_NWORDS  4

typedef struct {
    int          depth;         /* keepers from here on, this one included */
    const char  *cgroup;        /* NULL: none */
    pid_t        child;         /* the next keeper, or the engine; 0: ended */
    int          signals_fd;
    int          is_ending;
} keeper_t;


int
keeper_is_asked_for(int argc, char **argv)
{
    return argc > KEEPER_NWORDS && strcmp(argv[0], KEEPER_NAME) == 0;
}


char **
keeper_words(char *depth, const char *cgroup, char *const *command)
{
    char    **words;
    size_t    n;

    for (n = 0; command[n] != NULL; n++) { /* void */ }

    words = calloc(KEEPER_NWORDS + n + 1, sizeof(char *));

    if (words == NULL) {
        return NULL;
    }

    words[0] = (char *) KEEPER_NAME;
    words[1] = depth;
    words[2] = cgroup != NULL ? (char *) cgroup : (char *) "-";
    words[3] = (char *) "--";
    memcpy(words + KEEPER_NWORDS, command, n * sizeof(char *));

    return words;
}


/* If the adapter has ended, the message is lost, which does no harm. */
static void
keeper_report(char what, const char *text)
{
    int   n;
    char  word[KEEPER_WORD_BYTES];

    n = snprintf(word, sizeof(word), "%c%s", what, text);
    (void) send(KEEPER_SOCKET_FD, word, (size_t) n, MSG_NOSIGNAL|MSG_DONTWAIT);
}


/* --- the child */

static pid_t
keeper_spawn_next(const keeper_t *k, char **argv, char *error)
{
    char     depth[16];
    char   **words;
    pid_t    pid;
    child_t  child;

    snprintf(depth, sizeof(depth), "%d", k->depth - 1);
    words = keeper_words(depth, k->cgroup, argv + KEEPER_NWORDS);

    if (words == NULL) {
        snprintf(error, CHILD_ERROR_BYTES, "out of memory");
        return -1;
    }

    child_spec(&child);
    child.program = "/proc/self/exe";
    child.kept_fds[0] = KEEPER_SOCKET_FD;
    child.kept_fds[1] = KEEPER_LOCK_FD;
    child.is_session = 1;
    pid = child_spawn(&child, words, error);
    free(words);

    return pid;
}


/*
 * A child begins in its parent's control group.  So the keeper enters the
 * engine's group for the fork: processes that the engine starts at once are in
 * there, too.
 */
static pid_t
keeper_spawn_engine(const keeper_t *k, char **argv, char *error)
{
    pid_t    pid;
    child_t  child;

    child_spec(&child);
    child.is_session = 1;

    if (k->cgroup != NULL) {
        (void) cgroup_enter(k->cgroup);
    }

    pid = child_spawn(&child, argv + KEEPER_NWORDS, error);

    if (k->cgroup != NULL) {
        (void) cgroup_leave(k->cgroup);
    }

    return pid;
}


/* Starts the child.  0, or -1, and the adapter was notified. */
static int
keeper_start(keeper_t *k, char **argv)
{
    char  error[CHILD_ERROR_BYTES], number[32];

    k->child = k->depth > 1 ? keeper_spawn_next(k, argv, error)
                            : keeper_spawn_engine(k, argv, error);

    if (k->child == -1) {
        k->child = 0;
        keeper_report(KEEPER_ENDED, error);
        return -1;
    }

    if (k->depth == 1) {
        snprintf(number, sizeof(number), "%d", (int) k->child);
        keeper_report(KEEPER_STARTED, number);
    }

    return 0;
}


/*
 * Kills children, but not the next keeper, which ends by itself for the same
 * reasons: if it was killed here, and then this process, processes that it had
 * not ended yet would become children of init.
 *
 * Most engines are one process group, and killing the group is faster than
 * killing one generation after the other.  Its number is not used again before
 * the child is waited for.
 */
static void
keeper_kill(const keeper_t *k)
{
    if (k->cgroup != NULL) {
        cgroup_kill(k->cgroup);
    }

    if (k->depth > 1) {
        tree_kill(KEEPER_NAME);
        return;
    }

    if (k->child > 0) {
        (void) kill(-k->child, SIGKILL);
    }

    tree_kill(NULL);
}


static void
keeper_reap(keeper_t *k)
{
    int        status;
    char       how[CHILD_END_BYTES];
    siginfo_t  info;

    for ( ;; ) {
        info.si_pid = 0;

        if (waitid(P_ALL, 0, &info, WEXITED|WNOHANG|WNOWAIT) == -1
            || info.si_pid == 0)
        {
            return;
        }

        if (info.si_pid == k->child) {
            k->is_ending = 1;
            keeper_kill(k);
        }

        if (waitpid(info.si_pid, &status, 0) == -1) {
            return;
        }

        if (info.si_pid == k->child) {
            k->child = 0;

            if (k->depth == 1) {
                child_describe_end(status, how);
                keeper_report(KEEPER_ENDED, how);
            }
        }
    }
}


/* --- its life */

static void
keeper_on_signals(keeper_t *k)
{
    struct signalfd_siginfo  info;

    while (read(k->signals_fd, &info, sizeof(info)) == sizeof(info)) {

        if (info.ssi_signo == SIGTERM && k->child > 0) {
            (void) kill(k->child, SIGTERM);
        }
    }

    keeper_reap(k);
}


static void
keeper_live(keeper_t *k)
{
    struct pollfd  fds[2];

    fds[0] = (struct pollfd) { .fd = k->signals_fd, .events = POLLIN };
    fds[1] = (struct pollfd) { .fd = KEEPER_SOCKET_FD };

    for ( ;; ) {

        if (k->is_ending) {
            fds[1].fd = -1;
            keeper_kill(k);
            keeper_reap(k);

            if (tree_is_gone()) {
                return;
            }
        }

        if (poll(fds, 2, k->is_ending ? KEEPER_AGAIN_MS : -1) == -1
            && errno != EINTR)
        {
            k->is_ending = 1;           /* without poll() nothing is watched */
        }

        keeper_on_signals(k);

        if (fds[1].fd != -1 && (fds[1].revents & (POLLHUP|POLLERR))) {
            k->is_ending = 1;
        }
    }
}


/*
 * Blocks the signals that a terminal or an operator may send to the whole tree,
 * so that they end no keeper.
 */
static int
keeper_watch_signals(keeper_t *k)
{
    sigset_t  set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);

    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return -1;
    }

    k->signals_fd = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    return k->signals_fd == -1 ? -1 : 0;
}


int
keeper_main(int argc, char **argv)
{
    keeper_t  k;

    memset(&k, 0, sizeof(k));
    k.depth = atoi(argv[1]);
    k.cgroup = strcmp(argv[2], "-") != 0 ? argv[2] : NULL;

    (void) prctl(PR_SET_NAME, KEEPER_NAME);

    if (tree_adopt() != 0 || keeper_watch_signals(&k) != 0) {
        keeper_report(KEEPER_ENDED, strerror(errno));
        return 1;
    }

    if (keeper_start(&k, argv) != 0) {
        return 1;
    }

    keeper_live(&k);

    return 0;
}

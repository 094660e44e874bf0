
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "replica/simulated/workers.h"


int
workers_take_memory(size_t bytes, int is_shared)
{
    void  *memory;

    if (bytes == 0) {
        return 0;
    }

    memory = mmap(NULL, bytes, PROT_READ|PROT_WRITE,
                  (is_shared ? MAP_SHARED : MAP_PRIVATE)
                  |MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        return -1;
    }

    memset(memory, 1, bytes);

    return 0;
}


/* --- in a worker: only system calls, since the parent has threads */

/* Closes all descriptors but 0 to 2, the worker's own socket and the lock
   file. */
static void
workers_close_others(int fd, int lock_fd)
{
    int  low, high;

    low = fd < lock_fd || lock_fd < 0 ? fd : lock_fd;
    high = fd < lock_fd || lock_fd < 0 ? lock_fd : fd;

    if (low > 3) {
        (void) close_range(3, (unsigned) low - 1, 0);
    }

    if (high < 0) {
        high = low;

    } else if (high > low + 1) {
        (void) close_range((unsigned) low + 1, (unsigned) high - 1, 0);
    }

    (void) close_range((unsigned) high + 1, ~0U, 0);
}


static void __attribute__((noreturn))
workers_live(const workers_t *w, int fd, pid_t parent)
{
    char      word;
    sigset_t  none;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);

    if (getppid() != parent) {
        _exit(0);
    }

    workers_close_others(fd, w->lock_fd);
    (void) prctl(PR_SET_NAME, "llmgw-worker");
    (void) signal(SIGTERM, SIG_IGN);    /* the parent decides when to end */
    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);

    while (read(fd, &word, 1) == 1) {

        if (workers_take_memory(w->bytes, w->is_shared) != 0
            || send(fd, &word, 1, MSG_NOSIGNAL) != 1)
        {
            _exit(1);
        }
    }

    _exit(0);
}


/* --- in the engine */

static void
workers_stop(workers_one_t *one)
{
    ev_io_stop(one->workers->loop, &one->io);
    close(one->fd);
    one->fd = -1;
}


static void
workers_on_word(struct ev_loop *loop, ev_io *io, int revents)
{
    char            word;
    ssize_t         n;
    workers_t      *w;
    workers_one_t  *one;

    one = io->data;
    w = one->workers;
    n = recv(one->fd, &word, 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n == 1) {
        if (++w->nfull == w->count) {
            w->on_full(w->data);
        }

        return;
    }

    log_write(w->log, LOG_ERROR, "standby: worker %d died, and the engine "
              "with it", (int) one->pid);
    workers_stop(one);
    w->on_death(w->data);
}


static int
workers_fork(workers_t *w, workers_one_t *one)
{
    int    ends[2];
    pid_t  parent;

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }

    parent = getpid();
    one->pid = fork();

    if (one->pid == 0) {
        workers_live(w, ends[1], parent);
    }

    close(ends[1]);

    if (one->pid == -1) {
        close(ends[0]);
        return -1;
    }

    one->workers = w;
    one->fd = ends[0];
    ev_io_init(&one->io, workers_on_word, one->fd, EV_READ);
    one->io.data = one;
    ev_io_start(w->loop, &one->io);

    return w->on_fork(w->data, one->pid);
}


int
workers_begin(workers_t *w)
{
    int  i;

    for (i = 0; i < w->count; i++) {
        w->all[i].fd = -1;
    }

    for (i = 0; i < w->count; i++) {
        if (workers_fork(w, &w->all[i]) != 0) {
            log_write(w->log, LOG_ERROR, "standby: no worker: %s",
                      strerror(errno));
            return -1;
        }
    }

    return 0;
}


int
workers_fill(workers_t *w)
{
    int   i;
    char  word;

    if (w->count == 0) {
        if (workers_take_memory(w->bytes, w->is_shared) != 0) {
            log_write(w->log, LOG_ERROR, "no memory for the model");
            return -1;
        }

        w->on_full(w->data);
        return 0;
    }

    word = 'f';

    for (i = 0; i < w->count; i++) {
        if (send(w->all[i].fd, &word, 1, MSG_NOSIGNAL|MSG_DONTWAIT) != 1) {
            log_write(w->log, LOG_ERROR, "standby: worker %d: %s",
                      (int) w->all[i].pid, strerror(errno));
            return -1;
        }
    }

    return 0;
}


void
workers_done(workers_t *w)
{
    int  i;

    for (i = 0; i < w->count; i++) {
        if (w->all[i].workers != NULL && w->all[i].fd != -1) {
            workers_stop(&w->all[i]);
        }
    }
}

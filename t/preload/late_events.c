
/*
 * Preloaded into programs of a whole run of tests: an event loop that notices
 * late, and in any order, what has happened.
 *
 * A process of a busy machine stands still for a while, and what comes from
 * two sockets has no order.  Both are rare on a quiet machine; here each look
 * at the sockets comes up to LATE_MS later, and what it finds is shuffled.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS  20

typedef int  (*epoll_wait_t)(int, struct epoll_event *, int, int);
typedef int  (*epoll_pwait_t)(int, struct epoll_event *, int, int,
    const sigset_t *);

static __thread unsigned  seed;


static int
below(int n)
{
    if (seed == 0) {
        seed = (unsigned) gettid();
    }

    return rand_r(&seed) % n;
}


static void
pause_until_late(int timeout)
{
    struct timespec  pause = { 0, 0 };

    if (timeout != 0) {
        pause.tv_nsec = below(LATE_MS * 1000) * 1000L;
        nanosleep(&pause, NULL);
    }
}


static int
shuffled(struct epoll_event *events, int n)
{
    int                 i, other;
    struct epoll_event  event;

    for (i = n - 1; i > 0; i--) {
        other = below(i + 1);
        event = events[i];
        events[i] = events[other];
        events[other] = event;
    }

    return n;
}


int
epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    epoll_wait_t  next = (epoll_wait_t) dlsym(RTLD_NEXT, "epoll_wait");

    pause_until_late(timeout);

    return shuffled(events, next(fd, events, most, timeout));
}


int
epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
    const sigset_t *mask)
{
    epoll_pwait_t  next = (epoll_pwait_t) dlsym(RTLD_NEXT, "epoll_pwait");

    pause_until_late(timeout);

    return shuffled(events, next(fd, events, most, timeout, mask));
}

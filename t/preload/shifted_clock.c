
/*
 * Preloaded into a daemon or nginx: its wall clock is ahead by the number of
 * hours in the file that $LLMGW_TEST_HOURS names, and its monotonic clock by
 * the number of seconds in the file that $LLMGW_TEST_SECONDS names.  The files
 * are read at each call.
 *
 * nginx reads the clock in a signal's handler, too.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


static long
ahead(const char *variable)
{
    int          fd;
    char         text[32];
    ssize_t      len;
    const char  *path;

    path = getenv(variable);
    fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd == -1) {
        return 0;
    }

    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';

    return strtol(text, NULL, 10);
}


int
clock_gettime(clockid_t clock, struct timespec *now)
{
    int  rc;

    rc = syscall(SYS_clock_gettime, clock, now);

    if (rc == 0 && clock == CLOCK_REALTIME) {
        now->tv_sec += ahead("LLMGW_TEST_HOURS") * 3600;

    } else if (rc == 0 && (clock == CLOCK_MONOTONIC
                           || clock == CLOCK_MONOTONIC_COARSE))
    {
        now->tv_sec += ahead("LLMGW_TEST_SECONDS");
    }

    return rc;
}


int
gettimeofday(struct timeval *now, void *zone)
{
    struct timespec  precise;

    (void) zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;

    return 0;
}

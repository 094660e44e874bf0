
/*
 * Preloaded into an agent: its wall clock is ahead by as many hours as stand
 * in the file that $LLMGW_TEST_HOURS names, at each look.
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


static long
hours_ahead(void)
{
    long         hours;
    FILE        *file;
    const char  *path;

    path = getenv("LLMGW_TEST_HOURS");
    file = path ? fopen(path, "re") : NULL;
    hours = 0;

    if (file != NULL) {
        if (fscanf(file, "%ld", &hours) != 1) {
            hours = 0;
        }

        fclose(file);
    }

    return hours;
}


int
clock_gettime(clockid_t clock, struct timespec *now)
{
    int  rc;

    rc = syscall(SYS_clock_gettime, clock, now);

    if (rc == 0 && clock == CLOCK_REALTIME) {
        now->tv_sec += hours_ahead() * 3600;
    }

    return rc;
}

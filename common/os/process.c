
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/process.h"


#define PROCESS_START_FIELD  22     /* of /proc/PID/stat, see proc(5) */


uint64_t
process_start_ticks(pid_t pid)
{
    int       fd, i;
    char     *field, path[32], text[1024];
    ssize_t   n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);

    fd = open(path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }

    n = read(fd, text, sizeof(text) - 1);
    close(fd);

    if (n <= 0) {
        return 0;
    }

    /* The second field is a name, and may hold anything. */
    text[n] = '\0';
    field = strrchr(text, ')');

    for (i = 2; field != NULL && i < PROCESS_START_FIELD; i++) {
        field = strchr(field + 1, ' ');
    }

    return field != NULL ? strtoull(field, NULL, 10) : 0;
}


int
process_is_dead(pid_t pid, uint64_t started)
{
    uint64_t  now;

    if (kill(pid, 0) == -1 && errno == ESRCH) {
        return 1;
    }

    now = process_start_ticks(pid);

    return started > 0 && now > 0 && now != started;
}


#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/process.h"


/* Numbers of fields of /proc/PID/stat, see proc(5). */
#define PROCESS_PARENT_FIELD  4
#define PROCESS_START_FIELD   22


static uint64_t
process_field(pid_t pid, int number)
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

    /* the second field is a name, which may contain anything */
    text[n] = '\0';
    field = strrchr(text, ')');

    for (i = 2; field != NULL && i < number; i++) {
        field = strchr(field + 1, ' ');
    }

    return field != NULL ? strtoull(field, NULL, 10) : 0;
}


uint64_t
process_start_ticks(pid_t pid)
{
    return process_field(pid, PROCESS_START_FIELD);
}


pid_t
process_parent(pid_t pid)
{
    return (pid_t) process_field(pid, PROCESS_PARENT_FIELD);
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

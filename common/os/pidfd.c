
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/os/pidfd.h"
#include "common/os/process.h"


/*
 * Linux 6.5: a pidfd of the peer itself, not of a later process with its
 * number.
 */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD  77
#endif


uint64_t
pidfd_ticks(void)
{
    uint64_t         hz;
    struct timespec  now;

    hz = (uint64_t) sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &now);

    return (uint64_t) now.tv_sec * hz
           + (uint64_t) now.tv_nsec * hz / 1000000000;
}


static int
pidfd_polls(int fd, short events)
{
    struct pollfd  p = { fd, events, 0 };

    return poll(&p, 1, 0) == 1;
}


int
pidfd_is_dead(int fd)
{
    return pidfd_polls(fd, POLLIN);
}


/*
 * Opens the process with that number if it did not begin after that time.
 * Facts read by the number are valid if the process is alive afterwards.
 */
static int
pidfd_open_older(pid_t pid, uint64_t not_after, uint64_t *start_ticks)
{
    int  fd;

    if (pid <= 0) {
        return -1;
    }

    fd = pidfd_open(pid, 0);

    if (fd == -1) {
        return -1;
    }

    *start_ticks = process_start_ticks(pid);

    if (*start_ticks == 0 || *start_ticks > not_after || pidfd_is_dead(fd)) {
        close(fd);
        return -1;
    }

    return fd;
}


int
pidfd_of_peer(int sock, uint64_t accepted_ticks, pidfd_t *peer)
{
    socklen_t     len;
    struct ucred  who;

    len = sizeof(who);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0) {
        return -1;
    }

    peer->pid = who.pid;
    len = sizeof(peer->fd);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &peer->fd, &len) == 0) {
        peer->start_ticks = who.pid > 0 ? process_start_ticks(who.pid) : 0;
        return 0;
    }

    peer->fd = pidfd_open_older(who.pid, accepted_ticks, &peer->start_ticks);

    if (peer->fd != -1 && pidfd_polls(sock, POLLRDHUP)) {
        close(peer->fd);
        return -1;
    }

    return peer->fd != -1 ? 0 : -1;
}


int
pidfd_of_process(pid_t pid, uint64_t start_ticks)
{
    int       fd;
    uint64_t  found;

    fd = pidfd_open_older(pid, start_ticks, &found);

    if (fd != -1 && found != start_ticks) {
        close(fd);
        return -1;
    }

    return fd;
}


/* Reads the first number in the line that begins with name, of a file of /proc.
   0, or -1: there is no such line. */
static int
pidfd_proc_number(const char *path, const char *name, long long *number)
{
    int    rc;
    char   line[256];
    FILE  *file;

    file = fopen(path, "re");

    if (file == NULL) {
        return -1;
    }

    rc = -1;

    while (rc != 0 && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            *number = strtoll(line + strlen(name), NULL, 10);
            rc = 0;
        }
    }

    fclose(file);

    return rc;
}


/*
 * Reads the number of the process as we see it.  0; -1: fd is not a process's.
 */
static int
pidfd_number(int fd, long long *pid)
{
    char  path[64];

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);

    return pidfd_proc_number(path, "Pid:", pid);
}


int
pidfd_is_valid(int fd)
{
    long long  pid;

    return pidfd_number(fd, &pid) == 0;
}


int
pidfd_is_of_user(int fd, uid_t uid)
{
    char       path[64];
    long long  pid, found;

    if (pidfd_number(fd, &pid) != 0 || pid <= 0) {
        return 0;
    }

    snprintf(path, sizeof(path), "/proc/%lld/status", pid);

    return pidfd_proc_number(path, "Uid:", &found) == 0
           && found == (long long) uid && !pidfd_is_dead(fd);
}


int
pidfd_can_signal(int fd)
{
    return pidfd_send_signal(fd, 0, NULL, 0) == 0 || errno == ESRCH;
}


int
pidfd_kill(int fd)
{
    return pidfd_send_signal(fd, SIGKILL, NULL, 0);
}


void
pidfd_boot_id(char *id)
{
    FILE  *file;

    id[0] = '\0';
    file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file != NULL) {
        if (fgets(id, PIDFD_BOOT_ID_BYTES, file) == NULL) {
            id[0] = '\0';
        }

        fclose(file);
    }
}


/*
 * Descriptors of processes: they become readable when the process dies, and
 * never refer to another process.
 */

#ifndef PIDFD_H
#define PIDFD_H

#include <stdint.h>
#include <sys/types.h>


#define PIDFD_BOOT_ID_BYTES  37

typedef struct {
    int       fd;
    pid_t     pid;              /* 0: in a PID namespace that we do not see */
    uint64_t  start_ticks;      /* its start, since boot; 0: unknown, as pid */
} pidfd_t;


/* The present time, in the unit of start_ticks. */
uint64_t pidfd_ticks(void);

/*
 * Finds the process that connected the unix socket `sock`, by SO_PEERPIDFD
 * (Linux 6.5), or else SO_PEERCRED's pid, if that process is older than the
 * connection, which was accepted at accepted_ticks, and the connection still
 * stands.  0, or -1: there is no way to watch it.
 */
int pidfd_of_peer(int sock, uint64_t accepted_ticks, pidfd_t *peer);

/* Opens the process with this number that began at that time.  A descriptor, or
   -1: it is gone. */
int pidfd_of_process(pid_t pid, uint64_t start_ticks);

/* Whether fd is a descriptor of a process at all. */
int pidfd_is_valid(int fd);

/*
 * Whether the process lives and has this real user.  0 also if that cannot be
 * seen.
 */
int pidfd_is_of_user(int fd, uid_t uid);

/* Whether the process has ended. */
int pidfd_is_dead(int fd);

/* Whether we may send the process signals.  We may not if it is another user's,
   or in a PID namespace that is not below our own. */
int pidfd_can_signal(int fd);

/* Sends SIGKILL.  0, or -1 and errno. */
int pidfd_kill(int fd);

/* Writes the kernel's id of this boot; "" if it is unknown. */
void pidfd_boot_id(char *id);

#endif /* PIDFD_H */

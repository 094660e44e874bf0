
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
    pid_t     pid;              /* 0: of a PID namespace that we do not see */
    uint64_t  start_ticks;      /* since boot; 0: unknown, as that pid */
} pidfd_t;


/* Now, as start_ticks counts. */
uint64_t pidfd_ticks(void);

/*
 * The process that connected the unix socket `sock`: SO_PEERPIDFD (Linux 6.5),
 * or else SO_PEERCRED's pid, if that process is older than the connection,
 * which was accepted at accepted_ticks, and the connection still stands.
 * 0, or -1: there is no way to watch it.
 */
int pidfd_of_peer(int sock, uint64_t accepted_ticks, pidfd_t *peer);

/* The process with this number that began at that time.  A descriptor, or -1:
   it is gone. */
int pidfd_of_process(pid_t pid, uint64_t start_ticks);

/* Is fd one of a process at all? */
int pidfd_is_valid(int fd);

/* Does it live, with this real user?  0 as well: that cannot be seen. */
int pidfd_is_of_user(int fd, uid_t uid);

/* Has the process ended? */
int pidfd_is_dead(int fd);

/* May we send it signals?  Not those of other users and of PID namespaces
   that are not below our own. */
int pidfd_can_signal(int fd);

/* SIGKILL.  0, or -1 and errno. */
int pidfd_kill(int fd);

/* The kernel's id of this boot; "" if unknown. */
void pidfd_boot_id(char *id);

#endif /* PIDFD_H */

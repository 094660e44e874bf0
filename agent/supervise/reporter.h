
/*
 * The process at the other end of the report connection.  Its death is noticed
 * in three ways; the first one counts.
 *
 *   end of file      the connection itself: control/control.c
 *   witness          before a large process's memory is freed, where the
 *                    replica gave one with its first report
 *   pidfd            when another process holds the connection open: a
 *                    child of the replica's that inherited it
 *
 * What the process had sent before it died is read first: a goodbye counts.
 */

#ifndef REPORTER_H
#define REPORTER_H

#include <ev.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/witness.h"


/* The process is dead.  Called once. */
typedef void (*reporter_dead_pt)(void *data);

typedef struct {
    struct ev_loop    *loop;
    reporter_dead_pt   on_dead;
    void              *data;
    int                socket_fd;   /* of the connection; -1: no reporter */
    pid_t              pid;         /* 0: unknown, in another namespace */
    int                pidfd;       /* certainly of that process; -1: none */
    ev_io              watch;
    witness_t         *witness;     /* NULL: none */
} reporter_t;


void reporter_init(reporter_t *reporter, struct ev_loop *loop,
    reporter_dead_pt on_dead, void *data);

/*
 * Watches the process that reports.  accepted_ticks: when the connection was
 * accepted (common/os/pidfd.h); a process that began later only has the number
 * of the one that connected.  passed_fd: the descriptor that came with the
 * report, which is taken over; -1: none.
 */
void reporter_watch(reporter_t *reporter, int socket_fd,
    uint64_t accepted_ticks, int passed_fd);

/* There is no reporter any more.  Allowed if there was none. */
void reporter_forget(reporter_t *reporter);

/* Sends a signal to the process, and to no other one.  0; -1 and errno: ESRCH,
   it died; EBADF, it is not certain which process it is. */
int reporter_signal(const reporter_t *reporter, int signal_number);

/* A pidfd of the process, which the caller owns; -1: there is none. */
int reporter_pidfd(const reporter_t *reporter);

#endif /* REPORTER_H */

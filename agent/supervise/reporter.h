
/*
 * The process at the other end of the report connection.  Its death is noticed
 * in three ways; the first one counts.
 *
 *   end of file      the connection itself: control/control.c
 *   witness          before a large process's memory is freed, where the
 *                    replica gave one with its first report
 *   pidfd            when somebody else holds the connection open: a child of
 *                    the replica's that inherited it
 *
 * What it had sent before it died is read first: a goodbye counts.
 */

#ifndef REPORTER_H
#define REPORTER_H

#include <ev.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/witness.h"


/* Comes once. */
typedef void (*reporter_dead_pt)(void *data);

typedef struct {
    struct ev_loop    *loop;
    reporter_dead_pt   on_dead;
    void              *data;
    int                socket_fd;   /* the connection's; -1: no reporter */
    pid_t              pid;         /* 0: unknown, of another namespace */
    int                pidfd;       /* of that process for certain; -1: none */
    ev_io              watch;
    witness_t         *witness;     /* NULL: none */
} reporter_t;


void reporter_init(reporter_t *reporter, struct ev_loop *loop,
    reporter_dead_pt on_dead, void *data);

/*
 * accepted_ticks: when the connection was accepted (common/os/pidfd.h); a
 * younger process only has the number of the one that opened it.  passed_fd:
 * what came with the report, -1: nothing; it is taken over.
 */
void reporter_watch(reporter_t *reporter, int socket_fd,
    uint64_t accepted_ticks, int passed_fd);

/* There is no reporter any more.  Harmless when there was none. */
void reporter_forget(reporter_t *reporter);

/* It gets the signal, and no other process does: 0; -1 and errno: ESRCH, it
   died; EBADF, which process it is is not known for certain. */
int reporter_signal(const reporter_t *reporter, int signal_number);

/* A pidfd that is the caller's; -1: none. */
int reporter_pidfd(const reporter_t *reporter);

#endif /* REPORTER_H */

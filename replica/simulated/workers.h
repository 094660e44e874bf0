
/*
 * What a model takes beside its machine: memory, in this process or in worker
 * processes, as an engine with several accelerators has them.
 *
 *   begin    workers are forked, and wait
 *   on_fork  of each: the caller registers it where its death is watched
 *   fill     now memory is taken, and touched; on_full when all is there
 *
 * A worker has the descriptors of its own pipe and of the lock file, and no
 * other of its parent's: a socket in its hands would hide its parent's death.
 * It ends with its parent (PDEATHSIG, and its pipe).  If one ends before that,
 * on_death ends the engine.
 */

#ifndef WORKERS_H
#define WORKERS_H

#include <ev.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/log.h"


#define WORKERS_MAX  64

typedef struct workers_s  workers_t;

typedef struct {
    workers_t  *workers;
    pid_t       pid;
    int         fd;             /* a socket: -1: none */
    ev_io       io;
} workers_one_t;

struct workers_s {
    /* the caller's */
    struct ev_loop  *loop;
    const log_t     *log;
    int              count;             /* 0: this process has the memory */
    size_t           bytes;             /* of each */
    int              is_shared;         /* memory of a kind that others could
                                           map, and that counts as Shmem */
    int              lock_fd;           /* that workers inherit */
    int            (*on_fork)(void *data, pid_t pid);
    void           (*on_full)(void *data);
    void           (*on_death)(void *data);
    void            *data;

    /* its own */
    int              nfull;
    workers_one_t    all[WORKERS_MAX];
};


/* The caller has filled in the first part.  0, or -1 and one line in the
   log. */
int workers_begin(workers_t *workers);

/* Likewise; on_full() comes from the loop, or at once. */
int workers_fill(workers_t *workers);

/* Ends them. */
void workers_done(workers_t *workers);

/* Takes memory in this process, for good, and touches it, so that the kernel
   has to free each page at the end.  0, or -1: there is none. */
int workers_take_memory(size_t bytes, int is_shared);

#endif /* WORKERS_H */

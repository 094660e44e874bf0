
/*
 * The memory of a simulated model, in this process or in worker processes, such
 * as an engine with several accelerators has.
 *
 *   begin    workers are forked, and wait
 *   on_fork  for each worker: the caller registers it at the lock service
 *   fill     memory is taken, and touched; on_full when all have theirs
 *
 * A worker keeps the descriptors of its own pipe and of the lock file, and
 * closes all others of its parent's, since an open socket would hide its
 * parent's death.  It ends with its parent (PDEATHSIG, and its pipe).  If a
 * worker ends before its parent, on_death ends the engine.
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
    int         fd;             /* a socket; -1: none */
    ev_io       io;
} workers_one_t;

struct workers_s {
    /* the caller's */
    struct ev_loop  *loop;
    const log_t     *log;
    int              count;             /* 0: this process takes the memory */
    size_t           bytes;             /* of each */
    int              is_shared;         /* memory that others could map, and
                                           that counts as Shmem */
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

/* Likewise; on_full() is called from the loop, or before this returns. */
int workers_fill(workers_t *workers);

/* Ends all workers. */
void workers_done(workers_t *workers);

/* Takes memory in this process until it ends, and touches it, so that the
   kernel has to free each page then.  0, or -1: out of memory. */
int workers_take_memory(size_t bytes, int is_shared);

#endif /* WORKERS_H */

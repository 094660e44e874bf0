
/*
 * The processes of an engine: descriptors that become readable when they end.
 * They hang from machine_engine_t.processes.
 */

#ifndef LOCK_PROCESS_H
#define LOCK_PROCESS_H

#include <ev.h>

#include "lock/machine.h"


/* Watches pidfd, which is taken over.  pid: as the engine calls it.  Its end
   is told to the machine.  MACHINE_OK, or MACHINE_TOO_MANY. */
machine_rc_t process_add(struct ev_loop *loop, machine_t *m,
    machine_engine_t *engine, int pidfd, uint64_t pid, int is_main);

/* Is a worker that the engine calls so registered, and alive? */
int process_is_known(const machine_engine_t *engine, uint64_t pid);

/* SIGKILL to each that lives.  0, or the errno of one that refused it. */
int process_kill_all(machine_engine_t *engine);

/* Watches none of them any more. */
void process_forget_all(struct ev_loop *loop, machine_engine_t *engine);

#endif /* LOCK_PROCESS_H */

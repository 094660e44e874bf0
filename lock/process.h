
/*
 * The processes of an engine: descriptors that become readable when they end.
 * They are listed in machine_engine_t.processes.
 */

#ifndef LOCK_PROCESS_H
#define LOCK_PROCESS_H

#include <ev.h>

#include "lock/machine.h"


/*
 * Watches a process and reports its end to the machine; pidfd is closed here in
 * any case.  pid: its number in the engine's namespace.  MACHINE_OK, or
 * MACHINE_TOO_MANY.
 */
machine_rc_t process_add(struct ev_loop *loop, machine_t *m,
    machine_engine_t *engine, int pidfd, uint64_t pid, int is_main);

/* Whether a worker with this number, in the engine's namespace, is registered
   and alive. */
int process_is_known(const machine_engine_t *engine, uint64_t pid);

/* Sends SIGKILL to each that lives.  0, or the errno of one that could not be
   killed. */
int process_kill_all(machine_engine_t *engine);

/* Stops watching all of them. */
void process_forget_all(struct ev_loop *loop, machine_engine_t *engine);

#endif /* LOCK_PROCESS_H */

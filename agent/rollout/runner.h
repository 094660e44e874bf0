
/*
 * One command of an operator's: `/bin/sh -c`, with the caller's user, a time
 * limit, and its last words.
 *
 * It leads a process group, which is ended at the limit: SIGTERM, and SIGKILL
 * RUNNER_KILL_S later.  Done means that the shell has exited; what it left
 * running in the background is not waited for, and keeps running.
 *
 * What it writes goes to a file without a name, of a fixed size, and not to a
 * pipe: whatever still holds it when we are gone writes on, to the end of the
 * file and no further, where a pipe would have killed it.  A write past that
 * end fails, which may fail the command: it is large enough for a talkative
 * one, and takes memory as far as it is written.
 *
 * When we are killed, or destroy it, the command goes on to its own end: half
 * a start would be worse.
 */

#ifndef RUNNER_H
#define RUNNER_H

#include <ev.h>
#include <stdint.h>
#include <sys/types.h>


#define RUNNER_ERROR_BYTES   512
#define RUNNER_OUTPUT_BYTES  (1024 * 1024)

/* After SIGTERM. */
#define RUNNER_KILL_S        2.0

typedef struct runner_s  runner_t;

/* error NULL: it exited with 0; else how it ended, and its last line.  The
   runner is gone when this returns. */
typedef void (*runner_done_pt)(void *data, const char *error);

typedef struct {
    const char          *command;
    const char *const   *env;       /* "NAME=value" beside ours, to NULL */
    uid_t                uid;       /* another than ours: only as root */
    gid_t                gid;
    uint64_t             timeout_ms;
} runner_spec_t;


/* loop: the default one.  NULL and a reason (RUNNER_ERROR_BYTES). */
runner_t *runner_start(struct ev_loop *loop, const runner_spec_t *spec,
    runner_done_pt on_done, void *data, char *error);

/* on_done does not come. */
void runner_destroy(runner_t *runner);

#endif /* RUNNER_H */


/*
 * Runs one command of an operator: `/bin/sh -c`, with a time limit, and keeps
 * the last line that it writes.
 *
 * It runs as the agent's own user.  That is the caller's user, too: the
 * control socket takes updates from root and from the agent's user alone, and
 * an agent that is not root refuses root's commands.
 *
 * The command leads a process group, which is ended at the limit: by SIGTERM,
 * and by SIGKILL RUNNER_KILL_S later.  It is done when the shell has exited;
 * what the shell left running in the background is not waited for.
 *
 * Its output goes to a file without a name and of a fixed size.  A pipe would
 * break when the agent ends, and kill what still writes; to the file a process
 * may write on, up to its end.  A write past that end fails, which may fail
 * the command: the file is large enough for a talkative one, and takes memory
 * only as far as it is written.
 *
 * When the agent is killed, or the runner destroyed, the command runs on to
 * its end: half a start would be worse.
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
    uint64_t             timeout_ms;
} runner_spec_t;


/* loop: the default one.  NULL and a reason (RUNNER_ERROR_BYTES). */
runner_t *runner_start(struct ev_loop *loop, const runner_spec_t *spec,
    runner_done_pt on_done, void *data, char *error);

/* on_done does not come. */
void runner_destroy(runner_t *runner);

#endif /* RUNNER_H */

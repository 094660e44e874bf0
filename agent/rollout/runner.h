
/*
 * Runs one command of an operator: `/bin/sh -c`, with a time limit, and keeps
 * the last line that it writes.
 *
 * It runs as the agent's own user.  That is also the user of the peer that
 * asked: the control socket takes updates only from root and from the agent's
 * user, and an agent that is not root refuses root's commands.
 *
 * The command leads a process group, which is ended at the time limit: by
 * SIGTERM, and by SIGKILL RUNNER_KILL_S later.  The command is done when the
 * shell has exited; processes that the shell left in the background are not
 * waited for.
 *
 * Its output goes to a file without a name and of a fixed size.  A pipe would
 * break when the agent ends, and kill a process that still writes; a process
 * may go on writing to the file, up to its end.  A write past that end fails,
 * which may fail the command: the file is large enough for a talkative one, and
 * takes memory only as far as it is written.
 *
 * When the agent is killed, or the runner destroyed, the command still runs to
 * its end: half a start would be worse.
 */

#ifndef RUNNER_H
#define RUNNER_H

#include <ev.h>
#include <stdint.h>
#include <sys/types.h>


#define RUNNER_ERROR_BYTES   512
#define RUNNER_OUTPUT_BYTES  (1024 * 1024)

/* Time from SIGTERM to SIGKILL. */
#define RUNNER_KILL_S        2.0

typedef struct runner_s  runner_t;

/* The command has ended.  error NULL: it exited with 0; otherwise how it ended,
   and its last line.  The runner is freed when this returns. */
typedef void (*runner_done_pt)(void *data, const char *error);

typedef struct {
    const char          *command;
    const char *const   *env;       /* "NAME=value" beside our own; ends with
                                       NULL */
    uint64_t             timeout_ms;
} runner_spec_t;


/*
 * Starts a command; loop: the default one.  NULL and a reason
 * (RUNNER_ERROR_BYTES).
 */
runner_t *runner_start(struct ev_loop *loop, const runner_spec_t *spec,
    runner_done_pt on_done, void *data, char *error);

/* Forgets the command; on_done is not called. */
void runner_destroy(runner_t *runner);

#endif /* RUNNER_H */

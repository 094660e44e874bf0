
/*
 * A child process between fork and exec, and a command that runs to its end.
 *
 * Whatever kills this process, its children end: the kernel sends each of
 * them the signal that it was started with (PR_SET_PDEATHSIG).  That comes
 * when the *thread* ends that forked, so only the main thread forks here; and
 * a program with set-id bits or file capabilities loses it at exec(2).
 */

#ifndef COMMAND_H
#define COMMAND_H

#include <stddef.h>
#include <sys/types.h>


/*
 * Starts argv[0], a path, as the leader of a process group: Ctrl-C of a
 * terminal is then this process's alone.  Standard input is /dev/null, other
 * descriptors are closed.  Its pid, or -1 and errno.  What keeps it from
 * running is a line on `err`, and its exit status is 127.
 */
pid_t command_spawn(char *const *argv, int out, int err, int death_signal);

/*
 * Runs a command and waits for it, COMMAND_ASK_S at most; before the loop
 * begins.  text: what it wrote, cut at `bytes`, NUL-terminated; with_errors:
 * its standard error as well.  Its exit status; -1: it was killed, or did
 * not start.
 */
#define COMMAND_ASK_S  15

int command_ask(char *const *argv, int with_errors, char *text, size_t bytes);

#endif /* COMMAND_H */

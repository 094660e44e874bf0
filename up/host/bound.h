
/*
 * Runs commands: one that ends when this process ends, or one that is waited
 * for.
 *
 * A process can ask the kernel for a signal when its parent ends
 * (PR_SET_PDEATHSIG), but only for itself.  So the child first executes
 * `llmgw run`, which asks for that signal and then executes the command, with
 * the same pid.  No code of ours runs between fork and exec, where a lock of
 * libcurl's threads may be held for ever.
 *
 * The signal is sent when the *thread* that started the process ends, so only
 * the main thread may start one; and a program with set-id bits or file
 * capabilities loses it at exec(2).
 */

#ifndef BOUND_H
#define BOUND_H

#include <stddef.h>


/* The command of this program that executes another program. */
#define BOUND_COMMAND    "run"

#define BOUND_PROGRAM    "/proc/self/exe"
#define BOUND_WORDS_MAX  16
#define BOUND_ASK_S      15

/* words are for child_start() of BOUND_PROGRAM. */
typedef struct {
    char   signal[12];
    char   parent[12];
    char  *words[BOUND_WORDS_MAX];
} bound_t;


/* argv[0] must be a path; argv must live as long as `bound`. */
void bound_fill(bound_t *bound, int death_signal, char *const *argv);

/* Runs in the child: SIGNAL PARENT PROGRAM...  If the program cannot be
   executed, prints a line on standard error; the exit status is 127. */
int bound_main(int argc, char **argv);

/*
 * Runs a command and waits for it, BOUND_ASK_S at most; may only be called
 * before the loop runs.  text gets its output and errors, cut at `bytes` and
 * NUL-terminated.  Returns its exit status; -1: it was killed, or did not
 * start.
 */
int bound_ask(char *const *argv, char *text, size_t bytes);

#endif /* BOUND_H */

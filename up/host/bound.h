
/*
 * A command that ends when this process does, and one that is run to its end.
 *
 * The kernel sends a process the signal that it asked for when its parent ends
 * (PR_SET_PDEATHSIG).  Nobody can ask for another process.  So this program is
 * executed first (`llmgw run`), asks, and becomes the command, with the same
 * pid: no code of ours runs between fork and exec, where a lock of libcurl's
 * threads may be held for ever.
 *
 * The signal comes when the *thread* ends that started the process, so only
 * the main thread does; and a program with set-id bits or file capabilities
 * loses it at exec(2).
 */

#ifndef BOUND_H
#define BOUND_H

#include <stddef.h>


/* The command of this program that becomes another one. */
#define BOUND_COMMAND    "run"

#define BOUND_PROGRAM    "/proc/self/exe"
#define BOUND_WORDS_MAX  16
#define BOUND_ASK_S      15

/* words: for child_start() of BOUND_PROGRAM. */
typedef struct {
    char   signal[12];
    char   parent[12];
    char  *words[BOUND_WORDS_MAX];
} bound_t;


/* argv[0] is a path; argv lives as long as `bound`. */
void bound_fill(bound_t *bound, int death_signal, char *const *argv);

/* The process: SIGNAL PARENT PROGRAM...  What keeps it from running is a line
   on standard error, and its exit status is 127. */
int bound_main(int argc, char **argv);

/*
 * Runs a command and waits for it, BOUND_ASK_S at most; before the loop
 * begins.  text: what it wrote, errors too, cut at `bytes`, NUL-terminated.
 * Its exit status; -1: it was killed, or did not start.
 */
int bound_ask(char *const *argv, char *text, size_t bytes);

#endif /* BOUND_H */

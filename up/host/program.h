
/*
 * A program that is to run until it is told to end: a child process whose
 * output goes to a log.  When it is started, stopped and started again is
 * decided by common/child/supervise.h, as for an agent's replica.
 *
 * What a process that died leaves in its group gets the signal of an orderly
 * end: workers of an nginx whose master was killed hold its port, and would
 * serve for ever.
 */

#ifndef PROGRAM_H
#define PROGRAM_H

#include <limits.h>

#include "common/child/child.h"
#include "common/child/supervise.h"


#define PROGRAM_WORDS       10
#define PROGRAM_NAME_BYTES  64
#define PROGRAM_WHY_BYTES   512

/* The log of a program is emptied when it is larger. */
#define PROGRAM_LOG_BYTES   (64 << 20)

typedef struct program_s  program_t;

/* It was stopped, and is gone. */
typedef void (*program_gone_pt)(void *data, program_t *program);

struct program_s {
    program_gone_pt  on_gone;
    void            *data;

    char             name[PROGRAM_NAME_BYTES];
    char            *argv[PROGRAM_WORDS];   /* of the caller; NULL-ended */
    int              end_signal;            /* of an orderly end */
    char             log[PATH_MAX];         /* its standard output and error;
                                               "": standard error of ours */

    child_t          child;
    supervise_t      supervise;
    ev_timer         due;
    unsigned         starts;
    unsigned         said;                  /* of them, the last one whose end
                                               was told */
    char             why[PROGRAM_WHY_BYTES];    /* how it ended last */
};


/* loop: the default one, which reaps children.  Name, argv, log and signal
   are set by the caller. */
void program_init(program_t *program, struct ev_loop *loop,
    program_gone_pt on_gone, void *data);

void program_start(program_t *program);

/*
 * The signal of an orderly end, and SIGKILL to its group after the patience.
 * on_gone comes once, from the loop.  Told again: the signal again, and that
 * patience from then on.
 */
void program_stop(program_t *program, double patience_s);

/* It ended by itself, and is not yet started again. */
int program_is_broken(const program_t *program);

/* Where its output is, for people. */
const char *program_log_name(const program_t *program);

/* Empties a log that has grown too large. */
void program_trim_log(const program_t *program);

/* Stops watching; also one that was never begun. */
void program_done(program_t *program);

#endif /* PROGRAM_H */


/*
 * A program that is to run until it is told to end: a child process whose
 * output goes to a log.  common/child/supervise.h decides when it is started,
 * stopped and started again, as for an agent's replica.
 *
 * When a process has died, what is left of its group gets end_signal: workers
 * of an nginx whose master was killed hold its port, and would serve for ever.
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

/* Called when a program that was stopped has ended. */
typedef void (*program_gone_pt)(void *data, program_t *program);

struct program_s {
    program_gone_pt  on_gone;
    void            *data;

    char             name[PROGRAM_NAME_BYTES];
    char            *argv[PROGRAM_WORDS];   /* the caller's; NULL at its end */
    int              end_signal;            /* asks it to end in order */
    char             log[PATH_MAX];         /* for its standard output and
                                               error; "": this process's
                                               standard error */

    child_t          child;
    supervise_t      supervise;
    ev_timer         due;
    unsigned         starts;
    unsigned         said;                  /* the start whose end was reported
                                               last */
    char             why[PROGRAM_WHY_BYTES];    /* how it last ended */
};


/* loop must be the default loop, which reaps children.  The caller sets name,
   argv, log and end_signal. */
void program_init(program_t *program, struct ev_loop *loop,
    program_gone_pt on_gone, void *data);

void program_start(program_t *program);

/*
 * Sends end_signal, and SIGKILL to the process group after patience_s.  on_gone
 * is called once, from the loop.  A further call sends end_signal again, and
 * its patience_s counts from then on.
 */
void program_stop(program_t *program, double patience_s);

/* Whether it has ended by itself and is not yet started again. */
int program_is_broken(const program_t *program);

/* Where its output goes, for people. */
const char *program_log_name(const program_t *program);

/* Empties a log that has grown too large. */
void program_trim_log(const program_t *program);

/* Stops watching; may be called without program_init(). */
void program_done(program_t *program);

#endif /* PROGRAM_H */

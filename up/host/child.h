
/*
 * A process that is to run until it is told to end.
 *
 *             start            it ended
 *   IDLE ------------> RUNNING ---------> BACKOFF   250 ms, doubling to 10 s;
 *                       ^    |               |      250 ms again when it ran
 *                       |    | stop          |      for 30 s
 *                       '----+---------------'
 *                            v       the pause is over
 *                         STOPPING ---------> IDLE: on_gone
 *                            |      it ended
 *                            '-- the patience is over: SIGKILL to its group
 *
 * What a process that died leaves in its group gets the signal of an orderly
 * end: workers of an nginx whose master was killed hold its port, and would
 * serve for ever.
 */

#ifndef UP_CHILD_H
#define UP_CHILD_H

#include <ev.h>
#include <limits.h>
#include <sys/types.h>


#define CHILD_WORDS      10
#define CHILD_NAME_BYTES 64
#define CHILD_WHY_BYTES  512

/* The log of a child is emptied when it is larger. */
#define CHILD_LOG_BYTES  (64 << 20)

typedef enum {
    CHILD_IDLE = 0,
    CHILD_RUNNING,
    CHILD_BACKOFF,
    CHILD_STOPPING
} child_state_t;

typedef struct child_s  child_t;

/* It was stopped, and is gone. */
typedef void (*child_gone_pt)(void *data, child_t *child);

struct child_s {
    struct ev_loop  *loop;
    child_gone_pt    on_gone;
    void            *data;

    char             name[CHILD_NAME_BYTES];
    char            *argv[CHILD_WORDS];     /* of the caller; NULL-ended */
    int              end_signal;            /* of an orderly end */
    char             log[PATH_MAX];         /* its standard output and error */

    child_state_t    state;
    pid_t            pid;                   /* 0: none */
    double           began_at;
    double           pause_s;
    unsigned         starts;
    unsigned         said;                  /* of them, the last one whose end
                                               was told */
    char             why[CHILD_WHY_BYTES];  /* how it ended last; "": never */
    ev_child         reaper;
    ev_timer         timer;
};


/* loop: the default one, which reaps children.  Name, argv, log and signal
   are set by the caller. */
void child_init(child_t *child, struct ev_loop *loop, child_gone_pt on_gone,
    void *data);

void child_start(child_t *child);

/*
 * The signal of an orderly end, and SIGKILL after the patience.  on_gone comes
 * once, from the loop; at once for one that does not run.  Told again: the
 * signal again, and the shorter patience counts.
 */
void child_stop(child_t *child, double patience_s);

/* Another signal to the process, if it runs. */
void child_signal(const child_t *child, int signal_number);

/* Empties a log that has grown too large; once a minute is enough. */
void child_trim_log(const child_t *child);

/* The last line of its log, "" for none. */
void child_last_words(const child_t *child, char *line, size_t bytes);

#endif /* UP_CHILD_H */

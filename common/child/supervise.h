
/*
 * When a child process is to be started, stopped and started again.
 *
 *            an orphan reports: adopted
 *   +--------+ ---------------------> +---------+ <----- start ------+
 *   | ORPHAN |                        | RUNNING |                    |
 *   +--------+ ---- 2 s: start -----> +---------+                    |
 *                                      |   |   |                     |
 *              exit after a goodbye    |   |   | exit without one    |
 *              +-----------------------+   |   +------------> +---------+
 *              v                           |                  | BACKOFF |
 *         +---------+                      | stop: TERM       +---------+
 *         | RESTING | -- told: start       v                    250 ms,
 *         +---------+               +----------+  exit          doubling
 *                                   | STOPPING | ------+        to 10 s
 *                                   +----------+       |
 *     drain timeout, restart 0.1 s: TERM again         v
 *     restart 1 s more: and again                  +-------+
 *     5 s more: KILL                               | ENDED |
 *                                                  +-------+
 *
 * An agent that was killed leaves its child serving, and the next agent must
 * not start a second one on the same port.  So if an earlier run left a trace,
 * the agent first waits for a replica to report: two seconds are ten of a
 * replica's attempts to connect.  Otherwise it starts the child at once.
 *
 * A replica that says goodbye although this agent did not stop it was stopped
 * by another process, on purpose: it is not started again.  (The goodbye of a
 * standby group's replica is not reported here: it is restarted as a standby.)
 * Every other end is a crash, even with exit status 0, since a server has no
 * reason to end.  The pause before the next start doubles, so that a command
 * that cannot work costs little; it is short again after the child has run for
 * 30 s.
 *
 * Pure: gets time and events, and returns what to do.
 */

#ifndef SUPERVISE_H
#define SUPERVISE_H

#include <stdint.h>


#define SUPERVISE_ORPHAN_US       2000000ULL
#define SUPERVISE_BACKOFF_MIN_US   250000ULL
#define SUPERVISE_BACKOFF_MAX_US 10000000ULL
#define SUPERVISE_STEADY_US      30000000ULL

/* Default time from the last SIGTERM to SIGKILL, long enough for the child's
   last messages, and default number of SIGTERMs; supervise_set_stop() changes
   both. */
#define SUPERVISE_KILL_US         5000000ULL
#define SUPERVISE_TERMS           2

/* A replica that is restarted was drained before, as far as its streams were
   waited for.  So a second SIGTERM follows, and streams that still run move
   elsewhere. */
#define SUPERVISE_RESTART_US      100000ULL

/* Two signals that arrive while a replica has no processor count as one for it,
   so there is a third.  It has no effect on a replica that ends its streams
   already. */
#define SUPERVISE_AGAIN_US       1000000ULL

typedef enum {
    SUPERVISE_ORPHAN = 0,
    SUPERVISE_RUNNING,
    SUPERVISE_BACKOFF,
    SUPERVISE_RESTING,
    SUPERVISE_STOPPING,
    SUPERVISE_ENDED
} supervise_state_t;

typedef enum {
    SUPERVISE_WAIT = 0,     /* nothing to do before supervise_next_us() */
    SUPERVISE_START,        /* then supervise_started() or _exited() */
    SUPERVISE_TERM,         /* SIGTERM to the child */
    SUPERVISE_KILL          /* SIGKILL to the child */
} supervise_action_t;

typedef struct {
    supervise_state_t  state;
    uint64_t           drain_timeout_us;
    uint64_t           kill_us;         /* time from the last SIGTERM to
                                           SIGKILL */
    int                terms_most;      /* number of SIGTERMs in a stop for
                                           good */
    uint64_t           orphan_us;       /* how long an orphan is waited for */
    uint64_t           since_us;        /* time when this state began */
    uint64_t           backoff_us;      /* the next pause */
    int                has_parted;      /* the child said goodbye */
    int                is_restart;      /* STOPPING, to be started again */
    int                is_unwanted;     /* ORPHAN: to be stopped if one
                                           reports */
    int                terms;           /* SIGTERM sent while STOPPING */
} supervise_t;


/* may_have_orphan 0: there is nothing to adopt. */
void supervise_init(supervise_t *supervise, uint64_t drain_timeout_us,
    int may_have_orphan, uint64_t now_us);

/* Sets how the child is stopped for good: number of SIGTERMs, and the time from
   the last one to SIGKILL. */
void supervise_set_stop(supervise_t *supervise, int terms, uint64_t kill_us);

/*
 * A process that is not the child reports.  1: it is the child from now on, and
 * the caller watches it; 0: there is a child already, or none should run.
 */
int supervise_adopt(supervise_t *supervise, uint64_t now_us);

/* The child was started, as SUPERVISE_START asked for. */
void supervise_started(supervise_t *supervise, uint64_t now_us);

/* The child said goodbye; it will exit. */
void supervise_parted(supervise_t *supervise);

/* The child is gone, or could not be started. */
supervise_action_t supervise_exited(supervise_t *supervise, uint64_t now_us);

/*
 * Stops the child for good.  If called again, its streams are not waited for.
 * An expected orphan is still adopted: then is_unwanted makes the caller call
 * this again.
 */
supervise_action_t supervise_stop(supervise_t *supervise, uint64_t now_us);

/*
 * Stops the child and starts it again; from RESTING and BACKOFF it is started
 * at once.  Does nothing while the child is being stopped or an orphan is
 * waited for.
 */
supervise_action_t supervise_restart(supervise_t *supervise,
    uint64_t now_us);

/* To be called at supervise_next_us(); UINT64_MAX: never. */
supervise_action_t supervise_tick(supervise_t *supervise, uint64_t now_us);
uint64_t supervise_next_us(const supervise_t *supervise);

/* The length of the pause with which BACKOFF began. */
uint64_t supervise_pause_us(const supervise_t *supervise);

#endif /* SUPERVISE_H */

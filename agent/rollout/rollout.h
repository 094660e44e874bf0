
/*
 * A rolling update: which replica is drained, stopped, started, looked at and
 * let in again, and when.
 *
 * One step a member of the plan:
 *
 *   +---------+  has the version, READY                        +---------+
 *   | WAITING | ---------------------------------------------> | SKIPPED |
 *   +---------+                                                +---------+
 *        |     its agent is dead, and it was not named: ABSENT from the start
 *        | its turn, and enough others are routable
 *        v
 *   +----------+ drained, or drain timeout  +----------+
 *   | DRAINING | -----------+-------------> | STOPPING |  --stop
 *   +----------+            |               +----------+
 *     DRAIN  |              |                    | exited with 0
 *            |              | no commands        v
 *            |              v               +----------+
 *            |        +------------+        | STARTING |  --start
 *            |        | RESTARTING |        +----------+
 *            |        +------------+             | exited with 0
 *            |              | order taken        |
 *            |              v                    |
 *            |        +-----------+ <------------+
 *            |        | REJOINING |
 *            |        +-----------+
 *            |              | a new process, READY, of this version
 *            |              v
 *            |         +---------+ token came +-----------+       +------+
 *            |         | PROBING | ---------> | RELEASING | ----> | DONE |
 *            |         +---------+            +-----------+       +------+
 *            |                                   UNDRAIN
 *            | the update ends                      any state: fails
 *            v                                              |
 *       +---------+                                         v
 *       | UNDOING | <-----------------------------------------
 *       +---------+  UNDRAIN, if it was drained
 *            |
 *            +--> UNDONE (as if not begun), or FAILED
 *
 * A member of a standby group begins in other ways (rollout/group.c):
 *
 *       +---------+  it does not serve
 *       | WAITING | --------------------------------> STOPPING, STARTING or
 *       +---------+                                   RESTARTING, as above
 *            | it is active, and a standby of                 ^
 *            | its group has the version                      |
 *            v                                                |
 *       +-----------+ that is active     +---------+          |
 *       | SWITCHING | -----------------> | PROBING | ---------+
 *       +-----------+                    +---------+ the new active one's
 *          SWITCH                                    token came
 *
 * and its REJOINING ends, as DONE, also with a standby of this version.  A
 * standby cannot be asked for a token: it has its weights, and waits for the
 * lock.  That it generates is shown after the switch to it.
 *
 * A step that fails ends the update: no further step begins, steps that only
 * drain are undone, and steps whose process is being replaced run to their
 * end, since half a restart is the worst place to stop at.  An abort does the
 * same.
 *
 * Replicas that are not READY go first: updating them takes nothing away from
 * the pool, and they may be left over from an earlier attempt.  The others
 * follow in the order of ids.  A group stands where its first member does, its
 * standbys before the active one.  A replica is drained only if min_available
 * routable ones remain.  One whose step has begun counts as not routable from
 * that moment on, whatever gossip says.
 *
 * The update's drain is a lease, renewed while the step runs.  An agent
 * that restarts loses it.  While the step waits for streams, the replica is
 * drained again; later it is not, since the new process would be drained, too.
 * The update's drain exists beside an operator's, and ends without ending
 * that.
 *
 * Pure: the members, the time and the results of actions come in; actions
 * come out, and the caller sees to it that each has a result in bounded time.
 * Waits for facts are timed here.
 */

#ifndef ROLLOUT_H
#define ROLLOUT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/members/members.h"


#define ROLLOUT_REASON_BYTES  512

/* A supervisor may bring the old version back on its own just before it gets
   the order for the new one: a wrong version is believed when it stays. */
#define ROLLOUT_WRONG_US      2000000ULL

/* A request that was on its way when the replica learned of the drain is in
   the load that its agent sends by then. */
#define ROLLOUT_RACE_US        200000ULL

/* A replica may be there that its restarted agent does not know yet; longer
   than that agent waits for one that it would adopt (SUPERVISE_ORPHAN_US,
   and to report). */
#define ROLLOUT_ORPHAN_US     3000000ULL

/* Of a lease of 30 s (swim/order/drain.h). */
#define ROLLOUT_RENEW_US      5000000ULL

typedef enum {
    ROLLOUT_WAITING = 0,
    ROLLOUT_DRAINING,
    ROLLOUT_SWITCHING,
    ROLLOUT_STOPPING,
    ROLLOUT_STARTING,
    ROLLOUT_RESTARTING,
    ROLLOUT_REJOINING,
    ROLLOUT_PROBING,
    ROLLOUT_RELEASING,
    ROLLOUT_UNDOING,
    ROLLOUT_DONE,           /* from here on: the end of a step */
    ROLLOUT_SKIPPED,
    ROLLOUT_ABSENT,
    ROLLOUT_UNDONE,
    ROLLOUT_FAILED
} rollout_state_t;

typedef enum {
    ROLLOUT_NOTHING = 0,
    ROLLOUT_DRAIN,          /* gossiped, in our name */
    ROLLOUT_SWITCH,         /* an order to the member's agent */
    ROLLOUT_STOP,           /* the command */
    ROLLOUT_START,          /* the command */
    ROLLOUT_RESTART,        /* an order to the member's agent */
    ROLLOUT_PROBE,          /* one token, asked for directly, of
                               rollout_probed() */
    ROLLOUT_UNDRAIN,
    ROLLOUT_RENEW           /* DRAIN again, since it is a lease; beside what
                               else is under way for the step */
} rollout_action_t;

typedef enum {
    ROLLOUT_RUNNING = 0,
    ROLLOUT_COMPLETE,
    ROLLOUT_BROKEN,         /* a step failed */
    ROLLOUT_ABORTED,
    ROLLOUT_YIELDED         /* another update was first */
} rollout_verdict_t;

typedef enum {
    ROLLOUT_PLANNED = 0,
    ROLLOUT_ENOMEM,
    ROLLOUT_UNKNOWN,        /* no such replica, or none at all */
    ROLLOUT_NOBODY,         /* that could restart it */
    ROLLOUT_UNSEEN,         /* its version: it does not report */
    ROLLOUT_TOO_FEW,        /* would be routable */
    ROLLOUT_PARTIAL         /* a group, and not all of it is named */
} rollout_refusal_t;

typedef struct {
    const char         *to;             /* version */
    const char         *owner;          /* of the drains: update:ID */
    const char *const  *ids;            /* which; NULL: all that are present, */
    size_t              nids;
    const char *const  *also;           /* and these, as far as known */
    size_t              nalso;
    const uint8_t      *can_restart;    /* of each member of the roster:
                                           its agent runs it as a child */
    int                 has_stop;       /* commands */
    int                 has_start;
    int                 has_orders;     /* restart may be ordered: a keyring */
    uint64_t            drain_timeout_us;
    uint64_t            rejoin_timeout_us;
    unsigned            max_unavailable;    /* >= 1 */
    int64_t             min_available;      /* -1: the default */
} rollout_spec_t;

typedef struct {
    char              id[LLMGW_MEMBERS_NAME_BYTES];
    char              from[LLMGW_MEMBERS_NAME_BYTES];   /* version */
    char              group[LLMGW_GROUP_BYTES];         /* "": of none */
    char              successor[LLMGW_MEMBERS_NAME_BYTES];  /* in PROBING:
                                           that took over; "": none */
    uint64_t          group_epoch;      /* that it is switched away from */
    rollout_state_t   state;
    rollout_state_t   failed_in;
    rollout_state_t   outcome;          /* of UNDOING */
    rollout_action_t  due;
    rollout_action_t  doing;            /* handed out, without a result yet */
    uint64_t          since_us;         /* in this state */
    uint64_t          held_us;          /* the drain is known to hold since */
    uint64_t          wrong_us;         /* of another version since; 0: no */
    uint64_t          start_ms;         /* of the process to be replaced */
    uint64_t          epoch;            /* of the agent that drains */
    uint64_t          renew_us;         /* the lease is renewed then; 0: not */
    uint32_t          streams;          /* that run there */
    unsigned          is_first:1;       /* was not READY when planned */
    unsigned          is_drained:1;     /* by us: it needs an UNDRAIN */
    unsigned          is_renewing:1;
    unsigned          is_serving:1;     /* a process was there, last */
    unsigned          is_late:1;        /* the drain timeout ran out */
    unsigned          is_changed:1;     /* see rollout_changed() */
    char              reason[ROLLOUT_REASON_BYTES];     /* of FAILED */
} rollout_step_t;

typedef struct {
    char               to[LLMGW_MEMBERS_NAME_BYTES];
    char               owner[LLMGW_MEMBERS_OWNER_BYTES];
    int                has_stop;
    int                has_start;
    uint64_t           drain_timeout_us;
    uint64_t           rejoin_timeout_us;
    unsigned           max_unavailable;
    unsigned           min_available;
    rollout_verdict_t  verdict;
    int                is_ending;
    uint64_t           settle_us;
    uint64_t           begin_us;        /* nothing begins before */
    uint64_t           blocked_us;      /* too few are routable since; 0: no */
    size_t             nsteps;
    rollout_step_t     steps[];
} rollout_t;


/* plan.c */

/*
 * Plans which replicas are updated, in which order.  Replicas whose agent is
 * DEAD are ABSENT, and those whose agent has LEFT are left out, unless they are
 * named.  NULL and why not: *refusal, and one line for people in text (of
 * ROLLOUT_REASON_BYTES).
 */
rollout_t *rollout_plan(const rollout_spec_t *spec,
    const llmgw_roster_t *roster, rollout_refusal_t *refusal, char *text);
void rollout_destroy(rollout_t *rollout);

/* rollout.c */

/*
 * settle_us: the time in which a change reaches all others.  Nothing begins
 * earlier than that after this call and after the end of a step: a gateway
 * that knew of the next drain alone might have no replica left.
 */
void rollout_begin(rollout_t *rollout, uint64_t settle_us, uint64_t now_us);

/*
 * What the members are now.  To be called when they changed, after each
 * result, and regularly, since waits end by it.
 */
void rollout_look(rollout_t *rollout, const llmgw_roster_t *roster,
    uint64_t now_us);

/*
 * What is to be done next, and for which step; ROLLOUT_NOTHING: wait.  Each
 * action ends with rollout_result(), or rollout_put_back().  An UNDRAIN waits
 * for the result of a RENEW, so that it comes last.
 */
rollout_action_t rollout_next(rollout_t *rollout, size_t *step,
    uint64_t now_us);

/* It cannot be begun now: it is what is to be done next, again. */
void rollout_put_back(rollout_t *rollout, size_t step,
    rollout_action_t action);

/* Which member is asked for a token. */
const char *rollout_probed(const rollout_step_t *step);

/* It was done; error: it was not, and why. */
void rollout_result(rollout_t *rollout, size_t step, rollout_action_t action,
    const char *error, uint64_t now_us);

/* verdict: ABORTED or YIELDED.  Steps that have begun run until
   rollout_is_over(). */
void rollout_end(rollout_t *rollout, rollout_verdict_t verdict,
    uint64_t now_us);
int rollout_is_over(const rollout_t *rollout);

/* The steps whose state changed since they were asked for; 0: no more. */
int rollout_changed(rollout_t *rollout, size_t *step);

/* How many steps are in that state. */
size_t rollout_count(const rollout_t *rollout, rollout_state_t state);

/* "drain", "rejoin"; "done"; "complete". */
const char *rollout_state_name(rollout_state_t state);
const char *rollout_verdict_name(rollout_verdict_t verdict);

#endif /* ROLLOUT_H */

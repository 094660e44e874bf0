
/*
 * A rolling update: which replica is drained, stopped, started, checked and let
 * in again, and when.
 *
 * Each member of the plan has one step:
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
 * lock.  Only after the switch to it, a token shows that it works.
 *
 * A step that fails ends the update: no further step begins, steps that only
 * drain are undone, and steps whose process is being replaced run to their end,
 * since a half-done restart is the worst place to stop.  An abort has the same
 * effect.
 *
 * Replicas that are not READY are updated first: this takes nothing away from
 * the pool, and they may be left over from an earlier attempt.  The others
 * follow in the order of ids.  A group has the place of its first member; its
 * standbys come before the active one.  A replica is drained only if
 * min_available routable ones remain.  A replica whose step has begun counts as
 * not routable from that moment on, whatever gossip says.
 *
 * The update's drain is a lease, renewed while the step runs.  An agent that
 * restarts loses it.  While the step waits for streams, the replica is drained
 * again; later it is not, since the new process would be drained, too.  The
 * update's drain may exist beside an operator's; the end of one does not end
 * the other.
 *
 * Pure: gets the members, the time and the results of actions, and returns
 * actions.  The caller must give each action a result in bounded time.  Waits
 * for changes of members are limited here.
 */

#ifndef ROLLOUT_H
#define ROLLOUT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/members/members.h"


#define ROLLOUT_REASON_BYTES  512

/* A supervisor may bring the old version back on its own just before it gets
   the order for the new one: a wrong version only counts if it stays for this
   long. */
#define ROLLOUT_WRONG_US      2000000ULL

/* A request that was on its way when the replica learned of the drain is
   included in the load that its agent sends after this time. */
#define ROLLOUT_RACE_US        200000ULL

/* There may be a replica that its restarted agent does not know yet.  This is
   longer than that agent waits for an orphan to adopt (SUPERVISE_ORPHAN_US),
   and than a report takes. */
#define ROLLOUT_ORPHAN_US     3000000ULL

/* Time between renewals of a lease of 30 s (swim/order/drain.h). */
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
    ROLLOUT_DONE,           /* this and the following: a step's end */
    ROLLOUT_SKIPPED,
    ROLLOUT_ABSENT,
    ROLLOUT_UNDONE,
    ROLLOUT_FAILED
} rollout_state_t;

typedef enum {
    ROLLOUT_NOTHING = 0,
    ROLLOUT_DRAIN,          /* an order to drain, in the update's name */
    ROLLOUT_SWITCH,         /* an order to the member's agent */
    ROLLOUT_STOP,           /* the operator's command */
    ROLLOUT_START,          /* the operator's command */
    ROLLOUT_RESTART,        /* an order to the member's agent */
    ROLLOUT_PROBE,          /* asks rollout_probed() directly for one token */
    ROLLOUT_UNDRAIN,
    ROLLOUT_RENEW           /* DRAIN again, to renew the lease; may be under way
                               beside another action */
} rollout_action_t;

typedef enum {
    ROLLOUT_RUNNING = 0,
    ROLLOUT_COMPLETE,
    ROLLOUT_BROKEN,         /* a step failed */
    ROLLOUT_ABORTED,
    ROLLOUT_YIELDED         /* another update began first */
} rollout_verdict_t;

typedef enum {
    ROLLOUT_PLANNED = 0,
    ROLLOUT_ENOMEM,
    ROLLOUT_UNKNOWN,        /* no such replica, or none at all */
    ROLLOUT_NOBODY,         /* nothing can restart a replica */
    ROLLOUT_UNSEEN,         /* the version: a replica does not report */
    ROLLOUT_TOO_FEW,        /* too few would stay routable */
    ROLLOUT_PARTIAL         /* of a group only some are named */
} rollout_refusal_t;

typedef struct {
    const char         *to;             /* the new version */
    const char         *owner;          /* owner of the drains: update:ID */
    const char *const  *ids;            /* to update; NULL: all that are
                                           present, */
    size_t              nids;
    const char *const  *also;           /* and these, if they are known */
    size_t              nalso;
    const uint8_t      *can_restart;    /* for each member of the roster: its
                                           agent runs its replica as a child */
    int                 has_stop;       /* commands are given */
    int                 has_start;
    int                 has_orders;     /* there is a keyring, so restarts may
                                           be ordered */
    uint64_t            drain_timeout_us;
    uint64_t            rejoin_timeout_us;
    unsigned            max_unavailable;    /* >= 1 */
    int64_t             min_available;      /* -1: the default */
} rollout_spec_t;

typedef struct {
    char              id[LLMGW_MEMBERS_NAME_BYTES];
    char              from[LLMGW_MEMBERS_NAME_BYTES];   /* the old version */
    char              group[LLMGW_GROUP_BYTES];         /* "": it is in no
                                                           group */
    char              successor[LLMGW_MEMBERS_NAME_BYTES];  /* in PROBING: the
                                                               member that took
                                                               over; "": none */
    uint64_t          group_epoch;      /* of the member to switch away from */
    rollout_state_t   state;
    rollout_state_t   failed_in;
    rollout_state_t   outcome;          /* state after UNDOING */
    rollout_action_t  due;
    rollout_action_t  doing;            /* returned, without a result yet */
    uint64_t          since_us;         /* when this state began */
    uint64_t          held_us;          /* when the drain was known to hold; 0:
                                           not yet */
    uint64_t          wrong_us;         /* since when the version is wrong; 0:
                                           it is not */
    uint64_t          start_ms;         /* of the process to be replaced */
    uint64_t          epoch;            /* of the agent that drains */
    uint64_t          renew_us;         /* when to renew the lease; 0: never */
    uint32_t          streams;          /* running at the replica */
    unsigned          is_first:1;       /* was not READY when planned */
    unsigned          is_drained:1;     /* by the update: it needs an UNDRAIN */
    unsigned          is_renewing:1;
    unsigned          is_serving:1;     /* a process was serving when last
                                           seen */
    unsigned          is_late:1;        /* the drain timeout ran out */
    unsigned          is_changed:1;     /* see rollout_changed() */
    char              reason[ROLLOUT_REASON_BYTES];     /* why it FAILED */
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
    uint64_t           begin_us;        /* nothing begins earlier */
    uint64_t           blocked_us;      /* since when too few are routable; 0:
                                           enough are */
    size_t             nsteps;
    rollout_step_t     steps[];
} rollout_t;


/* plan.c */

/*
 * Plans which replicas are updated, and in which order.  Unless they are named,
 * replicas whose agent is DEAD are ABSENT, and those whose agent has LEFT are
 * left out.  NULL: the reason is in *refusal, and one line for people in text
 * (of ROLLOUT_REASON_BYTES).
 */
rollout_t *rollout_plan(const rollout_spec_t *spec,
    const llmgw_roster_t *roster, rollout_refusal_t *refusal, char *text);
void rollout_destroy(rollout_t *rollout);

/* rollout.c */

/*
 * settle_us: the time in which a change reaches all others.  No step begins
 * earlier than settle_us after this call, or after the end of a step: a gateway
 * that knew of the next drain, but not of the last step's end, might have no
 * replica left.
 */
void rollout_begin(rollout_t *rollout, uint64_t settle_us, uint64_t now_us);

/*
 * Takes the present members.  To be called when they changed, after each
 * result, and regularly, since waits end here.
 */
void rollout_look(rollout_t *rollout, const llmgw_roster_t *roster,
    uint64_t now_us);

/*
 * Returns what to do next, and for which step; ROLLOUT_NOTHING: wait.  Each
 * action ends with rollout_result() or rollout_put_back().  An UNDRAIN waits
 * for the result of a RENEW, so that it comes last.
 */
rollout_action_t rollout_next(rollout_t *rollout, size_t *step,
    uint64_t now_us);

/* The action cannot be begun now: rollout_next() returns it again. */
void rollout_put_back(rollout_t *rollout, size_t step,
    rollout_action_t action);

/* The id of the member that is asked for a token. */
const char *rollout_probed(const rollout_step_t *step);

/* The action was done; or, if error is not NULL, it failed for that reason. */
void rollout_result(rollout_t *rollout, size_t step, rollout_action_t action,
    const char *error, uint64_t now_us);

/* Ends the update.  verdict: ABORTED or YIELDED.  Steps that have begun run
   until rollout_is_over(). */
void rollout_end(rollout_t *rollout, rollout_verdict_t verdict,
    uint64_t now_us);
int rollout_is_over(const rollout_t *rollout);

/* Returns a step whose state changed since it was returned last; 0: no more. */
int rollout_changed(rollout_t *rollout, size_t *step);

/* The number of steps in that state. */
size_t rollout_count(const rollout_t *rollout, rollout_state_t state);

/* Names for people and programs: "drain", "rejoin", "done"; "complete". */
const char *rollout_state_name(rollout_state_t state);
const char *rollout_verdict_name(rollout_verdict_t verdict);

#endif /* ROLLOUT_H */

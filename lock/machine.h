
/*
 * Grants each group to one engine, and keeps the queue of the engines that wait
 * for it.
 *
 * The machine has no clock, no socket and no file.  Events are passed in, and
 * it acts through machine_ops_t, so tests drive it with fake time.
 *
 *                    TAKE in time            connection ends
 *   free -> OFFERED --------------> HOLDS ---------------------> lost
 *     ^        |                    ^  |  same nonce comes back    |
 *     |        | too late: to the   |  +<--------------------------+
 *     |        v tail               |  |                           |
 *     |     next waiter       fault |  | fault             window  |
 *     |                     is over |  v                   is over |
 *     |                             ALARM (fence=wait) <-----------+
 *     |  gone                       FENCED (fence=kill: SIGKILL) <-+
 *     +------------------------------ from each of them
 *
 * Gone means that the connection has ended and that every process that the
 * engine registered is dead.  Nothing less frees a group: memory that the next
 * engine wants comes back with the last process, not with the first sign.
 *
 * The service is one of two keys.  The other is an open file description lock
 * on GROUP.lock, which the engine takes after GRANTED and keeps until its
 * death. A restarted service learns from it whether an engine is active.
 *
 * An epoch is given out once: max(kept, last_epoch of any ACQUIRE, wall clock
 * in us) + 1, and it is kept (op `keep`) before GRANTED leaves.  An epoch that
 * gossip refuses, drawn when the clock was wrong, counts for nothing there: it
 * is given up, and the next one is the clock's.
 *
 * Deadlines are in service time, which advances at most step_max_ms between two
 * events. So after the service was stopped, or blocked in an fsync, no engine
 * misses a deadline because its lines were not read.
 */

#ifndef LOCK_MACHINE_H
#define LOCK_MACHINE_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/members/members.h"


/* A host has as many engines as it has accelerators, twice over. */
#define MACHINE_GROUPS_MAX      64
#define MACHINE_WAITERS_MAX     64      /* of a group */
#define MACHINE_PROCESSES_MAX   256     /* of an engine: itself and workers */

#define MACHINE_ID_BYTES        64
#define MACHINE_NONCE_BYTES     17

/* Gossip refuses an epoch that is further ahead of the wall clock. */
#define MACHINE_EPOCH_AHEAD_US  (24ULL * 3600 * 1000 * 1000)

/* An engine that ends itself at its waking timeout is not fenced for it. */
#define MACHINE_WAKING_GRACE_MS  1000

/* The state file is written at each grant; after that time what can wait is
   written, too, and one that could not be written is tried again. */
#define MACHINE_RETRY_MS         1000

/* A waiter that has been silent for so many pings is not counted upon; nor one
   that stands by for a shorter time, since gateways do not know it yet. */
#define MACHINE_READY_PINGS      3
#define MACHINE_KNOWN_MS         1000

/* An alarm is repeated after that time. */
#define MACHINE_ALARM_MS         60000

typedef struct machine_s         machine_t;
typedef struct machine_group_s   machine_group_t;
typedef struct machine_engine_s  machine_engine_t;

typedef enum {
    MACHINE_HOLDS = 0,
    MACHINE_ALARM,      /* it has a fault and is not to be killed */
    MACHINE_FENCED      /* it was killed, and has not ended yet */
} machine_phase_t;

/* Why something was refused. */
typedef enum {
    MACHINE_OK = 0,
    MACHINE_LATE,           /* TAKE without an offer; it waits on */
    MACHINE_HELD,           /* another instance holds the group */
    MACHINE_BUSY,           /* GROUP.lock is held by a stranger; waits on */
    MACHINE_BAD_EPOCH,      /* not its own, or far ahead of the clock */
    MACHINE_TOO_MANY,       /* groups, waiters or processes */
    MACHINE_STATE           /* the state file cannot be written; waits on */
} machine_rc_t;

/* The lock file of a group, as F_OFD_GETLK sees it. */
typedef enum {
    MACHINE_FILE_FREE = 0,
    MACHINE_FILE_HELD,
    MACHINE_FILE_MISSING    /* or it cannot be opened */
} machine_file_t;

/* Events for the log, one line each. */
typedef enum {
    MACHINE_QUEUED = 0,
    MACHINE_OFFERED,
    MACHINE_MISSED,         /* the offer was not taken in time */
    MACHINE_LEFT,           /* a waiter went */
    MACHINE_GRANTED,
    MACHINE_REGRANTED,
    MACHINE_ACTIVE,         /* the holder serves */
    MACHINE_RELEASED,
    MACHINE_LOST,           /* the holder's connection ended, it lives */
    MACHINE_KILLED,         /* fence=kill */
    MACHINE_BLOCKED,        /* fence=wait: no engine is granted */
    MACHINE_RECOVERED,      /* from fence=wait */
    MACHINE_GONE,
    MACHINE_UNKNOWN         /* GROUP.lock is held by an unknown process */
} machine_event_t;

/* An engine's claim in ACQUIRE. */
typedef struct {
    char      group[LLMGW_GROUP_BYTES];
    char      engine[MACHINE_ID_BYTES];
    char      nonce[MACHINE_NONCE_BYTES];   /* of this process, 16 hex */
    pid_t     pid;              /* 0: of another PID namespace */
    uint64_t  start_ticks;      /* when that process began; 0: unknown */
    uint64_t  last_epoch;       /* the greatest that it knows of */
    uint64_t  epoch;            /* that it holds; 0: none */
    uint64_t  waking_timeout_ms;
    int       can_be_killed;
} machine_claim_t;

struct machine_engine_s {
    machine_claim_t        claim;       /* epoch: offered or granted */
    machine_group_t       *group;
    machine_engine_t      *next;        /* in the queue */
    void                  *peer;        /* its connection; NULL: lost */
    void                  *processes;   /* the owner's, of these: */
    unsigned               nprocesses;  /* registered and not dead */

    llmgw_group_state_t    state;       /* as in its last PONG */
    uint64_t               progress;
    uint64_t               streams;
    uint64_t               pong_ms;
    uint64_t               standby_ms;  /* it stands by since then */
    uint64_t               progress_ms; /* it rose, or no stream ran */

    unsigned               position;    /* as told; 0: not yet */
    unsigned               is_silent:1; /* missed an offer, and silent since */
    unsigned               is_released:1;
};

struct machine_group_s {
    char                   name[LLMGW_GROUP_BYTES];     /* "": unused */
    machine_engine_t      *holder;
    machine_engine_t      *offered;     /* stands in the queue, too */
    machine_engine_t      *queue;
    unsigned               nwaiters;

    machine_phase_t        phase;       /* of the holder, all that follow */
    const char            *fault;       /* why it is not trusted */
    uint64_t               granted_ms;
    uint64_t               lost_ms;     /* or released, or restored */
    uint64_t               alarm_ms;    /* told last */

    uint64_t               offer_ms;    /* when the offer ends */
    uint64_t               retry_ms;
    int                    is_unknown;  /* GROUP.lock is held by a stranger */
    int                    is_settling; /* it is missing, and may not be */
    uint64_t               epoch;       /* of the last grant */

    uint64_t               dying_us;    /* first sign, real time; 0: none */
    int64_t                last_gone_ms;    /* of the last takeover, since */
    int64_t                last_grant_ms;   /* that sign; -1: none */
};

typedef struct {
    uint64_t  reconnect_window_ms;
    uint64_t  hang_timeout_ms;
    uint64_t  take_timeout_ms;
    uint64_t  ping_interval_ms;
    uint64_t  step_max_ms;
    int       is_kill;          /* fence=kill */
} machine_settings_t;

/* The engine has a peer, except in kill(), forget() and tell(). */
typedef struct {
    uint64_t  (*mono_us)(void *data);
    uint64_t  (*wall_us)(void *data);

    machine_file_t  (*file)(void *data, const char *group);

    /* Keeps epoch and holders on disk.  0, or -1. */
    int   (*keep)(void *data);

    void  (*queued)(void *data, machine_engine_t *engine, unsigned position);
    void  (*offer)(void *data, machine_engine_t *engine);
    void  (*granted)(void *data, machine_engine_t *engine, int is_regrant);
    void  (*refused)(void *data, machine_engine_t *engine, machine_rc_t why);
    void  (*ping)(void *data, machine_engine_t *engine);

    void  (*kill)(void *data, machine_engine_t *engine);

    /* Another engine, or none, has its connection now: close it. */
    void  (*drop)(void *data, machine_engine_t *engine);

    /* The engine is freed behind it. */
    void  (*forget)(void *data, machine_engine_t *engine);

    /* Before anybody is told.  text: the fault, or NULL. */
    void  (*tell)(void *data, machine_event_t event,
        const machine_group_t *group, const machine_engine_t *engine,
        const char *text);

    /* This epoch, the greatest known, is given up for the clock's. */
    void  (*given_up)(void *data, uint64_t epoch);
} machine_ops_t;

struct machine_s {
    machine_settings_t     settings;
    const machine_ops_t   *ops;
    void                  *data;
    uint64_t               now_ms;      /* service time */
    uint64_t               mono_us;     /* when it was carried on last */
    uint64_t               settled_ms;  /* a missing lock file means nothing
                                           before it */
    uint64_t               ping_ms;     /* the last round */
    uint64_t               epoch;       /* greatest known */
    int                    is_unkept;   /* what is on disk is older */
    uint64_t               kept_ms;     /* tried last */
    machine_group_t        groups[MACHINE_GROUPS_MAX];
};


/* is_known: there was a state file of this boot or an older one, so that a
   lock file that is missing has not been there. */
void machine_init(machine_t *m, const machine_settings_t *settings,
    const machine_ops_t *ops, void *data, uint64_t kept_epoch, int is_known);

/* A lock file that is missing may have been there after all. */
void machine_is_unsettled(machine_t *m);

/* Frees all engines; of the ops only forget() is called. */
void machine_done(machine_t *m);

/*
 * At the start: the holder of the state file, its process alive and to be
 * added.  The engine's connection has ended: it may reconnect within the
 * window.  NULL: memory, or too many.
 */
machine_engine_t *machine_restore(machine_t *m, const machine_claim_t *claim);

/*
 * ACQUIRE.  MACHINE_OK and *engine, which waits or holds from now on and has
 * got its line; it has no process yet if it is new.  A claim with an epoch is a
 * holder's that comes back: it is granted again if nobody else holds.
 */
machine_rc_t machine_acquire(machine_t *m, void *peer,
    const machine_claim_t *claim, machine_engine_t **engine);

/* Any word at all came from it. */
void machine_heard(machine_t *m, machine_engine_t *engine);

void machine_take(machine_t *m, machine_engine_t *engine, uint64_t epoch);
void machine_pong(machine_t *m, machine_engine_t *engine,
    llmgw_group_state_t state, uint64_t progress, uint64_t streams);

/* How many waiters would take an offer now, as far as their PONGs say. */
unsigned machine_standbys(const machine_t *m, const machine_group_t *group);

/* The orderly end: the engine may be freed by it. */
void machine_release(machine_t *m, machine_engine_t *engine);

/* One process more.  MACHINE_OK or MACHINE_TOO_MANY. */
machine_rc_t machine_process_add(machine_engine_t *engine);

/* One died; is_main: the engine's own.  The engine may be freed by it. */
void machine_process_gone(machine_t *m, machine_engine_t *engine,
    int is_main);

/* Its connection ended.  The engine may be freed by it. */
void machine_closed(machine_t *m, machine_engine_t *engine);

/* Time passed: every deadline is looked at. */
void machine_tick(machine_t *m);

/* The rest of a window in which the group is granted to no engine. */
uint64_t machine_window_ms(const machine_t *m, const machine_group_t *group);

/* "late" and the like, as the protocol has it. */
const char *machine_rc_name(machine_rc_t rc);

/* "free", "offered", "waking", "active", "lost", ... of a group. */
const char *machine_group_state(const machine_t *m,
    const machine_group_t *group);

#endif /* LOCK_MACHINE_H */


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
 * engine registered is dead.  Nothing less frees a group: the memory that the
 * next engine needs is free only when the last process has ended.
 *
 * The service is one of two keys.  The other is an open file description lock
 * on GROUP.lock, which the engine takes after GRANTED and keeps until its
 * death. A restarted service learns from it whether an engine is active.
 *
 * An epoch is granted only once: max(kept, last_epoch of any ACQUIRE, wall
 * clock in us) + 1, and it is written (op `keep`) before GRANTED is sent.  An
 * epoch that gossip refuses, made when the clock was wrong, does not count in
 * this maximum: it is given up, and the next one is the clock's.
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

/* Gossip refuses an epoch that is further ahead of the wall clock than this. */
#define MACHINE_EPOCH_AHEAD_US  (24ULL * 3600 * 1000 * 1000)

/* An engine that ends itself at its waking timeout is not fenced for it. */
#define MACHINE_WAKING_GRACE_MS  1000

/* The state file is written at each grant.  Changes that can wait are written
   after this time, and a write that failed is repeated. */
#define MACHINE_RETRY_MS         1000

/*
 * A waiter that has not answered this many pings does not count as a successor;
 * nor one that has stood by for less than MACHINE_KNOWN_MS, since gateways do
 * not know it yet.
 */
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
    MACHINE_LATE,           /* TAKE without an offer; the engine goes on
                               waiting */
    MACHINE_HELD,           /* another instance holds the group */
    MACHINE_BUSY,           /* GROUP.lock is held by an unknown process; the
                               engine goes on waiting */
    MACHINE_BAD_EPOCH,      /* not its own, or far ahead of the clock */
    MACHINE_TOO_MANY,       /* groups, waiters or processes */
    MACHINE_STATE           /* the state file cannot be written; the engine
                               waits on */
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
    MACHINE_LEFT,           /* a waiter has gone */
    MACHINE_GRANTED,
    MACHINE_REGRANTED,
    MACHINE_ACTIVE,         /* the holder serves */
    MACHINE_RELEASED,
    MACHINE_LOST,           /* the holder's connection ended; the engine
                               lives */
    MACHINE_KILLED,         /* fence=kill */
    MACHINE_BLOCKED,        /* fence=wait: no engine is granted */
    MACHINE_RECOVERED,      /* fence=wait is over */
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
    uint64_t  last_epoch;       /* the greatest epoch that it knows */
    uint64_t  epoch;            /* the epoch that it holds; 0: none */
    uint64_t  waking_timeout_ms;
    int       can_be_killed;
} machine_claim_t;

struct machine_engine_s {
    machine_claim_t        claim;       /* epoch: offered or granted */
    machine_group_t       *group;
    machine_engine_t      *next;        /* in the queue */
    void                  *peer;        /* its connection; NULL: lost */
    void                  *processes;   /* the owner's list of these: */
    unsigned               nprocesses;  /* registered and not dead */

    llmgw_group_state_t    state;       /* as in its last PONG */
    uint64_t               progress;
    uint64_t               streams;
    uint64_t               pong_ms;
    uint64_t               standby_ms;  /* since when it has stood by */
    uint64_t               progress_ms; /* when progress rose, or no stream
                                           ran */

    unsigned               position;    /* as sent; 0: not yet */
    unsigned               is_silent:1; /* missed an offer, and silent since */
    unsigned               is_released:1;
};

struct machine_group_s {
    char                   name[LLMGW_GROUP_BYTES];     /* "": unused */
    machine_engine_t      *holder;
    machine_engine_t      *offered;     /* it is in the queue, too */
    machine_engine_t      *queue;
    unsigned               nwaiters;

    machine_phase_t        phase;       /* of the holder, all that follow */
    const char            *fault;       /* why the holder has lost its right */
    uint64_t               granted_ms;
    uint64_t               lost_ms;     /* when it was lost, released or
                                           restored */
    uint64_t               alarm_ms;    /* when it was logged last */

    uint64_t               offer_ms;    /* when the offer ends */
    uint64_t               retry_ms;
    int                    is_unknown;  /* GROUP.lock is held by an unknown
                                           process */
    int                    is_settling; /* the lock file is missing, and may
                                           have been removed */
    uint64_t               epoch;       /* of the last grant */

    uint64_t               dying_us;    /* first sign of its end, real time; 0:
                                           none */
    int64_t                last_gone_ms;    /* durations of the last
                                               takeover, */
    int64_t                last_grant_ms;   /* from that sign on; -1: none */
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

    /* Closes its connection, which belongs to another engine now, or to
       none. */
    void  (*drop)(void *data, machine_engine_t *engine);

    /* The engine is freed after this. */
    void  (*forget)(void *data, machine_engine_t *engine);

    /* Logs an event, before engines get messages about it.  text: the fault, or
       NULL. */
    void  (*tell)(void *data, machine_event_t event,
        const machine_group_t *group, const machine_engine_t *engine,
        const char *text);

    /* The greatest known epoch is given up, and the clock's is used. */
    void  (*given_up)(void *data, uint64_t epoch);
} machine_ops_t;

struct machine_s {
    machine_settings_t     settings;
    const machine_ops_t   *ops;
    void                  *data;
    uint64_t               now_ms;      /* service time */
    uint64_t               mono_us;     /* when service time was last
                                           advanced */
    uint64_t               settled_ms;  /* before it, a missing lock file proves
                                           nothing */
    uint64_t               ping_ms;     /* the last round */
    uint64_t               epoch;       /* the greatest known */
    int                    is_unkept;   /* the state on disk is older */
    uint64_t               kept_ms;     /* when a write was tried last */
    machine_group_t        groups[MACHINE_GROUPS_MAX];
};


/* is_known: there was a state file, of this boot or an older one, so that a
   missing lock file has never been there. */
void machine_init(machine_t *m, const machine_settings_t *settings,
    const machine_ops_t *ops, void *data, uint64_t kept_epoch, int is_known);

/* A lock file that is missing may have been there after all. */
void machine_is_unsettled(machine_t *m);

/* Frees all engines; of the ops only forget() is called. */
void machine_done(machine_t *m);

/*
 * At the start: restores a holder from the state file, whose process is alive,
 * and has to be added by the caller.  The engine has no connection, and may
 * reconnect within the window.  NULL: out of memory, or too many.
 */
machine_engine_t *machine_restore(machine_t *m, const machine_claim_t *claim);

/*
 * Handles ACQUIRE.  MACHINE_OK and *engine, which waits or holds from now on,
 * and was sent its line; a new one has no process yet.  A claim with an epoch
 * is that of a holder that comes back: it is granted again if no other engine
 * holds the group.
 */
machine_rc_t machine_acquire(machine_t *m, void *peer,
    const machine_claim_t *claim, machine_engine_t **engine);

/* To be called for each line of the engine. */
void machine_heard(machine_t *m, machine_engine_t *engine);

void machine_take(machine_t *m, machine_engine_t *engine, uint64_t epoch);
void machine_pong(machine_t *m, machine_engine_t *engine,
    llmgw_group_state_t state, uint64_t progress, uint64_t streams);

/* How many waiters would take an offer now, by their PONGs. */
unsigned machine_standbys(const machine_t *m, const machine_group_t *group);

/* RELEASE: the orderly end, which may free the engine. */
void machine_release(machine_t *m, machine_engine_t *engine);

/* Counts a process more.  MACHINE_OK or MACHINE_TOO_MANY. */
machine_rc_t machine_process_add(machine_engine_t *engine);

/* A process has died; is_main: the engine's own.  May free the engine. */
void machine_process_gone(machine_t *m, machine_engine_t *engine,
    int is_main);

/* The engine's connection has ended.  May free the engine. */
void machine_closed(machine_t *m, machine_engine_t *engine);

/* To be called as time passes: checks every deadline. */
void machine_tick(machine_t *m);

/* The rest of the window in which the group is not granted to any engine. */
uint64_t machine_window_ms(const machine_t *m, const machine_group_t *group);

/* "late" and the like, as the protocol has it. */
const char *machine_rc_name(machine_rc_t rc);

/* "free", "offered", "waking", "active", "lost", ... of a group. */
const char *machine_group_state(const machine_t *m,
    const machine_group_t *group);

#endif /* LOCK_MACHINE_H */

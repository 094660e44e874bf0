
/*
 * The adapter starts its engine, and starts it again when it ends
 * (--engine-command).
 *
 *                       room for it            keeper.h
 *   START ------------------------> start ---------------> RUNNING
 *     ^  ^   | wait: an earlier run's          keeper      |   | SIGTERM,
 *     |  '---' processes, device memory         ended      |   | --engine-stop-
 *     |                                          |         |   | timeout, kill
 *     |  pause, doubling          no child left  v         v   v
 *     '------------------------ GONE <-------- SWEEPING <------'
 *                                 |              kill what came to this process
 *                                 '--- asked to stop: over
 *
 * When to start and to stop is decided by common/child/supervise.h, as for an
 * agent's replica.  There is no second start before all processes of the first
 * have ended: shown by the keeper's end or, if the keeper was killed, by an
 * adapter without children.
 *
 * The reason why an engine does not run is in the facts' detail, for `llmgwctl
 * members`.
 */

#ifndef LAUNCH_H
#define LAUNCH_H

#include <ev.h>
#include <stdint.h>

#include "common/child/cgroup.h"
#include "common/child/child.h"
#include "common/child/supervise.h"
#include "common/log.h"
#include "replica/engine/engine.h"
#include "replica/launch/device.h"
#include "replica/launch/folder.h"
#include "replica/launch/output.h"
#include "replica/launch/place.h"


#define LAUNCH_HOW_BYTES  256

/* After the kill: longer is a process that hangs in the kernel. */
#define LAUNCH_GIVE_UP_S  5.0

typedef struct {
    /* the caller's */
    struct ev_loop  *loop;
    const log_t     *log;
    engine_t        *engine;
    const char      *id;
    const char      *command;
    uint64_t         stop_timeout_ms;
    void           (*on_over)(void *data);      /* after launch_stop() */
    void            *data;

    /* Where the engine is to be asked: for the kind's open(). */
    place_t          place;

    /* its own */
    folder_t         folder;
    int              is_locked;
    char             cgroup[CGROUP_PATH_BYTES];     /* "": none */
    output_t         output;
    devices_t        devices;
    supervise_t      supervise;
    child_t          keeper;
    int              control_fd;        /* its socket; -1: none */
    ev_io            control;
    ev_timer         due;
    ev_timer         sweep;
    ev_timer         give_up;
    ev_prepare       watch;             /* has it become ready? */
    int              pid;               /* the engine's main process; 0: none */
    char             how[LAUNCH_HOW_BYTES];     /* it ended; "": not known */
    int              is_waiting;        /* START is put off */
    uint64_t         waiting_ms;        /* for memory since then; 0: not */
    int              is_measured;
    int              was_other;         /* than READY since its start */
    int              is_over;
    int              is_left;           /* and something of it is left */
} launch_t;


/*
 * The caller has filled in the first part.  Nothing is started yet.  0, or -1
 * and a line in the log.
 */
int launch_open(launch_t *launch);

/* The engine's kind is open: starts it. */
void launch_begin(launch_t *launch);

/*
 * Stops it; then on_over(), at once if nothing runs.  is_hurried: by SIGKILL;
 * also after a call without it.
 */
void launch_stop(launch_t *launch, int is_hurried);

/* Processes that still run are killed by the keepers. */
void launch_close(launch_t *launch);

#endif /* LAUNCH_H */

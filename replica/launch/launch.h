
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
 * have ended.  This is certain when the keeper has ended or, if it was killed,
 * when the adapter has no children left.
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

/* Time for processes to end after SIGKILL; one that takes longer hangs in the
   kernel. */
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

    /* The engine's address, for the kind's open(). */
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
    ev_prepare       watch;             /* looks whether the engine has become
                                           ready */
    int              pid;               /* the engine's main process; 0: none */
    char             how[LAUNCH_HOW_BYTES];     /* how it ended; "": not
                                                   known */
    int              is_waiting;        /* in START, the start is delayed */
    uint64_t         waiting_ms;        /* since when it waits for memory; 0: it
                                           does not */
    int              is_measured;
    int              was_other;         /* it has not been READY all the time
                                           since its start */
    int              is_over;
    int              is_left;           /* is_over, but a process is left */
} launch_t;


/*
 * The caller has filled in the first part.  Nothing is started yet.  0, or -1
 * and a line in the log.
 */
int launch_open(launch_t *launch);

/* Starts the engine; its kind is open. */
void launch_begin(launch_t *launch);

/*
 * Stops the engine, then calls on_over(), at once if nothing runs.  is_hurried:
 * by SIGKILL; such a call may follow one without it.
 */
void launch_stop(launch_t *launch, int is_hurried);

/* Frees all.  The keepers kill processes that still run. */
void launch_close(launch_t *launch);

#endif /* LAUNCH_H */

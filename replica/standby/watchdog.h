
/*
 * A thread that answers while the engine's own loop may be busy or hung: the
 * lock service's PINGs, probes, and the timeout of the wake.
 *
 *   main loop                                 watchdog's loop
 *
 *   asleep, woken, vitals of each turn -----> life  <----- probes ask
 *   on_granted, on_registered <-------------- lock client
 *                                             waking timeout: ends the process
 *
 * One mutex covers the life.  It is held for a few stores, never for a system
 * call other than the line in the log of a transition, so that the order of
 * these lines is the order of the events.
 *
 * A fatal end is _exit(1) from here, since the main loop may be hung.  This
 * thread may block, too, as in a write(2) to a log whose reader has stopped:
 * then the kernel's alarm(2) ends the wake a little later.
 */

#ifndef WATCHDOG_H
#define WATCHDOG_H

#include <ev.h>
#include <sys/types.h>

#include "common/log.h"
#include "replica/standby/life.h"


#define WATCHDOG_ERROR_BYTES  256
#define WATCHDOG_WORKERS_MAX  64      /* more than a host has accelerators */

typedef struct watchdog_s  watchdog_t;

/* Strings live as long as the watchdog. */
typedef struct {
    const char  *group;
    const char  *engine;            /* its id */
    const char  *lock;              /* socket of the lock service */
    const char  *probe_listen;      /* HOST:PORT; NULL: no probes */
    uint64_t     waking_timeout_ms;
} watchdog_options_t;

/* In the main loop. */
typedef struct {
    void  (*on_granted)(void *data, uint64_t epoch, uint64_t lock);
    void  (*on_regranted)(void *data, uint64_t lock);

    /* The number of workers registered so far. */
    void  (*on_registered)(void *data, int workers);

    /* See watchdog_seek(); may be called again. */
    void  (*on_successor)(void *data);
} watchdog_callbacks_t;


/* Starts the thread, with the life in Init.  NULL and a reason
   (WATCHDOG_ERROR_BYTES). */
watchdog_t *watchdog_create(struct ev_loop *main_loop, const log_t *log,
    const watchdog_options_t *options, const watchdog_callbacks_t *callbacks,
    void *data, char *error);

/* Init is over: asks the lock service for the group. */
void watchdog_asleep(watchdog_t *watchdog);

/* The wake is over.  0, or -1: too late, the process is about to end. */
int watchdog_woken(watchdog_t *watchdog);

/* To be called in each iteration of the main loop.  Returns the state to be
   reported; sets is_lock_away: life_is_lock_away(). */
llmgw_group_state_t watchdog_turned(watchdog_t *watchdog,
    const life_vitals_t *vitals, int *is_lock_away);

/* The Active engine drains, and ends if it has a successor: on_successor() is
 * called when the lock service has been asked and knows a standby that would be
 * granted the group. */
void watchdog_seek(watchdog_t *watchdog);

/* Registers a further process at the service, at most WATCHDOG_WORKERS_MAX.
   The pidfd is the watchdog's. */
void watchdog_worker(watchdog_t *watchdog, pid_t pid, int pidfd);

/* Descriptor of the lock file, for workers; -1 before on_granted. */
int watchdog_lock_fd(const watchdog_t *watchdog);

/* Ends the watchdog in an orderly way.  is_release: sends RELEASE to the
   service. */
void watchdog_destroy(watchdog_t *watchdog, int is_release);

#endif /* WATCHDOG_H */


/*
 * What has to answer while the engine's own loop may be busy, in a thread of
 * its own: the lock service's PINGs, the probes, and the clock of the wake.
 *
 *   main loop                                 sentry's loop
 *
 *   asleep, woken, vitals of each turn -----> life  <----- probes ask
 *   on_granted, on_registered <-------------- lock client
 *                                             waking timeout: ends the process
 *
 * One mutex covers the life.  It is held for a few stores, never for a system
 * call other than the line in the log of a transition, so that the order of
 * these lines is the order of what happened.
 *
 * A fatal end is _exit(1) from here: the main loop may never turn again.  Nor
 * may this thread, as in a write(2) to a log that nobody reads: the kernel's
 * alarm(2) ends such a wake a little later.
 */

#ifndef SENTRY_H
#define SENTRY_H

#include <ev.h>
#include <sys/types.h>

#include "common/log.h"
#include "replica/standby/life.h"


#define SENTRY_ERROR_BYTES  256
#define SENTRY_WORKERS_MAX  64      /* accelerators of a host, and to spare */

typedef struct sentry_s  sentry_t;

/* Strings live as long as the sentry. */
typedef struct {
    const char  *group;
    const char  *engine;            /* its id */
    const char  *lock;              /* socket of the lock service */
    const char  *probe_listen;      /* HOST:PORT; NULL: no probes */
    uint64_t     waking_timeout_ms;
} sentry_options_t;

/* In the main loop. */
typedef struct {
    void  (*on_granted)(void *data, uint64_t epoch, uint64_t lock);
    void  (*on_regranted)(void *data, uint64_t lock);

    /* So many workers are registered now. */
    void  (*on_registered)(void *data, int workers);

    /* See sentry_seek(); may come again. */
    void  (*on_successor)(void *data);
} sentry_callbacks_t;


/* The life begins, in Init.  NULL and a reason (SENTRY_ERROR_BYTES). */
sentry_t *sentry_create(struct ev_loop *main_loop, const log_t *log,
    const sentry_options_t *options, const sentry_callbacks_t *callbacks,
    void *data, char *error);

/* Init is over: asks for the group. */
void sentry_asleep(sentry_t *sentry);

/* The wake is over.  0, or -1: too late, the process is about to end. */
int sentry_woken(sentry_t *sentry);

/* In each turn of the main loop.  Returns what others are to be told;
   is_lock_away: life_is_lock_away(). */
llmgw_group_state_t sentry_turned(sentry_t *sentry,
    const life_vitals_t *vitals, int *is_lock_away);

/* The Active engine drains, and would rather end: on_successor() comes when the
   lock service knows a standby that would be granted then, not before it was
   asked for that. */
void sentry_seek(sentry_t *sentry);

/* A further process, at most SENTRY_WORKERS_MAX: the service is told.  The
   pidfd is the sentry's. */
void sentry_worker(sentry_t *sentry, pid_t pid, int pidfd);

/* Of the lock file, for workers; -1 before on_granted. */
int sentry_lock_fd(const sentry_t *sentry);

/* The orderly end.  is_release: the service is told that it is one. */
void sentry_destroy(sentry_t *sentry, int is_release);

#endif /* SENTRY_H */

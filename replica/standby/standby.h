
/*
 * An engine that stands by: how it starts, and what it does at each transition
 * of its life (life.h).
 *
 *   startup open       opens the engine, which loads its weights
 *   ENGINE_ASLEEP      Standby; asks the lock service for the group
 *   granted            Waking; forks and registers its processes, fills memory,
 *                      wakes the engine
 *   ENGINE_READY       Active; the gRPC socket listens
 *
 * Nothing is mapped or allocated for serving before the lock service has
 * granted the group and the lock file is locked, since the previous engine may
 * still be dying.  If any of this fails, the process writes one line and ends.
 */

#ifndef STANDBY_H
#define STANDBY_H

#include <ev.h>

#include "common/grpc/conn.h"
#include "common/log.h"
#include "replica/engine/engine.h"
#include "replica/standby/startup_wait.h"
#include "replica/standby/watchdog.h"


/* The command line's. */
typedef struct {
    const char  *group;             /* NULL: it does not stand by */
    const char  *lock;
    const char  *wait_for;
    const char  *probe_listen;
    uint64_t     waking_timeout_ms;
} standby_options_t;

typedef struct standby_s  standby_t;

/*
 * Parts of an engine beside its own process.  begin() forks `count` processes
 * and registers each by standby_worker(); when the lock service watches all of
 * them, fill() lets them take memory, and standby_filled() is called, at once
 * or later.  Both: 0, or -1 and one line in the log.
 */
typedef struct {
    int    count;
    int  (*begin)(void *data, int lock_fd);
    int  (*fill)(void *data);
    void (*done)(void *data);
    void  *data;
} standby_body_t;

struct standby_s {
    /* the caller's */
    struct ev_loop           *loop;
    const log_t              *log;
    engine_t                 *engine;
    const engine_options_t   *engine_options;
    grpc_server_t            *server;       /* bound, not listening yet */
    const standby_options_t  *options;
    const standby_body_t     *body;         /* NULL: nothing but the process */
    const char               *id;
    void                    (*on_active)(void *data);
    void                    (*on_successor)(void *data);    /* standby_seek() */
    void                     *data;

    /* its own */
    startup_wait_t                    startup;
    watchdog_t                 *watchdog;
    ev_prepare                watch;        /* looks at the engine */
    ev_timer                  pulse;        /* makes the loop iterate at least
                                               this often */
    int                       is_open;      /* the engine is open */
    llmgw_group_state_t       state;        /* the state that this loop has
                                               reached; life.h's may be ahead */
    int                       is_filling;   /* memory is being taken */
    int                       is_woken;     /* wake() was called */
};


/* The caller has filled in the first part.  0, or -1 and one line in the
   log. */
int standby_init(standby_t *standby);

/* This engine drains in order to end: on_successor() is called, possibly again,
   when another engine would be granted the group at its end. */
void standby_seek(standby_t *standby);

/* --- for the body */

/* Registers a process that was forked.  0, or -1 and errno. */
int standby_worker(standby_t *standby, pid_t pid);

void standby_filled(standby_t *standby);

/* The engine cannot serve: ends the process.  The caller has logged the
   reason. */
void standby_fail(standby_t *standby);


/* Closes the engine, too. */
void standby_done(standby_t *standby);

#endif /* STANDBY_H */

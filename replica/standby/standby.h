
/*
 * An engine that stands by: how it begins, and what it does with each step of
 * its life (life.h).
 *
 *   startup open          opens the engine: its weights come in
 *   ENGINE_ASLEEP      Standby; asks the lock service for the group
 *   granted            Waking; forks and registers its processes, fills memory,
 *                      wakes the engine
 *   ENGINE_READY       Active; the gRPC socket listens
 *
 * Nothing is mapped or allocated for serving before the lock service has
 * granted and the lock file is held: the engine before may still be dying.
 * Whatever fails on the way is one line, and the end of the process.
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
    grpc_server_t            *server;       /* bound, and does not listen */
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
    ev_timer                  pulse;        /* the loop turns at least so
                                               often */
    int                       is_open;      /* the engine is */
    llmgw_group_state_t       state;        /* as this loop has done it; life.h
                                               may be further */
    int                       is_filling;   /* memory is being taken */
    int                       is_woken;     /* wake() was called */
};


/* The caller has filled in the first part.  0, or -1 and one line in the
   log. */
int standby_init(standby_t *standby);

/* It drains, to end: on_successor() comes when another engine would be granted
   the group then, and may come again. */
void standby_seek(standby_t *standby);

/* --- for the body */

/* A process was forked: 0, or -1 and errno. */
int standby_worker(standby_t *standby, pid_t pid);

void standby_filled(standby_t *standby);

/* The engine cannot serve: the process ends.  The line that says why has been
   written. */
void standby_fail(standby_t *standby);


/* Closes the engine, too. */
void standby_done(standby_t *standby);

#endif /* STANDBY_H */


/*
 * The connection to the lock service (lock_session.h over a socket), and the
 * lock file.
 *
 * It runs in the watchdog's loop, so that a PING is answered whatever the
 * engine's own loop does.  It tries to connect for ever: for a waiting engine,
 * since only the service can grant it the group, and for an active one, which
 * serves without the service meanwhile.
 */

#ifndef LOCK_CLIENT_H
#define LOCK_CLIENT_H

#include <ev.h>
#include <sys/types.h>

#include "common/log.h"
#include "common/os/redial.h"
#include "replica/standby/life.h"
#include "replica/standby/key_file.h"
#include "replica/standby/lock_session.h"


#define LOCK_CLIENT_NONCE_BYTES   17    /* 16 hexadecimal digits */
#define LOCK_CLIENT_WORKERS_MAX   64
#define LOCK_CLIENT_REASON_BYTES  256

/* All are called from the loop. */
typedef struct {
    /* The group is granted, and the lock file is held, too. */
    void  (*on_granted)(void *data, uint64_t epoch, uint64_t lock);
    void  (*on_regranted)(void *data, uint64_t lock);

    /* Whether the service has this engine in its queue or as the holder; 0 if
       the service is away or silent.  on_regranted() implies 1. */
    void  (*on_queue)(void *data, int is_queued);

    /* The service watches this worker. */
    void  (*on_registered)(void *data, pid_t pid);

    /* After lock_client_seek(): a standby would be granted the group if this
       engine ended.  May be called again. */
    void  (*on_successor)(void *data);

    /* The process must end; text is a line with the reason. */
    void  (*on_fatal)(void *data, const char *text);

    /* Gets what a PONG reports. */
    void  (*look)(void *data, llmgw_group_state_t *state,
                  life_vitals_t *vitals);
} lock_client_callbacks_t;

typedef struct {
    pid_t  pid;
    int    fd;                          /* its pidfd, which the client closes */
    int    is_registered;               /* on_registered() was called */
} lock_client_worker_t;

typedef struct {
    /* the caller's */
    struct ev_loop                 *loop;
    const log_t                    *log;
    const char                     *path;
    const char                     *group;
    const char                     *engine;
    uint64_t                        waking_timeout_ms;
    const lock_client_callbacks_t  *callbacks;
    void                           *data;

    /* its own */
    char                            nonce[LOCK_CLIENT_NONCE_BYTES];
    lock_session_t                          session;
    key_file_t                     file;
    redial_t                        service;
    ev_timer                        tick;
    uint64_t                        ping;       /* number of the last PING */
    uint64_t                        pong;       /* number of the last one that
                                                   was answered */
    int                             is_silent;  /* too many were not answered */
    ev_timer                        seek;
    int                             has_sought; /* a PING has asked for a
                                                   successor */
    lock_client_worker_t            workers[LOCK_CLIENT_WORKERS_MAX];
    int                             nworkers;
} lock_client_t;


/* The caller has filled in the first part.  0, or -1 and a reason. */
int lock_client_init(lock_client_t *client,
    char error[LOCK_CLIENT_REASON_BYTES]);

/* Asks for the group; to be called once. */
void lock_client_ask(lock_client_t *client);

/* The holder is about to end, and prefers to have a successor by then: asks for
   one until the client is closed. */
void lock_client_seek(lock_client_t *client);

/* Registers a further process of this engine.  The pidfd is the client's. */
void lock_client_worker(lock_client_t *client, pid_t pid, int pidfd);

/* Disconnects; is_release: sends RELEASE for an orderly end.  The lock file
   stays locked until the process ends. */
void lock_client_close(lock_client_t *client, int is_release);

#endif /* LOCK_CLIENT_H */

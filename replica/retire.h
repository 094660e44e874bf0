
/*
 * How a replica stops: at SIGTERM or SIGINT.
 */

#ifndef RETIRE_H
#define RETIRE_H

#include <ev.h>
#include <stdint.h>

#include "replica/agent_link.h"
#include "common/grpc/conn.h"
#include "common/log.h"
#include "replica/engine/run.h"


typedef enum {
    RETIRE_SERVING = 0,
    RETIRE_DRAINING,        /* running streams may finish */
    RETIRE_FLUSHING,        /* last bytes are on their way */
    RETIRE_STOPPING         /* its engine ends */
} retire_state_t;

typedef struct {
    struct ev_loop   *loop;
    const log_t      *log;
    engine_t         *engine;
    grpc_server_t    *server;
    agent_link_t     *link;
    uint64_t          drain_timeout_ms;
    void            (*on_drain)(void *data);    /* draining has begun; may be
                                                   NULL */
    void             *data;

    /*
     * No stream is left: ends the engine, then calls retire_stopped().
     * is_hurried: at once; such a call may follow one without it.  NULL: the
     * engine ends with the process.
     */
    void            (*stop_engine)(void *data, int is_hurried);

    /* retire.c's own */
    ev_signal         sigterm;
    ev_signal         sigint;
    ev_prepare        watch;
    ev_timer          timer;
    retire_state_t    state;
    uint64_t          flush_until_ms;   /* monotonic */
    int               is_hurried;       /* a second signal came */
} retire_t;


/*
 * From now on a signal waits for the loop, however early it comes.  The caller
 * has filled in the loop, and fills in the rest of the first part before it
 * runs.  Ends the loop when all is done.
 */
void retire_init(retire_t *retire);

/* To be called when the engine has ended after stop_engine(). */
void retire_stopped(retire_t *retire);

/*
 * To be called when another engine serves as soon as this one has ended: ends
 * the streams that still run, which continue there.  Does nothing if this
 * replica is not draining.
 */
void retire_hand_over(retire_t *retire);

#endif /* RETIRE_H */

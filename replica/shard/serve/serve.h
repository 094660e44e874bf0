
/*
 * A shard: one slice of a model, and the sessions that have layers of it
 * computed.
 *
 * It has neither clock nor sockets.  A stream's messages are passed in; answers
 * are sent by the session's table of calls, and rows are computed by the
 * plugin's table.  So unit tests and the fuzzer run it with a plugin and a time
 * of their own.
 *
 *   stream --> session_message() --> checked, gathered --> plugin->submit()
 *   stream <-- calls->send()     <-- serve_notified()  <-- plugin->take()
 *
 * The slice is loaded at the start, so that a broken file is known at once;
 * unloaded after idle_ms without a session; and loaded again by the next
 * Open, which waits for it.
 *
 *              facts                       loaded
 *   STARTING --------> ASLEEP --> LOADING --------> READY
 *                        ^                            | no session for
 *                        '----------------------------' idle_ms
 *
 * A session:
 *
 *        Open, READY
 *   NEW ------------------------> OPEN ----.   Close, the stream's end, Refused
 *    |   Open, not READY            ^      |
 *    |------------> HELD -----------'      v
 *    |               |   loaded          ENDED: its place and its tensors are
 *    '---------------'-------------------> free; those that the plugin has in
 *        Refused, the stream's end         hand, when it is done with them
 *
 * Every wait has an end: a stream without an Open and a session without
 * progress after SHARD_IDLE_MS, each session after SHARD_SESSION_MS, a held one
 * after load_timeout_ms, an ended one whose client does not read after
 * SERVE_LINGER_MS.
 *
 * A client that does not read its results stops its own session: its next
 * step is given to the plugin when no more than SERVE_QUEUE_BYTES are queued.
 */

#ifndef SHARD_SERVE_H
#define SHARD_SERVE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/grpc/session.h"
#include "replica/engine/llama/shard_core.h"
#include "replica/shard/key.h"
#include "replica/shard/limits.h"
#include "replica/shard/reason.h"
#include "replica/shard/serve/callers.h"
#include "replica/shard/tensor.h"
#include "shard.pb-c.h"


#define SERVE_QUEUE_BYTES  (4 * 1024 * 1024)

/*
 * Streams of all clients, those without a session included: each may hold an
 * unfinished Open, so this is a limit of memory, too.
 */
#define SERVE_STREAMS_MAX  (16 * SHARD_SESSIONS_MAX)

#define SERVE_LINGER_MS    10000
#define SERVE_TEXT_BYTES   256

typedef struct serve_s    serve_t;
typedef struct session_s  session_t;


/* How a session sends to its client. */
typedef struct {
    /* 0, or -1: out of memory, or the stream is gone. */
    int     (*send)(void *data, const Llmgateway__Shard__Reply *reply);

    /* Bytes that are queued and have not left. */
    size_t  (*queued)(void *data);

    /* Ends the stream.  reason: "" for an orderly end. */
    void    (*finish)(void *data, llmgw_grpc_status_t status,
                      const char *reason, const char *text);

    /* Resets the stream of a client that does not read even the end. */
    void    (*reset)(void *data);
} session_calls_t;

typedef struct {
    /* The slice is loaded, for the first time or again; or unloaded. */
    void  (*on_loaded)(void *data, int is_loaded);

    /* The slice cannot be loaded: the shard will never serve. */
    void  (*on_broken)(void *data, const char *error);

    /* A session that computed ends with an error. */
    void  (*on_lost)(void *data, const char *caller, shard_reason_t reason,
                     const char *text);

    void   *data;
} serve_calls_t;

typedef struct {
    const char         *id;             /* as tokens name this shard */
    const shard_key_t  *key;            /* NULL: no token is asked for */
    tensor_dtype_t      dtype;
    uint32_t            sessions;
    uint64_t            max_memory;     /* 0: no limit */
    uint64_t            idle_ms;        /* 0: stays loaded */
    uint64_t            load_timeout_ms;
} serve_options_t;


/*
 * core was opened with is_standby and with as many sessions as the options
 * have; its notify() leads to serve_notified() in the shard's thread.  NULL:
 * out of memory.
 */
serve_t *serve_create(const shard_plugin_t *plugin, core_t *core,
    const serve_options_t *options, const serve_calls_t *calls);

/* Closes the core, too; no session is left. */
void serve_destroy(serve_t *serve);

/*
 * Sets the time for the calls that follow: of a clock that never goes back, and
 * of the wall clock.
 */
void serve_at(serve_t *serve, uint64_t now_ms, uint64_t unix_s);

/* Takes the plugin's events and its new state. */
void serve_notified(serve_t *serve);

/* Ends what has waited too long; to be called a few times a second. */
void serve_tick(serve_t *serve);

/* Accepts no new session; or accepts them again. */
void serve_drain(serve_t *serve, int is_draining);

/* Ends all sessions: `draining`. */
void serve_stop(serve_t *serve, const char *text);

/* The core's facts; NULL: not known yet. */
const core_facts_t *serve_facts(const serve_t *serve);

/* Number of sessions that are open or held. */
uint32_t serve_sessions(const serve_t *serve);

/* The counts of each caller. */
const callers_t *serve_callers(const serve_t *serve);

/* Bytes of all tensors, including those that the plugin is using. */
uint64_t serve_tensor_bytes(const serve_t *serve);


/*
 * A session for a new stream; calls live as long as it.  NULL: out of memory,
 * or there are SERVE_STREAMS_MAX already.
 */
session_t *session_create(serve_t *serve, const session_calls_t *calls,
    void *data);

/* One message of the client's. */
void session_message(session_t *session, const uint8_t *data, size_t len);

/* The session is open or held: its Open was accepted, and it is one of the
   sessions that are counted. */
int session_is_open(const session_t *session);

/* The client has ended its side: OK, or what was wrong with its stream. */
void session_closing(session_t *session, llmgw_grpc_status_t status,
    const char *text);

/* calls->queued() has fallen to zero. */
void session_drained(session_t *session);

/* The stream is closed; calls is not used any more. */
void session_destroy(session_t *session);

#endif /* SHARD_SERVE_H */

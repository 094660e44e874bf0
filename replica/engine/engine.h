
/*
 * The engine that this process serves: a kind (simulated, over HTTP, in the
 * process), what is known of it, and how many generations run.
 *
 * A kind is a table of functions.  It turns a request into messages, by
 * run_send() and run_finish() (run.h), and keeps the facts up to date.
 * Admission, deadlines, the limit of what a slow client may have queued,
 * draining and counting are the same for all kinds and stand in run.c.
 */

#ifndef ENGINE_H
#define ENGINE_H

#include <ev.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/grpc/conn.h"
#include "common/log.h"
#include "llmgateway.pb-c.h"
#include "proto/grpc/session.h"
#include "proto/members/members.h"
#include "replica/weights/weights.h"


#define ENGINE_DELAY_MAX_MS   3600000   /* limit of all delays: an hour */
#define ENGINE_CAPACITY_MAX   1000000   /* streams: a bound for typing errors */
#define ENGINE_CAPACITY_AUTO  (-1)

/* Defaults of these options, in ms. */
#define ENGINE_STALL_TIMEOUT_MS  0      /* 0: learnt (health.h) */
#define ENGINE_IDLE_TIMEOUT_MS   600000
#define ENGINE_STOP_TIMEOUT_MS   10000

#define ENGINE_VERSION_BYTES  64
#define ENGINE_GROUP_BYTES    64
#define ENGINE_MODELS_BYTES   4096      /* of all names, NULs included */
#define ENGINE_DETAIL_BYTES   128       /* agents refuse more */


typedef struct engine_s  engine_t;
typedef struct run_s     run_t;


typedef enum {
    ENGINE_READY = 0,
    ENGINE_STARTING,        /* loads its model */
    ENGINE_STALLED,         /* runs, and makes no progress */
    ENGINE_DOWN,            /* does not run, or will never serve */
    ENGINE_ASLEEP           /* only its weights are loaded: wake() is next;
                               reported as STARTING */
} engine_state_t;

/* The standby group of the process: replica/standby/ writes it. */
typedef struct {
    char      name[LLMGW_GROUP_BYTES];  /* "": of no group */
    uint8_t   state;                    /* llmgw_group_state_t */
    uint64_t  epoch;                    /* of the grant; 0: none yet */
    uint64_t  lock;                     /* instance of the lock service that
                                           granted it */
    int       is_lock_away;             /* the lock service cannot be reached:
                                           no takeover is possible */
} engine_group_t;

/* What reports contain about an engine. */
typedef struct {
    engine_state_t  state;
    int             is_leaving;         /* drains: accepts no new request */
    int32_t         max_capacity;       /* streams; 0: no limit */
    int64_t         running;            /* of all its clients; -1: not known */
    int64_t         waiting;            /* at the engine; -1: not known */
    int32_t         kv_permille;        /* of its cache; -1: not known */
    int64_t         kv_free_blocks;     /* of its cache; -1: not known */
    int32_t         hit_permille;       /* of prompts, found in its cache
                                           (hits.h); -1: not known */
    char            model_version[ENGINE_VERSION_BYTES];
    char            resume_group[ENGINE_GROUP_BYTES];   /* "": any */
    char            models[ENGINE_MODELS_BYTES];    /* NUL-ended names, one
                                                       after the other */
    size_t          models_bytes;       /* 0: not known */
    char            detail[ENGINE_DETAIL_BYTES];    /* of an engine that is
                                                       started here: why it does
                                                       not run; "": it runs */
    engine_group_t  group;
    uint32_t        generation;         /* raised by engine_publish(): a report
                                           is due */
} engine_facts_t;

typedef struct {
    int32_t  active;
    int64_t  started;
    int64_t  finished;
    int64_t  cancelled;
    int64_t  failed;                    /* rejected ones included */
    int64_t  tokens;
    int64_t  prompt_tokens;             /* of the engine `model`: of requests
                                           that were queued */
    int64_t  cached_tokens;             /* of those, found in its cache */
} engine_stats_t;

/* The command line's; strings live as long as the process. */
typedef struct {
    const char  *kind;
    const char  *url;                   /* NULL: none */
    const char  *command;               /* starts it; NULL: it runs already */
    const char  *socket;                /* of an engine that is started here;
                                           NULL: by the URL */
    uint64_t     stop_timeout_ms;       /* from its SIGTERM to SIGKILL */
    const char  *key_file;              /* NULL: none */
    const char  *ca_file;               /* NULL: the system's */
    const char  *model;                 /* a name, or a file; NULL: none */
    const char  *model_version;
    int32_t      max_capacity;          /* ENGINE_CAPACITY_AUTO; 0: no limit */
    uint64_t     stall_timeout_ms;      /* 0: learnt */
    uint64_t     stream_idle_timeout_ms;
    int          is_standby;            /* open() ends asleep */
    weights_options_t  weights;
    const char  *weights_files;         /* one a device, FILE[,FILE]; NULL */

    /* of libllama */
    const char  *model_name;            /* for clients; NULL: the file's */
    const char  *cpu;                   /* variant of its code; NULL: best */
    int64_t      context_tokens;        /* of a sequence; 0: by the model */
    int64_t      threads;               /* 0: one for each processor */
    int          is_exact;

    /* of a model in shards: replica/shard/options.h */
    const struct shards_options_s  *shards;

    /* options of a kind, in a struct of its own */
    const void  *own;
} engine_options_t;

/* How a run ended, for the counts. */
typedef enum {
    ENGINE_FINISHED = 0,    /* the final message was given out */
    ENGINE_CANCELLED,       /* by the client, its deadline or its absence */
    ENGINE_FAILED           /* by the engine, or because the replica stopped */
} engine_end_t;


/*
 * A gRPC method of a kind's own, with any number of messages in both
 * directions.  A call is an object of the kind's, from open() to close().
 */
typedef struct {
    const char  *path;

    /* Limits of the whole server, so other methods have to fit in, too.  The
       kind allows one of its own streams more by llmgw_grpc_stream_trust(). */
    size_t       message_bytes;
    size_t       unfinished_bytes;      /* of all streams that are not
                                           trusted */
    uint32_t     window_bytes;          /* of each stream */
    uint32_t     streams;               /* of one connection */

    /* Options of the server's connections; they live until the engine's
       close(). */
    const grpc_conn_options_t  *(*conn)(engine_t *engine);

    /* Begins a call.  NULL: the kind has ended the stream itself. */
    void  *(*open)(engine_t *engine, llmgw_grpc_stream_t *stream);

    /* A whole message has come; its bytes were given back to the window. */
    void   (*message)(void *call, const uint8_t *data, size_t len);

    /* No further message comes: OK, or what is wrong with the client's
       stream. */
    void   (*end)(void *call, llmgw_grpc_status_t status, const char *text);

    /* All that was queued has been sent. */
    void   (*drained)(void *call);

    /* The stream is gone. */
    void   (*close)(void *call);
} engine_stream_t;

typedef struct {
    const char  *name;
    size_t       run_bytes;     /* of the kind's own struct for a run, which
                                   begins with a run_t; it is zeroed */

    /* NULL: it has no method of its own. */
    const engine_stream_t  *stream;

    /*
     * Opens the engine, and sets engine->data.  0, or -1 and one line in the
     * log.  With is_standby it leads to ENGINE_ASLEEP, at once or by way of
     * ENGINE_STARTING, and takes no memory or device that only serving needs.
     */
    int   (*open)(engine_t *engine, const engine_options_t *options);

    /*
     * NULL: this kind cannot stand by.  Called once, in ENGINE_ASLEEP: gets
     * what serving needs.  It leads to ENGINE_READY, at once or by way of
     * ENGINE_STARTING. 0, or -1 and one line in the log; a later failure calls
     * engine_fail().
     */
    int   (*wake)(engine_t *engine);

    /* Closes the engine; no run is left. */
    void  (*close)(engine_t *engine);

    /*
     * May be NULL.  Judges a request before it is admitted: OK, or a status
     * and a line of at most `bytes` for the client.
     */
    llmgw_grpc_status_t  (*judge)(engine_t *engine,
                                  const Llmgateway__GenerateRequest *request,
                                  char *text, size_t bytes);

    /*
     * Begins an admitted run, whose request is run->request; it may send and
     * finish before it returns.  NULL: the kind has no runs, and Generate is
     * not served.
     */
    void  (*start)(run_t *run);

    /*
     * The run ends otherwise than by the kind's run_finish(): frees what the
     * kind holds for it.  The kind does not touch the run afterwards.
     */
    void  (*cancel)(run_t *run);

    /* run_is_full() was true, and all that was queued has been sent. */
    void  (*resume)(run_t *run);

    /* May be NULL.  Adds fields that only this kind has to a report to the
       agent. */
    void  (*report)(const engine_t *engine, json_t *report);

    /* May be NULL.  The replica stops: ends all calls of `stream`. */
    void  (*stop)(engine_t *engine, const char *text);
} engine_kind_t;

struct engine_s {
    const engine_kind_t  *kind;
    void                 *data;         /* the kind's own */
    struct ev_loop       *loop;
    const log_t          *log;
    engine_facts_t        facts;        /* the kind's to write */
    engine_stats_t        stats;
    weights_t            *weights;      /* NULL: of no weights service */
    run_t                *runs;         /* those that run */
    int32_t               full;         /* of these: those whose clients do not
                                           read */
    uint64_t              progress;     /* rises with each message given out,
                                           and each step of the engine */
    void                (*on_message)(const engine_t *engine);
                                        /* a message was given out; NULL:
                                           nothing is called */
    int                   is_draining;
    int                   is_stopping;  /* draining for good */
    int                   is_broken;    /* it will never serve: the process
                                           ends, with an error */
};


/* Whether new runs are refused: an operator drains the replica, it is stopping,
   or its engine accepts no new request. */
int engine_is_draining(const engine_t *engine);

/* The engine has no group, or is the Active one of its group. */
int engine_is_active(const engine_t *engine);

/* To be called when facts have changed: they are reported before the loop
   sleeps. */
void engine_publish(engine_t *engine);

/* The engine will never serve: it is DOWN, and the process ends.  engine is an
   engine_t; void *, so that this can be a callback. */
void engine_fail(void *engine);

/* "READY" and so on, as reports have it. */
const char *engine_state_name(engine_state_t state);

#endif /* ENGINE_H */

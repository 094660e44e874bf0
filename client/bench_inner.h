
/*
 * What the files behind bench.h share; no other file includes it.
 *
 *   bench.c         command line, and the steps of a run
 *   bench_run.c     phases: connect, warm up, measure, drain
 *   bench_start.c   which stream starts when
 *   bench_conn.c    connections, and the slots waiting for them
 *   bench_stream.c  one stream: its request, its tokens, its end
 *   bench_openai.c  the same over OpenAI's API, a connection each
 *   bench_tally.c   errors by kind
 *   bench_report.c  what is printed; bench_json.c: as JSON
 *
 * A slot runs one stream at a time, and never changes its connection:
 *
 *                         due                     on_close
 *              IDLE --------------------> RUNNING ---------> IDLE
 *             ^    |
 *    it is up |    | the connection is at its limit, or is gone
 *   again, or |    v
 *  below it   PARKED
 *
 * Idle slots are in one list over all connections; parked ones are in a list
 * of their connection until it is up again or one of its streams has ended.
 */

#ifndef BENCH_INNER_H
#define BENCH_INNER_H

#include <ev.h>
#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <sys/resource.h>

#include "client/bench_tally.h"
#include "client/client_key.h"
#include "client/client_tls.h"
#include "common/data/histogram.h"
#include "common/grpc/conn.h"
#include "common/http/curl_loop.h"
#include "common/load/pace.h"
#include "common/rnd.h"


#define BENCH_NS_S           1000000000ULL
#define BENCH_NS_MS          1000000ULL

/*
 * A token's message has some 40 bytes; the simulated engine sends none that is
 * larger than this.
 */
#define BENCH_MESSAGE_BYTES  16384
#define BENCH_ARENA_BYTES    (2 * BENCH_MESSAGE_BYTES)

#define BENCH_REPLICA_BYTES  64     /* an id has at most 63 bytes */
#define BENCH_REASON_BYTES   32

typedef struct bench_s       bench_t;
typedef struct bench_conn_s  bench_conn_t;
typedef struct bench_slot_s  bench_slot_t;

typedef struct bench_chat_s  bench_chat_t;

typedef struct {
    const char  *gateway;
    const char  *method;
    const char  *model;
    int64_t      connections;
    int64_t      streams;               /* per connection */
    int64_t      max_tokens;
    int64_t      requests;              /* 0: only duration_ms ends the run */
    double       rate;                  /* 0: closed loop */
    uint64_t     duration_ms;
    uint64_t     warmup_ms;
    uint64_t     drain_ms;
    uint64_t     ramp_ms;
    uint64_t     timeout_ms;
    uint64_t     token_delay_ms;        /* 0: unknown, so lag is not measured */
    uint64_t     first_token_delay_ms;
    int64_t      prompts;
    int64_t      prompt_bytes;
    int64_t      seed;
    int          is_lockstep;
    int          is_poisson;
    int          is_held;
    int          is_hedged;
    int          is_json;
    int          is_openai;
    int          is_any_text;
    client_tls_t tls;
    client_key_t key;
} bench_options_t;

typedef enum {
    BENCH_CONNECTING = 0,
    BENCH_WARMING,
    BENCH_MEASURING,
    BENCH_DRAINING,
    BENCH_OVER
} bench_phase_t;

struct bench_slot_s {
    bench_conn_t         *conn;
    bench_slot_t         *next;         /* in the idle or a parked list */
    llmgw_grpc_stream_t  *stream;       /* NULL: not running */
    bench_chat_t         *chat;         /* with --openai */
    uint64_t              prompt_hash;
    uint64_t              due_ns;       /* when it should have started */
    uint64_t              last_ns;      /* when its last token came */
    int32_t               tokens;       /* tokens received */
    unsigned              is_final:1;   /* the final token came */
    unsigned              is_reported:1; /* its outcome was counted */
    uint8_t               replica_len;
    char                  replica[BENCH_REPLICA_BYTES];
    char                  reason[BENCH_REASON_BYTES];
};

struct bench_conn_s {
    bench_t       *bench;
    grpc_conn_t   *grpc;                /* NULL: lost, and its timer runs */
    bench_slot_t  *parked;
    ev_timer       timer;
    int            is_up;               /* the peer's SETTINGS have come */
};

/* First in, first out, so that slots are used in rotation. */
typedef struct {
    bench_slot_t  *first;
    bench_slot_t  *last;
} bench_idle_t;

/* The next start of the schedule: its number, from 0, and its time. */
typedef struct {
    uint64_t  k;
    double    poisson_ns;               /* with --poisson */
    rnd_t     random;                   /* separate, so --poisson does not
                                           change the prompts */
} bench_arrival_t;

/* The protocol of a run: gRPC over HTTP/2, or OpenAI's API over HTTP/1.1. */
typedef struct {
    int        (*prepare)(bench_t *bench);      /* 0, or -1: no memory */
    void       (*done)(bench_t *bench);
    int        (*open)(bench_conn_t *conn);     /* 0, or -1: no memory */
    void       (*close)(bench_conn_t *conn);
    int        (*can_call)(const bench_conn_t *conn);
    int        (*start)(bench_slot_t *slot);    /* 0, or -1: no memory */
} bench_protocol_t;

/* A token, decoded from the message of any method. */
typedef struct {
    ProtobufCBinaryData  text;
    ProtobufCBinaryData  replica;
    int                  is_final;
} bench_token_t;

/* Counted from the end of the warm-up to the end of the duration. */
typedef struct {
    uint64_t     tokens;
    uint64_t     ok;
    uint64_t     failed;
    uint64_t     takeovers;             /* by another replica */
    histogram_t  first_token;           /* this and the next two: from due_ns */
    histogram_t  total;
    histogram_t  refusal;
    histogram_t  gap;                   /* between tokens */
    histogram_t  takeover;              /* gap of tokens at a takeover */
    histogram_t  lag;                   /* behind the time by token_delay_ms */
} bench_counts_t;

/* Memory of one decoded message; the next message reuses it. */
typedef struct {
    ProtobufCAllocator  allocator;
    size_t              used;
    uint64_t            bytes[BENCH_ARENA_BYTES / sizeof(uint64_t)];
} bench_arena_t;

struct bench_s {
    bench_options_t   options;
    address_t         address;
    struct ev_loop   *loop;
    const bench_protocol_t  *protocol;
    curl_loop_t       curl;             /* used with --openai, as is headers */
    struct curl_slist *headers;
    bench_phase_t     phase;
    bench_conn_t     *conns;
    bench_slot_t     *slots;
    size_t            nslots;
    size_t            nup;              /* connections ever up */
    size_t            nrunning;
    bench_idle_t      idle;

    uint64_t          nstarted;         /* in the whole run */
    uint64_t          nfailed;          /* in the whole run */
    uint64_t          waiting;          /* due in the window, not started */
    uint64_t          schedule_ns;      /* when the schedule begins */
    bench_arrival_t   arrival;
    rnd_t             random;           /* for prompts */
    char             *prompt;
    int               is_generate;

    pace_t            pace;
    ev_timer          phase_timer;

    uint64_t          began_ns;         /* of the window */
    uint64_t          ended_ns;
    struct rusage     usage_began;
    struct rusage     usage_ended;
    bench_arena_t     arena;
    bench_tally_t     tally;
    bench_counts_t    counts;
    char              error[TLS_ERROR_BYTES]; /* why the run could not begin */
};


/* bench_run.c: 0, or -1 and error. */
int bench_run(bench_t *bench);
void bench_run_abort(bench_t *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A connection is up for the first time or again. */
void bench_run_connected(bench_t *bench);

/*
 * bench_start.c: pace's callbacks: when the next start is due; whether no more
 * streams will start.
 */
uint64_t bench_start_next(void *data);
int bench_start(void *data, uint64_t due_ns);
int bench_start_is_done(const bench_t *bench);

/* The number of starts that were due by that time and had no slot. */
uint64_t bench_start_waiting(const bench_t *bench, uint64_t now_ns);

/* bench_conn.c */
extern const bench_protocol_t  bench_conn_protocol;
void bench_conn_on_settings(llmgw_grpc_session_t *session);
void bench_conn_park(bench_slot_t *slot);
void bench_conn_unpark(bench_conn_t *conn);
void bench_idle_push(bench_idle_t *idle, bench_slot_t *slot);
bench_slot_t *bench_idle_pop(bench_idle_t *idle);

/* bench_openai.c */
extern const bench_protocol_t  bench_openai_protocol;

/* bench_stream.c: 0, or -1: no memory. */
extern const llmgw_grpc_callbacks_t  bench_stream_callbacks;
void bench_stream_init(bench_t *bench);
int bench_stream_start(bench_slot_t *slot, uint64_t due_ns);
int bench_stream_call(bench_slot_t *slot);

/* Writes the next prompt; prompts differ in their first bytes. */
size_t bench_stream_prompt(bench_t *bench);

/*
 * Returns NULL if the text is that of the slot's next token, else what is
 * wrong.
 */
const char *bench_stream_check_text(const bench_slot_t *slot,
    const bench_token_t *token);
void bench_stream_record(bench_slot_t *slot, const bench_token_t *token);

/*
 * The first two count a stream's outcome, once; bench_stream_idle() then makes
 * its slot idle.
 */
void bench_stream_fail(bench_slot_t *slot, bench_tally_class_t class,
    const char *code, const char *reason);
void bench_stream_succeed(bench_slot_t *slot);
void bench_stream_idle(bench_slot_t *slot);

/* bench_report.c, bench_json.c */
const char *bench_method(const bench_t *bench);
void bench_report(const bench_t *bench);
void bench_report_progress(void *data);
double bench_report_seconds(const bench_t *bench);
double bench_report_client_cpu_s(const bench_t *bench);
int bench_json(const bench_t *bench);

#endif /* BENCH_INNER_H */

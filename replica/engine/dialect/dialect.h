
/*
 * The dialects of engines: OpenAI's HTTP API with each engine's own additions.
 *
 * A dialect turns one GenerateRequest into HTTP requests and their answers
 * into GenerateResponses.  It is pure: no sockets, no clock.  Its driver
 * (replica/engine/openai.c) has the sockets and does this:
 *
 *     call = dialect_call_create(...)          dialect_start(call)
 *       |
 *       v   DIALECT_ASK
 *     send dialect_http(call)
 *       |   the answer's head has come
 *       v
 *     dialect_head() ---- bytes ----> dialect_bytes(), as they come
 *       |                                  |
 *       +---- events ---> dialect_event(), | each by itself
 *                              |           |
 *                              v           v
 *                     the answer has ended: dialect_end()
 *
 * Each of these functions returns what comes next (dialect_do_t): continue with
 * this answer, send the next request (this answer is dropped, whether it has
 * ended or not), or end the call.  After each of them the driver takes all
 * messages:
 *
 *     while ((message = dialect_take(call)) != NULL)
 *         run_send(run, message);
 *
 * also after DIALECT_DONE and DIALECT_FAILED, and before it ends the call.
 *
 * Most requests are one HTTP request.  A resume by ids has to render the
 * prompt first, so it is two.
 */

#ifndef DIALECT_H
#define DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "llmgateway.pb-c.h"


#define DIALECT_MAX_MODELS      64
#define DIALECT_MODELS_BYTES    4096    /* of their names, NULs included */
#define DIALECT_MODEL_BYTES     256     /* of one name, with its NUL */
#define DIALECT_VERSION_BYTES   64
#define DIALECT_GROUP_BYTES     64      /* the resume group, NUL included */
#define DIALECT_WHY_BYTES       256     /* dialect_call_why() */
#define DIALECT_ERROR_BYTES     65536   /* an error's body; more is cut */
#define DIALECT_WHOLE_BYTES     (32 << 20)  /* a whole answer */
#define DIALECT_PIECE_BYTES     65536   /* of a whole answer, in one message */


typedef struct dialect_s dialect_t;
typedef struct dialect_ops_s dialect_ops_t;
typedef struct dialect_call_s dialect_call_t;

typedef enum {
    DIALECT_MORE = 0,   /* continue: feed more of this answer */
    DIALECT_ASK,        /* send dialect_http(); leave this answer */
    DIALECT_DONE,       /* the call has succeeded; leave this answer */
    DIALECT_FAILED      /* the call is over: dialect_call_status() and _why() */
} dialect_do_t;

typedef struct {
    const char  *method;
    const char  *path;          /* with its query; appended to the URL */
    const char  *type;          /* of the body; NULL: JSON */
    const char  *body;          /* NULL: none, by any method */
    size_t       body_bytes;
    int          is_stream;     /* an event stream is expected */
    int          is_step;       /* no generation: a moment's work */
} dialect_http_t;


/* --- what an engine reports about itself --- */

typedef enum {
    DIALECT_DOWN = 0,   /* reports that it is dead, or nothing is known */
    DIALECT_STARTING,   /* loads its model */
    DIALECT_UNWILLING,  /* accepts no request: it starts, or it ends */
    DIALECT_READY
} dialect_state_t;

/* Figures are -1 where the engine does not report them. */
typedef struct {
    dialect_state_t  state;     /* of the last health answer */
    int64_t   running;
    int64_t   waiting;
    int32_t   kv_permille;
    int64_t   kv_free_blocks;
    int64_t   hits;             /* counters of the prompts' tokens or blocks: */
    int64_t   looked_up;        /* found in the cache; all that were looked
                                   up */
    int32_t   hit_permille;     /* of an engine that reports a share instead */
    int64_t   progress;         /* a counter that moves while it generates */
    int32_t   capacity;
    uint32_t  nmodels;          /* the first one is the base model */
    uint32_t  models_bytes;
    char      models[DIALECT_MODELS_BYTES];     /* NUL-ended, one by one */
    char      version[DIALECT_VERSION_BYTES];   /* "": unknown */
    uint64_t  numerics[2];      /* hashes of reported settings that shape its
                                   text, one for each answer that reports some
                                   (facts.h) */
    uint32_t  context;          /* tokens of prompt and answer; 0: unknown */
    int       priority;         /* of requests: 1: the higher goes first; -1:
                                   the lower; 0: not known */
    int       chat_is_text;     /* a chat's answer is the completion of its
                                   rendered prompt, and nothing else */
} dialect_facts_t;

typedef enum {
    DIALECT_OFTEN,      /* health and metrics: at every look */
    DIALECT_ONCE        /* what changes only when the engine starts anew */
} dialect_pace_t;

typedef struct {
    const char      *path;      /* asked by GET; NULL: end of the table */
    dialect_pace_t   pace;
    int              is_metrics;    /* its answers show progress */
    int            (*learn)(dialect_facts_t *facts, unsigned status,
                            const char *body, size_t len);
} dialect_probe_t;

struct dialect_s {
    const char             *name;
    const dialect_probe_t  *probes;
    uint32_t                pause_ms;   /* at least, between two looks: an
                                           answer may keep llama-server from
                                           noticing for a second that a client
                                           has gone */
    const dialect_ops_t    *ops;        /* dialect_inner.h */
    int                     gauges_lag; /* the engine may count requests that
                                           have ended */
};

/* By the name of --engine; NULL: there is none ("auto" is none). */
const dialect_t *dialect_find(const char *name);

/*
 * For `--engine auto`: GET these paths in their order and pass each answer to
 * dialect_detect(), with status 0 if there was none, until it returns a
 * dialect.  If it never does, but one path was answered by 200, the dialect is
 * "openai".
 */
extern const char *const dialect_auto_paths[];      /* NULL ends them */
const dialect_t *dialect_detect(const char *path, unsigned status,
    const char *body, size_t len);

void dialect_facts_init(dialect_facts_t *facts);

/* Sets all figures that the engine has reported to unknown. */
void dialect_facts_forget(dialect_facts_t *facts);

/*
 * Reads the answer to a probe into the facts.  0: understood; -1: not
 * understood, and the facts are unchanged. (A health answer of 5xx is
 * understood: the engine is not READY.)
 */
int dialect_learn(const dialect_probe_t *probe, dialect_facts_t *facts,
    unsigned status, const char *body, size_t len);

/*
 * The resume group: equal for engines that can continue each other's text.
 * Printable, without spaces; "" until the models are known.
 */
void dialect_group(const dialect_t *dialect, const dialect_facts_t *facts,
    char group[DIALECT_GROUP_BYTES]);


/* --- one call --- */

/*
 * The facts have to outlive the call.  The request is needed as long as
 * dialect_needs_request() says so: its body, which may be long, is copied into
 * the HTTP request's.  NULL: no memory.
 */
dialect_call_t *dialect_call_create(const dialect_t *dialect,
    const dialect_facts_t *facts,
    const Llmgateway__GenerateRequest *request);
void dialect_call_destroy(dialect_call_t *call);

/*
 * DIALECT_ASK; DIALECT_FAILED for what cannot be asked of this engine; or
 * DIALECT_DONE if what was delivered before is all that was asked for.
 */
dialect_do_t dialect_start(dialect_call_t *call);

/* The request to be sent; valid until the next DIALECT_ASK or _sent(). */
const dialect_http_t *dialect_http(dialect_call_t *call);

/* Whether the GenerateRequest is needed for a further HTTP request. */
int dialect_needs_request(const dialect_call_t *call);

/* The HTTP request was sent and will not be repeated: frees its body. */
void dialect_sent(dialect_call_t *call);

/* To be called before dialect_head(). is_open: the answer does not say how long
   it is. */
void dialect_open(dialect_call_t *call, int is_open);

/* The head of an answer, not of a 1xx.  content_type may be NULL. */
dialect_do_t dialect_head(dialect_call_t *call, unsigned status,
    const char *content_type);

/* Whether this answer is read as events; valid after dialect_head(). */
int dialect_reads_events(const dialect_call_t *call);

/* The data of one event (its lines joined by \n), or a piece of a body. */
dialect_do_t dialect_event(dialect_call_t *call, const char *data, size_t len);
dialect_do_t dialect_bytes(dialect_call_t *call, const char *data, size_t len);

/* The answer is complete, as HTTP defines it. */
dialect_do_t dialect_end(dialect_call_t *call);

/* The call's next message; NULL: none is left.  It is valid until the next
   dialect_ call. */
const Llmgateway__GenerateResponse *dialect_take(dialect_call_t *call);

/*
 * After DIALECT_FAILED: the gRPC status (proto/grpc/status.h) and a line for
 * people.  RESOURCE_EXHAUSTED: the engine is full, nothing is wrong with it.
 */
int dialect_call_status(const dialect_call_t *call);

/* 1: the call failed because the engine does not know the model's name. */
int dialect_call_denies_model(const dialect_call_t *call);
const char *dialect_call_why(const dialect_call_t *call);

#endif /* DIALECT_H */

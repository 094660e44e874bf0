
/*
 * Drives a real endpoint with a workload, and records what comes back.
 *
 * A driver sends each request when it is due, but no more than max_in_flight at
 * a time (common/load/pace.h), and a session's next round after the one before
 * has ended.  Clocks count from the driver's start, in us.
 *
 *            due, below the limit        text            end, error, limit
 *   QUEUED ---------------------> SENT -------> ANSWERED ------> recorded
 *
 * A protocol sends one request for each ask.  It calls live_ask_text() for each
 * piece of the answer, then live_ask_end() once, and neither of them after that
 * or after cancel().
 */

#ifndef LIVE_DRIVE_H
#define LIVE_DRIVE_H

#include <ev.h>
#include <stdio.h>

#include "common/load/pace.h"
#include "sim/work/session.h"
#include "sim/work/spec/queue.h"
#include "sim/work/trace/itl.h"
#include "sim/work/trace/trace.h"


#define LIVE_ERROR_BYTES   200
#define LIVE_REASON_BYTES  64
#define LIVE_ID_BYTES      33

typedef struct live_driver_s  live_driver_t;
typedef struct live_ask_s     live_ask_t;

typedef struct {
    /* Makes what all requests share: connections.  0, or -1 and *error. */
    int   (*open)(live_driver_t *driver, work_error_t *error);

    /*
     * Sends a request; ask->own was set to 0.  0, or -1: it cannot be sent now.
     */
    int   (*start)(live_ask_t *ask);

    /* Gives up a request that was started and has not ended. */
    void  (*cancel)(live_ask_t *ask);

    /* Called when no request is in flight. */
    void  (*close)(live_driver_t *driver);
} live_protocol_t;

struct live_ask_s {
    live_driver_t         *driver;
    const work_request_t  *request;
    ev_timer               limit;
    void                  *own;             /* for the protocol */
    int64_t                send_us;
    int64_t                first_us;        /* 0: no text yet */
    int64_t                last_us;
    uint32_t               pieces;
    int64_t                prompt_tokens;   /* by the server; -1: unknown */
    int64_t                answer_tokens;   /* likewise */
    char                   finish_reason[LIVE_REASON_BYTES];
    char                   id[LIVE_ID_BYTES];
};

typedef struct {
    const char  *target;            /* HOST:PORT, or a URL */
    const char  *model;
    const char  *api_key;           /* NULL: none */
    int          is_chat;
    int          is_whole;          /* the answer comes in one piece */
    int          is_unbounded;      /* requests have no max_tokens */
    int          records_itl;
    int64_t      bytes_per_token;   /* of prompts */
    int64_t      max_in_flight;
    int64_t      timeout_us;
    int64_t      warm_up;           /* number of first requests not recorded */
    int64_t      horizon_us;        /* nothing is sent after it; 0: none */
    uint64_t     seed;              /* of prompts and of x-request-id */
} live_options_t;

struct live_driver_s {
    const live_options_t   *options;
    const live_protocol_t  *protocol;
    void                   *own;            /* for the protocol */
    struct ev_loop         *loop;
    work_t                 *work;
    work_trace_t           *trace;          /* NULL: nothing is recorded */
    work_itl_t             *itl;
    heap_t                  due;            /* of work_event_t, in which
                                               `stream` is the request's
                                               index */
    pace_t                  pace;
    uint64_t                began_ns;
    int64_t                 in_flight;
    int64_t                 served;
    int64_t                 failed;
    uint64_t                order;
    int                     is_stopping;
    char                    first_error[LIVE_ERROR_BYTES];
};

/*
 * Sends all of the workload, which grows by the later rounds of sessions, and
 * returns when the last has ended.  Records go into trace and itl, which may
 * be NULL.  0, or -1 and *error: the protocol could not be opened.
 */
int live_drive(live_driver_t *driver, const live_options_t *options,
    const live_protocol_t *protocol, work_t *work, work_trace_t *trace,
    work_itl_t *itl, work_error_t *error);

/* Called by protocols: a piece of text came; the request ended. */
void live_ask_text(live_ask_t *ask);
void live_ask_end(live_ask_t *ask, const char *status, const char *message);

/*
 * The prompt of a request: words of bytes_per_token bytes.  Two prompts of one
 * seed begin alike exactly as far as their blocks do (request.h), and prompts
 * of two seeds do not.  malloc()ed, with a NUL; NULL: no memory.
 */
char *live_prompt(const live_ask_t *ask, size_t *len);

extern const live_protocol_t  live_grpc;
extern const live_protocol_t  live_openai;

#endif /* LIVE_DRIVE_H */


/*
 * One admitted generation: what lies between a Generate call and the engine.
 *
 * The service begins a run and calls it for events of its stream.  The kind of
 * engine gives it messages and ends it.  A run that has ended keeps its memory
 * until its stream is closed.
 */

#ifndef RUN_H
#define RUN_H

#include "replica/engine/engine.h"


/*
 * Bytes that a stream may have queued before its generation pauses: about a
 * thousand tokens.  Ten thousand clients that do not read cost 160 MB.
 */
#define RUN_QUEUE_BYTES  (16 * 1024)

/* The kind's struct for a run begins with it; only run.c writes to it. */
struct run_s {
    engine_t                     *engine;       /* NULL: it has ended */
    llmgw_grpc_stream_t          *stream;
    Llmgateway__GenerateRequest  *request;      /* NULL: it was given back */
    run_t                        *next;
    run_t                       **link;         /* the pointer to this one in
                                                   the list */
    ev_timer                      deadline;
    int64_t                       sent;         /* tokens that this attempt has
                                                   sent */
    int                           is_full;      /* the kind waits */
};


/* --- the service's half */

/*
 * Admits a request, counts it, and starts it; the request is the run's from now
 * on.  NULL: the request was refused, with an answer, and is still the
 * caller's.
 */
run_t *run_begin(engine_t *engine, llmgw_grpc_stream_t *stream,
    Llmgateway__GenerateRequest *request);

/* What the stream had queued has been sent. */
void run_drained(run_t *run);

/* The stream is closed: ends the run if it still runs, and frees it. */
void run_destroy(run_t *run);

/*
 * Ends all runs with UNAVAILABLE, with the draining mark if is_draining, and
 * all calls of the kind's own method.
 */
void run_end_all(engine_t *engine, const char *text, int is_draining);


/* --- the kind's half: for a run that has not ended */

/* Sends a message.  0, or -1: out of memory, and the kind has to end the
   run. */
int run_send(run_t *run, const Llmgateway__GenerateResponse *response);

/* 1: the kind must send no more until its resume() is called, once. */
int run_is_full(run_t *run);

/* Frees the request, which the kind does not need any more. */
void run_drop_request(run_t *run);

/* Ends the run.  status is one of llmgw_grpc_status_t; text may be NULL. */
void run_finish(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text);

/* The same, with n trailers, which are copied. */
void run_finish_with(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text, const llmgw_grpc_field_t *trailers, size_t n);

/*
 * Checks max_tokens and the position to continue from, for engines that count
 * tokens: OK, or a status and a line of at most `bytes` for the client.
 */
llmgw_grpc_status_t run_judge_tokens(
    const Llmgateway__GenerateRequest *request, char *text, size_t bytes);

#endif /* RUN_H */

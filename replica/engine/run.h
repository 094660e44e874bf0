
/*
 * One admitted generation: what lies between a Generate call and the engine.
 *
 * The service begins a run and tells it of its stream's callbacks.  The kind
 * of engine gives it messages and ends it.  A run that has ended keeps its
 * memory until its stream is closed.
 */

#ifndef RUN_H
#define RUN_H

#include "replica/engine/engine.h"


/*
 * What a stream may have queued before its generation pauses: about a
 * thousand tokens.  Ten thousand clients that do not read cost 160 MB.
 */
#define RUN_QUEUE_BYTES  (16 * 1024)

/* The kind's run begins with it; only run.c writes to it. */
struct run_s {
    engine_t                     *engine;       /* NULL: it has ended */
    llmgw_grpc_stream_t          *stream;
    Llmgateway__GenerateRequest  *request;      /* NULL: it was given back */
    run_t                        *next;
    run_t                       **link;         /* what points to this one */
    ev_timer                      deadline;
    int64_t                       sent;         /* tokens, by this attempt */
    int                           is_full;      /* the kind waits */
};


/* --- the service's half */

/*
 * Admits a request, counts it, and starts it.  The request is the run's from
 * now on.  NULL: the call was answered, and the request is the caller's.
 */
run_t *run_begin(engine_t *engine, llmgw_grpc_stream_t *stream,
    Llmgateway__GenerateRequest *request);

/* What the stream had queued has been sent. */
void run_drained(run_t *run);

/* The stream is gone: ends what still runs, frees all. */
void run_destroy(run_t *run);

/*
 * Ends all that run with UNAVAILABLE; is_draining: with the draining mark.  And
 * the calls of the kind's own method.
 */
void run_end_all(engine_t *engine, const char *text, int is_draining);


/* --- the kind's half: for a run that has not ended */

/* 0, or -1: no memory, the kind has to end the run. */
int run_send(run_t *run, const Llmgateway__GenerateResponse *response);

/* Whether to send no more; the kind's resume() comes, once, when that ends. */
int run_is_full(run_t *run);

/* The request is not needed any more: gives its memory back. */
void run_drop_request(run_t *run);

/* Ends the run.  status is one of llmgw_grpc_status_t; text may be NULL. */
void run_finish(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text);

/* The same, with n trailers, which are copied. */
void run_finish_with(run_t *run, engine_end_t end, llmgw_grpc_status_t status,
    const char *text, const llmgw_grpc_field_t *trailers, size_t n);

/*
 * Judges max_tokens and the position to go on from, for engines that count
 * tokens: OK, or a status and a line of at most `bytes` for the client.
 */
llmgw_grpc_status_t run_judge_tokens(
    const Llmgateway__GenerateRequest *request, char *text, size_t bytes);

#endif /* RUN_H */

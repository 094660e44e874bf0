
/*
 * Running generations: tokens onto gRPC streams, each at its time.
 */

#ifndef GENERATE_H
#define GENERATE_H

#include <ev.h>

#include "common/grpc/conn.h"
#include "replica/engine/sim/due.h"
#include "replica/engine/sim/faults.h"


/*
 * What a stream may have queued before its generation pauses: about a
 * thousand tokens.  Ten thousand clients that do not read cost 160 MB.
 */
#define GENERATE_QUEUE_BYTES  (16 * 1024)

typedef struct {
    struct ev_loop  *loop;
    ev_timer         timer;
    engine_t        *engine;
    due_heap_t       heap;          /* every running generation */
} generate_t;

/* Part of the stream's owner, which zeroes it. */
typedef struct {
    due_item_t            due;              /* must be first */
    generate_t           *owner;            /* NULL: not running */
    llmgw_grpc_stream_t  *stream;
    uint64_t              prompt_hash;
    uint64_t              before_us;        /* the token before, or the start */
    uint64_t              deadline_us;      /* DUE_NEVER: none */
    int32_t               next;             /* index of the next token */
    int32_t               max_tokens;
    int32_t               sent;             /* by this attempt */
    int                   is_paused;        /* the client does not read */
} generation_t;

typedef struct {
    uint64_t  prompt_hash;
    int32_t   next;                         /* 0 .. max_tokens - 1 */
    int32_t   max_tokens;
    uint64_t  timeout_ms;                   /* 0: none */
} generate_request_t;


void generate_init(generate_t *g, struct ev_loop *loop, engine_t *engine);
void generate_done(generate_t *g);

/* Begins an admitted request.  0, or -1: out of memory, still admitted. */
int generate_start(generate_t *g, generation_t *gen,
    llmgw_grpc_stream_t *stream, const generate_request_t *request);

/* The stream is gone.  These two may be called for one that is not running. */
void generate_cancel(generation_t *gen);

/* What the stream had queued has been sent. */
void generate_resume(generation_t *gen);

/* The engine's faults have changed: running streams obey them from now on. */
void generate_retime(generate_t *g);

/* Ends all that run: UNAVAILABLE with the draining mark. */
void generate_end_all(generate_t *g);

#endif /* GENERATE_H */


/*
 * A core that computes a slice.  What the shard's thread and the core's share
 * is under the core's lock; the rest belongs to the core's thread alone.
 */

#ifndef SHARD_INNER_H
#define SHARD_INNER_H

#include "replica/engine/llama/plugin/thread.h"
#include "replica/engine/llama/shard_core.h"
#include "slice/sliced.h"


/* A session's, or the next one's. */
typedef struct {
    int             is_used;
    int             is_stale;       /* it has cells of a session that ended */
    uint32_t        session;        /* counts those that were here */
    uint32_t        last_layer;     /* in the file's count */
    uint32_t        next;           /* position */
    shard_status_t  status;         /* not DONE: of all its further steps */
    shard_step_t   *first;          /* submitted; being computed is the first */
    shard_step_t  **last;
} place_t;

/* Rows of one step in a call. */
typedef struct {
    shard_step_t    *step;
    uint32_t         from;          /* of its rows */
    uint32_t         rows;
    uint32_t         last_layer;    /* in the file's count */
    int              is_logits;     /* which is the model's last */
    shard_status_t   status;
} part_t;

/* What one llama_decode() computes: rows of one step, or one row each of
   neighbouring places. */
typedef struct {
    part_t    *parts;
    uint32_t   n;
    char       stop[32];            /* the tensor to end at; "": none */
    int        is_taken;            /* it was seen */
} call_t;

typedef struct {
    core_t           core;

    /* under the lock */

    place_t         *places;        /* by libllama's sequence */
    shard_step_t    *first_event;
    shard_step_t   **last_event;
    int              has_news;      /* events not notified of */

    /* the thread's */

    sliced_t         sliced;
    int              is_probed;
    uint32_t         last_layer;    /* of the file, in its count */
    size_t           row_bytes;     /* as steps have them */
    float           *rows;          /* those of a step; a batch has another
                                       room for its own */
    part_t          *parts;         /* of a turn, one a place */
    uint32_t         turn;          /* the place whose chunk is next */
    call_t           call;
} shard_t;


static inline shard_t *
shard_of(core_t *core)
{
    return (shard_t *) core;
}


/* slice.c */

/* The operations start() and load(): what the file is, and what it takes, but
   no weights; checks and loads the weights. */
int slice_start(core_t *core);
int slice_load(core_t *core);
void slice_done(shard_t *s);

/* trial.c */

/* Whether steps of many rows, and sessions beside each other, get the bits of
   rows one by one: sets is_stepwise.  0, or -1 and facts.error. */
int trial_run(shard_t *s);

/* call.c */

/* libllama's callback for tensors; data: the core. */
bool call_tensor(struct ggml_tensor *t, bool is_question, void *data);

/* Computes parts that go together, and writes what they become: each part's
   step has its status.  The lock is not held. */
void call_run(shard_t *s, part_t *parts, uint32_t n);

/* queue.c: all under the lock */

/* At the end of its place's queue. */
void queue_add(shard_t *s, shard_step_t *step);

/* Its place's first is done, and so are, if badly, those behind it. */
void queue_pop(shard_t *s, shard_step_t *step, shard_status_t status);

/* One that stands in no place's queue. */
void queue_done(shard_t *s, shard_step_t *step,
    shard_status_t status);

/* All of a place; the one that runs stays out until it is done. */
void queue_cancel(shard_t *s, place_t *place);

/* There is something to report of it. */
void queue_event(shard_t *s, shard_step_t *step);
int queue_take(shard_t *s, shard_event_t *event);

/* The lock is not held: notifies of events, if there are new ones. */
void queue_notify(shard_t *s);

/* turn.c */

/* One turn: a row of each place that has one, and one chunk. */
void turn_run(shard_t *s);

#endif /* SHARD_INNER_H */

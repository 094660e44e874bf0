
/*
 * A core that computes a slice.  What the shard's thread and the core's share
 * is under the core's lock; the rest belongs to the core's thread alone.
 */

#ifndef SHARD_INNER_H
#define SHARD_INNER_H

#include "replica/engine/llama/plugin/thread.h"
#include "replica/engine/llama/shard_core.h"
#include "slice/sliced.h"


/* The place of a session; it is used again by later ones. */
typedef struct {
    int             is_used;
    int             is_stale;       /* its cells are those of a session that has
                                       ended */
    uint32_t        session;        /* counts the sessions that had this
                                       place */
    uint32_t        last_layer;     /* in the file's count */
    uint32_t        next;           /* next position */
    shard_status_t  status;         /* not DONE: the status of all its further
                                       steps */
    shard_step_t   *first;          /* queue of submitted steps; the first one
                                       may be running */
    shard_step_t  **last;
} place_t;

/* Rows of one step in a call. */
typedef struct {
    shard_step_t    *step;
    uint32_t         from;          /* index of the first of them in the step */
    uint32_t         rows;
    uint32_t         last_layer;    /* in the file's count */
    int              is_logits;     /* last_layer is the model's last */
    shard_status_t   status;
} part_t;

/* What one llama_decode() computes: rows of one step, or one row each of
   neighbouring places. */
typedef struct {
    part_t    *parts;
    uint32_t   n;
    char       stop[32];            /* the tensor to end at; "": none */
    int        is_taken;            /* that tensor was seen */
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
    size_t           row_bytes;     /* bytes of a row in steps */
    float           *rows;          /* rows of a step; a batch has its own
                                       memory */
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

/* The operations start() and load().  start() reads what the file is and what
   memory it takes, but no weights; load() checks and loads the weights. */
int slice_start(core_t *core);
int slice_load(core_t *core);
void slice_done(shard_t *s);

/* trial.c */

/*
 * Tests whether steps of many rows, and sessions beside each other, give the
 * same bits as rows one by one, and sets is_stepwise.  0, or -1 and
 * facts.error.
 */
int trial_run(shard_t *s);

/* call.c */

/* libllama's callback for tensors; data: the core. */
bool call_tensor(struct ggml_tensor *t, bool is_question, void *data);

/* Computes parts in one call, and writes their results; each part's step has
   its status.  The lock is not held. */
void call_run(shard_t *s, part_t *parts, uint32_t n);

/* queue.c: all under the lock */

/* Adds a step at the end of its place's queue. */
void queue_add(shard_t *s, shard_step_t *step);

/* The first step of its place is done; with an error, so are all later ones. */
void queue_pop(shard_t *s, shard_step_t *step, shard_status_t status);

/* A step that is in no place's queue is done. */
void queue_done(shard_t *s, shard_step_t *step,
    shard_status_t status);

/* Cancels all steps of a place; a running one is reported when it is done. */
void queue_cancel(shard_t *s, place_t *place);

/* A step has an event to be reported. */
void queue_event(shard_t *s, shard_step_t *step);
int queue_take(shard_t *s, shard_event_t *event);

/* Calls notify() if there are new events.  The lock is not held. */
void queue_notify(shard_t *s);

/* turn.c */

/* One turn: a row of each place that has one, and one chunk. */
void turn_run(shard_t *s);

#endif /* SHARD_INNER_H */


/*
 * A core's own state.  What the shard's thread and the core's share is under
 * `lock`; the rest belongs to the core's thread alone.
 */

#ifndef SHARD_INNER_H
#define SHARD_INNER_H

#include <llama.h>
#include <pthread.h>
#include <stdatomic.h>

#include "replica/engine/llama/plugin/backend.h"
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

struct core_s {
    core_options_t  options;
    char           *file;
    char           *cpu;
    pthread_t       thread;
    atomic_int      is_stopping;

    pthread_mutex_t  lock;
    pthread_cond_t   work;
    core_state_t     state;
    core_facts_t     told;                  /* by state() */
    core_load_t      load;
    place_t         *places;                /* by libllama's sequence */
    shard_step_t    *first_event;
    shard_step_t   **last_event;
    int              has_news;              /* events not notified of */

    core_facts_t           facts;
    sliced_t               sliced;
    backend_t              backend;
    int                    is_probed;
    struct llama_model    *model;
    struct llama_context  *context;
    uint32_t               last_layer;      /* of the file, in its count */
    struct llama_batch     batch;
    size_t                 row_bytes;       /* of one that is told */
    float                 *rows;            /* those of a step; a batch has
                                               another room for its own */
    part_t                 *parts;          /* of a turn, one a place */
    uint32_t                turn;           /* the place whose chunk is next */
    call_t                  call;
};


/* load.c: 0, or -1: core->facts.error says why. */

/* What the file is, and what it takes; no weights. */
int load_facts(core_t *core);

/* Checks and loads the weights. */
int load_model(core_t *core);
void load_free(core_t *core);

/* All that outlives the weights. */
void load_done(core_t *core);

/* probe.c */

/* Whether steps of many rows, and sessions beside each other, get the bits of
   rows one by one: sets is_stepwise.  0, or -1 and facts.error. */
int probe_run(core_t *core);

/* call.c */

/* libllama's callback for tensors. */
bool call_tensor(struct ggml_tensor *t, bool is_question, void *core);

/* Computes parts that go together, and writes what they become: each part's
   step has its status.  The lock is not held. */
void call_run(core_t *core, part_t *parts, uint32_t n);

/* queue.c: all under the lock */

/* At the end of its place's queue. */
void queue_add(core_t *core, shard_step_t *step);

/* Its place's first is done, and so are, if badly, those behind it. */
void queue_pop(core_t *core, shard_step_t *step, shard_status_t status);

/* One that stands in no place's queue. */
void queue_done(core_t *core, shard_step_t *step,
    shard_status_t status);

/* All of a place; the one that runs stays out until it is done. */
void queue_cancel(core_t *core, place_t *place);

/* There is something to tell of it. */
void queue_event(core_t *core, shard_step_t *step);
int queue_take(core_t *core, shard_event_t *event);

/* The lock is not held: notifies of events, if there are new ones. */
void queue_notify(core_t *core);

/* turn.c */

/* One turn: a row of each place that has one, and one chunk. */
void turn_run(core_t *core);

/* loop.c */

void *loop_run(void *core);

#endif /* SHARD_INNER_H */


/*
 * What a shard and the plugin `llmgw-engine-llama.so` agree on: computing some
 * layers of a model, from a slice of it (slice/sliced.h).
 *
 * A session has a place, and in the place a KV cache of its own.  A step hands
 * hidden states in, one row a position, and gets hidden states out, or logits
 * where the model's last layer is the session's, too.  What other sessions do
 * meanwhile, and in which steps a session's positions come, changes no bit.
 *
 *   shard's thread               |  the core's thread
 *   open()                       |  reads what the file is  STARTING
 *                  <-- notify() -+                          ASLEEP or BROKEN
 *   wake()          -----------> |  checks, loads, probes   LOADING
 *                  <-- notify() -+                          READY or BROKEN
 *   begin(): a place             |
 *   submit(step)    -----------> |  one row each of places that decode, or
 *   take(), take() <-- notify() -+  one step of many rows, by turns
 *   end()           -----------> |  the place's cells are forgotten
 *   sleep()         -----------> |  frees the model         ASLEEP
 *
 * Without is_standby it goes from STARTING to LOADING by itself.
 *
 * All functions are called by the shard's thread; notify() by the core's.
 * None waits for a computation, but for close().
 */

#ifndef SHARD_CORE_H
#define SHARD_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "replica/engine/llama/core.h"


#define SHARD_ABI            3
#define SHARD_SYMBOL         "llmgw_shard_llama"

/*
 * Rows of a step: sessions that decode wait for it, and with more of them a
 * call is hardly faster.
 */
#define SHARD_CORE_ROWS_MAX  32


typedef enum {
    SHARD_STEP_DONE = 0,
    SHARD_STEP_BAD_POSITION,    /* not the one after the place's last */
    SHARD_STEP_BAD_SHAPE,       /* rows, logits_rows, or no such place */
    SHARD_STEP_CONTEXT_FULL,
    SHARD_STEP_BAD_INPUT,       /* NaN or infinite, or a row far too long */
    SHARD_STEP_CORRUPT,         /* what was computed is, or is no half */
    SHARD_STEP_CANCELLED,       /* its session ended before it was computed */
    SHARD_STEP_FAILED           /* libllama gave an error */
} shard_status_t;

/*
 * Its memory, and that of in and out, is the caller's, aligned for its numbers;
 * from submit() until take() gives it DONE, or close() returns, none may be
 * touched.
 *
 * After any status but DONE the session is of no use: its further steps end
 * with an error, too.
 */
typedef struct shard_step_s  shard_step_t;

struct shard_step_s {
    uint32_t        place;
    uint32_t        position;       /* of the first row */
    uint32_t        rows;           /* 1 .. SHARD_CORE_ROWS_MAX */
    uint32_t        logits_rows;    /* of the last rows; only where the
                                       session has the model's last layer */
    const void     *in;             /* rows x width floats, or halves */
    void           *out;            /* hidden: rows x width of the same; may be
                                       `in`.  Logits: logits_rows x vocabulary
                                       floats; NULL if none are asked for */
    void           *data;

    shard_status_t  status;         /* these three: once it is DONE */
    uint32_t        out_rows;       /* rows, or logits_rows */
    int             is_logits;
    uint64_t        took_ns;        /* of computation, for all in its call */

    struct {
        shard_step_t  *next;            /* in its place */
        shard_step_t  *next_event;
        uint32_t       session;
        uint32_t       rows_done;
        int            is_running;      /* in the call of the moment */
        int            is_started;
        int            is_reported;     /* that it is started */
        int            is_done;
        int            is_listed;       /* among the events */
    } own;                          /* the core's */
};

typedef enum {
    SHARD_EVENT_STARTED = 0,        /* it begins to be computed */
    SHARD_EVENT_DONE                /* the step is the caller's again */
} shard_event_kind_t;

typedef struct {
    shard_event_kind_t  kind;
    shard_step_t       *step;
} shard_event_t;

typedef struct {
    uint32_t       abi;                             /* SHARD_ABI */

    /* As those of core.h. */
    core_t       *(*open)(const core_options_t *options,
                          char error[CORE_ERROR_BYTES]);
    void          (*close)(core_t *core);
    core_state_t  (*state)(core_t *core, core_facts_t *facts);
    void          (*load)(core_t *core, core_load_t *load);

    /* From ASLEEP.  0, or -1: in this state it cannot. */
    int           (*wake)(core_t *core);

    /* From READY.  0, or -1: in this state it cannot, or has sessions.  It is
       not READY any more when this returns. */
    int           (*sleep)(core_t *core);

    /* A place for a session with the slice's first layer to this one, both in
       the whole model's count.  -1: all are taken, it is not READY, or has no
       such layer. */
    int           (*begin)(core_t *core, uint32_t last_layer);

    /* Its steps end, CANCELLED, and are to be taken as ever.  The place is
       free at once. */
    void          (*end)(core_t *core, uint32_t place);

    /* Its status says what is wrong with a step. */
    void          (*submit)(core_t *core, shard_step_t *step);

    /* STARTED, then DONE of each step, in each place in order; one that never
       began has no STARTED.  0, or -1: none is waiting. */
    int           (*take)(core_t *core, shard_event_t *event);
} shard_plugin_t;

/* The plugin's symbol, SHARD_SYMBOL. */
const shard_plugin_t *llmgw_shard_llama(void);

#endif /* SHARD_CORE_H */

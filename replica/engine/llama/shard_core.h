
/*
 * What a shard and the plugin `llmgw-engine-llama.so` agree on: computing some
 * layers of a model, from a slice of it (slice/sliced.h).
 *
 * A session has a place, with a KV cache of its own.  The input of a step is
 * hidden states, one row for each position; its output is hidden states, or
 * logits if the session includes the model's last layer.  Results do not depend
 * on other sessions, nor on how a session's positions are divided into steps.
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
 * Without is_standby the core goes from STARTING to LOADING by itself.
 *
 * All functions are called by the shard's thread; notify() by the core's.  None
 * but close() waits for a computation.
 */

#ifndef SHARD_CORE_H
#define SHARD_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "replica/engine/llama/core.h"


#define SHARD_ABI            3
#define SHARD_SYMBOL         "llmgw_shard_llama"

/*
 * Rows of a step.  Sessions that decode wait for a step to end, and more rows
 * hardly make it faster for each row.
 */
#define SHARD_CORE_ROWS_MAX  32


typedef enum {
    SHARD_STEP_DONE = 0,
    SHARD_STEP_BAD_POSITION,    /* not the one after the place's last */
    SHARD_STEP_BAD_SHAPE,       /* rows, logits_rows, or no such place */
    SHARD_STEP_CONTEXT_FULL,
    SHARD_STEP_BAD_INPUT,       /* NaN or infinite, or a row far too long */
    SHARD_STEP_CORRUPT,         /* a result has such a value, or fits no half */
    SHARD_STEP_CANCELLED,       /* its session ended before it was computed */
    SHARD_STEP_FAILED           /* libllama gave an error */
} shard_status_t;

/*
 * The memory of a step, of `in` and of `out` is the caller's, aligned for its
 * numbers.  The caller may not touch it from submit() until take() reports DONE
 * or close() returns.
 *
 * After any status but SHARD_STEP_DONE the session is of no use: its further
 * steps end with an error, too.
 */
typedef struct shard_step_s  shard_step_t;

struct shard_step_s {
    uint32_t        place;
    uint32_t        position;       /* of the first row */
    uint32_t        rows;           /* 1 .. SHARD_CORE_ROWS_MAX */
    uint32_t        logits_rows;    /* number of last rows whose logits are
                                       wanted; only if the session has the
                                       model's last layer */
    const void     *in;             /* rows x width floats, or halves */
    void           *out;            /* hidden states: rows x width of the same
                                       type; may be `in`.  Logits: logits_rows x
                                       vocabulary floats; NULL if logits_rows is
                                       0 */
    void           *data;

    shard_status_t  status;         /* these three are valid once it is DONE */
    uint32_t        out_rows;       /* rows, or logits_rows */
    int             is_logits;
    uint64_t        took_ns;        /* of the call, which may have other steps
                                       too */

    struct {
        shard_step_t  *next;            /* in its place */
        shard_step_t  *next_event;
        uint32_t       session;
        uint32_t       rows_done;
        int            is_running;      /* in the call of the moment */
        int            is_started;
        int            is_reported;     /* STARTED was reported */
        int            is_done;
        int            is_listed;       /* among the events */
    } own;                          /* the core's fields */
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

    /* To be called in ASLEEP.  0, or -1: another state. */
    int           (*wake)(core_t *core);

    /* To be called in READY.  0, or -1: another state, or there are sessions.
       After 0 the core is not READY any more. */
    int           (*sleep)(core_t *core);

    /*
     * Takes a place for a session with the slice's first layer to last_layer,
     * counted in the whole model.  -1: all places are taken, the core is not
     * READY, or the slice has no such layer.
     */
    int           (*begin)(core_t *core, uint32_t last_layer);

    /* Ends a session.  Its steps end, CANCELLED, and are still reported by
       take().  The place is free at once. */
    void          (*end)(core_t *core, uint32_t place);

    /* Queues a step.  If something is wrong with it, take() reports it DONE,
       and its status says what. */
    void          (*submit)(core_t *core, shard_step_t *step);

    /* The next event: STARTED, then DONE of each step, in order for each place;
       a step that never began has no STARTED.  0, or -1: none is waiting. */
    int           (*take)(core_t *core, shard_event_t *event);
} shard_plugin_t;

/* The plugin's symbol, SHARD_SYMBOL. */
const shard_plugin_t *llmgw_shard_llama(void);

#endif /* SHARD_CORE_H */

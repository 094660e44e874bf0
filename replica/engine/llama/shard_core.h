
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
 * Without is_late it goes from STARTING to LOADING by itself.
 *
 * All functions are called by the shard's thread; notify() by the core's.
 * None waits for a computation, but for close().
 */

#ifndef SHARD_CORE_H
#define SHARD_CORE_H

#include <stddef.h>
#include <stdint.h>


#define SHARD_ABI                 2
#define SHARD_SYMBOL              "llmgw_shard_llama"
#define SHARD_ERROR_BYTES         256
#define SHARD_NAME_BYTES          64
#define SHARD_CORE_WEIGHTS_BYTES  32
#define SHARD_CORE_SESSIONS_MAX   256   /* libllama's own limit */
#define SHARD_CONTEXT_DEFAULT     4096

/*
 * Rows of a step: sessions that decode wait for it, and with more of them a
 * call is hardly faster.
 */
#define SHARD_CORE_ROWS_MAX       32

typedef struct shard_core_s  shard_core_t;


typedef enum {
    SHARD_CORE_STARTING = 0,
    SHARD_CORE_ASLEEP,          /* its facts are known, no weights are loaded */
    SHARD_CORE_LOADING,
    SHARD_CORE_READY,
    SHARD_CORE_BROKEN           /* see error; from then on only close() */
} shard_state_t;

typedef struct {
    const char  *file;          /* a slice */
    const char  *cpu;           /* "haswell": of libggml-cpu-haswell.so; NULL:
                                   the best for this processor */
    uint32_t     sessions;      /* 1 .. SHARD_CORE_SESSIONS_MAX */
    uint32_t     context;       /* positions of a session; 0: the model's, at
                                   most SHARD_CONTEXT_DEFAULT */
    uint32_t     threads;       /* 0: one for each processor */
    int          is_fp16;       /* hidden states in and out are halves */
    int          is_late;       /* loads when it is told to */
    void       (*notify)(void *data);
    void        *data;
} shard_options_t;

/* Constant from ASLEEP on, but for the last ones. */
typedef struct {
    char          model[SHARD_NAME_BYTES];
    uint8_t       weights_id[SHARD_CORE_WEIGHTS_BYTES];
    char          numerics[SHARD_NAME_BYTES];   /* equal: equal bits; the same
                                   for all slices of a model */
    char          cpu[SHARD_NAME_BYTES];
    char          library[SHARD_NAME_BYTES];
    uint32_t      first_layer;
    uint32_t      last_layer;
    uint32_t      model_layers;
    uint32_t      width;        /* values of a row */
    uint32_t      vocabulary;   /* values of a row of logits; 0: the model's
                                   last layer is not here */
    uint32_t      context;      /* positions of a session */
    uint64_t      bytes;        /* loaded: weights, the cells of all sessions,
                                   logits of a call */
    const float  *norms;        /* model_layers + 1 (slice/sliced.h), NULL: not
                                   known; lives as long as the core */

    int           is_stepwise;  /* READY: only one row a call is exact here,
                                   which the core keeps to by itself */
    uint32_t      load_ms;      /* READY */
    char          error[SHARD_ERROR_BYTES];     /* BROKEN */
} shard_facts_t;

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
 * After any status but DONE the session is not to be gone on with: its
 * further steps end with an error, too.
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
        int            is_told;         /* that it is started */
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
    uint32_t  sessions;
    uint32_t  waiting;              /* steps that have not begun */
    uint64_t  steps;                /* done, in all */
} shard_load_t;

typedef struct {
    uint32_t         abi;                           /* SHARD_ABI */

    /* NULL: see error. */
    shard_core_t  *(*open)(const shard_options_t *options,
                           char error[SHARD_ERROR_BYTES]);

    /* Ends the thread, a step that is being computed included. */
    void           (*close)(shard_core_t *core);

    shard_state_t  (*state)(shard_core_t *core, shard_facts_t *facts);
    void           (*load)(shard_core_t *core, shard_load_t *load);

    /* From ASLEEP.  0, or -1: in this state it cannot. */
    int            (*wake)(shard_core_t *core);

    /* From READY.  0, or -1: in this state it cannot, or has sessions.  It is
       not READY any more when this returns. */
    int            (*sleep)(shard_core_t *core);

    /* A place for a session with the slice's first layer to this one, both in
       the whole model's count.  -1: all are taken, it is not READY, or has no
       such layer. */
    int            (*begin)(shard_core_t *core, uint32_t last_layer);

    /* Its steps end, CANCELLED, and are to be taken as ever.  The place is
       free at once. */
    void           (*end)(shard_core_t *core, uint32_t place);

    /* What is wrong with a step is told by its status. */
    void           (*submit)(shard_core_t *core, shard_step_t *step);

    /* STARTED, then DONE of each step, in each place in order; one that never
       began has no STARTED.  0, or -1: none is waiting. */
    int            (*take)(shard_core_t *core, shard_event_t *event);
} shard_plugin_t;

/* The plugin's symbol, SHARD_SYMBOL. */
const shard_plugin_t *llmgw_shard_llama(void);

#endif /* SHARD_CORE_H */


/*
 * What the replica and its plugin `llmgw-engine-llama.so` agree on.
 *
 * Only the plugin is compiled against libllama's headers and linked with it, so
 * a replica without the library lacks only `--engine llama`.  The plugin knows
 * nothing of requests: it turns a prompt into token ids, in a thread of its
 * own, since libllama's functions block.
 *
 *   replica's thread             |  the core's thread
 *   open()                       |  loads, probes           STARTING
 *                  <-- notify() -+                          READY or BROKEN
 *   submit(job)      -----------> |  prompt, prefill, decode, sample
 *   take(), take() <-- notify() -+  events, at most CORE_EVENTS_MAX waiting;
 *                                |  a sequence that is full pauses
 *   release()        -----------> |  its place is free at the next step
 *
 * If the files come later, or if the replica stands by, wake() continues:
 *
 *   open(is_deferred)            |  waits for the files     WAITING
 *   wake(files)      ----------> |  loads, probes           STARTING
 *   with is_standby  <- notify() |  frees the context, and  ASLEEP
 *                                |  with is_unmapped the model
 *   wake()           ----------> |  opens what it freed     LOADING
 *                                |                          READY or BROKEN
 *
 * With is_head the model's layers are elsewhere, in shards: the core has the
 * vocabulary and the embedding of tokens, hands out rows and is given logits.
 *
 *   take_step()      <-- notify() -+  rows of embeddings    SENT
 *   give(logits)     -----------> |  samples, and so on     RUNNING
 *   rewind()         -----------> |  all rows again, from position 0
 *   lose(reason)     -----------> |  all rows here, by the fallback; without
 *                                |  one the sequence ends   CORE_FAILED
 *
 * All functions are called by the replica's thread; notify() by the core's.
 */

#ifndef CORE_H
#define CORE_H

#include <stddef.h>
#include <stdint.h>

#include "replica/engine/llama/sample.h"


#define CORE_ABI              5
#define CORE_SYMBOL           "llmgw_engine_llama"
#define CORE_ERROR_BYTES      256
#define CORE_NAME_BYTES       64
#define CORE_SEQUENCES_MAX    256       /* libllama's own limit */

#define CORE_WEIGHTS_BYTES    32        /* of an id of weights: SHA-256 */
#define CORE_REASON_BYTES     32
#define CORE_TEXT_BYTES       192

/* Reasons of lose(): all shards are full; no shard has room for a sequence of
   that length. */
#define CORE_FULL             "shard_full"
#define CORE_CONTEXT_FULL     "context_full"

/* A sequence whose client does not read pauses after this many tokens. */
#define CORE_EVENTS_MAX       64

/* Rows of a step, and unanswered steps of a sequence: they bound the memory
   that a prompt of any length takes. */
#define CORE_ROWS_MAX         32
#define CORE_STEPS_MAX        8

typedef struct core_s      core_t;
typedef struct core_seq_s  core_seq_t;


/* States of a core, with a whole model or with a slice (shard_core.h). */
typedef enum {
    CORE_STARTING = 0,          /* finds out what its file is */
    CORE_WAITING,               /* is_deferred: waits for wake() with the
                                   files */
    CORE_ASLEEP,                /* its facts are known; it waits for wake() */
    CORE_LOADING,
    CORE_READY,
    CORE_BROKEN                 /* see error; only close() is left */
} core_state_t;

typedef struct {
    const char  *file;          /* GGUF, or the first of several; if
                                   is_deferred, only its name for messages */
    const char  *cpu;           /* "haswell": of libggml-cpu-haswell.so; NULL:
                                   the best for this processor */
    uint32_t     sequences;     /*
                                 * 1 .. CORE_SEQUENCES_MAX; sessions of a slice
                                 *
                                 */
    uint32_t     context;       /* tokens of a sequence; 0: the model's, at
                                   most CORE_CONTEXT_DEFAULT */
    uint32_t     threads;       /* 0: one for each processor */
    int          is_standby;    /* ASLEEP until wake() */
    int          is_fp16;       /* rows of a slice, or rows between a head and
                                   its shards, are halves */
    void       (*notify)(void *data);
    void        *data;

    /* a whole model or a head */

    int          is_exact;
    int          is_deferred;   /* the files come with wake() */
    int          is_unmapped;   /* ASLEEP without the model in memory */
    int          is_head;       /* file has no layers: see take_step() */
    const char  *fallback;      /* is_head: GGUF of the whole model, or NULL */
} core_options_t;

#define CORE_CONTEXT_DEFAULT  4096
#define CORE_CONTEXT_MIN      32        /* the probe of numerics decodes them */

/* Constant while ASLEEP, and from READY on. */
typedef struct {
    char          numerics[CORE_NAME_BYTES];    /* equal names: equal results,
                                                   bit by bit */
    char          cpu[CORE_NAME_BYTES];         /* as in the options */
    char          library[CORE_NAME_BYTES];
    char          error[CORE_ERROR_BYTES];      /* BROKEN */
    uint32_t      context;      /* tokens, or positions, of a sequence */
    uint32_t      width;        /* floats of a row */
    uint32_t      layers;       /* of the whole model */
    uint32_t      vocabulary;   /* floats of a row's logits; 0: a slice without
                                   the model's last layer */
    uint32_t      start_ms;     /* duration of STARTING */
    uint32_t      load_ms;      /* READY: duration of the last LOADING */
    int           is_stepwise;  /* READY: results are exact only with one row a
                                   call; the core then computes so by itself */

    /* a head or a slice */

    char          model[CORE_NAME_BYTES];   /* the model's name among shards */
    uint8_t       weights_id[CORE_WEIGHTS_BYTES];
    const float  *norms;        /* layers + 1, one for each boundary: the
                                   greatest norm of a row that was seen; the
                                   core's memory; NULL: the file has none */

    /* a whole model or a head */

    char          name[CORE_NAME_BYTES];    /* the model's name in the file */
    int           is_exact;     /* a resume by ids gives the same bits */

    /* a slice */

    uint32_t      first_layer;
    uint32_t      last_layer;
    uint64_t      bytes;        /* taken when loaded: weights, the cells of all
                                   sessions, logits of a call */
} core_facts_t;

typedef struct {
    uint32_t  running;          /* sequences in a place, or sessions */
    uint32_t  waiting;          /* sequences without one, or steps that have
                                   not begun */
    uint64_t  steps;            /* of work done: it moves while anything does */

    /* a whole model or a head */

    uint32_t  kv_permille;
    uint32_t  away;             /* unanswered steps, taken or not */
    uint64_t  fallbacks;        /* sequences that continued with the fallback */
} core_load_t;

typedef struct {
    char  *role;
    char  *text;
} core_message_t;

/* A prompt is one of three: messages, text or ids. */
typedef struct core_job_s  core_job_t;

struct core_job_s {
    core_message_t  *messages;
    size_t           nmessages;
    char            *text;
    size_t           text_len;
    uint32_t        *ids;
    size_t           nids;

    uint32_t        *delivered;         /* ids that the client already has */
    size_t           ndelivered;
    uint32_t         prompt_tokens;     /* as counted before; 0: not known */
    uint64_t         prompt_hash;

    uint32_t         max_tokens;        /* with those delivered; 0: as many as
                                           the context holds */
    uint32_t         min_tokens;
    int              is_endless;        /* no token ends the text */
    sample_params_t  sample;

    void            *data;              /* the submitter's; also in its steps */
    void           (*free)(core_job_t *job);
};

typedef enum {
    CORE_PROMPT = 0,            /* first: the prompt is known and fits */
    CORE_TOKEN,
    CORE_STOP,                  /* last: the model ended its text */
    CORE_LENGTH,                /* last: max_tokens, or the context is full */
    CORE_CONTEXT,               /* last: the request is longer than the
                                   context */
    CORE_NO_TEMPLATE,           /* last: this model cannot chat */
    CORE_BAD_PROMPT,            /* last: empty, or ids that are none */
    CORE_OTHER_PROMPT,          /* last: not the prompt that the delivered
                                   tokens followed */
    CORE_FAILED                 /* last: libllama gave an error */
} core_event_kind_t;

typedef struct {
    core_event_kind_t  kind;
    uint32_t           id;          /* TOKEN */
    sample_logprobs_t  logprobs;    /* TOKEN, if asked for */
    uint32_t           tokens;      /* PROMPT, CONTEXT: of the prompt; 0: not
                                       counted, it is far too long */
    uint64_t           hash;        /* PROMPT: XXH3 of its ids */
    const char        *reason;      /* FAILED after lose(): its arguments,
                                       valid */
    const char        *text;        /* until release(); else NULL */
} core_event_t;

/* Rows that are to go through all layers. */
typedef struct {
    core_seq_t  *seq;
    void        *data;              /* of its job */
    uint64_t     name;              /* hash of the sequence's prompt, for the
                                       log */
    uint32_t     expected;          /* positions that the sequence will have at
                                       most */
    uint32_t     position;          /* of the first row */
    uint32_t     rows;              /* 1 .. CORE_ROWS_MAX */
    uint32_t     logits_rows;       /* 1: logits of the last row are wanted; or
                                       0 */
    float       *embeddings;        /* rows x width, of malloc(): the taker
                                       frees them */
} core_step_t;

typedef struct {
    uint32_t       abi;                             /* CORE_ABI */

    /* NULL: see error.  It returns before the model is loaded; notify() is
       called at each change of state. */
    core_t      *(*open)(const core_options_t *options,
                         char error[CORE_ERROR_BYTES]);

    /*
     * To be called in WAITING or ASLEEP.  n: 0 if the model is still loaded or
     * open() was given its file; otherwise the number of its parts, with their
     * paths in order, and the files have to exist until the state changes.  0,
     * or -1: in another state, or out of memory.
     */
    int          (*wake)(core_t *core, const char *const *files, size_t n);

    /* Ends the thread, a step that is being computed included. */
    void         (*close)(core_t *core);

    core_state_t (*state)(core_t *core, core_facts_t *facts);
    void         (*load)(core_t *core, core_load_t *load);

    /* Starts a sequence.  The job is the core's from now on, also if this
       fails.  NULL: out of memory. */
    core_seq_t  *(*submit)(core_t *core, core_job_t *job);

    /* The sequence's next event.  0, or -1: none is waiting.  After an event
       that is marked "last" no other comes. */
    int          (*take)(core_seq_t *seq, core_event_t *event);

    /* Ends the sequence in any state, with its steps; the handle is invalid
       afterwards. */
    void         (*release)(core_seq_t *seq);

    /* Writes the bytes of a token, which may be parts of characters, and
       returns their number. */
    size_t       (*piece)(core_t *core, uint32_t id, char *buf, size_t size);

    /* --- is_head */

    /* The next step to compute.  0, or -1: none is waiting.  The steps of a
       sequence come in their order. */
    int          (*take_step)(core_t *core, core_step_t *step);

    /*
     * Answers the oldest unanswered step that was taken of the sequence; each
     * step is answered exactly once.  logits: copied, if the step wants them;
     * else NULL.
     */
    void         (*give)(core_seq_t *seq, uint32_t position, uint32_t rows,
                         const float *logits);

    /*
     * Starts the sequence's rows again from position 0: the steps of all ids
     * come again and have to be answered.  Steps that were taken before must
     * not be answered.
     */
    void         (*rewind)(core_seq_t *seq);

    /*
     * No shard computes the sequence's steps: it continues with the fallback,
     * from the same ids, or without one ends CORE_FAILED with reason and text,
     * which are cut to CORE_REASON_BYTES and CORE_TEXT_BYTES.
     */
    void         (*lose)(core_seq_t *seq, const char *reason,
                         const char *text);
} core_plugin_t;

/* The plugin's only symbol, CORE_SYMBOL. */
const core_plugin_t *llmgw_engine_llama(void);

#endif /* CORE_H */

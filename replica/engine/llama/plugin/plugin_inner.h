
/*
 * The plugin's own state.  What the replica's thread and the core's share is
 * under `lock`; the rest belongs to the core's thread alone.
 */

#ifndef PLUGIN_INNER_H
#define PLUGIN_INNER_H

#include <llama.h>
#include <pthread.h>
#include <stdatomic.h>

#include "replica/engine/llama/core.h"
#include "replica/engine/llama/plugin/backend.h"


/*
 * Tokens of a prompt in one call: running sequences wait for it, and with
 * more of them a call is hardly faster.
 */
#define CHUNK_TOKENS       32
#define CHUNK_TOKENS_FAST  256      /* --exact off */

typedef enum {
    SEQ_WAITING = 0,                /* for a place */
    SEQ_PREFILL,
    SEQ_RUNNING,                    /* its last token is not decoded yet */
    SEQ_ENDED                       /* its last event is out */
} seq_state_t;

struct core_seq_s {
    core_seq_t     *next;           /* in the list of all; under lock */
    core_t         *core;
    core_job_t     *job;
    seq_state_t     state;
    int32_t         place;          /* its sequence in libllama; -1: none */
    llama_token    *ids;            /* prompt, then what was generated */
    uint32_t        nids;
    uint32_t        nprompt;
    uint32_t        ndecoded;       /* of the ids */

    int             is_released;    /* under lock, like the events */
    uint32_t        nevents;
    uint32_t        first_event;
    core_event_t    events[CORE_EVENTS_MAX];
};

struct core_s {
    core_options_t         options;
    char                  *file;    /* as it was named */
    char                  *cpu;
    char                 **parts;   /* what is loaded */
    size_t                 nparts;
    pthread_t              thread;
    atomic_int             is_stopping;

    pthread_mutex_t        lock;
    pthread_cond_t         work;
    int                    is_called;   /* by wake() */
    core_state_t           state;
    core_facts_t           facts;
    core_load_t            load;
    core_seq_t            *seqs;    /* in the order in which they came */

    struct llama_model    *model;
    struct llama_context  *context;
    const struct llama_vocab  *vocab;
    struct llama_batch     batch;
    core_seq_t           **places;  /* by libllama's sequence */
    uint32_t               chunk;
    uint32_t               turn;    /* the place that is to be prefilled */
    sample_room_t          room;
    uint32_t              *ends;    /* tokens that end a text */
    size_t                 nends;
    size_t                 longest; /* bytes of a token */
};


/* model.c */

/* 0, or -1: core->facts.error says why.  Of one that stands by no context is
   left, of an unmapped one no model. */
int model_load(core_t *core);

/* What a model that stands by lacks: its context, perhaps itself. */
int model_wake(core_t *core);
int model_is_repacked(const core_t *core);
void model_free(core_t *core);

/* numerics.c: the probe, and what goes by the name of facts.numerics. */
int numerics_probe(core_t *core, uint64_t file_hash, uint64_t cpu_hash);

/* prompt.c */

/* The ids of a job, or an event that says why there are none. */
int prompt_make(core_seq_t *seq, core_event_t *event);

/* decode.c */

void decode_add(core_t *core, llama_token id, uint32_t position,
    int32_t place, int is_output);

/* Decodes the batch and empties it.  0, or -1: its sequences are spoilt. */
int decode_batch(core_t *core);

/* One chunk of a prompt or one token of each sequence.  0: nothing to do. */
int decode_step(core_t *core);

/* worker.c */

void *worker_run(void *core);
void worker_event(core_seq_t *seq, const core_event_t *event);

#endif /* PLUGIN_INNER_H */

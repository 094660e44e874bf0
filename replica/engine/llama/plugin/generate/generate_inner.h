
/*
 * A core that generates tokens.  What the replica's thread and the core's
 * share is under the core's lock; the rest belongs to the core's thread alone.
 */

#ifndef GENERATE_INNER_H
#define GENERATE_INNER_H

#include "replica/engine/llama/plugin/thread.h"


/*
 * Tokens of a prompt in one call.  Running sequences wait for the call, and
 * more tokens hardly make it faster for each.
 */
#define CHUNK_TOKENS       32
#define CHUNK_TOKENS_FAST  256      /* --exact off */

typedef struct generator_s  generator_t;
typedef struct head_s       head_t;

typedef enum {
    SEQ_WAITING = 0,                /* for a place */
    SEQ_PREFILL,
    SEQ_SENT,                       /* the logits of its last token are
                                       awaited */
    SEQ_RUNNING,                    /* its last token is not decoded yet */
    SEQ_ENDED                       /* its last event was reported */
} seq_state_t;

/* Where the rows of a sequence are computed. */
typedef struct {
    int       (*may)(core_seq_t *seq);      /* whether it takes rows of the
                                               sequence now */
    uint32_t  (*chunk_rows)(const generator_t *g);

    /* Computes its ids from ndecoded to `to`, and advances ndecoded.  After the
       last id of all decode_computed() is called, at once or later. */
    void      (*chunk)(core_seq_t *seq, uint32_t to);

    /* Computes its last id, in a call with those of other sequences. */
    void      (*row)(core_seq_t *seq);

    void      (*leave)(core_seq_t *seq);    /* frees its place */
} way_t;

typedef struct remote_step_s  remote_step_t;

struct remote_step_s {
    remote_step_t  *next;
    core_step_t     step;
};

struct core_seq_s {
    core_seq_t     *next;           /* in the list of all; under lock */
    generator_t    *generator;
    core_job_t     *job;
    seq_state_t     state;
    const way_t    *way;
    uint64_t        name;           /* hash of its prompt */
    int32_t         place;          /* its sequence in libllama; -1: none */
    llama_token    *ids;            /* prompt, then what was generated */
    uint32_t        nids;
    uint32_t        nprompt;
    uint32_t        ndecoded;       /* number of ids that were given to its
                                       way */
    float          *logits;         /* copied from give(); NULL: none were asked
                                       for */

    int             is_released;    /* under lock, like all that follows */
    int             has_logits;     /* logits are there, and not sampled from
                                       yet */
    int             is_again;       /* rewind() was called */
    int             is_lost;
    uint32_t        naway;          /* steps without an answer */
    uint32_t        nanswered;      /* rows of those that were answered */
    char            reason[CORE_REASON_BYTES];
    char            text[CORE_TEXT_BYTES];
    uint32_t        nevents;
    uint32_t        first_event;
    core_event_t    events[CORE_EVENTS_MAX];
};

struct generator_s {
    core_t                 core;

    /* under the lock */

    char                 **parts;       /* what is loaded; the thread's while
                                           it starts or loads */
    size_t                 nparts;
    int                    has_news;    /* since has_work() */
    core_seq_t            *seqs;        /* in the order in which they came */
    remote_step_t         *steps;       /* to be taken, in their order */
    remote_step_t        **last_step;   /* where the next one goes */

    /* the thread's */

    int                    is_busy;     /* the last work() found something to
                                           do */
    core_seq_t            *fresh;       /* has a place, and no ids yet */
    head_t                *head;        /* NULL: none */
    const struct llama_vocab  *vocab;
    const char            *template;    /* NULL: it cannot chat */
    uint32_t               trained;     /* tokens of the model's context */
    core_seq_t           **places;      /* by libllama's sequence */
    uint32_t               chunk;
    uint32_t               turn;        /* the place that is to be prefilled */
    sample_room_t          room;
    uint32_t              *ends;        /* tokens that end a text */
    size_t                 nends;
    size_t                 longest;     /* bytes of a token */
};


static inline generator_t *
generator_of(core_t *core)
{
    return (generator_t *) core;
}


/* model.c */

/* The operations start() and load().  If the core stands by, no context is left
   between them; if it is unmapped, no model either. */
int model_start(core_t *core);
int model_load(core_t *core);
int model_is_repacked(const core_t *core);
void model_done(generator_t *g);

/* numerics.c: facts.is_exact, is_stepwise and numerics.  0, or -1. */
int numerics_probe(generator_t *g, uint64_t file_hash);

/* prompt.c */

/* Makes the ids of a job, or an event with the reason why there are none. */
int prompt_make(core_seq_t *seq, core_event_t *event);

/* head.c */

/* Opens a head: its vocabulary, template and embeddings, and the facts in it.
   0, or -1: facts.error says why. */
int head_open(generator_t *g);
void head_close(generator_t *g);

/* Makes the name of the numerics of a head and its shards.  0, or -1. */
int head_name(generator_t *g);

/* Writes width floats for each of n ids, which are all in the vocabulary. */
void head_embed(const generator_t *g, const llama_token *ids, uint32_t n,
    float *out);

/* local.c */

extern const way_t  way_local;

void local_add(generator_t *g, llama_token id, uint32_t position,
    int32_t place, int is_output);

/* Decodes the batch and empties it.  0, or -1: its sequences cannot
   continue. */
int local_decode(generator_t *g);

/* Decodes the rows that have waited for other sequences'. */
void local_flush(generator_t *g);

/* remote.c */

extern const way_t  way_remote;

/* Takes what came for sequences since the last call.  0: nothing. */
int remote_collect(generator_t *g);

/* To be called under the lock: drops the sequence's steps, and their
   answers. */
void remote_drop(core_seq_t *seq);

/* core.h's functions. */
int remote_take(core_t *core, core_step_t *step);
void remote_give(core_seq_t *seq, uint32_t position, uint32_t rows,
    const float *logits);
void remote_rewind(core_seq_t *seq);
void remote_lose(core_seq_t *seq, const char *reason, const char *text);

/* decode.c */

/* The logits for the sequence's last id were computed. */
void decode_computed(core_seq_t *seq, const float *logits);

/* Has all ids of the sequence computed again, from the first on, by this
   way. */
void decode_again(core_seq_t *seq, const way_t *way);

void decode_end(core_seq_t *seq, core_event_kind_t kind);
void decode_lost(core_seq_t *seq);

/* Computes one chunk of a prompt or one token of each sequence.  0: there was
   nothing to do. */
int decode_step(generator_t *g);

/* worker.c */

/* The operations has_work() and work(). */
int worker_has_work(core_t *core);
void worker_work(core_t *core);
void worker_done(generator_t *g);

/*
 * To be called under the lock when decode_step() may find something to do.  The
 * thread may be in decode_step() at this moment, so a signal alone would be
 * lost.
 */
void worker_call(generator_t *g);

void worker_event(core_seq_t *seq, const core_event_t *event);

#endif /* GENERATE_INNER_H */

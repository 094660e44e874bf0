
/*
 * A core that generates tokens.  What the replica's thread and the core's
 * share is under the core's lock; the rest belongs to the core's thread alone.
 */

#ifndef GENERATE_INNER_H
#define GENERATE_INNER_H

#include "replica/engine/llama/plugin/thread.h"


/*
 * Tokens of a prompt in one call: running sequences wait for it, and with
 * more of them a call is hardly faster.
 */
#define CHUNK_TOKENS       32
#define CHUNK_TOKENS_FAST  256      /* --exact off */

typedef struct generator_s  generator_t;
typedef struct head_s       head_t;

typedef enum {
    SEQ_WAITING = 0,                /* for a place */
    SEQ_PREFILL,
    SEQ_SENT,                       /* the logits of its last token come */
    SEQ_RUNNING,                    /* its last token is not decoded yet */
    SEQ_ENDED                       /* its last event is out */
} seq_state_t;

/* Where the rows of a sequence are computed. */
typedef struct {
    int       (*may)(core_seq_t *seq);      /* takes rows of it now */
    uint32_t  (*chunk_rows)(const generator_t *g);

    /* Its ids from ndecoded to `to`: ndecoded moves on.  Behind the last id
       of all decode_computed() is called, at once or later. */
    void      (*chunk)(core_seq_t *seq, uint32_t to);

    /* Its last id, in a call with those of others. */
    void      (*row)(core_seq_t *seq);

    void      (*leave)(core_seq_t *seq);    /* its place */
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
    uint32_t        ndecoded;       /* of the ids: given to its way */
    float          *logits;         /* as given; NULL: none were asked for */

    int             is_released;    /* under lock, like all that follows */
    int             has_logits;     /* given, and not sampled from */
    int             is_again;       /* by rewind() */
    int             is_lost;
    uint32_t        naway;          /* steps without an answer */
    uint32_t        nanswered;      /* rows of those with one */
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

    int                    is_busy;     /* the last work() found something */
    core_seq_t            *fresh;       /* has a place, and no ids yet */
    head_t                *head;        /* NULL: none */
    const struct llama_vocab  *vocab;
    const char            *template;    /* NULL: it cannot chat */
    uint32_t               trained;     /* tokens of a context */
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

/* The operations start() and load().  Of one that stands by no context is left
   between them, of an unmapped one no model. */
int model_start(core_t *core);
int model_load(core_t *core);
int model_is_repacked(const core_t *core);
void model_done(generator_t *g);

/* numerics.c: facts.is_exact, is_stepwise and numerics.  0, or -1. */
int numerics_probe(generator_t *g, uint64_t file_hash);

/* prompt.c */

/* The ids of a job, or an event that says why there are none. */
int prompt_make(core_seq_t *seq, core_event_t *event);

/* head.c */

/* Vocabulary, template and embeddings of a head, and facts that it says.  0,
   or -1: facts.error says why. */
int head_open(generator_t *g);
void head_close(generator_t *g);

/* What names the numerics of a head and its shards.  0, or -1. */
int head_name(generator_t *g);

/* width floats for each of n ids, all of which are in the vocabulary. */
void head_embed(const generator_t *g, const llama_token *ids, uint32_t n,
    float *out);

/* local.c */

extern const way_t  way_local;

void local_add(generator_t *g, llama_token id, uint32_t position,
    int32_t place, int is_output);

/* Decodes the batch and empties it.  0, or -1: its sequences are spoilt. */
int local_decode(generator_t *g);

/* The rows that wait for others. */
void local_flush(generator_t *g);

/* remote.c */

extern const way_t  way_remote;

/* What came for sequences since the last time.  0: nothing. */
int remote_collect(generator_t *g);

/* Under the lock: forgets its steps and what their answers would be. */
void remote_drop(core_seq_t *seq);

/* core.h's functions. */
int remote_take(core_t *core, core_step_t *step);
void remote_give(core_seq_t *seq, uint32_t position, uint32_t rows,
    const float *logits);
void remote_rewind(core_seq_t *seq);
void remote_lose(core_seq_t *seq, const char *reason, const char *text);

/* decode.c */

/* The logits behind its last id are there. */
void decode_computed(core_seq_t *seq, const float *logits);

/* All its ids are to be computed from the first on, this way. */
void decode_again(core_seq_t *seq, const way_t *way);

void decode_end(core_seq_t *seq, core_event_kind_t kind);
void decode_lost(core_seq_t *seq);

/* One chunk of a prompt or one token of each sequence.  0: nothing to do. */
int decode_step(generator_t *g);

/* worker.c */

/* The operations has_work() and work(). */
int worker_has_work(core_t *core);
void worker_work(core_t *core);
void worker_done(generator_t *g);

/* Under the lock: decode_step() may find something to do.  The thread may be
   in it at this moment, so a signal alone would be lost. */
void worker_call(generator_t *g);

void worker_event(core_seq_t *seq, const core_event_t *event);

#endif /* GENERATE_INNER_H */

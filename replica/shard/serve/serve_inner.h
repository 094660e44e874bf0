
/*
 * Private to this folder: the structs of a shard and its sessions.
 */

#ifndef SHARD_SERVE_INNER_H
#define SHARD_SERVE_INNER_H

#include "replica/shard/serve/serve.h"


typedef struct step_s  step_t;

typedef enum {
    STEP_FILLING = 0,               /* chunks are missing */
    STEP_WAITING,                   /* for the client to read */
    STEP_COMPUTING                  /* the plugin's */
} step_state_t;

/* A step's tensors follow it, in the same piece of memory. */
struct step_s {
    shard_step_t    core;           /* must be first */
    serve_t        *serve;
    session_t      *session;        /* NULL: it has ended */
    step_t         *next;           /* the session's next one, in order */
    step_t         *next_in_hand;   /* the next of all that are COMPUTING */
    step_t        **in_hand;
    step_state_t    state;
    uint64_t        in_bytes;
    uint32_t        chunks;
    uint32_t        chunk;          /* number of the next one */
    size_t          bytes;          /* of memory, this struct included */
};

typedef enum {
    SESSION_NEW = 0,
    SESSION_HELD,
    SESSION_OPEN,
    SESSION_ENDED
} session_state_t;

struct session_s {
    serve_t                   *serve;
    session_t                 *next;
    session_t                **link;
    const session_calls_t     *calls;
    void                      *data;
    session_state_t            state;

    Llmgateway__Shard__Request  *open;  /* from HELD on */
    caller_t                  *caller;  /* NULL: not known, or it has ended */
    uint32_t                   place;
    uint32_t                   position;        /* of the next row */
    int                        has_logits;
    step_t                    *steps;   /* steps without a whole result */
    uint32_t                   nsteps;
    int                        is_closing;      /* no further step comes */

    uint64_t                   born_ms;
    uint64_t                   active_ms;       /* the last progress */
};

struct serve_s {
    const shard_plugin_t  *plugin;
    core_t                *core;
    serve_options_t        options;
    serve_calls_t          calls;

    core_state_t           state;
    core_facts_t           facts;
    int                    has_facts;
    int                    was_loaded;
    int                    is_draining;

    session_t             *all;         /* NEW and ENDED ones, too */
    uint32_t               streams;     /* number of these */
    uint32_t               sessions;    /* HELD or OPEN */
    callers_t              callers;     /* their sessions add up to that
                                           number */
    uint64_t               tensor_bytes;
    step_t                *in_hand;     /* steps that the plugin has, in no
                                           order */

    uint64_t               now_ms;
    uint64_t               unix_s;
    uint64_t               used_ms;     /* when there last was a session, or it
                                           was loaded */
};


/* --- serve.c */

/* Returns the reason, and writes the formatted text. */
shard_reason_t serve_why(char text[SERVE_TEXT_BYTES],
    shard_reason_t reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));


/* --- open.c */

/*
 * Checks the caller of an Open: SHARD_OK, or the reason and a text.  To be
 * called once, when the Open comes, since a token holds for its minute and the
 * slice may take longer to load.
 */
shard_reason_t open_judge_caller(const serve_t *serve,
    const Llmgateway__Shard__Open *open, char text[SERVE_TEXT_BYTES]);

/*
 * Whether this shard would serve the session.  Before the core's facts are
 * known only part of the Open can be checked, so this is called again when the
 * slice is loaded.
 */
shard_reason_t open_judge(const serve_t *serve,
    const Llmgateway__Shard__Open *open, char text[SERVE_TEXT_BYTES]);


/* --- step.c */

/*
 * Takes a chunk of an open session: SHARD_OK, or the reason and a text.
 * *whole: the step that it has completed, which is WAITING now; else NULL.
 */
shard_reason_t step_take(session_t *session,
    const Llmgateway__Shard__Step *chunk, step_t **whole,
    char text[SERVE_TEXT_BYTES]);

/* Why a step that the plugin took has failed; SHARD_OK: it has not. */
shard_reason_t step_fault(const step_t *step);

/* The same in words. */
void step_explain(const step_t *step, char text[SERVE_TEXT_BYTES]);

/* step_submit() takes a step from WAITING to COMPUTING; step_returned() takes
   it out of the plugin's list. */
void step_submit(step_t *step);
void step_returned(step_t *step);

/* Removes a step, the first one, from its session. */
void step_shift(step_t *step);

/* Frees a step, which is in no session. */
void step_free(step_t *step);


/* --- session.c */

/* The slice is loaded: continues a session that waits for it. */
void session_begin(session_t *session);

/* The plugin has started, or finished, a step of this session. */
void session_started(session_t *session, const step_t *step);
void session_done(session_t *session, step_t *step);

/* Ends the session if it has waited too long. */
void session_tick(session_t *session);

/* Sends Refused, and ends the session.  position: of the wrong step, or 0. */
void session_refuse(session_t *session, uint32_t position,
    shard_reason_t reason, const char *text);


/* --- serve.c */

/* A session waits for the slice: loads it if it is not loaded. */
void serve_want(serve_t *serve);

#endif /* SHARD_SERVE_INNER_H */

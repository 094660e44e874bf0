
/*
 * The kind's engine and its runs.
 */

#ifndef LLAMA_INNER_H
#define LLAMA_INNER_H

#include "replica/engine/llama/answer.h"
#include "replica/engine/llama/loader.h"


typedef struct {
    engine_t             *engine;
    loader_t              loader;
    const core_plugin_t  *plugin;
    core_t               *core;
    core_state_t          state;
    core_facts_t          facts;
    int                   is_woken;     /* it was asleep */
    ev_async              notified;
    ev_timer              progress;
    uint64_t              steps;        /* at the progress before */
} llama_t;

typedef struct {
    run_t        run;                   /* must be first */
    core_seq_t  *seq;                   /* NULL: released */
    hold_t       hold;
    answer_t     answer;
    int          has_sent;              /* since the progress before */
} llama_run_t;


/* turn.c: engine_kind_t's functions for a run. */
void turn_start(run_t *run);
void turn_cancel(run_t *run);

/* Also its resume(): all that waits goes out, unless the client is slow. */
void turn_pump(run_t *run);

/* Says that it works, where nothing was sent since the time before. */
void turn_progress(run_t *run, int has_moved);

#endif /* LLAMA_INNER_H */

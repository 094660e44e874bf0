
/*
 * A real engine in this process: a model of a GGUF file, run by libllama.
 * The plugin beside the program has it; core.h says how they talk.
 *
 * A kind whose layers are computed elsewhere opens by llama_open_remote(), is
 * told when there is something to compute, and has the runs of this kind.
 */

#ifndef LLAMA_KIND_H
#define LLAMA_KIND_H

#include "replica/engine/llama/answer.h"


#define LLAMA_FAILURE_BYTES  160

/* How what computes a sequence elsewhere failed under it. */
typedef struct {
    uint32_t  count;
    char      text[LLAMA_FAILURE_BYTES];    /* the last, for a client; "":
                                               nothing is to be told */
} llama_failure_t;

/* Who computes, by functions with `data`. */
typedef struct {
    const char  *head;          /* file */
    const char  *fallback;      /* file of the whole model; NULL: none */
    int          is_fp16;
    void        *data;

    /*
     * Once: the core is READY, the engine's facts are written and may be
     * written over.  0, or -1 and a line in the log.
     */
    int   (*on_loaded)(void *data, const core_plugin_t *plugin, core_t *core,
                       const core_facts_t *facts);

    /* Whether requests can be computed now; llama_remote_changed() when that
       changes. */
    int   (*is_ready)(void *data);

    /* The core may have steps.  step.data is a void **, zeroed at first and
       valid until on_release(). */
    void  (*on_steps)(void *data);

    /* Before it ends, of what it left in its void **. */
    void  (*failure)(void *data, const void *left, llama_failure_t *failure);

    /* The sequence ends: what it left in its void ** is to be let go of. */
    void  (*on_release)(void *data, void *left);
} llama_remote_t;


extern const engine_kind_t  llama_kind;

/* engine_kind_t's open(); remote is copied, its strings outlive the engine. */
int llama_open_remote(engine_t *engine, const engine_options_t *options,
    const llama_remote_t *remote);

/* is_ready() has another answer. */
void llama_remote_changed(engine_t *engine);

void llama_close(engine_t *engine);

/* The remote's, and how many sequences went on with the fallback. */
void *llama_remote_data(const engine_t *engine, uint64_t *fallbacks);


/* --- turn.c: runs, and functions of engine_kind_t for them */

typedef struct {
    run_t        run;                   /* must be first */
    core_seq_t  *seq;                   /* NULL: released */
    void        *remote;                /* of the remote: see its on_steps() */
    hold_t       hold;
    answer_t     answer;
    int          has_sent;              /* since the progress before */
} llama_run_t;


llmgw_grpc_status_t turn_judge(engine_t *engine,
    const Llmgateway__GenerateRequest *request, char *text, size_t bytes);

void turn_start(run_t *run);
void turn_cancel(run_t *run);

/* Also its resume(): all that waits goes out, unless the client is slow. */
void turn_pump(run_t *run);

/* Says that it works, where nothing was sent since the time before. */
void turn_progress(run_t *run, int has_moved);

#endif /* LLAMA_KIND_H */

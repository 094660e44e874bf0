
/*
 * A real engine in this process: a model of a GGUF file, run by libllama.  It
 * is run by the plugin beside the program; core.h is the interface.
 *
 * A kind whose layers are computed elsewhere is opened by llama_open_remote().
 * Its llama_remote_t is called when steps have to be computed; its runs are of
 * this kind.
 */

#ifndef LLAMA_KIND_H
#define LLAMA_KIND_H

#include "replica/engine/llama/answer.h"


#define LLAMA_FAILURE_BYTES  160

/* How the shards of a sequence have failed. */
typedef struct {
    uint32_t  count;
    char      text[LLAMA_FAILURE_BYTES];    /* the last failure, for a client;
                                               "": none */
} llama_failure_t;

/* What computes the layers; `data` goes to each function. */
typedef struct {
    const char  *head;          /* file */
    const char  *fallback;      /* file of the whole model; NULL: none */
    int          is_fp16;
    void        *data;

    /*
     * Called once, when the core is READY.  The engine's facts are written and
     * may be changed here.  0, or -1 and a line in the log.
     */
    int   (*on_loaded)(void *data, const core_plugin_t *plugin, core_t *core,
                       const core_facts_t *facts);

    /* Whether requests can be computed now; llama_remote_changed() when that
       changes. */
    int   (*is_ready)(void *data);

    /*
     * The core may have steps to take.  A step's data points to a void * of its
     * sequence for the remote's use: NULL at first, valid until on_release().
     */
    void  (*on_steps)(void *data);

    /* Called before a sequence ends; left: what the remote stored in the
       sequence's void *. */
    void  (*failure)(void *data, const void *left, llama_failure_t *failure);

    /* The sequence ends: frees what the remote stored. */
    void  (*on_release)(void *data, void *left);
} llama_remote_t;


extern const engine_kind_t  llama_kind;

/* engine_kind_t's open(); remote is copied, its strings outlive the engine. */
int llama_open_remote(engine_t *engine, const engine_options_t *options,
    const llama_remote_t *remote);

/* To be called when the result of is_ready() has changed. */
void llama_remote_changed(engine_t *engine);

void llama_close(engine_t *engine);

/* The remote's data, and how many sequences have continued with the
   fallback. */
void *llama_remote_data(const engine_t *engine, uint64_t *fallbacks);


/* --- turn.c: runs, and functions of engine_kind_t for them */

typedef struct {
    run_t        run;                   /* must be first */
    core_seq_t  *seq;                   /* NULL: released */
    void        *remote;                /* the remote's: see on_steps() */
    hold_t       hold;
    answer_t     answer;
    int          has_sent;              /* since the last turn_progress() */
} llama_run_t;


llmgw_grpc_status_t turn_judge(engine_t *engine,
    const Llmgateway__GenerateRequest *request, char *text, size_t bytes);

void turn_start(run_t *run);
void turn_cancel(run_t *run);

/* Sends all events that wait, until the client is slow; also the kind's
   resume(). */
void turn_pump(run_t *run);

/* Sends a sign of progress if nothing was sent since the last call.  has_moved:
   the engine has worked since then. */
void turn_progress(run_t *run, int has_moved);

#endif /* LLAMA_KIND_H */

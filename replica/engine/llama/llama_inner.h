
/*
 * The struct of an engine of the kind `llama`.
 */

#ifndef LLAMA_INNER_H
#define LLAMA_INNER_H

#include "replica/engine/llama/llama.h"
#include "replica/engine/llama/loader.h"


typedef struct {
    engine_t             *engine;
    loader_t              loader;
    const core_plugin_t  *plugin;
    core_t               *core;
    core_state_t          state;
    core_facts_t          facts;
    int                   is_woken;     /* it was asleep */
    llama_remote_t        remote;       /* head NULL: all layers are computed
                                           here */
    ev_async              notified;
    ev_timer              progress;
    uint64_t              steps;        /* at the last turn_progress() */
    uint64_t              fallbacks;
} llama_t;

#endif /* LLAMA_INNER_H */

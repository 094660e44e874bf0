
/*
 * The engine `model`: the simulator's replica model in real time.
 *
 * It batches, caches prefixes, preempts and takes as long as the model defines,
 * and its text is that of the simulated engine.  So a fleet can be simulated by
 * llmgw-sim and run behind a real gateway, and the two compared.
 */

#ifndef MODEL_ENGINE_H
#define MODEL_ENGINE_H

#include "replica/engine/run.h"


/* engine_options_t.own; NULL or 0: as the model's own defaults. */
typedef struct {
    const char  *name;              /* of a preset, or of a file in the
                                       folder */
    const char  *latency;
    const char  *alpha;
    const char  *beta;
    const char  *hardware;
    const char  *hardware_file;
    const char  *folder;
    const char  *scheduler;
    const char  *preemption;
    int64_t      tp;
    int64_t      block_tokens;
    int64_t      blocks;
    int64_t      max_len;
    int64_t      max_seqs;
    int64_t      batched_tokens;
    int64_t      chunk_tokens;
} model_options_t;


extern const engine_kind_t  model_engine_kind;


/* 0, or -1 and one line: these options define no model. */
int model_engine_check(const model_options_t *options, char *error,
    size_t bytes);

#endif /* MODEL_ENGINE_H */

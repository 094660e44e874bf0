
/* llmgw-simreplica's command line. */

#ifndef SIMULATED_OPTIONS_H
#define SIMULATED_OPTIONS_H

#include "replica/cmdline.h"
#include "replica/engine/model/model.h"
#include "replica/engine/sim/sim.h"
#include "replica/simulated/workers.h"


typedef struct {
    cmdline_t        cmdline;           /* must be first */
    sim_options_t    sim;
    model_options_t  model;
    int64_t          workers;
    int64_t          memory_mb;         /* of each worker, or of the process */
    const char      *memory_kind;
    int              is_memory_shared;
    const char      *token_log;
} simulated_options_t;


extern const cmdline_program_t  simulated_program;

#endif /* SIMULATED_OPTIONS_H */


/*
 * The simulated engine: sends made-up tokens on gRPC streams, each at its time,
 * and faults on demand.
 */

#ifndef SIM_H
#define SIM_H

#include "replica/engine/run.h"
#include "replica/engine/sim/faults.h"


#define SIM_TOKEN_DELAY_MS  50      /* default of the option */

/* engine_options_t.own */
typedef struct {
    uint64_t  token_delay_ms;
    uint64_t  first_token_delay_ms;
    double    error_rate;
    int       is_reject_all;
} sim_options_t;


extern const engine_kind_t  sim_kind;


/* Both functions are for an engine of this kind. */
const faults_t *sim_faults(const engine_t *engine);

/* Sets the faults from now on, for running streams too. */
void sim_set_faults(engine_t *engine, const faults_t *faults);

#endif /* SIM_H */

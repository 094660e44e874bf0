
/*
 * The simulated engine: made-up tokens onto gRPC streams, each at its time,
 * and faults on demand.
 */

#ifndef SIM_H
#define SIM_H

#include "replica/engine/run.h"
#include "replica/engine/sim/faults.h"


#define SIM_TOKEN_DELAY_MS  50      /* of an option that is not given */

/* engine_options_t.own */
typedef struct {
    uint64_t  token_delay_ms;
    uint64_t  first_token_delay_ms;
    double    error_rate;
    int       is_reject_all;
} sim_options_t;


extern const engine_kind_t  sim_kind;


/* Both for an engine of this kind. */
const faults_t *sim_faults(const engine_t *engine);

/* They hold for running streams, too, from now on. */
void sim_set_faults(engine_t *engine, const faults_t *faults);

#endif /* SIM_H */


/*
 * The simulated engine: made-up tokens onto gRPC streams, each at its time,
 * and faults on demand.
 */

#ifndef SIM_H
#define SIM_H

#include "replica/engine/run.h"
#include "replica/engine/sim/faults.h"


extern const engine_kind_t  sim_kind;


/* Both for an engine of this kind. */
const faults_t *sim_faults(const engine_t *engine);

/* Running streams obey them from now on. */
void sim_set_faults(engine_t *engine, const faults_t *faults);

#endif /* SIM_H */

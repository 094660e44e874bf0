
/* llmgateway.ReplicaControl: faults and counts of a simulated engine. */

#ifndef CONTROL_H
#define CONTROL_H

#include "replica/service.h"


/* The methods of a kind; the model has no method for faults. */
const service_method_t *control_methods(const engine_kind_t *kind);

#endif /* CONTROL_H */


/* llmgateway.ReplicaControl: faults and counts of a simulated engine. */

#ifndef CONTROL_H
#define CONTROL_H

#include "replica/service.h"


/* The control methods for an engine of this kind; `model` has none for
   faults. */
const service_method_t *control_methods(const engine_kind_t *kind);

#endif /* CONTROL_H */

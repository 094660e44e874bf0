
/*
 * The kinds of latency models, each in its own file.  Their times are in us,
 * not yet cut to whole ones.
 */

#ifndef MODEL_LATENCY_INNER_H
#define MODEL_LATENCY_INNER_H

#include "sim/model/latency.h"


double model_roofline_step(const model_latency_t *latency,
    const model_work_t *work);
double model_physics_step(const model_latency_t *latency,
    const model_work_t *work);

/* Time to read the weights once. */
double model_physics_weights(const model_latency_t *latency);

#endif /* MODEL_LATENCY_INNER_H */


/*
 * Turns cohorts into clients: one for each member, with the windows in which it
 * is active.
 */

#ifndef WORK_COHORT_H
#define WORK_COHORT_H

#include "sim/work/spec/spec.h"


/*
 * Returns the clients of a specification, followed by the members of its
 * cohorts, in the arena; *n is their number.
 */
work_client_t *work_spec_clients(const work_spec_t *spec,
    work_arena_t *arena, size_t *n);

#endif /* WORK_COHORT_H */

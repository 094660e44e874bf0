
/*
 * Cohorts become clients: each member one, with the windows in which it is
 * active.
 */

#ifndef WORK_COHORT_H
#define WORK_COHORT_H

#include "sim/work/spec/spec.h"


/*
 * The clients of a specification and then the members of its cohorts, in the
 * arena; *n of them.
 */
work_client_t *work_spec_clients(const work_spec_t *spec,
    work_arena_t *arena, size_t *n);

#endif /* WORK_COHORT_H */


/* Shared by the files that make a plan. */

#ifndef SIM_PLAN_INNER_H
#define SIM_PLAN_INNER_H

#include "sim/bundle.h"
#include "sim/settings.h"


int plan_fail(sim_plan_t *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int plan_is_page(const sim_settings_t *s);

/* scheduler, preemption: as in the policy bundle; may be NULL. */
int plan_model(sim_plan_t *plan, const sim_settings_t *s,
    const char *scheduler, const char *preemption);
int plan_pools(sim_plan_t *plan, const sim_settings_t *s);

/* Without --flow-control: refuses options that only its queue would use. */
int plan_queue(sim_plan_t *plan, const sim_settings_t *s);

/* With --gateway: refuses options that only BLIS's gateway would use. */
int plan_gateway(sim_plan_t *plan, const sim_settings_t *s,
    const bundle_t *bundle);

#endif /* SIM_PLAN_INNER_H */


/* Budgets of tenants.  tenant.h has the rule. */

#include <stddef.h>

#include "core/admission/tenant.h"


int
llmgw_tenant_init(llmgw_tenant_t *tenant, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1)) {
        return -1;
    }

    tenant->fraction = fraction;
    tenant->has_budget = 1;
    tenant->in_flight = 0;

    return 0;
}


int
llmgw_tenant_is_over(const llmgw_tenant_t *tenant, int64_t capacity)
{
    capacity = capacity < 1 ? 1 : capacity;

    return tenant->has_budget
           && tenant->in_flight > tenant->fraction * (double) capacity;
}

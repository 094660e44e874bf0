
/*
 * Budgets of tenants: what share of the fleet's places a tenant may hold
 * before its sheddable requests are refused.
 *
 * Over budget is in_flight > fraction x capacity: a tenant with fraction 0 gets
 * one request through, since that is counted only when it is sent.  A tenant
 * without a budget is never over it, and is not counted either.
 *
 * The array of budgets is the caller's, indexed by the caller's own numbers of
 * tenants; it may lie in shared memory.
 */

#ifndef LLMGW_TENANT_H
#define LLMGW_TENANT_H

#include <stdint.h>


typedef struct {
    double    fraction;         /* 0 to 1 */
    uint32_t  has_budget;
    uint32_t  in_flight;
} llmgw_tenant_t;


/* Returns 0; -1: the fraction is not from 0 to 1. */
int llmgw_tenant_init(llmgw_tenant_t *tenant, double fraction);

/* capacity: places of the whole fleet; below 1 counts as 1 */
int llmgw_tenant_is_over(const llmgw_tenant_t *tenant, int64_t capacity);

#endif /* LLMGW_TENANT_H */

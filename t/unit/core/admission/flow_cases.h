
/* Claims with classes and tenants, and a queue that knows them. */

#ifndef FLOW_CASES_H
#define FLOW_CASES_H

#include "t/unit/core/admission/admission_scene.h"


#define PLACES  (PEERS * CAPACITY)

static inline void
flow_on(scene_t *scene, llmgw_flow_order_t order,
    llmgw_flow_fairness_t fairness, double usage_limit, int has_shedding)
{
    llmgw_flow_conf_t  conf = {
        .order = order, .fairness = fairness, .usage_limit = usage_limit,
        .has_shedding = has_shedding
    };

    assert_true(llmgw_admission_order(scene->shared, &conf));
    assert_false(llmgw_admission_order(scene->shared, &conf));
}


static inline llmgw_claim_t
flow_claim(uint64_t number, int32_t priority, uint64_t tenant)
{
    llmgw_claim_t  claim = scene_claim(number);

    claim.priority = priority;
    claim.tenant = tenant;

    return claim;
}


/* Takes all places of the pool, in that row. */
static inline void
flow_fill(scene_t *scene, uint32_t row, llmgw_lease_t *leases)
{
    uint32_t  i;

    for (i = 0; i < PLACES; i++) {
        scene_lease(scene, row, 1000 + i, &leases[i]);
    }
}


/* Queues a new claim of that row, which has to wait. */
static inline llmgw_claim_t
flow_wait(scene_t *scene, uint32_t row, uint64_t number, int32_t priority,
    uint64_t tenant)
{
    llmgw_lease_t             lease = { .is_held = 0 };
    llmgw_claim_t             claim = flow_claim(number, priority, tenant);
    llmgw_admission_answer_t  answer;

    assert_int_equal(scene_ask(scene, row, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(answer.has_joined);

    return claim;
}


/* Frees a place: that row must be woken, and its claim gets the place. */
static inline void
flow_next_is(scene_t *scene, uint32_t row, llmgw_claim_t *claim,
    llmgw_lease_t *lease)
{
    llmgw_wake_t              wake;
    llmgw_admission_answer_t  answer;

    wake = scene_end(scene, 0, lease, LLMGW_VERDICT_SUCCESS);
    assert_int_equal(wake.row, row);

    assert_int_equal(scene_ask(scene, row, claim, lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_true(answer.has_left);

    /* the lease is row 0's from here on, which ends all leases */
    (*llmgw_share(scene->shared, lease->place.slot, row))--;
    (*llmgw_share(scene->shared, lease->place.slot, 0))++;
}

#endif /* FLOW_CASES_H */

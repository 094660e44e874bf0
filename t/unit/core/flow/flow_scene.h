
/* A flow with few places, and requests that come and leave, for its tests. */

#ifndef FLOW_SCENE_H
#define FLOW_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/flow/flow.h"


#define CAPACITY  64
#define NOBODY    UINT32_MAX

typedef struct {
    llmgw_flow_t       *flow;
    llmgw_flow_conf_t   conf;
    uint32_t            entries[CAPACITY];      /* by request */
    uint32_t            victim;
} scene_t;


static inline void
scene_init(scene_t *scene, llmgw_flow_order_t order,
    llmgw_flow_fairness_t fairness)
{
    memset(scene, 0, sizeof(*scene));
    scene->conf.order = order;
    scene->conf.fairness = fairness;
    scene->conf.usage_limit = 1;
}


static inline void
scene_start(scene_t *scene)
{
    void  *memory;

    memory = calloc(1, llmgw_flow_bytes(CAPACITY));
    assert_non_null(memory);
    scene->flow = llmgw_flow_init(memory, CAPACITY, &scene->conf);
}


static inline llmgw_flow_rc_t
add_until(scene_t *scene, uint32_t request, int32_t priority, uint64_t tenant,
    int64_t deadline_us)
{
    llmgw_flow_arrival_t  arrival = {
        .priority = priority, .request = request, .tenant = tenant,
        .deadline_us = deadline_us
    };

    return llmgw_flow_enqueue(scene->flow, &arrival, &scene->entries[request],
                              &scene->victim);
}


static inline llmgw_flow_rc_t
add(scene_t *scene, uint32_t request, int32_t priority, uint64_t tenant)
{
    return add_until(scene, request, priority, tenant,
                     LLMGW_FLOW_NO_DEADLINE);
}


/* Takes the request that may leave at that saturation; NOBODY: none. */
static inline uint32_t
leaves(scene_t *scene, double saturation)
{
    double    ceiling;
    uint32_t  entry;

    entry = llmgw_flow_next(scene->flow, &ceiling);

    return entry == 0 || saturation >= ceiling
           ? NOBODY : llmgw_flow_take(scene->flow, entry);
}


#define assert_leave(scene, ...)                                              \
    do {                                                                      \
        size_t          k_;                                                   \
        const uint32_t  want_[] = { __VA_ARGS__ };                            \
        for (k_ = 0; k_ < sizeof(want_) / sizeof(want_[0]); k_++) {           \
            assert_int_equal(leaves(scene, 0), want_[k_]);                    \
        }                                                                     \
    } while (0)


static inline void
scene_done(scene_t *scene)
{
    assert_int_equal(leaves(scene, 0), NOBODY);
    free(scene->flow);
}

#endif /* FLOW_SCENE_H */

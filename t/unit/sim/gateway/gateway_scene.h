
/* A fleet, a gateway before it, and requests at a steady rate. */

#ifndef GATEWAY_SCENE_H
#define GATEWAY_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/gateway/gateway.h"


#define SCENE_FAULTS  8

typedef struct {
    fleet_config_t     fleet;
    gateway_config_t   config;
    gateway_fault_t    faults[SCENE_FAULTS];
    work_t             work;
    fleet_watch_t     *watch;
    fleet_result_t     result;
    gateway_counts_t   counts;
} gateway_scene_t;


/* A step takes 10 ms, and 20 us more for each token of a prompt. */
static inline void
gateway_scene_init(gateway_scene_t *scene, uint32_t replicas)
{
    char                     error[256];
    model_latency_options_t  latency = {
        .kind = MODEL_LINEAR, .beta = { 10000, 20, 0 }, .nbeta = 3, .tp = 1
    };

    memset(scene, 0, sizeof(*scene));
    fleet_config_init(&scene->fleet);
    assert_int_equal(model_latency_init(&scene->fleet.model.latency, &latency,
                                        error, sizeof(error)), 0);

    scene->fleet.replicas = replicas;
    scene->fleet.horizon_us = INT64_MAX;
    scene->fleet.seed = 7;

    gateway_config_init(&scene->config);
    scene->config.faults = scene->faults;
    work_init(&scene->work);
}


/* Adds n requests, one every gap_us, after those that there are. */
static inline void
gateway_scene_ask(gateway_scene_t *scene, uint32_t n, int64_t gap_us,
    uint32_t input_tokens, uint32_t output_tokens)
{
    uint32_t         i;
    int64_t          at_us;
    work_request_t  *w;

    at_us = scene->work.n == 0
            ? 0 : work_at(&scene->work, scene->work.n - 1)->arrival_us;

    for (i = 0; i < n; i++) {
        at_us += gap_us;
        w = work_add(&scene->work);
        work_set_id(&scene->work, w, w->index);
        w->arrival_us = at_us;
        w->input_tokens = input_tokens;
        w->output_tokens = output_tokens;
        work_set_origin(w, 0);
    }
}


static inline gateway_fault_t *
gateway_scene_fault(gateway_scene_t *scene, gateway_fault_kind_t kind,
    uint32_t replica, uint32_t count, int64_t at_us, int64_t for_us)
{
    gateway_fault_t  *fault;

    fault = &scene->faults[scene->config.nfaults++];
    *fault = (gateway_fault_t) {
        .kind = kind, .replica = replica, .count = count, .at_us = at_us,
        .for_us = for_us
    };

    return fault;
}


static inline size_t
gateway_scene_count(const gateway_scene_t *scene, fleet_status_t status)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < scene->result.n; i++) {
        n += scene->result.outcomes[i].status == status;
    }

    return n;
}


/* Asserts what holds in every run. */
static inline void
gateway_scene_run(gateway_scene_t *scene)
{
    char                    error[256];
    size_t                  i;
    uint32_t                r;
    const fleet_outcome_t  *outcome;

    fleet_result_done(&scene->result);
    error[0] = '\0';

    if (gateway_run(&scene->fleet, &scene->config, &scene->work, scene->watch,
                    &scene->result, &scene->counts, error, sizeof(error))
        != 0)
    {
        fail_msg("%s", error);
    }

    assert_int_equal(scene->counts.left_in_flight, 0);
    assert_int_equal(scene->counts.overtaken, 0);
    assert_int_equal(scene->result.gateway_depth, 0);

    if (scene->config.capacity != 0) {
        assert_true(scene->counts.capacity_peak <= scene->config.capacity);
    }

    for (i = 0; i < scene->result.n; i++) {
        outcome = &scene->result.outcomes[i];

        if (outcome->status == FLEET_COMPLETED) {
            assert_int_equal(outcome->output_tokens,
                             work_at(&scene->work, i)->output_tokens);
            assert_true(outcome->ttft_us > 0);
            assert_true(outcome->e2e_us >= outcome->ttft_us);
        }
    }

    for (r = 0; r < scene->fleet.replicas; r++) {
        assert_int_equal(model_replica_check(scene->result.replicas[r].model,
                                             error, sizeof(error)), 0);
        assert_int_equal(scene->result.replicas[r].in_flight, 0);
    }
}


static inline void
gateway_scene_done(gateway_scene_t *scene)
{
    fleet_result_done(&scene->result);
    work_done(&scene->work);
}

#endif /* GATEWAY_SCENE_H */

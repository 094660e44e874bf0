
/*
 * One replica with a linear model, whose times are easy to add up: a step
 * takes 1000 us, and 10 more for each token of a prompt, 100 for each of an
 * answer.
 */

#ifndef MODEL_SCENE_H
#define MODEL_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/model/replica.h"


#define SCENE_REQUESTS  16
#define SCENE_HASHES    64

typedef struct {
    model_config_t    config;
    model_replica_t  *replica;
    model_request_t   requests[SCENE_REQUESTS];
    char              ids[SCENE_REQUESTS][8];
    uint64_t          hashes[SCENE_REQUESTS][SCENE_HASHES];
    size_t            n;

    model_request_t  *ended[SCENE_REQUESTS];
    model_end_t       ends[SCENE_REQUESTS];
    int64_t           end_us[SCENE_REQUESTS];
    size_t            nended;
    uint32_t          tokens[SCENE_REQUESTS];
    uint32_t          preempted[SCENE_REQUESTS];
} scene_t;


static inline void
scene_init(scene_t *scene, uint32_t blocks)
{
    char                     error[128];
    model_latency_options_t  latency = {
        .kind = MODEL_LINEAR, .beta = { 1000, 10, 100 }, .nbeta = 3, .tp = 1
    };

    memset(scene, 0, sizeof(scene_t));
    model_config_init(&scene->config);
    scene->config.block_tokens = 4;
    scene->config.total_blocks = blocks;
    scene->config.max_seqs = 8;
    scene->config.max_batched_tokens = 100;

    assert_int_equal(model_latency_init(&scene->config.latency, &latency,
                                        error, sizeof(error)), 0);
}


static inline void
scene_ended(void *data, model_request_t *request, model_end_t end,
    int64_t now_us, int64_t at_us)
{
    scene_t  *scene = data;

    scene->ended[scene->nended] = request;
    scene->ends[scene->nended] = end;
    scene->end_us[scene->nended++] = at_us;
}


static inline void
scene_token(void *data, model_request_t *request, int64_t at_us)
{
    scene_t  *scene = data;

    scene->tokens[request - scene->requests]++;
}


static inline void
scene_preempted(void *data, model_request_t *request, int64_t now_us)
{
    scene_t  *scene = data;

    scene->preempted[request - scene->requests]++;
    scene->tokens[request - scene->requests] = 0;
}


/* Makes the replica; its settings cannot change from here on. */
static inline void
scene_start(scene_t *scene, int tells_tokens)
{
    model_hooks_t  hooks = {
        .ended = scene_ended,
        .preempted = scene_preempted,
        .first_token = tells_tokens ? scene_token : NULL,
        .token = tells_tokens ? scene_token : NULL
    };

    scene->replica = model_replica_create(&scene->config, &hooks, scene);
    assert_non_null(scene->replica);
}


/*
 * A request, whose first `shared` tokens are the same for all such requests.
 */
static inline model_request_t *
scene_request(scene_t *scene, uint32_t input, uint32_t output,
    uint32_t shared)
{
    size_t            i;
    model_request_t  *request;

    i = scene->n++;
    request = &scene->requests[i];
    snprintf(scene->ids[i], sizeof(scene->ids[i]), "r%zu", i);
    request->id = scene->ids[i];
    request->input_tokens = input;
    request->output_tokens = output;
    request->max_output_tokens = output;
    request->nhashes = input / (uint32_t) scene->config.block_tokens;
    request->hashes = scene->hashes[i];

    for (uint32_t b = 0; b < request->nhashes; b++) {
        scene->hashes[i][b] =
            1 + b + ((b + 1) * scene->config.block_tokens <= shared
                     ? 0 : 1000 * (i + 1));
    }

    return request;
}


static inline model_request_t *
scene_arrive(scene_t *scene, model_request_t *request, int64_t at_us)
{
    request->arrival_us = at_us;
    assert_int_equal(model_replica_arrive(scene->replica, request, at_us), 0);

    return request;
}


static inline void
scene_check(const scene_t *scene)
{
    char  error[128] = "";

    if (model_replica_check(scene->replica, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }
}


/* Runs all events at or before until_us. */
static inline void
scene_run(scene_t *scene, int64_t until_us)
{
    while (model_replica_next(scene->replica) <= until_us
           && model_replica_next(scene->replica) != MODEL_NEVER)
    {
        assert_int_equal(model_replica_step(scene->replica), 0);
        scene_check(scene);
    }
}


static inline model_facts_t
scene_facts(const scene_t *scene)
{
    model_facts_t  facts;

    model_replica_facts(scene->replica, &facts);

    return facts;
}


static inline model_counters_t
scene_counters(const scene_t *scene)
{
    model_counters_t  counters;

    model_replica_counters(scene->replica, &counters);

    return counters;
}


static inline void
scene_done(scene_t *scene)
{
    model_replica_destroy(scene->replica);
}

#endif /* MODEL_SCENE_H */

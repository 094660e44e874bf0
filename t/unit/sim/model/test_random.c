
/*
 * Random replicas under random loads: the invariants hold after each event,
 * and counting tokens one by one gives the same as counting them by sums.
 */

#include <stdlib.h>

#include "t/unit/sim/model/scene.h"


#define RUNS      150
#define REQUESTS  60
#define PREFIXES  8             /* blocks */
#define FOR_EVER  2000          /* steps */
#define PATIENCE  200000

typedef struct {
    model_request_t  requests[REQUESTS];
    uint64_t         hashes[REQUESTS][64];
    char             ids[REQUESTS][8];
    uint32_t         tokens[REQUESTS];
    int              ends[REQUESTS];
    int              nends;
    int              tells_tokens;
} load_t;


static uint64_t  seed;

static uint32_t
any(uint32_t from, uint32_t to)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;

    return from + (uint32_t) (seed >> 33) % (to - from + 1);
}


static void
on_first_token(void *data, model_request_t *request, int64_t at_us)
{
    load_t  *load = data;
    size_t   i = (size_t) (request - load->requests);

    load->tokens[i] = 1;
}


static void
on_token(void *data, model_request_t *request, int64_t at_us)
{
    load_t  *load = data;
    size_t   i = (size_t) (request - load->requests);

    load->tokens[i]++;
}


static void
on_ended(void *data, model_request_t *request, model_end_t end,
    int64_t now_us, int64_t at_us)
{
    load_t  *load = data;
    size_t   i = (size_t) (request - load->requests);

    assert_int_equal(load->ends[i], 0);
    load->ends[i] = 1 + (int) end;
    load->nends++;

    if (load->tells_tokens && end == MODEL_COMPLETED) {
        assert_int_equal(load->tokens[i], request->output_tokens > 0
                                          ? request->output_tokens : 1);
        assert_int_equal(request->itl_count, load->tokens[i] - 1);
    }
}


static void
make_config(model_config_t *config)
{
    char                     error[128];
    model_latency_options_t  latency = {
        .kind = any(0, 1) ? MODEL_LINEAR : MODEL_ROOFLINE, .tp = 1,
        .alpha = { any(0, 50), 0.5, any(0, 9) }
    };

    model_config_init(config);
    config->block_tokens = any(1, 16);
    config->total_blocks = any(8, 200);
    config->max_seqs = any(1, 12);
    config->max_batched_tokens = any(1, 60);
    config->long_prefill_threshold = any(0, 1) ? 0 : any(1, 30);
    config->max_model_len = any(0, 1) ? 0 : any(20, 120);
    config->scheduler = any(0, 3);
    config->preemption = any(0, 1);
    model_config_cap(config);
    assert_int_equal(model_config_check(config, error, sizeof(error)), 0);

    if (latency.kind == MODEL_LINEAR) {
        latency.nbeta = 3;
        latency.beta[0] = any(0, 100);
        latency.beta[1] = any(0, 10);
        latency.beta[2] = any(0, 10);
    }

    assert_int_equal(model_card_preset("llama-3.1-8b", &latency.card), 0);
    assert_int_equal(model_gpu_preset("H100", &latency.gpu), 0);
    assert_int_equal(model_latency_init(&config->latency, &latency, error,
                                        sizeof(error)), 0);
}


static void
make_requests(load_t *load, const model_config_t *config)
{
    int64_t           at_us;
    uint32_t          i, b, shared;
    model_request_t  *request;

    memset(load, 0, sizeof(load_t));
    at_us = 0;

    for (i = 0; i < REQUESTS; i++) {
        request = &load->requests[i];
        snprintf(load->ids[i], sizeof(load->ids[i]), "r%u", i);
        request->id = load->ids[i];
        request->input_tokens = any(0, 60);
        request->output_tokens = any(0, 25);
        request->priority = (int32_t) any(0, 3);
        request->arrival_us = at_us;
        request->deadline_us = any(0, 3) > 0 ? 0 : at_us + any(1, 30000);
        request->hashes = load->hashes[i];

        /* some answers' blocks have names, too */
        request->nhashes = (request->input_tokens
                            + any(0, 1) * request->output_tokens)
                           / (uint32_t) config->block_tokens;
        request->nhashes = request->nhashes < 64 ? request->nhashes : 64;
        shared = any(0, PREFIXES);

        for (b = 0; b < request->nhashes; b++) {
            load->hashes[i][b] = b < shared ? 1 + b : (i + 1) * 1000 + b;
        }

        at_us += any(0, 2000);
    }
}


/* Plays the load; some requests are removed meanwhile. */
static void
play(load_t *load, const model_config_t *config, int tells_tokens)
{
    char              error[128];
    uint32_t          next, steps;
    model_replica_t  *replica;
    model_request_t  *request;
    model_hooks_t     hooks = {
        .ended = on_ended,
        .first_token = tells_tokens ? on_first_token : NULL,
        .token = tells_tokens ? on_token : NULL
    };

    load->tells_tokens = tells_tokens;
    replica = model_replica_create(config, &hooks, load);
    assert_non_null(replica);
    next = 0;

    for (steps = 0; steps < 6000; steps++) {

        if (next < REQUESTS && load->requests[next].arrival_us
            <= model_replica_next(replica))
        {
            request = &load->requests[next++];
            assert_int_equal(model_replica_arrive(replica, request,
                                                  request->arrival_us), 0);

        } else if (model_replica_next(replica) == MODEL_NEVER) {
            break;

        } else {
            assert_int_equal(model_replica_step(replica), 0);
        }

        request = &load->requests[steps % REQUESTS];

        if (steps % 97 == 0 && request->state != MODEL_REQUEST_AWAY) {
            model_replica_remove(replica, request);
        }

        if (model_replica_check(replica, error, sizeof(error)) != 0) {
            fail_msg("seed %llu: %s", (unsigned long long) seed, error);
        }
    }

    model_replica_destroy(replica);
}


static void
all_holds_and_sums_are_the_tokens(void **state)
{
    uint32_t        run, i, completed;
    load_t         *load, *again;
    model_config_t  config;

    load = malloc(sizeof(load_t));
    again = malloc(sizeof(load_t));
    assert_non_null(load);
    assert_non_null(again);
    completed = 0;

    for (run = 1; run <= RUNS; run++) {
        seed = run;
        make_config(&config);
        make_requests(load, &config);
        memcpy(again, load, sizeof(load_t));

        for (i = 0; i < REQUESTS; i++) {
            again->requests[i].hashes = again->hashes[i];
            again->requests[i].id = again->ids[i];
        }

        play(load, &config, 1);
        play(again, &config, 0);
        assert_int_equal(load->nends, again->nends);

        for (i = 0; i < REQUESTS; i++) {
            assert_int_equal(load->ends[i], again->ends[i]);
            assert_int_equal(load->requests[i].e2e_us,
                             again->requests[i].e2e_us);
            completed += load->ends[i] == 1 + MODEL_COMPLETED;
        }
    }

    assert_true(completed > RUNS * REQUESTS / 4);
    free(load);
    free(again);
}


/*
 * A crowded replica: some prompts' blocks come from elsewhere, blocks are few,
 * and nothing times out.
 */
static model_replica_t *
crowd(load_t *load, model_config_t *config)
{
    uint32_t          i;
    model_replica_t  *replica;
    model_request_t  *request;
    model_hooks_t     hooks = { .ended = on_ended };

    make_config(config);
    config->total_blocks = any(4, 24);
    model_config_cap(config);
    make_requests(load, config);
    replica = model_replica_create(config, &hooks, load);
    assert_non_null(replica);

    for (i = 0; i < REQUESTS; i++) {
        request = &load->requests[i];
        request->deadline_us = 0;

        while (model_replica_next(replica) < request->arrival_us) {
            assert_int_equal(model_replica_step(replica), 0);
        }

        if (any(0, 2) > 0) {
            assert_int_equal(model_replica_arrive(replica, request,
                                                  request->arrival_us), 0);

        } else if (model_replica_reserve(replica, request) == 0) {
            assert_int_equal(model_replica_arrive_decode(replica, request,
                                 request->arrival_us), 0);
        }
    }

    return replica;
}


/* Runs until nothing is left; returns 0, or 1 if the replica is stuck. */
static int
run_on(model_replica_t *replica)
{
    uint32_t  steps;

    for (steps = 0; model_replica_next(replica) != MODEL_NEVER; steps++) {
        assert_in_range(steps, 0, PATIENCE);
        assert_int_equal(model_replica_step(replica), 0);

        if (model_replica_stuck(replica) > 0) {
            return 1;
        }
    }

    return 0;
}


static void
take_one_away(load_t *load, model_replica_t *replica)
{
    uint32_t  i;

    for (i = any(0, REQUESTS - 1); ; i = (i + 1) % REQUESTS) {
        if (load->requests[i].state != MODEL_REQUEST_AWAY) {
            model_replica_remove(replica, &load->requests[i]);
            return;
        }
    }
}


/*
 * A replica that is not stuck ends all of its requests: run_on() waits for
 * that.
 */
static void
nothing_ends_any_more_where_a_replica_is_stuck(void **state)
{
    int               nends;
    load_t           *load;
    uint32_t          run, i, nstuck;
    uint64_t          before;
    model_config_t    config;
    model_replica_t  *replica;

    load = malloc(sizeof(load_t));
    assert_non_null(load);
    nstuck = 0;

    for (run = 1; run <= RUNS; run++) {
        seed = 1000 + run;
        replica = crowd(load, &config);

        while (run_on(replica)) {
            nstuck++;
            nends = load->nends;
            before = model_replica_stuck(replica);

            for (i = 0; i < FOR_EVER; i++) {
                assert_int_equal(model_replica_step(replica), 0);
            }

            assert_int_equal(load->nends, nends);
            assert_true(model_replica_stuck(replica) > before);
            take_one_away(load, replica);
        }

        model_replica_destroy(replica);
    }

    assert_in_range(nstuck, RUNS / 10, RUNS * REQUESTS / 2);
    free(load);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_holds_and_sums_are_the_tokens),
        cmocka_unit_test(nothing_ends_any_more_where_a_replica_is_stuck)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

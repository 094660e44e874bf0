
/*
 * What a shard accepts: each field of an Open and a Step, at its limits.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/unit/replica/shard/serve/serve_test.h"


static void
an_open_is_answered_with_what_the_client_has_to_know(void **state)
{
    scene_t                           s;
    scene_client_t                    c;
    const Llmgateway__Shard__Opened  *opened;

    test_begin(&s, &c);
    opened = c.replies[0]->opened;
    assert_int_equal(opened->session, 9);
    assert_int_equal(opened->context, SCENE_CONTEXT);
    assert_int_equal(opened->max_rows, SHARD_ROWS_MAX);
    assert_int_equal(opened->width, SCENE_WIDTH);
    assert_int_equal(opened->vocabulary, 40);
    assert_int_equal(s.core.last[0], 7);
    test_finish(&s, &c);
}


static void
one_that_stops_before_the_end_has_no_logits(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();

    scene_init(&s, &options);
    scene_ready(&s);
    client_open(&s, &c);
    open.last_layer = 5;
    client_ask(&c, &open);
    assert_int_equal(client_next(&c)->opened->vocabulary, 0);
    assert_int_equal(s.core.last[0], 5);

    client_step(&c, 0, 1, 1);
    test_ended(&c, SHARD_BAD_SHAPE);
    test_finish(&s, &c);
}


typedef struct {
    shard_reason_t             reason;
    Llmgateway__Shard__Open    open;
} wrong_open_t;

static void
an_open_for_anything_else_is_refused(void **state)
{
    size_t           i, n;
    scene_t          s;
    wrong_open_t     wrong[16];
    scene_client_t   c;

    static uint8_t  other[SHARD_WEIGHTS_BYTES];

    for (n = 0; n < 16; n++) {
        wrong[n].open = client_request();
    }

    n = 0;
    wrong[n].reason = SHARD_WEIGHTS_MISMATCH;
    wrong[n++].open.model = "mm";
    wrong[n].reason = SHARD_WEIGHTS_MISMATCH;
    wrong[n++].open.weights_id.data = other;
    wrong[n].reason = SHARD_WEIGHTS_MISMATCH;
    wrong[n++].open.weights_id.len = 31;
    wrong[n].reason = SHARD_BAD_LAYERS;
    wrong[n++].open.first_layer = 3;
    wrong[n].reason = SHARD_BAD_LAYERS;
    wrong[n++].open.first_layer = 5;
    wrong[n].reason = SHARD_BAD_LAYERS;
    wrong[n++].open.last_layer = 3;
    wrong[n].reason = SHARD_BAD_LAYERS;
    wrong[n++].open.last_layer = 8;
    wrong[n].reason = SHARD_NUMERICS_MISMATCH;
    wrong[n++].open.numerics_id = "n2";
    wrong[n].reason = SHARD_NUMERICS_MISMATCH;
    wrong[n++].open.dtype = LLMGATEWAY__SHARD__DTYPE__FP16;
    wrong[n].reason = SHARD_CONTEXT_FULL;
    wrong[n++].open.rows = SCENE_CONTEXT + 1;
    wrong[n].reason = SHARD_BAD_SHAPE;
    wrong[n++].open.session = 0;
    wrong[n].reason = SHARD_BAD_SHAPE;
    wrong[n++].open.caller = "no\nname";
    wrong[n].reason = SHARD_OK;
    wrong[n++].open.rows = SCENE_CONTEXT;

    for (i = 0; i < n; i++) {
        scene_init(&s, &options);
        scene_ready(&s);
        client_open(&s, &c);
        client_ask(&c, &wrong[i].open);

        if (wrong[i].reason == SHARD_OK) {
            assert_false(c.is_finished);

        } else {
            test_ended(&c, wrong[i].reason);
            assert_int_equal(serve_sessions(s.serve), 0);
        }

        test_finish(&s, &c);
    }
}


static void
a_token_opens_the_session_that_it_was_made_for(void **state)
{
    FILE                     *file;
    char                      path[64], error[SHARD_KEY_ERROR_BYTES];
    scene_t                   s;
    uint8_t                   token[SHARD_TOKEN_BYTES];
    shard_claim_t             claim = { "orch", 9, "s1", "m" };
    scene_client_t            c;
    serve_options_t           keyed = options;
    Llmgateway__Shard__Open   open = client_request();

    snprintf(path, sizeof(path), "/tmp/llmgw-serve-key-%d", (int) getpid());
    file = fopen(path, "w");
    fprintf(file, "* GQzGBRMbq8WlBkmCwPvvlXI8fMXl3b2Yx7zS0m8hZ1E=\n");
    fclose(file);
    chmod(path, 0600);
    keyed.key = shard_key_open(path, error);
    unlink(path);
    assert_non_null(keyed.key);

    scene_init(&s, &keyed);
    scene_ready(&s);
    client_open(&s, &c);
    client_ask(&c, &open);
    test_ended(&c, SHARD_BAD_TOKEN);
    client_close(&c);

    shard_key_sign(keyed.key, &claim, s.unix_s, token);
    open.token.data = token;
    open.token.len = sizeof(token);
    client_open(&s, &c);
    client_ask(&c, &open);
    assert_int_equal(serve_sessions(s.serve), 1);
    client_close(&c);

    open.session = 10;
    client_open(&s, &c);
    client_ask(&c, &open);
    test_ended(&c, SHARD_BAD_TOKEN);
    client_close(&c);

    /* A session that waits for the slice has shown its token already. */
    scene_tick(&s, 600000);
    assert_false(s.is_loaded);
    open.session = 9;
    client_open(&s, &c);
    client_ask(&c, &open);
    s.unix_s += 300;
    scene_at(&s, s.now_ms);
    scene_become(&s, CORE_READY);
    assert_int_equal(client_next(&c)->kind_case,
                     LLMGATEWAY__SHARD__REPLY__KIND_OPENED);
    test_finish(&s, &c);
    shard_key_close((shard_key_t *) keyed.key);
}


static void
steps_are_computed_and_answered_in_their_order(void **state)
{
    scene_t                           s;
    const float                      *values;
    scene_client_t                    c;
    const Llmgateway__Shard__Reply   *reply;

    test_begin(&s, &c);
    client_step(&c, 0, 32, 0);
    client_step(&c, 32, 1, 1);
    assert_null(client_next(&c));
    scene_start(&s);

    reply = client_next(&c);
    assert_int_equal(reply->kind_case, LLMGATEWAY__SHARD__REPLY__KIND_STARTED);
    assert_int_equal(reply->started->position, 0);
    reply = client_next(&c);
    assert_int_equal(reply->started->position, 32);
    scene_compute(&s, SHARD_STEP_DONE);

    /* No logits were asked of the first step: its result only tells that it is
       done. */
    reply = client_next(&c);
    assert_int_equal(reply->kind_case, LLMGATEWAY__SHARD__REPLY__KIND_RESULT);
    assert_int_equal(reply->result->position, 0);
    assert_int_equal(reply->result->rows, 0);
    assert_int_equal(reply->result->data.len, 0);

    reply = client_next(&c);
    assert_int_equal(reply->result->position, 32);
    assert_int_equal(reply->result->rows, 1);
    assert_int_equal(reply->result->is_logits, 1);
    assert_int_equal(reply->result->chunks, 1);
    assert_int_equal(reply->result->data.len, 40 * sizeof(float));
    values = (const float *) reply->result->data.data;
    assert_true(values[0] == 33.0f && values[39] == 33.0f);
    assert_null(client_next(&c));
    assert_int_equal(serve_tensor_bytes(s.serve), 0);
    test_finish(&s, &c);
}


static void
hidden_state_comes_back_in_the_shape_it_went_in(void **state)
{
    scene_t                           s;
    const float                      *values;
    scene_client_t                    c;
    Llmgateway__Shard__Open           open = client_request();
    const Llmgateway__Shard__Result  *result;

    scene_init(&s, &options);
    scene_ready(&s);
    client_open(&s, &c);
    open.last_layer = 6;
    client_ask(&c, &open);
    client_step(&c, 0, 3, 0);
    scene_compute(&s, SHARD_STEP_DONE);

    assert_int_equal(c.nreplies, 3);
    result = c.replies[2]->result;
    assert_int_equal(result->rows, 3);
    assert_int_equal(result->is_logits, 0);
    assert_int_equal(result->data.len, 3 * SCENE_WIDTH * sizeof(float));
    values = (const float *) result->data.data;
    assert_true(values[0] == 1.0f && values[2 * SCENE_WIDTH] == 3.0f);
    test_finish(&s, &c);
}


typedef struct {
    shard_reason_t  reason;
    uint32_t        position, rows, logits_rows, chunk, chunks, bytes;
} wrong_step_t;

static void
a_step_of_another_shape_ends_the_session(void **state)
{
    size_t                    i;
    scene_t                   s;
    uint8_t                  *zeros;
    scene_client_t            c;
    Llmgateway__Shard__Step   step;

    static const wrong_step_t  steps[] = {
        { SHARD_OK, 0, 32, 0, 0, 1, 2048 },
        { SHARD_BAD_SHAPE, 0, 33, 0, 0, 1, 2112 },
        { SHARD_BAD_SHAPE, 0, 0, 0, 0, 0, 0 },
        { SHARD_OK, 0, 4, 4, 0, 1, 256 },
        { SHARD_BAD_SHAPE, 0, 4, 5, 0, 1, 256 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 1, 255 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 1, 257 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 1, 0 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 0, 256 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 2, 256 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 1, 1, 256 },
        { SHARD_BAD_SHAPE, 0, 4, 4, 0, 64, 256 },
        { SHARD_TENSOR_TOO_LARGE, 0, 4, 4, 0, 65, 256 },
        { SHARD_TENSOR_TOO_LARGE, 0, 1 << 20 | 1, 4, 0, 64, 256 },
        { SHARD_TENSOR_TOO_LARGE, 0, UINT32_MAX, 4, 0, 64, 256 },
        { SHARD_BAD_SHAPE, 0, 1 << 20, 4, 0, 64, 256 },
        { SHARD_BAD_POSITION, 1, 4, 4, 0, 1, 256 },
        { SHARD_BAD_POSITION, UINT32_MAX, 4, 4, 0, 1, 256 }
    };

    zeros = test_calloc(1, 4096);

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        test_begin(&s, &c);
        llmgateway__shard__step__init(&step);
        step.session = 9;
        step.position = steps[i].position;
        step.rows = steps[i].rows;
        step.logits_rows = steps[i].logits_rows;
        step.chunk = steps[i].chunk;
        step.chunks = steps[i].chunks;
        step.data.data = zeros;
        step.data.len = steps[i].bytes;
        client_chunk(&c, &step);

        if (steps[i].reason == SHARD_OK) {
            assert_false(c.is_finished);
            assert_int_equal(s.core.nsteps, 1);

        } else {
            test_ended(&c, steps[i].reason);
            assert_int_equal(s.core.nsteps, 0);
            assert_int_equal(serve_tensor_bytes(s.serve), 0);
            assert_int_equal(s.lost, 1);
        }

        test_finish(&s, &c);
    }

    test_free(zeros);
}


/* The vocabulary is such that 8 rows of logits are 64 MiB. */
static void
logits_are_a_tensor_too(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();

    scene_init(&s, &options);
    s.core.facts.vocabulary = SHARD_TENSOR_BYTES / 8 / sizeof(float);
    scene_ready(&s);
    client_open(&s, &c);
    client_ask(&c, &open);
    client_step(&c, 0, 9, 8);
    assert_false(c.is_finished);
    client_step(&c, 9, 9, 9);
    test_ended(&c, SHARD_TENSOR_TOO_LARGE);
    test_finish(&s, &c);
}


static void
positions_follow_one_another_up_to_the_context(void **state)
{
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);
    client_step(&c, 0, 32, 0);
    client_step(&c, 32, 32, 0);
    client_step(&c, 64, 32, 0);
    client_step(&c, 96, 4, 1);
    scene_compute(&s, SHARD_STEP_DONE);
    assert_false(c.is_finished);
    client_step(&c, 100, 1, 1);
    test_ended(&c, SHARD_CONTEXT_FULL);
    test_finish(&s, &c);

    test_begin(&s, &c);
    client_step(&c, 0, 32, 0);
    client_step(&c, 0, 32, 0);              /* sent twice */
    test_ended(&c, SHARD_BAD_POSITION);
    assert_int_equal(c.replies[c.nreplies - 1]->refused->position, 0);
    test_finish(&s, &c);
}


static void
a_fifth_outstanding_step_is_one_too_many(void **state)
{
    uint32_t        i;
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);

    for (i = 0; i < SHARD_STEPS_MAX; i++) {
        client_step(&c, i, 1, 1);
    }

    assert_false(c.is_finished);
    scene_compute(&s, SHARD_STEP_DONE);

    for (i = 4; i < 4 + SHARD_STEPS_MAX; i++) {
        client_step(&c, i, 1, 1);
    }

    assert_false(c.is_finished);
    client_step(&c, 8, 1, 1);
    test_ended(&c, SHARD_TOO_MANY_STEPS);

    /* The plugin still has four of the steps. */
    assert_int_equal(serve_sessions(s.serve), 0);
    assert_int_not_equal(serve_tensor_bytes(s.serve), 0);
    test_finish(&s, &c);
}


/* A width of 64 Ki makes a row 256 kB, so 8 rows are two chunks. */
static void
chunks_come_whole_and_in_order(void **state)
{
    int                       kind;
    scene_t                   s;
    uint8_t                  *zeros;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();
    Llmgateway__Shard__Step   step;

    zeros = test_calloc(1, SHARD_CHUNK_BYTES);

    for (kind = 0; kind < 5; kind++) {
        scene_init(&s, &options);
        s.core.facts.width = 65536;
        scene_ready(&s);
        client_open(&s, &c);
        client_ask(&c, &open);

        llmgateway__shard__step__init(&step);
        step.session = 9;
        step.rows = 5;
        step.chunks = 2;
        step.data.data = zeros;
        step.data.len = SHARD_CHUNK_BYTES;
        client_chunk(&c, &step);
        assert_false(c.is_finished);
        assert_int_equal(s.core.nsteps, 0);

        step.chunk = kind == 1 ? 0 : 1;
        step.rows = kind == 2 ? 4 : 5;
        step.position = kind == 3 ? 5 : 0;
        step.data.len = kind == 4 ? SHARD_CHUNK_BYTES
                                  : SHARD_CHUNK_BYTES / 4;
        client_chunk(&c, &step);

        if (kind == 0) {
            assert_false(c.is_finished);
            assert_int_equal(s.core.nsteps, 1);

        } else {
            test_ended(&c, SHARD_BAD_SHAPE);
        }

        client_close(&c);
        assert_int_equal(serve_sessions(s.serve), 0);
        scene_done(&s);
    }

    test_free(zeros);
}


static void
a_step_that_fails_ends_the_session(void **state)
{
    size_t          i;
    scene_t         s;
    scene_client_t  c;

    static const struct {
        shard_status_t  status;
        shard_reason_t  reason;
        const char     *text;           /* a part of it */
    } fails[] = {
        { SHARD_STEP_FAILED, SHARD_FAILED, "the computation of 1 rows" },
        { SHARD_STEP_CORRUPT, SHARD_CORRUPTION, "that leave layer 7 from" },
        { SHARD_STEP_BAD_INPUT, SHARD_CORRUPTION, "that enter layer 4 from" },
        { SHARD_STEP_BAD_POSITION, SHARD_BAD_POSITION, "the computation" },
        { SHARD_STEP_CONTEXT_FULL, SHARD_CONTEXT_FULL, "the computation" }
    };

    for (i = 0; i < sizeof(fails) / sizeof(fails[0]); i++) {
        test_begin(&s, &c);
        client_step(&c, 0, 1, 1);
        client_step(&c, 1, 1, 1);
        scene_compute(&s, fails[i].status);
        test_ended(&c, fails[i].reason);
        assert_non_null(strstr(c.text, fails[i].text));
        test_finish(&s, &c);
    }
}


static void
a_step_without_a_session_is_of_an_unknown_one(void **state)
{
    scene_t         s;
    scene_client_t  c;

    scene_init(&s, &options);
    scene_ready(&s);
    client_open(&s, &c);
    client_step(&c, 0, 1, 1);
    test_ended(&c, SHARD_UNKNOWN_SESSION);
    test_finish(&s, &c);
}


static void
memory_has_a_limit_that_steps_are_refused_at(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    serve_options_t           small = options;
    Llmgateway__Shard__Open   open = client_request();

    small.max_memory = 1000000 + 2048 + 1024;
    scene_init(&s, &small);
    scene_ready(&s);
    client_open(&s, &c);
    client_ask(&c, &open);
    client_step(&c, 0, 32, 0);
    assert_false(c.is_finished);
    client_step(&c, 32, 32, 0);
    test_ended(&c, SHARD_OUT_OF_MEMORY);
    assert_non_null(strstr(c.text, "--shard-max-memory 1003072"));
    test_finish(&s, &c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_open_is_answered_with_what_the_client_has_to_know),
        cmocka_unit_test(one_that_stops_before_the_end_has_no_logits),
        cmocka_unit_test(an_open_for_anything_else_is_refused),
        cmocka_unit_test(a_token_opens_the_session_that_it_was_made_for),
        cmocka_unit_test(steps_are_computed_and_answered_in_their_order),
        cmocka_unit_test(hidden_state_comes_back_in_the_shape_it_went_in),
        cmocka_unit_test(a_step_of_another_shape_ends_the_session),
        cmocka_unit_test(logits_are_a_tensor_too),
        cmocka_unit_test(positions_follow_one_another_up_to_the_context),
        cmocka_unit_test(a_fifth_outstanding_step_is_one_too_many),
        cmocka_unit_test(chunks_come_whole_and_in_order),
        cmocka_unit_test(a_step_that_fails_ends_the_session),
        cmocka_unit_test(a_step_without_a_session_is_of_an_unknown_one),
        cmocka_unit_test(memory_has_a_limit_that_steps_are_refused_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

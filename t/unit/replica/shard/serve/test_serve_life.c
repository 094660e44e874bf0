
/*
 * How a shard's sessions wait and end, and what is left of them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "t/unit/replica/shard/serve/serve_test.h"


static void
other_messages_end_the_stream(void **state)
{
    scene_t                      s;
    scene_client_t               c;
    Llmgateway__Shard__Open      open = client_request();
    Llmgateway__Shard__Close     close = LLMGATEWAY__SHARD__CLOSE__INIT;
    Llmgateway__Shard__Request   request = LLMGATEWAY__SHARD__REQUEST__INIT;

    static const uint8_t  unknown[] = { 0x22, 0x00 };   /* field 4 */
    static const uint8_t  broken[] = { 0x0a, 0x05, 0x00 };

    test_begin(&s, &c);
    client_say(&c, &request);
    assert_int_equal(c.status, LLMGW_GRPC_INVALID_ARGUMENT);
    test_finish(&s, &c);

    test_begin(&s, &c);
    session_message(c.session, unknown, sizeof(unknown));
    assert_int_equal(c.status, LLMGW_GRPC_INVALID_ARGUMENT);
    session_message(c.session, unknown, sizeof(unknown));   /* after its end */
    test_finish(&s, &c);

    test_begin(&s, &c);
    session_message(c.session, broken, sizeof(broken));
    assert_int_equal(c.status, LLMGW_GRPC_INVALID_ARGUMENT);
    test_finish(&s, &c);

    test_begin(&s, &c);
    client_ask(&c, &open);
    assert_int_equal(c.status, LLMGW_GRPC_INVALID_ARGUMENT);
    test_finish(&s, &c);

    test_begin(&s, &c);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE;
    request.close = &close;
    close.session = 8;
    client_say(&c, &request);
    test_ended(&c, SHARD_UNKNOWN_SESSION);
    test_finish(&s, &c);

    test_begin(&s, &c);
    session_closing(c.session, LLMGW_GRPC_RESOURCE_EXHAUSTED, "too large");
    test_ended(&c, SHARD_TENSOR_TOO_LARGE);
    test_finish(&s, &c);
}


static void
close_ends_a_session_wherever_it_is(void **state)
{
    scene_t                      s;
    scene_client_t               c;
    Llmgateway__Shard__Close     close = LLMGATEWAY__SHARD__CLOSE__INIT;
    Llmgateway__Shard__Request   request = LLMGATEWAY__SHARD__REQUEST__INIT;

    test_begin(&s, &c);
    client_step(&c, 0, 1, 1);
    scene_start(&s);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE;
    request.close = &close;
    close.session = 9;
    client_say(&c, &request);
    test_ended(&c, SHARD_OK);
    assert_int_equal(serve_sessions(s.serve), 0);
    test_finish(&s, &c);
    assert_int_equal(s.lost, 0);
}


static void
a_client_that_says_no_more_still_gets_its_results(void **state)
{
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);
    client_step(&c, 0, 1, 1);
    client_step(&c, 1, 1, 1);
    session_closing(c.session, LLMGW_GRPC_OK, "");
    assert_false(c.is_finished);
    scene_compute(&s, SHARD_STEP_DONE);
    test_ended(&c, SHARD_OK);
    assert_int_equal(c.replies[c.nreplies - 1]->result->position, 1);
    test_finish(&s, &c);
}


static void
a_shard_has_as_many_sessions_as_it_says(void **state)
{
    scene_t                   s;
    scene_client_t            c[3];
    Llmgateway__Shard__Open   open = client_request();

    test_begin(&s, &c[0]);
    client_open(&s, &c[1]);
    client_ask(&c[1], &open);
    client_open(&s, &c[2]);
    client_ask(&c[2], &open);
    assert_false(c[1].is_finished);
    test_ended(&c[2], SHARD_FULL);
    client_close(&c[2]);

    /* A place is free as soon as its session ends, even if a step is running.
       */
    client_step(&c[1], 0, 1, 1);
    scene_start(&s);
    client_close(&c[1]);
    client_open(&s, &c[2]);
    client_ask(&c[2], &open);
    assert_int_equal(client_next(&c[2])->kind_case,
                     LLMGATEWAY__SHARD__REPLY__KIND_OPENED);
    client_close(&c[2]);
    test_finish(&s, &c[0]);
}


static void
a_slice_above_the_limit_is_never_loaded(void **state)
{
    scene_t          s;
    serve_options_t  small = options;

    small.max_memory = 999999;
    scene_init(&s, &small);
    scene_become(&s, CORE_ASLEEP);
    assert_int_equal(s.core.wakes, 0);
    assert_string_equal(s.error, "the slice needs 1000000 bytes with 2 "
                        "sessions of 100 tokens, --shard-max-memory is 999999");
    scene_done(&s);

    small.max_memory = 1000000;
    scene_init(&s, &small);
    scene_become(&s, CORE_ASLEEP);
    assert_int_equal(s.core.wakes, 1);
    scene_done(&s);
}


static void
an_open_waits_for_the_slice(void **state)
{
    scene_t                   s;
    scene_client_t            c[2];
    Llmgateway__Shard__Open   open = client_request();

    scene_init(&s, &options);
    client_open(&s, &c[0]);
    client_ask(&c[0], &open);
    open.numerics_id = "n2";
    client_open(&s, &c[1]);
    client_ask(&c[1], &open);           /* ids that are not known yet */
    assert_int_equal(serve_sessions(s.serve), 2);
    assert_false(c[1].is_finished);

    scene_become(&s, CORE_ASLEEP);
    scene_become(&s, CORE_READY);
    assert_int_equal(client_next(&c[0])->kind_case,
                     LLMGATEWAY__SHARD__REPLY__KIND_OPENED);
    test_ended(&c[1], SHARD_NUMERICS_MISMATCH);
    client_close(&c[1]);
    test_finish(&s, &c[0]);
}


static void
a_load_that_takes_too_long_is_said(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();

    scene_init(&s, &options);
    scene_become(&s, CORE_ASLEEP);
    client_open(&s, &c);
    client_ask(&c, &open);
    scene_tick(&s, 59999);
    assert_false(c.is_finished);
    scene_tick(&s, 1);
    test_ended(&c, SHARD_LOADING);
    test_finish(&s, &c);
}


static void
an_idle_slice_is_unloaded_and_comes_back(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();

    test_begin(&s, &c);
    assert_int_equal(s.loads, 1);

    scene_tick(&s, 59000);              /* 59 s idle, but with a session */
    client_step(&c, 0, 1, 1);
    scene_compute(&s, SHARD_STEP_DONE);
    client_close(&c);
    scene_tick(&s, 599999);
    assert_true(s.is_loaded);
    scene_tick(&s, 1);
    assert_false(s.is_loaded);
    assert_int_equal(s.core.state, CORE_ASLEEP);
    scene_tick(&s, 600000);
    assert_int_equal(s.core.wakes, 1);  /* nothing asked for it */

    client_open(&s, &c);
    client_ask(&c, &open);
    assert_int_equal(s.core.wakes, 2);
    assert_false(c.is_finished);
    scene_become(&s, CORE_READY);
    assert_int_equal(s.loads, 2);
    assert_int_equal(client_next(&c)->kind_case,
                     LLMGATEWAY__SHARD__REPLY__KIND_OPENED);
    test_finish(&s, &c);
}


static void
a_slice_that_cannot_be_loaded_refuses_who_waits(void **state)
{
    scene_t                   s;
    scene_client_t            c;
    Llmgateway__Shard__Open   open = client_request();

    scene_init(&s, &options);
    client_open(&s, &c);
    client_ask(&c, &open);
    strcpy(s.core.facts.error, "a tensor is not the manifest's");
    scene_become(&s, CORE_BROKEN);
    test_ended(&c, SHARD_FAILED);
    assert_string_equal(s.error, "a tensor is not the manifest's");
    test_finish(&s, &c);
}


static void
a_plugin_that_breaks_takes_its_sessions_along(void **state)
{
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);
    client_step(&c, 0, 1, 1);
    scene_become(&s, CORE_BROKEN);
    test_ended(&c, SHARD_FAILED);
    assert_int_equal(serve_sessions(s.serve), 0);
    client_close(&c);
    scene_done(&s);                     /* frees the client's step */
}


static void
an_idle_session_ends_after_a_minute(void **state)
{
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);
    scene_tick(&s, 59999);
    client_step(&c, 0, 1, 1);
    scene_tick(&s, 3000);
    scene_compute(&s, SHARD_STEP_DONE);
    scene_tick(&s, 59999);
    assert_false(c.is_finished);
    scene_tick(&s, 1);
    test_ended(&c, SHARD_SESSION_EXPIRED);
    test_finish(&s, &c);

    /* A session whose step is being computed is not idle. */
    test_begin(&s, &c);
    client_step(&c, 0, 1, 1);
    scene_tick(&s, 200000);
    assert_false(c.is_finished);
    test_finish(&s, &c);
}


static void
a_session_ends_after_an_hour_whatever_it_does(void **state)
{
    int             i;
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);

    for (i = 0; i < 72; i++) {
        assert_false(c.is_finished);
        client_step(&c, (uint32_t) i, 1, 1);
        scene_compute(&s, SHARD_STEP_DONE);
        scene_tick(&s, i < 71 ? 50000 : 49999);
    }

    assert_false(c.is_finished);
    scene_tick(&s, 1);
    test_ended(&c, SHARD_SESSION_EXPIRED);
    test_finish(&s, &c);
}


static void
a_stream_without_an_open_ends_after_a_minute(void **state)
{
    scene_t         s;
    scene_client_t  c;

    scene_init(&s, &options);
    scene_ready(&s);
    client_open(&s, &c);
    scene_tick(&s, 59999);
    assert_false(c.is_finished);
    scene_tick(&s, 1);
    test_ended(&c, SHARD_SESSION_EXPIRED);
    test_finish(&s, &c);
}


static void
streams_are_so_many_with_or_without_sessions(void **state)
{
    size_t           i;
    scene_t          s;
    scene_client_t   more, *c;

    c = test_calloc(SERVE_STREAMS_MAX, sizeof(*c));
    scene_init(&s, &options);
    scene_ready(&s);

    for (i = 0; i < SERVE_STREAMS_MAX; i++) {
        client_open(&s, &c[i]);
        assert_non_null(c[i].session);
    }

    client_open(&s, &more);
    assert_null(more.session);
    client_close(&c[7]);
    client_open(&s, &more);
    assert_non_null(more.session);
    c[7] = more;

    for (i = 1; i < SERVE_STREAMS_MAX; i++) {
        client_close(&c[i]);
    }

    test_finish(&s, &c[0]);
    test_free(c);
}


static void
a_client_that_does_not_read_stops_its_own_session(void **state)
{
    scene_t         s;
    scene_client_t  c, other;

    Llmgateway__Shard__Open  open = client_request();

    test_begin(&s, &c);
    client_open(&s, &other);
    client_ask(&other, &open);

    c.is_reading = 0;
    c.queued = SERVE_QUEUE_BYTES + 1;
    client_step(&c, 0, 1, 1);
    client_step(&other, 0, 1, 1);
    assert_int_equal(s.core.nsteps, 1);
    scene_compute(&s, SHARD_STEP_DONE);
    assert_int_equal(other.nreplies, 3);
    assert_int_equal(c.nreplies, 1);

    c.queued = 0;
    session_drained(c.session);
    scene_compute(&s, SHARD_STEP_DONE);
    assert_int_equal(c.nreplies, 3);

    /* A client that never reads again loses the session, and then the stream.
       */
    c.queued = SERVE_QUEUE_BYTES + 1;
    client_step(&c, 1, 1, 1);
    scene_tick(&s, 59999);
    client_step(&other, 1, 1, 1);
    assert_false(c.is_finished);
    scene_tick(&s, 1);
    test_ended(&c, SHARD_SESSION_EXPIRED);
    scene_tick(&s, 9999);
    assert_false(c.is_reset);
    scene_tick(&s, 1);
    assert_true(c.is_reset);
    assert_false(other.is_finished);
    client_close(&other);
    test_finish(&s, &c);
}


static void
a_stream_that_takes_nothing_ends_its_session(void **state)
{
    scene_t         s;
    scene_client_t  c;

    test_begin(&s, &c);
    client_step(&c, 0, 1, 1);
    c.is_broken = 1;
    scene_start(&s);
    assert_true(c.is_finished);
    assert_int_equal(c.status, LLMGW_GRPC_RESOURCE_EXHAUSTED);
    test_finish(&s, &c);
}


static void
a_draining_shard_goes_on_with_what_it_has(void **state)
{
    scene_t                   s;
    scene_client_t            c, later;
    Llmgateway__Shard__Open   open = client_request();

    test_begin(&s, &c);
    serve_drain(s.serve, 1);
    client_open(&s, &later);
    client_ask(&later, &open);
    test_ended(&later, SHARD_DRAINING);
    client_close(&later);

    client_step(&c, 0, 1, 1);
    scene_compute(&s, SHARD_STEP_DONE);
    assert_int_equal(c.nreplies, 3);

    serve_drain(s.serve, 0);
    client_open(&s, &later);
    client_ask(&later, &open);
    assert_false(later.is_finished);

    client_step(&c, 1, 1, 1);
    serve_stop(s.serve, "replica is stopping");
    test_ended(&c, SHARD_DRAINING);
    test_ended(&later, SHARD_DRAINING);
    client_close(&later);
    test_finish(&s, &c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(other_messages_end_the_stream),
        cmocka_unit_test(close_ends_a_session_wherever_it_is),
        cmocka_unit_test(a_client_that_says_no_more_still_gets_its_results),
        cmocka_unit_test(a_shard_has_as_many_sessions_as_it_says),
        cmocka_unit_test(a_slice_above_the_limit_is_never_loaded),
        cmocka_unit_test(an_open_waits_for_the_slice),
        cmocka_unit_test(a_load_that_takes_too_long_is_said),
        cmocka_unit_test(an_idle_slice_is_unloaded_and_comes_back),
        cmocka_unit_test(a_slice_that_cannot_be_loaded_refuses_who_waits),
        cmocka_unit_test(a_plugin_that_breaks_takes_its_sessions_along),
        cmocka_unit_test(an_idle_session_ends_after_a_minute),
        cmocka_unit_test(a_session_ends_after_an_hour_whatever_it_does),
        cmocka_unit_test(a_stream_without_an_open_ends_after_a_minute),
        cmocka_unit_test(streams_are_so_many_with_or_without_sessions),
        cmocka_unit_test(a_client_that_does_not_read_stops_its_own_session),
        cmocka_unit_test(a_stream_that_takes_nothing_ends_its_session),
        cmocka_unit_test(a_draining_shard_goes_on_with_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

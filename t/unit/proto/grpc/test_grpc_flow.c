
/* Flow-control windows, and which side stops the other. */

#include "t/unit/proto/grpc/grpc_pair.h"


#define PATH          "/llmgateway.InferenceGateway/Infer"
#define WINDOW_BYTES  4096
#define MESSAGE       100
#define WIRE_BYTES    (MESSAGE + LLMGW_GRPC_PREFIX_BYTES)


static void
flow_open(peer_t *client, peer_t *server, uint32_t window_bytes)
{
    llmgw_grpc_config_t  config = { .stream_window_bytes = window_bytes };

    memset(client, 0, sizeof(*client));
    memset(server, 0, sizeof(*server));
    client->is_quiet = server->is_quiet = 1;
    pair_open(client, server, &config);
    pair_run(client, server);
}


static void
say_many(llmgw_grpc_stream_t *stream, int n)
{
    while (n-- > 0) {
        peer_say_bytes(stream, MESSAGE);
    }
}


static void
unconsumed_stream_stops_its_sender_alone(void **state)
{
    size_t                stopped_at;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stuck, *other, *held;

    flow_open(&client, &server, WINDOW_BYTES);
    server.is_holding = 1;
    stuck = peer_call(&client, PATH);
    say_many(stuck, 1000);
    pair_run(&client, &server);
    held = server.stream;

    stopped_at = server.messages;
    assert_int_equal(stopped_at, WINDOW_BYTES / WIRE_BYTES);
    assert_int_equal(llmgw_grpc_stream_queued(stuck),
                     1000 * WIRE_BYTES - WINDOW_BYTES);

    /* Far more than the connection's window, through the same session. */
    server.is_holding = 0;
    other = peer_call(&client, PATH);
    say_many(other, 30000);
    pair_run(&client, &server);
    assert_int_equal(server.messages, stopped_at + 30000);
    assert_int_equal(llmgw_grpc_stream_queued(other), 0);

    llmgw_grpc_stream_consume(held, server.held);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 1000 + 30000);
    assert_int_equal(llmgw_grpc_stream_queued(stuck), 0);
    pair_close(&client, &server);
}


/* A stream with unsent messages counts until they are sent, or until it is
   reset here or closed by the peer. */
static void
streams_that_wait_are_counted(void **state)
{
    size_t                held;
    peer_t                client, server;
    llmgw_grpc_stream_t  *given_up;

    flow_open(&client, &server, WINDOW_BYTES);
    server.is_holding = 1;
    given_up = peer_call(&client, PATH);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 0);
    say_many(given_up, 1000);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 1);

    held = server.held;
    say_many(peer_call(&client, PATH), 1000);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 2);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 2);

    llmgw_grpc_stream_reset(given_up, NGHTTP2_CANCEL);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 1);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 1);

    server.is_holding = 0;
    llmgw_grpc_stream_consume(server.stream, server.held - held);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 0);

    server.is_holding = 1;
    say_many(peer_call(&client, PATH), 1000);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 1);
    llmgw_grpc_stream_reset(server.stream, NGHTTP2_REFUSED_STREAM);
    pair_run(&client, &server);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 0);

    pair_close(&client, &server);
}


/* Messages are only consumed when no more can be sent: this never leads to a
   standstill. */
static void
late_consumption_keeps_the_stream_going(void **state)
{
    size_t                before, turns;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, WINDOW_BYTES);
    server.is_holding = 1;
    stream = peer_call(&client, PATH);
    say_many(stream, 1000);

    for (turns = 0; server.messages < 1000; turns++) {
        before = server.messages;
        pair_run(&client, &server);
        assert_true(server.messages > before);
        assert_true(server.held <= WINDOW_BYTES);
        llmgw_grpc_stream_consume(server.stream, server.held);
        server.held = 0;
    }

    assert_true(turns >= 1000 * WIRE_BYTES / WINDOW_BYTES);
    pair_close(&client, &server);
}


static void
consuming_more_than_told_opens_no_window(void **state)
{
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, WINDOW_BYTES);
    server.is_holding = 1;
    stream = peer_call(&client, PATH);
    say_many(stream, 1000);
    pair_run(&client, &server);
    llmgw_grpc_stream_consume(server.stream, 1000000);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 2 * WINDOW_BYTES / WIRE_BYTES);

    /* What was consumed too much is not set against later messages either. */
    llmgw_grpc_stream_consume(server.stream, 1);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 2 * WINDOW_BYTES / WIRE_BYTES);
    pair_close(&client, &server);
}


static void
message_larger_than_the_window_passes(void **state)
{
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, 0);
    stream = peer_call(&client, PATH);
    peer_say_bytes(stream, 4 * 1024 * 1024);
    peer_say_bytes(stream, 4 * 1024 * 1024);
    llmgw_grpc_half_close(stream);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 2);
    assert_int_equal(server.message_bytes, 8 * 1024 * 1024);
    assert_int_equal(server.ends, 1);
    pair_close(&client, &server);
}


static void
hook_numbered(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    size_t  i;

    for (i = 0; i < peer->len; i++) {
        assert_int_equal(peer->data[i], i % 251);
    }
}


/* Of a message only its first bytes are copied; the rest stays where the
   caller has it. */
static void
end_of_a_message_is_sent_from_where_it_is(void **state)
{
    size_t                i, k, n;
    uint8_t              *p, *tail;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    static const size_t  sizes[] = { 0, 1, 5000, 300000 };
    static const size_t  buffers[] = { 0, 100, 16000 };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++) {
            flow_open(&client, &server, WINDOW_BYTES);
            client.write_bytes = buffers[k];
            server.on_message = hook_numbered;

            tail = malloc(sizes[i] + 1);
            assert_non_null(tail);
            stream = peer_call(&client, PATH);
            p = llmgw_grpc_send_before(stream, 3, tail, sizes[i]);
            assert_non_null(p);
            memcpy(p, "\0\1\2", 3);

            for (n = 0; n < sizes[i]; n++) {
                tail[n] = (uint8_t) ((n + 3) % 251);
            }

            assert_int_equal(llmgw_grpc_stream_queued(stream),
                             LLMGW_GRPC_PREFIX_BYTES + 3 + sizes[i]);
            p = llmgw_grpc_send_reserve(stream, 1);
            assert_int_equal(p == NULL, sizes[i] > 0);

            if (p != NULL) {
                *p = 0;
            }

            llmgw_grpc_half_close(stream);
            pair_run(&client, &server);
            free(tail);

            assert_int_equal(server.ends, 1);
            assert_int_equal(server.messages, sizes[i] > 0 ? 1 : 2);
            assert_int_equal(llmgw_grpc_session_unsent(client.session), 0);
            pair_close(&client, &server);
        }
    }
}


/* The tail's memory is freed when the last byte is sent: then nothing is
   copied from it, not even 0 bytes. */
static void
end_of_a_message_is_sent_behind_a_large_beginning(void **state)
{
    size_t                i, n;
    uint8_t              *p, *tail;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, WINDOW_BYTES);
    server.on_message = hook_numbered;
    n = 5000;           /* more than a queue keeps */
    tail = malloc(300000);
    assert_non_null(tail);
    stream = peer_call(&client, PATH);
    p = llmgw_grpc_send_before(stream, n, tail, 300000);
    assert_non_null(p);

    for (i = 0; i < n; i++) {
        p[i] = (uint8_t) (i % 251);
    }

    for (i = 0; i < 300000; i++) {
        tail[i] = (uint8_t) ((i + n) % 251);
    }

    llmgw_grpc_half_close(stream);
    pair_run(&client, &server);
    free(tail);

    assert_int_equal(server.messages, 1);
    assert_int_equal(server.ends, 1);
    pair_close(&client, &server);
}


static void
end_of_a_message_is_not_needed_behind_a_reset(void **state)
{
    uint8_t              *tail;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, WINDOW_BYTES);
    tail = malloc(300000);
    assert_non_null(tail);
    memset(tail, 'x', 300000);
    stream = peer_call(&client, PATH);
    memset(llmgw_grpc_send_before(stream, 3, tail, 300000), 'x', 3);
    (void) peer_flush(&client, &server);        /* only a window of it */
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 1);

    llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
    free(tail);
    assert_int_equal(llmgw_grpc_stream_queued(stream), 0);
    assert_int_equal(llmgw_grpc_session_unsent(client.session), 0);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 0);

    /* the stream's memory can be used again */
    stream = peer_call(&client, PATH);
    peer_say_bytes(stream, MESSAGE);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 1);
    pair_close(&client, &server);
}


/*
 * A large message behind one that is not consumed has to wait: otherwise a
 * peer could fill our memory with such messages.
 */
static void
large_message_waits_for_what_is_owed_before_it(void **state)
{
    int                   i;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, WINDOW_BYTES);
    server.is_holding = 1;
    stream = peer_call(&client, PATH);

    for (i = 0; i < 10; i++) {
        peer_say_bytes(stream, 5 * WINDOW_BYTES);
    }

    pair_run(&client, &server);
    assert_int_equal(server.messages, 1);

    for (i = 2; i <= 10; i++) {
        llmgw_grpc_stream_consume(server.stream, server.held);
        server.held = 0;
        pair_run(&client, &server);
        assert_int_equal(server.messages, i);
    }

    pair_close(&client, &server);
}


/*
 * A session may keep some consumed bytes back.  With any window this stops no
 * sender, and if consume() returns 0, there is nothing to write.
 */
static void
any_window_goes_on_when_all_is_consumed(void **state)
{
    int                   told;
    size_t                i, k, n, before;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    static const uint32_t  windows[] = {
        1, 2, 15, 16, 17, 31, 32, 100, 4095, 65535, 65536, 1024 * 1024
    };

    for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        flow_open(&client, &server, windows[i]);
        server.is_holding = 1;
        stream = peer_call(&client, PATH);
        n = 0;

        for (k = 0; k <= 40; k++, n += 2) {
            peer_say_bytes(stream, k * windows[i] / 16);
            peer_say_bytes(stream, k);
        }

        while (server.messages < n) {
            before = server.messages;
            pair_run(&client, &server);
            assert_true(server.messages > before);

            told = llmgw_grpc_stream_consume(server.stream, server.held);
            server.held = 0;
            assert_true(told
                        || !llmgw_grpc_session_wants_write(server.session));
        }

        pair_close(&client, &server);
    }
}


static void
reset_stream_keeps_no_connection_window(void **state)
{
    int                   i;
    peer_t                client, server;
    llmgw_grpc_stream_t  *stream;

    flow_open(&client, &server, 0);
    server.is_holding = 1;

    /* Each stream leaves a full window unread: 200 connection
       windows in all. */
    for (i = 0; i < 200; i++) {
        stream = peer_call(&client, PATH);
        peer_say_bytes(stream, 10000);
        peer_say_bytes(stream, 100000);
        (void) peer_flush(&client, &server);
        llmgw_grpc_stream_reset(server.stream, NGHTTP2_CANCEL);
        (void) peer_flush(&client, &server);
        pair_run(&client, &server);
        assert_int_equal(server.closes, i + 1);
    }

    server.is_holding = 0;
    server.messages = 0;
    say_many(peer_call(&client, PATH), 20000);
    pair_run(&client, &server);
    assert_int_equal(server.messages, 20000);
    pair_close(&client, &server);
}


/* Of two long answers, neither waits until the other is complete. */
static void
answers_take_turns(void **state)
{
    size_t                half;
    peer_t                client, server;
    llmgw_grpc_stream_t  *first, *second;
    static uint8_t        buf[PAIR_BUFFER];

    flow_open(&client, &server, 1024 * 1024);
    (void) peer_call(&client, PATH);
    pair_run(&client, &server);
    first = server.stream;
    (void) peer_call(&client, PATH);
    pair_run(&client, &server);
    second = server.stream;

    peer_say_bytes(first, 500000);
    peer_say_bytes(second, 500000);

    while (llmgw_grpc_stream_queued(first) > 250000) {
        assert_true(llmgw_grpc_session_write(server.session, buf,
                                             sizeof(buf)) > 0);
    }

    half = llmgw_grpc_stream_queued(second);
    assert_true(half > 200000 && half < 300000);
    pair_close(&client, &server);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(unconsumed_stream_stops_its_sender_alone),
        cmocka_unit_test(streams_that_wait_are_counted),
        cmocka_unit_test(late_consumption_keeps_the_stream_going),
        cmocka_unit_test(consuming_more_than_told_opens_no_window),
        cmocka_unit_test(message_larger_than_the_window_passes),
        cmocka_unit_test(end_of_a_message_is_sent_from_where_it_is),
        cmocka_unit_test(end_of_a_message_is_sent_behind_a_large_beginning),
        cmocka_unit_test(end_of_a_message_is_not_needed_behind_a_reset),
        cmocka_unit_test(large_message_waits_for_what_is_owed_before_it),
        cmocka_unit_test(any_window_goes_on_when_all_is_consumed),
        cmocka_unit_test(reset_stream_keeps_no_connection_window),
        cmocka_unit_test(answers_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

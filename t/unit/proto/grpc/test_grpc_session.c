
/*
 * What a client and a server session report of one exchange: the same, however
 * the input is cut and however small the output buffer is.
 */

#include "t/unit/proto/grpc/grpc_pair.h"


#define PATH  "/llmgateway.LLMReplica/Generate"

static llmgw_grpc_config_t  plain;


/* Answers with a header field, three messages, a status with its message, and
   a trailer. */
static void
hook_answer(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    const llmgw_grpc_field_t  trailer = { "x-after", "2" };

    peer_say(stream, "one");
    peer_say(stream, "");
    peer_say(stream, "three");
    assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_NOT_FOUND,
                                       "100% \xc3\xa4\n", &trailer, 1),
                     LLMGW_GRPC_DONE);
}


static void
exchange(size_t write_bytes, size_t read_bytes, peer_t *client,
    peer_t *server)
{
    llmgw_grpc_field_t    field = { "x-before", "1" };
    llmgw_grpc_call_t     call = { PATH, "test", 1500, &field, 1, NULL };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    memset(client, 0, sizeof(*client));
    memset(server, 0, sizeof(*server));
    client->write_bytes = server->write_bytes = write_bytes;
    client->read_bytes = server->read_bytes = read_bytes;
    server->on_end = hook_answer;

    pair_open(client, server, &config);

    assert_int_equal(llmgw_grpc_call(client->session, &call, &stream),
                     LLMGW_GRPC_DONE);
    peer_say(stream, "hello");
    peer_say_bytes(stream, 20000);
    assert_int_equal(llmgw_grpc_half_close(stream), LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_half_close(stream), LLMGW_GRPC_ESTATE);
    assert_null(llmgw_grpc_send_reserve(stream, 1));
    assert_int_equal(llmgw_grpc_session_streams(client->session), 1);

    pair_run(client, server);

    assert_int_equal(llmgw_grpc_session_streams(client->session), 0);
    assert_int_equal(llmgw_grpc_session_streams(server->session), 0);

    pair_close(client, server);
}


static const char  server_story[] =
    "header x-before=1\n"
    "request " PATH " 1500\n"
    "message hello\n"
    "message of 20000\n"
    "end OK \n"
    "close 0\n";

static const char  client_story[] =
    "message one\n"
    "message \n"
    "message three\n"
    "trailer x-after=2\n"
    "end NOT_FOUND 100% \xc3\xa4\n\n"
    "close 0\n";


static void
exchange_is_told_in_order(void **state)
{
    peer_t  client, server;

    exchange(0, 0, &client, &server);
    assert_string_equal(server.log, server_story);
    assert_string_equal(client.log, client_story);
}


static void
exchange_survives_any_cut(void **state)
{
    size_t         i;
    peer_t         client, server;
    static size_t  cuts[] = { 1, 2, 3, 5, 7, 9, 14, 64, 1000, 16384, 16393 };

    for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        exchange(0, cuts[i], &client, &server);
        assert_string_equal(server.log, server_story);
        assert_string_equal(client.log, client_story);

        exchange(cuts[i], 0, &client, &server);
        assert_string_equal(server.log, server_story);
        assert_string_equal(client.log, client_story);
    }

    /* Sizes around that at which a frame just fits behind those before it. */
    for (i = 15; i < 400; i++) {
        exchange(i, 0, &client, &server);
        assert_string_equal(client.log, client_story);
    }
}


/* The whole request, in two pieces, cut at each of its bytes. */
static void
request_survives_a_cut_at_every_byte(void **state)
{
    size_t                cut, n;
    peer_t                client = { 0 }, server;
    uint8_t               bytes[512];
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    stream = peer_call(&client, PATH);
    peer_say(stream, "hello");
    peer_say(stream, "world");
    llmgw_grpc_half_close(stream);
    n = (size_t) llmgw_grpc_session_write(client.session, bytes,
                                          sizeof(bytes));
    assert_true(n > 100 && n < sizeof(bytes));

    for (cut = 1; cut < n; cut++) {
        memset(&server, 0, sizeof(server));
        server.on_end = hook_finish;
        peer_config(&server, &config);
        server.session = llmgw_grpc_server_create(&config);
        peer_feed(&server, bytes, cut);
        peer_feed(&server, bytes + cut, n - cut);
        (void) peer_flush(&server, NULL);

        assert_string_equal(server.log,
                            "request " PATH " 0\nmessage hello\n"
                            "message world\nend OK \nclose 0\n");
        llmgw_grpc_session_destroy(server.session);
    }

    llmgw_grpc_session_destroy(client.session);
}


static void
unary_request_leaves_in_one_write(void **state)
{
    peer_t                client = { 0 };
    uint8_t               bytes[1024];
    ssize_t               n;
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    stream = peer_call(&client, PATH);
    peer_say(stream, "hello");
    llmgw_grpc_half_close(stream);
    assert_int_equal(llmgw_grpc_stream_queued(stream), 10);
    n = llmgw_grpc_session_write(client.session, bytes, sizeof(bytes));
    assert_true(n > 0);
    assert_int_equal(llmgw_grpc_stream_queued(stream), 0);
    assert_false(llmgw_grpc_session_wants_write(client.session));

    /* The last frame is a DATA frame of ten bytes with END_STREAM. */
    assert_memory_equal(bytes + n - 19, "\0\0\x0a\0\x01\0\0\0\x01\0\0\0\0\5",
                        14);
    llmgw_grpc_session_destroy(client.session);
}


static void
both_sides_talk_by_turns(void **state)
{
    int                   i;
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    server.on_message = hook_echo;
    server.on_end = hook_finish;
    pair_open(&client, &server, &config);
    stream = peer_call(&client, PATH);

    for (i = 0; i < 100; i++) {
        peer_say(stream, "ping");
        pair_run(&client, &server);
        assert_int_equal(client.messages, i + 1);
    }

    llmgw_grpc_half_close(stream);
    pair_run(&client, &server);
    assert_int_equal(client.status, LLMGW_GRPC_OK);
    assert_int_equal(client.closes, 1);
    assert_int_equal(server.closes, 1);
    pair_close(&client, &server);
}


static void
hook_unavailable(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    const llmgw_grpc_field_t  trailer = { "x-draining", "1" };

    assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                       "draining", &trailer, 1),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL, 0),
                     LLMGW_GRPC_ESTATE);
    assert_int_equal(llmgw_grpc_send_message(stream, NULL, 0),
                     LLMGW_GRPC_ESTATE);
}


/* The request is refused at its headers: what follows of it is reset. */
static void
trailers_only_ends_a_request_still_arriving(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    server.on_request = hook_unavailable;
    pair_open(&client, &server, &config);
    stream = peer_call(&client, PATH);
    peer_say_bytes(stream, 300000);
    pair_run(&client, &server);

    assert_string_equal(client.log, "trailer x-draining=1\n"
                                    "end UNAVAILABLE draining\nclose 0\n");
    assert_string_equal(server.log, "request " PATH " 0\nclose 0\n");
    pair_close(&client, &server);
}


static void
hook_reset(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
    llmgw_grpc_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
    assert_null(llmgw_grpc_send_reserve(stream, 1));
    llmgw_grpc_stream_consume(stream, 1000);
}


static void
reset_within_on_message_silences_the_stream(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    server.on_message = hook_reset;
    pair_open(&client, &server, &config);
    stream = peer_call(&client, PATH);
    peer_say(stream, "one");
    peer_say(stream, "two");
    llmgw_grpc_half_close(stream);
    pair_run(&client, &server);

    assert_string_equal(server.log,
                        "request " PATH " 0\nmessage one\nclose 8\n");
    assert_string_equal(client.log, "close 8\n");
    pair_close(&client, &server);
}


static void
hook_must_not_come(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    fail();
}


static void
reset_in_each_callback_is_safe(void **state)
{
    int                   i;
    peer_t                client, server;
    peer_hook_pt         *hooks[] = {
        &server.on_field, &server.on_request, &server.on_message,
        &server.on_end, &server.on_drained, &server.on_close,
        &client.on_field, &client.on_message, &client.on_end,
        &client.on_drained, &client.on_close
    };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    for (i = 0; i < 11; i++) {
        memset(&client, 0, sizeof(client));
        memset(&server, 0, sizeof(server));
        server.on_message = hook_echo;
        server.on_end = hook_finish;
        *hooks[i] = hook_reset;

        if (hooks[i] == &server.on_field) {
            server.on_request = hook_must_not_come;
        }

        pair_open(&client, &server, &config);
        stream = peer_call(&client, PATH);
        peer_say(stream, "ping");
        pair_run(&client, &server);

        if (client.closes == 0) {
            (void) llmgw_grpc_half_close(stream);
            pair_run(&client, &server);
        }

        assert_int_equal(client.closes, 1);
        assert_int_equal(server.closes, 1);
        pair_close(&client, &server);
    }
}


static void
reset_before_the_call_has_left_tells_the_server_nothing(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    pair_open(&client, &server, &config);
    stream = peer_call(&client, PATH);
    peer_say(stream, "never");
    llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
    assert_true(llmgw_grpc_session_wants_write(client.session));
    pair_run(&client, &server);
    assert_string_equal(client.log, "close 8 refused\n");
    assert_string_equal(server.log, "");

    stream = peer_call(&client, PATH);
    pair_run(&client, &server);
    assert_int_equal(server.requests, 1);
    pair_close(&client, &server);
}


static void
destroy_closes_each_open_stream_once(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;

    pair_open(&client, &server, &config);
    peer_say(peer_call(&client, PATH), "half a");
    peer_say(peer_call(&client, PATH), "request");
    pair_run(&client, &server);
    peer_say(server.stream, "unsent");
    (void) peer_call(&client, PATH);
    client.log[0] = '\0';

    llmgw_grpc_session_destroy(client.session);
    llmgw_grpc_session_destroy(server.session);
    assert_string_equal(client.log, "close 2 refused\nclose 2\nclose 2\n");
    assert_int_equal(client.closes, 3);
    assert_int_equal(server.closes, 2);
    assert_int_equal(server.is_refused, 0);
}


static void
hook_say_more(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    assert_int_equal(llmgw_grpc_stream_queued(stream), 0);

    if (peer->drains < 5) {
        peer_say(stream, "more");
    }
}


static void
drained_queue_asks_for_more(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;

    client.on_drained = hook_say_more;
    pair_open(&client, &server, &config);
    peer_say(peer_call(&client, PATH), "first");
    pair_run(&client, &server);
    assert_int_equal(client.drains, 5);
    assert_int_equal(server.messages, 5);
    pair_close(&client, &server);
}


/* Half of the stream's last frame is written when the server resets it. */
static void
stream_closed_within_a_frame_is_not_told_it_drained(void **state)
{
    uint8_t               part[16];
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    client.on_drained = hook_must_not_come;
    pair_open(&client, &server, &config);
    stream = peer_call(&client, PATH);
    pair_run(&client, &server);

    peer_say(stream, "more than sixteen bytes");
    assert_int_equal(llmgw_grpc_session_write(client.session, part,
                                              sizeof(part)), sizeof(part));
    assert_int_equal(llmgw_grpc_stream_queued(stream), 0);

    llmgw_grpc_stream_reset(server.stream, NGHTTP2_CANCEL);
    (void) peer_flush(&server, &client);
    assert_int_equal(client.closes, 1);

    peer_feed(&server, part, sizeof(part));
    pair_run(&client, &server);
    assert_int_equal(server.closes, 1);
    assert_true(llmgw_grpc_session_can_call(client.session));
    pair_close(&client, &server);
}


static void
thousand_streams_share_a_session(void **state)
{
    int                   i, round;
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *streams[1000];

    client.is_quiet = server.is_quiet = 1;
    server.on_message = hook_echo;
    server.on_end = hook_finish;
    pair_open(&client, &server, &config);
    pair_run(&client, &server);

    for (i = 0; i < 1000; i++) {
        streams[i] = peer_call(&client, PATH);
        assert_non_null(streams[i]);
    }

    for (round = 0; round < 10; round++) {
        for (i = 0; i < 1000; i++) {
            peer_say(streams[i], "token");
        }

        pair_run(&client, &server);
        assert_int_equal(client.messages, 1000 * (round + 1));
    }

    for (i = 0; i < 1000; i++) {
        llmgw_grpc_half_close(streams[i]);
    }

    pair_run(&client, &server);
    assert_int_equal(client.closes, 1000);
    assert_int_equal(server.closes, 1000);
    assert_int_equal(client.ends, 1000);
    assert_int_equal(client.error, 0);
    pair_close(&client, &server);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(exchange_is_told_in_order),
        cmocka_unit_test(exchange_survives_any_cut),
        cmocka_unit_test(request_survives_a_cut_at_every_byte),
        cmocka_unit_test(unary_request_leaves_in_one_write),
        cmocka_unit_test(both_sides_talk_by_turns),
        cmocka_unit_test(trailers_only_ends_a_request_still_arriving),
        cmocka_unit_test(reset_within_on_message_silences_the_stream),
        cmocka_unit_test(reset_in_each_callback_is_safe),
        cmocka_unit_test(
            reset_before_the_call_has_left_tells_the_server_nothing),
        cmocka_unit_test(destroy_closes_each_open_stream_once),
        cmocka_unit_test(drained_queue_asks_for_more),
        cmocka_unit_test(stream_closed_within_a_frame_is_not_told_it_drained),
        cmocka_unit_test(thousand_streams_share_a_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/* Peers that leave, that allow little, or that do not speak HTTP/2. */

#include "t/unit/proto/grpc/grpc_pair.h"


#define PATH  "/llmgateway.InferenceGateway/Infer"

static llmgw_grpc_config_t  plain;


static void
finish_ok(llmgw_grpc_stream_t *stream)
{
    assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL, 0),
                     LLMGW_GRPC_DONE);
}


static void
goaway_lets_running_streams_finish(void **state)
{
    peer_t                client = { 0 }, server = { 0 };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *first;

    pair_open(&client, &server, &config);
    first = peer_call(&client, PATH);
    peer_say(first, "a");
    pair_run(&client, &server);

    /* The second call is not sent yet when the GOAWAY comes. */
    llmgw_grpc_session_goaway(server.session);
    assert_non_null(peer_call(&client, PATH));
    (void) peer_flush(&server, &client);
    assert_string_equal(client.log, "goaway\nclose 7 refused\n");
    assert_true(llmgw_grpc_session_is_closing(client.session));
    assert_null(peer_call(&client, PATH));
    assert_false(llmgw_grpc_session_is_over(client.session));
    assert_false(llmgw_grpc_session_is_over(server.session));

    peer_say(first, "b");
    pair_run(&client, &server);
    assert_int_equal(server.messages, 2);
    finish_ok(server.stream);
    pair_run(&client, &server);
    assert_int_equal(client.status, LLMGW_GRPC_OK);
    assert_int_equal(client.closes, 2);
    assert_int_equal(server.requests, 1);
    assert_true(llmgw_grpc_session_is_over(client.session));
    assert_true(llmgw_grpc_session_is_over(server.session));
    pair_close(&client, &server);
}


static void
call_that_crosses_a_goaway_is_refused(void **state)
{
    ssize_t               n;
    peer_t                client = { 0 }, server = { 0 };
    uint8_t               goaway[256];
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *second;

    pair_open(&client, &server, &config);
    (void) peer_call(&client, PATH);
    pair_run(&client, &server);

    llmgw_grpc_session_goaway(server.session);
    n = llmgw_grpc_session_write(server.session, goaway, sizeof(goaway));
    assert_true(n > 0);

    second = peer_call(&client, PATH);
    peer_say(second, "crosses");
    (void) peer_flush(&client, &server);
    assert_int_equal(server.requests, 1);

    peer_feed(&client, goaway, (size_t) n);
    assert_string_equal(client.log, "goaway\nclose 7 refused\n");

    finish_ok(server.stream);
    pair_run(&client, &server);
    assert_int_equal(client.ends, 1);
    assert_true(llmgw_grpc_session_is_over(client.session));
    pair_close(&client, &server);
}


static void
client_that_said_goaway_calls_no_more(void **state)
{
    peer_t               client = { 0 }, server = { 0 };
    llmgw_grpc_config_t  config = plain;

    pair_open(&client, &server, &config);
    (void) peer_call(&client, PATH);
    llmgw_grpc_session_goaway(client.session);
    assert_null(peer_call(&client, PATH));
    pair_run(&client, &server);
    assert_int_equal(server.requests, 1);
    assert_int_equal(server.goaways, 1);
    finish_ok(server.stream);
    pair_run(&client, &server);
    assert_int_equal(client.status, LLMGW_GRPC_OK);
    assert_true(llmgw_grpc_session_is_over(client.session));
    assert_true(llmgw_grpc_session_is_over(server.session));
    pair_close(&client, &server);
}


static void
settings_bound_the_calls(void **state)
{
    int                  i;
    peer_t               client = { 0 }, server = { 0 };
    llmgw_grpc_config_t  config = { .max_streams = 2 };

    pair_open(&client, &server, &config);

    /* A client assumes 100 streams; then the server's settings refuse all but
       two. */
    for (i = 0; i < 100; i++) {
        assert_non_null(peer_call(&client, PATH));
    }

    assert_null(peer_call(&client, PATH));
    (void) peer_flush(&server, &client);
    assert_int_equal(client.closes, 98);
    assert_int_equal(client.is_refused, 1);
    assert_false(llmgw_grpc_session_can_call(client.session));
    assert_false(llmgw_grpc_session_is_closing(client.session));

    pair_run(&client, &server);
    assert_int_equal(server.requests, 2);
    finish_ok(server.stream);
    pair_run(&client, &server);
    assert_int_equal(client.closes, 99);
    assert_true(llmgw_grpc_session_can_call(client.session));
    assert_non_null(peer_call(&client, PATH));
    assert_null(peer_call(&client, PATH));
    pair_run(&client, &server);
    assert_int_equal(server.requests, 3);
    assert_int_equal(client.goaways, 0);
    pair_close(&client, &server);
}


static void
settings_without_streams_count_as_goaway(void **state)
{
    raw_t                         raw;
    peer_t                        client = { 0 };
    llmgw_grpc_config_t           config = plain;
    llmgw_grpc_stream_t          *stream;
    const nghttp2_settings_entry  none = {
        NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0
    };

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    raw_open(&raw, 1, &none, 1);

    /* A stream that is reset before it begins must not wait for a free one. */
    stream = peer_call(&client, PATH);
    llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
    (void) peer_call(&client, PATH);
    raw_run(&raw, &client);
    assert_int_equal(client.goaways, 1);
    assert_int_equal(client.closes, 2);
    assert_int_equal(llmgw_grpc_session_streams(client.session), 0);
    assert_null(peer_call(&client, PATH));
    assert_int_equal(nghttp2_submit_settings(raw.h2, 0, &none, 1), 0);
    raw_run(&raw, &client);
    assert_int_equal(client.goaways, 1);
    nghttp2_session_del(raw.h2);
    llmgw_grpc_session_destroy(client.session);
}


static void
garbage_ends_the_session(void **state)
{
    int                     i;
    peer_t                  peer;
    uint8_t                 out[256];
    llmgw_grpc_config_t     config;
    llmgw_grpc_session_t  *(*create[])(const llmgw_grpc_config_t *) = {
        llmgw_grpc_client_create, llmgw_grpc_server_create
    };
    static const char       garbage[] =
        "GET / HTTP/1.1\r\nHost: example\r\n\r\nand nothing of HTTP/2";

    for (i = 0; i < 2; i++) {
        memset(&peer, 0, sizeof(peer));
        config = plain;
        peer_config(&peer, &config);
        peer.session = create[i](&config);

        (void) llmgw_grpc_session_recv(peer.session,
                                       (const uint8_t *) garbage,
                                       sizeof(garbage));

        while (llmgw_grpc_session_write(peer.session, out, sizeof(out)) > 0) {
            /* a GOAWAY, perhaps */
        }

        assert_int_equal(llmgw_grpc_session_recv(peer.session,
                                                 (const uint8_t *) garbage, 9),
                         LLMGW_GRPC_EPROTO);
        assert_int_equal(llmgw_grpc_session_write(peer.session, out,
                                                  sizeof(out)),
                         LLMGW_GRPC_EPROTO);
        assert_string_equal(peer.log, "");
        llmgw_grpc_session_destroy(peer.session);
    }
}


/* Feeds the preface, then one frame again and again; returns how many frames
   the session accepted. */
static int
flood(const uint8_t *head, size_t head_len, const uint8_t *frame,
    size_t frame_len, int at_most)
{
    int                  n;
    peer_t               server = { 0 };
    uint8_t              out[PAIR_BUFFER];
    llmgw_grpc_config_t  config = plain;

    peer_config(&server, &config);
    server.session = llmgw_grpc_server_create(&config);
    peer_feed(&server, (const uint8_t *) NGHTTP2_CLIENT_MAGIC,
              NGHTTP2_CLIENT_MAGIC_LEN);
    peer_feed(&server, (const uint8_t *) "\0\0\0\4\0\0\0\0\0", 9);
    peer_feed(&server, head, head_len);

    for (n = 0; n < at_most; n++) {
        if (llmgw_grpc_session_recv(server.session, frame, frame_len)
            != LLMGW_GRPC_DONE)
        {
            break;
        }

        if (head_len > 0) {
            (void) llmgw_grpc_session_write(server.session, out, sizeof(out));
        }
    }

    llmgw_grpc_session_destroy(server.session);

    return n;
}


/* HEADERS of a valid request, as our own client writes them. */
static size_t
request_headers(uint8_t *frame, size_t capacity)
{
    size_t               n, at, frame_bytes;
    peer_t               client = { 0 };
    uint8_t              bytes[512];
    llmgw_grpc_config_t  config = plain;

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    (void) peer_call(&client, PATH);
    n = (size_t) llmgw_grpc_session_write(client.session, bytes,
                                          sizeof(bytes));
    llmgw_grpc_session_destroy(client.session);

    for (at = NGHTTP2_CLIENT_MAGIC_LEN; at < n; at += frame_bytes) {
        frame_bytes = 9 + (size_t) (bytes[at + 1] << 8 | bytes[at + 2]);

        if (bytes[at + 3] == NGHTTP2_HEADERS) {
            assert_true(frame_bytes <= capacity);
            memcpy(frame, bytes + at, frame_bytes);
            return frame_bytes;
        }
    }

    fail();
    return 0;
}


static void
floods_end_the_session(void **state)
{
    int      n;
    size_t   len;
    uint8_t  headers[256];
    uint8_t  ping[17] = { 0, 0, 8, 6 };
    uint8_t  settings[9] = { 0, 0, 0, 4 };
    uint8_t  empty[9] = { 0, 0, 0, 0, 0, 0, 0, 0, 1 };

    n = flood(NULL, 0, ping, sizeof(ping), 3000);
    assert_true(n >= 500 && n < 2000);

    n = flood(NULL, 0, settings, sizeof(settings), 3000);
    assert_true(n >= 500 && n < 2000);

    len = request_headers(headers, sizeof(headers));
    n = flood(headers, len, empty, sizeof(empty), 3000);
    assert_in_range(n, 1000, 1002);
}


/* The server answers requests at once, but its peer reads no answer. */
static void
peer_that_never_reads_is_cut_off(void **state)
{
    int                  n;
    raw_t                raw;
    peer_t               server = { 0 };
    ssize_t              len;
    nghttp2_nv           nv[4];
    const uint8_t       *data;
    llmgw_grpc_rc_t      rc;
    llmgw_grpc_config_t  config = plain;

    peer_config(&server, &config);
    server.session = llmgw_grpc_server_create(&config);
    raw_open(&raw, 0, NULL, 0);
    raw_run(&raw, &server);

    raw_nv(&nv[0], ":method", "GET");
    raw_nv(&nv[1], ":scheme", "http");
    raw_nv(&nv[2], ":path", "/");
    raw_nv(&nv[3], ":authority", "test");
    rc = LLMGW_GRPC_DONE;

    for (n = 0; n < 50000 && rc == LLMGW_GRPC_DONE; n++) {
        (void) nghttp2_submit_request(raw.h2, NULL, nv, 4, NULL, NULL);

        while ((len = nghttp2_session_mem_send(raw.h2, &data)) > 0) {
            rc = llmgw_grpc_session_recv(server.session, data, (size_t) len);
        }
    }

    assert_int_equal(rc, LLMGW_GRPC_EPROTO);
    assert_in_range(n, 19000, 21000);
    nghttp2_session_del(raw.h2);
    llmgw_grpc_session_destroy(server.session);
}


/* More resets than nghttp2 allows by itself, as of a gateway that hedges. */
static void
gateway_may_reset_many_streams(void **state)
{
    int                  i;
    peer_t               client = { 0 }, server = { 0 };
    llmgw_grpc_config_t  config = plain;

    client.is_quiet = server.is_quiet = 1;
    pair_open(&client, &server, &config);

    for (i = 0; i < 5000; i++) {
        llmgw_grpc_stream_t  *stream = peer_call(&client, PATH);

        assert_non_null(stream);
        (void) peer_flush(&client, &server);
        llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
        pair_run(&client, &server);
    }

    assert_int_equal(server.closes, 5000);
    assert_int_equal(server.error, NGHTTP2_CANCEL);
    assert_true(llmgw_grpc_session_can_call(client.session));
    pair_close(&client, &server);
}


static void
call_with_too_many_fields_is_refused(void **state)
{
    size_t                n;
    peer_t                client = { 0 };
    llmgw_grpc_field_t    fields[33];
    llmgw_grpc_call_t     call = { PATH, "test", 0, fields, 32, NULL };
    llmgw_grpc_config_t   config = plain;
    llmgw_grpc_stream_t  *stream;

    for (n = 0; n < 33; n++) {
        fields[n].name = "x-n";
        fields[n].value = "v";
    }

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    assert_int_equal(llmgw_grpc_call(client.session, &call, &stream),
                     LLMGW_GRPC_DONE);
    call.nfields = 33;
    assert_int_equal(llmgw_grpc_call(client.session, &call, &stream),
                     LLMGW_GRPC_ELIMIT);
    llmgw_grpc_session_destroy(client.session);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(goaway_lets_running_streams_finish),
        cmocka_unit_test(call_that_crosses_a_goaway_is_refused),
        cmocka_unit_test(client_that_said_goaway_calls_no_more),
        cmocka_unit_test(settings_bound_the_calls),
        cmocka_unit_test(settings_without_streams_count_as_goaway),
        cmocka_unit_test(garbage_ends_the_session),
        cmocka_unit_test(floods_end_the_session),
        cmocka_unit_test(peer_that_never_reads_is_cut_off),
        cmocka_unit_test(gateway_may_reset_many_streams),
        cmocka_unit_test(call_with_too_many_fields_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

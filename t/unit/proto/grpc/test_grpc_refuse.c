
/*
 * Peers with faults or false data: what is refused, with which message, and
 * what still works.
 */

#include "t/unit/proto/grpc/grpc_pair.h"


#define PATH         "/llmgateway.InferenceGateway/Infer"
#define LIMIT_BYTES  1000
#define GRPC         "application/grpc"

static llmgw_grpc_config_t  plain;


static void
server_open(peer_t *server, raw_t *raw)
{
    llmgw_grpc_config_t  config = { .max_message_bytes = LIMIT_BYTES };

    memset(server, 0, sizeof(*server));
    peer_config(server, &config);
    server->session = llmgw_grpc_server_create(&config);
    assert_non_null(server->session);
    server->on_end = hook_finish;
    raw_open(raw, 0, NULL, 0);
}


static void
server_close(peer_t *server, raw_t *raw)
{
    nghttp2_session_del(raw->h2);
    llmgw_grpc_session_destroy(server->session);
}


static void
request_that_is_not_grpc_is_never_told_of(void **state)
{
    size_t  i;
    raw_t   raw;
    peer_t  server;
    static const struct {
        const char  *method;
        const char  *type;
        int          http_status;
    } cases[] = {
        { "POST", "text/plain", 415 },
        { "POST", "application/json", 415 },
        { "POST", "application/grpcweb", 415 },
        { "GET", GRPC, 405 },
        { "POST", GRPC, 200 },
        { "POST", GRPC "+proto", 200 },
        { "POST", GRPC ";x=y", 200 },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        server_open(&server, &raw);
        raw_say(&raw, cases[i].method, PATH, cases[i].type,
                "\0\0\0\0\2hi", 7);
        raw_run(&raw, &server);
        assert_int_equal(raw.status, cases[i].http_status);

        if (cases[i].http_status == 200) {
            assert_string_equal(server.log, "request " PATH " 0\n"
                                "message hi\nend OK \nclose 0\n");
        } else {
            assert_string_equal(server.log, "");
        }

        server_close(&server, &raw);
    }
}


/* Three streams of two sessions begin messages of 100 bytes. */
static void
unfinished_messages_have_one_limit(void **state)
{
    size_t                   i;
    raw_t                    raw[2];
    peer_t                   server[2];
    llmgw_grpc_config_t      config = { .max_message_bytes = LIMIT_BYTES };
    llmgw_grpc_unfinished_t  unfinished = { .max_bytes = 120 };
    static const char        begun[65] = "\0\0\0\0\144";

    config.unfinished = &unfinished;

    for (i = 0; i < 2; i++) {
        memset(&server[i], 0, sizeof(peer_t));
        peer_config(&server[i], &config);
        server[i].session = llmgw_grpc_server_create(&config);
        server[i].on_end = hook_finish;
        raw_open(&raw[i], 0, NULL, 0);
        raw[i].is_open = 1;
        raw_say(&raw[i], "POST", PATH, GRPC, begun, sizeof(begun));
        raw_run(&raw[i], &server[i]);
        assert_int_equal(unfinished.bytes, 60 * (i + 1));
        assert_int_equal(server[i].ends, 0);
    }

    raw_say(&raw[1], "POST", PATH, GRPC, begun, 6);
    raw_run(&raw[1], &server[1]);
    assert_int_equal(server[1].ends, 1);
    assert_int_equal(server[1].status, LLMGW_GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(unfinished.bytes, 120);

    nghttp2_session_del(raw[0].h2);
    llmgw_grpc_session_destroy(server[0].session);
    assert_int_equal(unfinished.bytes, 60);
    server_close(&server[1], &raw[1]);
    assert_int_equal(unfinished.bytes, 0);
}


static void
hook_trust(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    llmgw_grpc_stream_trust(stream, 2 * LIMIT_BYTES);
}


/* The first message can make a stream trusted; until then the session's limit
   applies. */
static void
trusted_stream_has_a_limit_of_its_own(void **state)
{
    peer_t                   client = { 0 }, server = { 0 };
    llmgw_grpc_config_t      config = { .max_message_bytes = LIMIT_BYTES };
    llmgw_grpc_stream_t     *stream;
    llmgw_grpc_unfinished_t  unfinished = { .max_bytes = 10 };

    config.unfinished = &unfinished;
    pair_open(&client, &server, &config);
    server.on_message = hook_trust;
    server.on_end = hook_finish;
    server.read_bytes = 100;
    stream = peer_call(&client, PATH);
    peer_say(stream, "hi");
    peer_say_bytes(stream, 2 * LIMIT_BYTES);
    pair_run(&client, &server);
    assert_int_equal(server.ends, 0);
    assert_int_equal(server.len, 2 * LIMIT_BYTES);
    assert_int_equal(unfinished.bytes, 0);

    peer_say_bytes(stream, 2 * LIMIT_BYTES + 1);
    pair_run(&client, &server);
    assert_int_equal(server.ends, 1);
    assert_int_equal(server.status, LLMGW_GRPC_RESOURCE_EXHAUSTED);
    pair_close(&client, &server);
}


/* A request that is refused while it is still being sent is reset, and the
   session continues. */
static void
refused_request_may_still_send(void **state)
{
    raw_t           raw;
    peer_t          server;
    static uint8_t  body[200000];

    server_open(&server, &raw);
    raw_say(&raw, "POST", PATH, "text/plain", body, sizeof(body));
    raw_run(&raw, &server);
    assert_int_equal(raw.status, 415);
    assert_int_equal(raw.reset, NGHTTP2_NO_ERROR);

    raw_say(&raw, "POST", PATH, GRPC, "\0\0\0\0\0", 5);
    raw_run(&raw, &server);
    assert_int_equal(raw.status, 200);
    server_close(&server, &raw);
}


static void
header_fields_are_limited(void **state)
{
    size_t       n;
    raw_t        raw;
    peer_t       server;
    static char  type[16 * 1024];

    /* The bytes of all fields of raw_say() but content-type's value. */
    const size_t  others = 5 * 32 + 7 + 4 + 7 + 4 + 5 + strlen(PATH) + 10 + 4
                           + 12;

    for (n = 16 * 1024 - others; n <= 16 * 1024 - others + 1; n++) {
        server_open(&server, &raw);
        memset(type, 'x', n);
        memcpy(type, GRPC ";", strlen(GRPC ";"));
        type[n] = '\0';
        raw_say(&raw, "POST", PATH, type, "", 0);
        raw_run(&raw, &server);
        assert_int_equal(server.requests, n == 16 * 1024 - others);
        assert_int_equal(raw.status, server.requests ? 200 : 431);
        server_close(&server, &raw);
    }
}


static void
a_path_is_limited(void **state)
{
    size_t  n;
    raw_t   raw;
    peer_t  server;
    char    path[1024 + 2];

    for (n = 1024; n <= 1024 + 1; n++) {
        server_open(&server, &raw);
        memset(path, 'p', n);
        path[0] = '/';
        path[n] = '\0';
        raw_say(&raw, "POST", path, GRPC, "", 0);
        raw_run(&raw, &server);
        assert_int_equal(server.requests, n == 1024);
        assert_int_equal(raw.status, server.requests ? 200 : 414);
        server_close(&server, &raw);
    }
}


static void
request_told(const void *body, size_t body_bytes, const char *story)
{
    raw_t   raw;
    peer_t  server;

    server_open(&server, &raw);
    raw_say(&raw, "POST", PATH, GRPC, body, body_bytes);
    raw_run(&raw, &server);
    assert_int_equal(raw.status, 200);
    assert_int_equal(strncmp(server.log, "request " PATH " 0\n",
                             strlen("request " PATH " 0\n")), 0);
    assert_string_equal(server.log + strlen("request " PATH " 0\n"), story);
    server_close(&server, &raw);
}


static void
improper_request_ends_with_the_status_to_answer(void **state)
{
    static uint8_t  at_limit[5 + LIMIT_BYTES] = { 0, 0, 0, 3, 0xe8 };
    static uint8_t  beyond[5 + LIMIT_BYTES + 1] = { 0, 0, 0, 3, 0xe9 };

    request_told("", 0, "end OK \nclose 0\n");
    request_told(at_limit, sizeof(at_limit),
                 "message of 1000\nend OK \nclose 0\n");
    request_told(beyond, sizeof(beyond), "end RESOURCE_EXHAUSTED message is "
                 "larger than the limit\nclose 0\n");
    request_told("\0\xff\xff\xff\xff", 5, "end RESOURCE_EXHAUSTED message is "
                 "larger than the limit\nclose 0\n");
    request_told("\1\0\0\0\2hi", 7, "end UNIMPLEMENTED compressed messages "
                 "are not supported\nclose 0\n");
    request_told("\0\0\0\0\2hi\0\0", 9, "message hi\nend INVALID_ARGUMENT "
                 "request ended within a message\nclose 0\n");
    request_told("\0\0\0\0\3hi", 7, "end INVALID_ARGUMENT request ended "
                 "within a message\nclose 0\n");
}


static void
response_told(const char *http_status, const char *type, const void *body,
    size_t body_bytes, const char *story)
{
    raw_t                raw;
    peer_t               client = { 0 };
    llmgw_grpc_config_t  config = { .max_message_bytes = LIMIT_BYTES };

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    raw_open(&raw, 1, NULL, 0);
    llmgw_grpc_half_close(peer_call(&client, PATH));
    raw_run(&raw, &client);
    raw_say(&raw, NULL, http_status, type, body, body_bytes);
    raw_run(&raw, &client);
    assert_string_equal(client.log, story);
    nghttp2_session_del(raw.h2);
    llmgw_grpc_session_destroy(client.session);
}


static void
response_without_status_has_one_derived(void **state)
{
    static uint8_t  beyond[5 + LIMIT_BYTES + 1] = { 0, 0, 0, 3, 0xe9 };

    response_told("503", "text/html", "\0\0\0\0\2hi", 7,
                  "end UNAVAILABLE response has no grpc-status\nclose 0\n");
    response_told("404", GRPC, "\0\0\0\0\2hi", 7,
                  "end UNIMPLEMENTED response has no grpc-status\nclose 0\n");
    response_told("200", "text/html", "\0\0\0\0\2hi", 7,
                  "end UNKNOWN response has no grpc-status\nclose 0\n");
    response_told("200", GRPC, "\0\0\0\0\2hi", 7, "message hi\n"
                  "end UNKNOWN response has no grpc-status\nclose 0\n");
    response_told("200", GRPC, "\1\0\0\0\2hi", 7, "end INTERNAL compressed "
                  "messages are not supported\nclose 8\n");
    response_told("200", GRPC, beyond, sizeof(beyond), "end "
                  "INTERNAL message is larger than the limit\n"
                  "close 8\n");
}


/* Checks the callbacks for a response with a 100 before its headers, a message
   cut short, and trailers with an unusual status. */
static void
trailers_told(const char *grpc_status, const char *body, size_t body_bytes,
    const char *story)
{
    raw_t                raw;
    peer_t               client = { 0 };
    nghttp2_nv           nv[3];
    llmgw_grpc_config_t  config = plain;

    peer_config(&client, &config);
    client.session = llmgw_grpc_client_create(&config);
    raw_open(&raw, 1, NULL, 0);
    (void) peer_call(&client, PATH);
    raw_run(&raw, &client);

    raw_nv(&nv[0], ":status", "100");
    raw_nv(&nv[1], "x-early", "1");
    nghttp2_submit_headers(raw.h2, NGHTTP2_FLAG_NONE, 1, NULL, nv, 2, NULL);
    raw.is_open = 1;
    raw_say(&raw, NULL, "200", GRPC, body, body_bytes);
    raw_run(&raw, &client);

    raw_nv(&nv[0], "grpc-status", grpc_status);
    raw_nv(&nv[1], "grpc-message", "a%20b%zz%4");
    raw_nv(&nv[2], "x-late", "1");
    nghttp2_submit_trailer(raw.h2, 1, nv, 3);
    raw_run(&raw, &client);
    assert_string_equal(client.log, story);

    /* The request was not at its end, so that the stream is reset. */
    assert_int_equal(raw.reset, NGHTTP2_NO_ERROR);
    nghttp2_session_del(raw.h2);
    llmgw_grpc_session_destroy(client.session);
}


static void
trailers_have_the_last_word(void **state)
{
    trailers_told("0", "\0\0\0\0\2hi", 7, "message hi\ntrailer x-late=1\n"
                  "end OK a b%zz%4\nclose 0\n");
    trailers_told("9", "\0\0\0\0\2h", 6, "trailer x-late=1\n"
                  "end FAILED_PRECONDITION a b%zz%4\nclose 0\n");
    trailers_told("0", "\0\0\0\0\2h", 6, "trailer x-late=1\n"
                  "end INTERNAL response ended within a message\nclose 0\n");
    trailers_told("17", "\0\0\0\0\2hi", 7, "message hi\ntrailer x-late=1\n"
                  "end UNKNOWN a b%zz%4\nclose 0\n");
    trailers_told("OK", "\0\0\0\0\2hi", 7, "message hi\ntrailer x-late=1\n"
                  "end UNKNOWN a b%zz%4\nclose 0\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(request_that_is_not_grpc_is_never_told_of),
        cmocka_unit_test(unfinished_messages_have_one_limit),
        cmocka_unit_test(trusted_stream_has_a_limit_of_its_own),
        cmocka_unit_test(refused_request_may_still_send),
        cmocka_unit_test(header_fields_are_limited),
        cmocka_unit_test(a_path_is_limited),
        cmocka_unit_test(improper_request_ends_with_the_status_to_answer),
        cmocka_unit_test(response_without_status_has_one_derived),
        cmocka_unit_test(trailers_have_the_last_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

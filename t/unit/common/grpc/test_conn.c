
/*
 * A gRPC client and a gRPC server in one loop, over a real socket.
 *
 * The server's method: a request has the number of messages that answer it,
 * each one byte long; a request for 0 messages is never answered.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/grpc/conn.h"
#include "t/unit/common/loopback.h"


#define GIVE_UP_S  30
#define PORT       21400

typedef struct {
    struct ev_loop  *loop;
    grpc_server_t   *server;
    address_t        address;
    grpc_conn_t     *conn;              /* the client's */
    grpc_conn_t     *peer;              /* the server's, of the last call */

    int              messages;          /* received by the client */
    int              ends;
    int              status;
    int              closes;            /* of the client's streams */
    int              server_closes;
    int              closed;            /* of the client's connection */
    int              goaways;
    char             reason[64];
    int              destroy_at;        /* the message at which to destroy */
    int              order;             /* closed streams at on_closed */
} fixture_t;


/* --- the server */

static void
server_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    uint8_t     i;
    fixture_t  *f;

    llmgw_grpc_stream_consume(stream, wire_bytes);
    f = grpc_conn_data(llmgw_grpc_session_data(
                           llmgw_grpc_stream_session(stream)));
    f->peer = llmgw_grpc_session_data(llmgw_grpc_stream_session(stream));

    assert_int_equal(len, 1);

    for (i = 0; i < data[0]; i++) {
        assert_int_equal(llmgw_grpc_send_message(stream, &i, 1),
                         LLMGW_GRPC_DONE);
    }

    if (data[0] > 0) {
        assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL,
                                           0),
                         LLMGW_GRPC_DONE);
    }
}


static void
server_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    fixture_t  *f;

    f = grpc_conn_data(llmgw_grpc_session_data(
                           llmgw_grpc_stream_session(stream)));
    f->server_closes++;
}


static const llmgw_grpc_callbacks_t  server_callbacks = {
    .on_message = server_on_message,
    .on_close = server_on_close
};


/* --- the client */

static void
client_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    fixture_t  *f;

    f = llmgw_grpc_stream_data(stream);
    f->messages++;
    llmgw_grpc_stream_consume(stream, wire_bytes);

    if (f->messages == f->destroy_at) {
        grpc_conn_destroy(f->conn);
        f->conn = NULL;
    }
}


static void
client_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    fixture_t  *f;

    f = llmgw_grpc_stream_data(stream);
    f->ends++;
    f->status = status;
}


static void
client_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    fixture_t  *f;

    f = llmgw_grpc_stream_data(stream);
    f->closes++;
}


static void
client_on_goaway(llmgw_grpc_session_t *session)
{
    fixture_t  *f;

    f = grpc_conn_data(llmgw_grpc_session_data(session));
    f->goaways++;
}


static void
client_on_closed(grpc_conn_t *conn, const char *reason)
{
    fixture_t  *f;

    f = grpc_conn_data(conn);
    assert_ptr_equal(f->conn, conn);
    assert_null(grpc_conn_session(conn));
    f->conn = NULL;
    f->closed++;
    f->order = f->closes;
    snprintf(f->reason, sizeof(f->reason), "%s",
             reason != NULL ? reason : "(end)");
}


static const llmgw_grpc_callbacks_t  client_callbacks = {
    .on_message = client_on_message,
    .on_end = client_on_end,
    .on_close = client_on_close,
    .on_goaway = client_on_goaway
};


static grpc_conn_t *
connect_client(fixture_t *f)
{
    llmgw_grpc_config_t  config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &client_callbacks;
    config.data = f;

    return grpc_conn_connect(f->loop, &f->address, &config, 5000,
                             client_on_closed);
}


static void
call(fixture_t *f, uint8_t answers)
{
    llmgw_grpc_call_t     c;
    llmgw_grpc_stream_t  *stream;

    memset(&c, 0, sizeof(c));
    c.path = "/test.Test/Count";
    c.authority = "test";
    c.data = f;

    assert_int_equal(llmgw_grpc_call(grpc_conn_session(f->conn), &c, &stream),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_send_message(stream, &answers, 1),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_half_close(stream), LLMGW_GRPC_DONE);
    grpc_conn_wake(f->conn);
}


/* --- the fixture */

static grpc_server_t *
listen_somewhere(fixture_t *f, size_t max_conns)
{
    char                  error[256];
    llmgw_grpc_config_t   config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = f;

    assert_int_equal(address_parse(loopback(PORT), &f->address), 0);

    return grpc_server_create(f->loop, &f->address, &config, max_conns, error);
}


static int
setup_of(void **state, size_t max_conns)
{
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    f->server = listen_somewhere(f, max_conns);
    f->conn = connect_client(f);
    *state = f;

    return f->server != NULL && f->conn != NULL ? 0 : -1;
}


static int
setup(void **state)
{
    return setup_of(state, 1000);
}


static int
setup_one(void **state)
{
    return setup_of(state, 1);
}


static int
teardown(void **state)
{
    fixture_t  *f;

    f = *state;

    if (f->conn != NULL) {
        grpc_conn_destroy(f->conn);
    }

    if (f->server != NULL) {
        grpc_server_destroy(f->server);
    }

    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


static void
turn_until(fixture_t *f, const int *fact, int value)
{
    ev_tstamp  begun;

    for (begun = ev_time(); *fact != value; ) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(f->loop, EVRUN_NOWAIT);
    }
}


/* --- tests */

static void
calls_made_before_the_connection_stands_are_answered(void **state)
{
    int         i;
    fixture_t  *f;

    f = *state;

    for (i = 0; i < 50; i++) {
        call(f, 10);
    }

    turn_until(f, &f->closes, 50);
    assert_int_equal(f->messages, 500);
    assert_int_equal(f->ends, 50);
    assert_int_equal(f->status, LLMGW_GRPC_OK);
    assert_int_equal(f->closed, 0);
    assert_int_equal(grpc_server_conns(f->server), 1);
}


static void
what_a_timer_queues_leaves_in_the_same_turn(void **state)
{
    fixture_t  *f;

    f = *state;
    call(f, 1);
    turn_until(f, &f->closes, 1);

    /* Nothing is readable and no timer runs: only the wake-up sends the
       request. */

    call(f, 1);
    ev_run(f->loop, EVRUN_NOWAIT);
    assert_false(llmgw_grpc_session_wants_write(grpc_conn_session(f->conn)));
    turn_until(f, &f->closes, 2);
}


static void
a_refused_connection_ends_its_calls_and_says_so(void **state)
{
    fixture_t  *f;

    f = *state;
    grpc_conn_destroy(f->conn);
    grpc_server_destroy(f->server);
    f->server = NULL;

    f->conn = connect_client(f);
    assert_non_null(f->conn);
    call(f, 1);
    call(f, 1);
    assert_int_equal(f->closed, 0);

    turn_until(f, &f->closed, 1);
    assert_string_equal(f->reason, strerror(ECONNREFUSED));
    assert_int_equal(f->closes, 2);
    assert_int_equal(f->order, 2);
    assert_int_equal(f->ends, 0);
}


static void
a_bound_server_refuses_until_it_listens(void **state)
{
    char                  error[256];
    fixture_t            *f;
    llmgw_grpc_config_t   config;

    f = *state;
    grpc_conn_destroy(f->conn);
    grpc_server_destroy(f->server);

    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = f;
    f->server = grpc_server_bind(f->loop, &f->address, &config, 1, error);
    assert_non_null(f->server);
    grpc_server_goaway(f->server);

    f->conn = connect_client(f);
    turn_until(f, &f->closed, 1);
    assert_string_equal(f->reason, strerror(ECONNREFUSED));

    assert_int_equal(grpc_server_listen(f->server, error), 0);
    f->conn = connect_client(f);
    call(f, 3);
    turn_until(f, &f->ends, 1);
    assert_int_equal(f->messages, 3);
}


static void
destroying_within_a_message_ends_every_stream_once(void **state)
{
    fixture_t  *f;

    f = *state;
    call(f, 0);
    call(f, 10);
    call(f, 10);
    f->destroy_at = 3;

    turn_until(f, &f->closes, 3);
    assert_null(f->conn);
    assert_int_equal(f->closed, 0);
    turn_until(f, &f->server_closes, 3);

    while (grpc_server_conns(f->server) > 0) {
        ev_run(f->loop, EVRUN_ONCE);
    }

    assert_int_equal(f->closes, 3);
}


static void
a_lost_server_is_told_after_the_streams(void **state)
{
    fixture_t  *f;

    f = *state;
    call(f, 0);
    call(f, 1);
    turn_until(f, &f->ends, 1);

    grpc_conn_destroy(f->peer);
    turn_until(f, &f->closed, 1);
    assert_string_equal(f->reason, "connection closed by the peer");
    assert_int_equal(f->order, 2);
    assert_int_equal(grpc_server_conns(f->server), 0);
}


static void
goaway_lets_streams_finish_and_then_closes(void **state)
{
    fixture_t  *f;

    f = *state;
    call(f, 0);
    call(f, 1);
    turn_until(f, &f->ends, 1);

    grpc_server_goaway(f->server);
    turn_until(f, &f->goaways, 1);
    assert_int_equal(f->closes, 1);
    assert_false(llmgw_grpc_session_can_call(grpc_conn_session(f->conn)));
    assert_int_equal(grpc_server_conns(f->server), 1);

    /* The stream that is never answered ends together with its session. */

    grpc_conn_destroy(f->peer);
    turn_until(f, &f->closed, 1);
    assert_int_equal(grpc_server_conns(f->server), 0);
    teardown(state);

    setup(state);
    f = *state;
    call(f, 1);
    turn_until(f, &f->closes, 1);
    grpc_server_goaway(f->server);
    turn_until(f, &f->closed, 1);
    assert_string_equal(f->reason, "(end)");

    f->conn = connect_client(f);
    turn_until(f, &f->closed, 2);
    assert_string_equal(f->reason, strerror(ECONNREFUSED));
}


static void
one_connection_too_many_waits_for_a_place(void **state)
{
    int           i;
    fixture_t    *f;
    grpc_conn_t  *first;

    f = *state;
    call(f, 1);
    turn_until(f, &f->closes, 1);

    first = f->conn;
    f->conn = connect_client(f);
    call(f, 1);

    for (i = 0; i < 1000; i++) {
        ev_run(f->loop, EVRUN_NOWAIT);
    }

    assert_int_equal(f->closes, 1);
    assert_int_equal(grpc_server_conns(f->server), 1);

    grpc_conn_destroy(first);
    turn_until(f, &f->closes, 2);
}


/* A client that does not speak HTTP/2. */
static void
garbage_costs_its_sender_the_connection_and_nobody_else(void **state)
{
    int         fd;
    char        buf[4096];
    ssize_t     n;
    ev_tstamp   begun;
    fixture_t  *f;

    f = *state;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &f->address.ss,
                             f->address.len), 0);
    memset(buf, 'x', sizeof(buf));
    assert_int_equal(send(fd, buf, sizeof(buf), 0), sizeof(buf));

    for (begun = ev_time(), n = -1; n != 0; ) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(f->loop, EVRUN_NOWAIT);
        n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

        if (n < 0 && errno == ECONNRESET) {
            n = 0;
        }
    }

    close(fd);

    call(f, 3);
    turn_until(f, &f->closes, 1);
    assert_int_equal(f->messages, 3);
}


static void
a_taken_address_is_an_error_with_its_name(void **state)
{
    char                  error[256], text[ADDRESS_TEXT_BYTES];
    fixture_t            *f;
    llmgw_grpc_config_t   config;

    f = *state;
    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;

    assert_null(grpc_server_create(f->loop, &f->address, &config, 1, error));
    address_format(&f->address, text);
    assert_non_null(strstr(error, text));
    assert_non_null(strstr(error, "Address already in use"));
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(calls_made_before_the_connection_stands_are_answered),
        TEST(what_a_timer_queues_leaves_in_the_same_turn),
        TEST(a_refused_connection_ends_its_calls_and_says_so),
        TEST(a_bound_server_refuses_until_it_listens),
        TEST(destroying_within_a_message_ends_every_stream_once),
        TEST(a_lost_server_is_told_after_the_streams),
        TEST(goaway_lets_streams_finish_and_then_closes),
        cmocka_unit_test_setup_teardown(
            one_connection_too_many_waits_for_a_place, setup_one, teardown),
        TEST(garbage_costs_its_sender_the_connection_and_nobody_else),
        TEST(a_taken_address_is_an_error_with_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

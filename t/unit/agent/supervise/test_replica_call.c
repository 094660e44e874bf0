
/* Drain and Undrain calls to a server in the same loop, over real sockets. */

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

#include "supervise/replica_call.h"
#include "common/grpc/conn.h"
#include "t/unit/common/loopback.h"


#define PORT  21500
#define PATHS_MAX   8

typedef struct {
    struct ev_loop       *loop;
    grpc_server_t        *server;
    address_t             address;
    replica_call_t       *call;
    llmgw_grpc_status_t   answer;           /* of the server */
    int                   is_silent;        /* the server does not answer */
    int                   nasked;
    char                  asked[PATHS_MAX][64];
    address_t             peer;             /* the last caller */
    int                   ndone;
    replica_call_verb_t   verb;
    int                   status;
} fixture_t;


static void
server_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    assert_int_equal(len, 0);
    llmgw_grpc_stream_consume(stream, wire_bytes);
}


static void
server_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    fixture_t    *f;
    grpc_conn_t  *conn;

    conn = llmgw_grpc_session_data(llmgw_grpc_stream_session(stream));
    f = grpc_conn_data(conn);
    grpc_conn_peer(conn, &f->peer);
    assert_true(f->nasked < PATHS_MAX);
    snprintf(f->asked[f->nasked++], sizeof(f->asked[0]), "%s",
             llmgw_grpc_stream_path(stream));

    if (!f->is_silent) {
        llmgw_grpc_finish(stream, f->answer, NULL, NULL, 0);
    }
}


static const llmgw_grpc_callbacks_t  server_callbacks = {
    .on_message = server_message,
    .on_end = server_end
};


static void
done(void *data, replica_call_verb_t verb, int status, const char *message)
{
    fixture_t  *f = data;

    f->ndone++;
    f->verb = verb;
    f->status = status;
    assert_true(status != -1 || message[0] != '\0');
    ev_break(f->loop, EVBREAK_ALL);
}


static int
setup(void **state)
{
    char                 error[256];
    fixture_t           *f;
    llmgw_grpc_config_t  config;

    static const grpc_conn_options_t  plain;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(0);
    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = f;
    config.max_message_bytes = 64;
    config.max_streams = 8;

    assert_int_equal(address_parse(loopback(PORT), &f->address), 0);
    f->server = grpc_server_create(f->loop, &f->address, &config, 8, error);
    assert_non_null(f->server);
    f->call = replica_call_create(f->loop, &f->address, &plain, done, f);
    *state = f;

    return 0;
}


static int
teardown(void **state)
{
    fixture_t  *f = *state;

    replica_call_destroy(f->call);

    if (f->server != NULL) {
        grpc_server_destroy(f->server);
    }

    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


static void
both_are_said_and_answered(void **state)
{
    char        text[ADDRESS_TEXT_BYTES];
    fixture_t  *f = *state;

    replica_call_say(f->call, REPLICA_CALL_DRAIN);
    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 1);
    assert_int_equal(f->verb, REPLICA_CALL_DRAIN);
    assert_int_equal(f->status, LLMGW_GRPC_OK);
    assert_string_equal(f->asked[0], "/llmgateway.LLMReplica/Drain");

    /* The call comes from 127.0.0.1, and not from the server's own address,
       which the kernel would choose. */
    address_set_port(&f->peer, 1);
    address_format(&f->peer, text);
    assert_string_equal(text, "127.0.0.1:1");

    replica_call_say(f->call, REPLICA_CALL_UNDRAIN);
    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 2);
    assert_int_equal(f->verb, REPLICA_CALL_UNDRAIN);
    assert_string_equal(f->asked[1], "/llmgateway.LLMReplica/Undrain");
}


static void
any_status_is_an_answer(void **state)
{
    fixture_t  *f = *state;

    f->answer = LLMGW_GRPC_UNIMPLEMENTED;
    replica_call_say(f->call, REPLICA_CALL_DRAIN);
    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 1);
    assert_int_equal(f->status, LLMGW_GRPC_UNIMPLEMENTED);
    assert_int_equal(f->nasked, 1);
}


static void
nobody_there_is_tried_five_times(void **state)
{
    ev_tstamp   begin;
    fixture_t  *f = *state;

    grpc_server_destroy(f->server);
    f->server = NULL;
    ev_now_update(f->loop);
    begin = ev_now(f->loop);
    replica_call_say(f->call, REPLICA_CALL_DRAIN);
    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 1);
    assert_int_equal(f->status, -1);
    assert_true(ev_now(f->loop) - begin
                > REPLICA_CALL_PAUSE_S * (REPLICA_CALL_TRIES - 1) - 0.05);
}


static void
silence_is_asked_again(void **state)
{
    fixture_t  *f = *state;

    f->is_silent = 1;
    replica_call_say(f->call, REPLICA_CALL_DRAIN);

    while (f->nasked < 2) {
        ev_run(f->loop, EVRUN_ONCE);
        f->is_silent = f->nasked == 0;
    }

    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 1);
    assert_int_equal(f->status, LLMGW_GRPC_OK);
}


static void
later_word_counts_and_what_is_dropped_is_not_told(void **state)
{
    fixture_t  *f = *state;

    f->is_silent = 1;
    replica_call_say(f->call, REPLICA_CALL_DRAIN);

    while (f->nasked == 0) {
        ev_run(f->loop, EVRUN_ONCE);
    }

    f->is_silent = 0;
    replica_call_say(f->call, REPLICA_CALL_UNDRAIN);
    ev_run(f->loop, 0);
    assert_int_equal(f->ndone, 1);
    assert_int_equal(f->verb, REPLICA_CALL_UNDRAIN);

    replica_call_say(f->call, REPLICA_CALL_DRAIN);
    replica_call_drop(f->call);
    ev_run(f->loop, EVRUN_NOWAIT);
    assert_int_equal(f->ndone, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(both_are_said_and_answered, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(any_status_is_an_answer, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_there_is_tried_five_times,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_asked_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            later_word_counts_and_what_is_dropped_is_not_told, setup,
            teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * Connections of a server whose peers have not sent anything yet: how many are
 * kept for one address, and for how long.
 *
 * The clients are plain sockets, so that they send just what the test wants.
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
#include "common/os/descriptors.h"
#include "t/unit/common/loopback.h"


#define GIVE_UP_S    30
#define PORT         21450
#define NEW_MAX      32
#define WAITING_MAX  1024
#define CLIENTS      (NEW_MAX + WAITING_MAX + 2)

/* The preface, and SETTINGS without any. */
static const uint8_t  hello[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

typedef struct {
    struct ev_loop  *loop;
    grpc_server_t   *server;
    address_t        address;
    int              fds[CLIENTS];
    size_t           n;
    int              refused;
} fixture_t;


static void
on_refused(void *data, const address_t *peer, const char *reason)
{
    fixture_t  *f;

    f = data;
    assert_true(address_is_loopback(peer));
    assert_non_null(strstr(reason, "have sent nothing"));
    f->refused++;
}


static int
setup_with(void **state, uint64_t timeout_ms)
{
    char                           error[256];
    fixture_t                     *f;
    grpc_conn_options_t            options = { 0 };
    llmgw_grpc_config_t            config = { 0 };
    static llmgw_grpc_callbacks_t  callbacks;

    descriptors_raise();
    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    config.callbacks = &callbacks;
    config.data = f;

    assert_int_equal(address_parse(loopback(PORT), &f->address), 0);
    f->server = grpc_server_create(f->loop, &f->address, &config, 5000, error);
    assert_non_null(f->server);

    options.handshake_timeout_ms = timeout_ms;
    options.on_refused = on_refused;
    options.refused_data = f;
    grpc_server_set_options(f->server, &options);
    *state = f;

    return 0;
}


static int
setup(void **state)
{
    return setup_with(state, 1000 * GIVE_UP_S);
}


static int
setup_short(void **state)
{
    return setup_with(state, 50);
}


static int
teardown(void **state)
{
    size_t      i;
    fixture_t  *f;

    f = *state;

    if (f->server != NULL) {
        grpc_server_destroy(f->server);
    }

    for (i = 0; i < f->n; i++) {
        close(f->fds[i]);
    }

    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


/* --- clients */

static void
turn(fixture_t *f)
{
    ev_run(f->loop, EVRUN_NOWAIT);
}


static void
turn_until_conns(fixture_t *f, size_t n)
{
    ev_tstamp  begun;

    for (begun = ev_time(); grpc_server_conns(f->server) != n; turn(f)) {
        assert_true(ev_time() < begun + GIVE_UP_S);
    }
}


/* Runs until the server has n connections, and checks that it keeps them. */
static void
stays_at_conns(fixture_t *f, size_t n)
{
    int  i;

    turn_until_conns(f, n);

    for (i = 0; i < 200; i++) {
        turn(f);
        assert_int_equal(grpc_server_conns(f->server), n);
    }
}


static int
connect_from(fixture_t *f, const char *source)
{
    int        fd;
    address_t  address;

    assert_int_equal(address_parse(source, &address), 0);
    address_set_port(&address, 0);

    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &address.ss, address.len),
                     0);
    assert_int_equal(connect(fd, (struct sockaddr *) &f->address.ss,
                             f->address.len), 0);
    assert_true(f->n < CLIENTS);
    f->fds[f->n++] = fd;
    turn(f);

    return fd;
}


static void
connect_many(fixture_t *f, int n)
{
    while (n-- > 0) {
        (void) connect_from(f, "127.0.0.1:1");
    }
}


static void
say_hello(int fd)
{
    assert_int_equal(send(fd, hello, sizeof(hello) - 1, 0),
                     sizeof(hello) - 1);
}


/* Closes the first client that is still open. */
static void
close_first(fixture_t *f)
{
    close(f->fds[0]);
    f->n--;
    memmove(f->fds, f->fds + 1, f->n * sizeof(int));
}


static int
is_closed(int fd)
{
    char     buf[256];
    ssize_t  n;

    do {
        n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
    } while (n > 0);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}


/* The server's SETTINGS. */
static void
turn_until_answered(fixture_t *f, int fd)
{
    char       byte;
    ev_tstamp  begun;

    for (begun = ev_time(); recv(fd, &byte, 1, MSG_DONTWAIT) != 1; turn(f)) {
        assert_true(ev_time() < begun + GIVE_UP_S);
    }
}


/* --- tests */

static void
an_address_has_32_new_connections_and_others_wait(void **state)
{
    fixture_t  *f;

    f = *state;
    connect_many(f, NEW_MAX - 1);
    stays_at_conns(f, NEW_MAX - 1);
    connect_many(f, 1);
    stays_at_conns(f, NEW_MAX);
    connect_many(f, 2);
    stays_at_conns(f, NEW_MAX);

    say_hello(f->fds[5]);               /* it is no longer new */
    stays_at_conns(f, NEW_MAX + 1);
    close_first(f);
    stays_at_conns(f, NEW_MAX + 1);     /* the next one has its place */
    close_first(f);
    stays_at_conns(f, NEW_MAX);
    assert_int_equal(f->refused, 0);
}


static void
one_that_waits_is_served_when_its_turn_comes(void **state)
{
    int         fd;
    fixture_t  *f;

    f = *state;
    connect_many(f, NEW_MAX);
    fd = connect_from(f, "127.0.0.1:1");
    say_hello(fd);
    stays_at_conns(f, NEW_MAX);
    close_first(f);
    turn_until_answered(f, fd);
}


static void
clients_that_speak_are_not_limited(void **state)
{
    size_t      i;
    fixture_t  *f;

    f = *state;

    for (i = 0; i < 10 * NEW_MAX; i++) {
        say_hello(connect_from(f, "127.0.0.1:1"));
    }

    turn_until_conns(f, 10 * NEW_MAX);

    for (i = 0; i < 10 * NEW_MAX; i++) {
        turn_until_answered(f, f->fds[i]);
    }
}


static void
another_address_is_served_meanwhile(void **state)
{
    int         fd;
    fixture_t  *f;

    f = *state;
    connect_many(f, NEW_MAX + 3);
    fd = connect_from(f, "127.0.0.2:1");
    say_hello(fd);
    turn_until_answered(f, fd);
    stays_at_conns(f, NEW_MAX + 1);
}


static void
a_client_that_says_nothing_in_time_is_let_go(void **state)
{
    int         fd;
    fixture_t  *f;

    f = *state;
    fd = connect_from(f, "127.0.0.2:1");
    say_hello(fd);
    turn_until_answered(f, fd);
    connect_many(f, 2 * NEW_MAX);
    assert_int_equal(send(f->fds[1], hello, 10, 0), 10);    /* half of it */
    turn_until_conns(f, 1);
    assert_false(is_closed(fd));
    assert_true(is_closed(f->fds[1]));
}


static void
a_thousand_may_wait_and_one_more_is_refused(void **state)
{
    int         fd;
    fixture_t  *f;

    f = *state;
    connect_many(f, NEW_MAX + WAITING_MAX);
    stays_at_conns(f, NEW_MAX);
    assert_int_equal(f->refused, 0);

    fd = connect_from(f, "127.0.0.1:1");
    stays_at_conns(f, NEW_MAX);
    assert_true(is_closed(fd));
    fd = connect_from(f, "127.0.0.1:1");
    stays_at_conns(f, NEW_MAX);
    assert_true(is_closed(fd));
    assert_int_equal(f->refused, 1);    /* counted once a minute */
}


static void
what_waits_ends_with_the_server(void **state)
{
    size_t      i;
    fixture_t  *f;

    f = *state;
    connect_many(f, 2 * NEW_MAX);
    stays_at_conns(f, NEW_MAX);
    grpc_server_goaway(f->server);

    for (i = NEW_MAX; i < 2 * NEW_MAX; i++) {
        assert_true(is_closed(f->fds[i]));
    }

    stays_at_conns(f, NEW_MAX);
    grpc_server_destroy(f->server);
    f->server = NULL;
    assert_true(is_closed(f->fds[0]));
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(an_address_has_32_new_connections_and_others_wait),
        TEST(one_that_waits_is_served_when_its_turn_comes),
        TEST(clients_that_speak_are_not_limited),
        TEST(another_address_is_served_meanwhile),
        cmocka_unit_test_setup_teardown(
            a_client_that_says_nothing_in_time_is_let_go, setup_short,
            teardown),
        TEST(a_thousand_may_wait_and_one_more_is_refused),
        TEST(what_waits_ends_with_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

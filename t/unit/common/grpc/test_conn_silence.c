
/*
 * What a connection does about a peer that sends nothing: it sends a PING,
 * then it ends.
 *
 * The peer is a bare socket, which the test reads and writes frame by frame.
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
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/grpc/conn.h"
#include "common/listener.h"


#define GIVE_UP_S     20
#define PING_MS       20
#define ANSWER_MS     60
#define PREFACE       24        /* bytes before a client's first frame */
#define FRAME_HEAD    9
#define FRAME_PING    6
#define FLAG_ACK      1
#define DAY           86400

typedef struct {
    struct ev_loop        *loop;
    address_t              address;
    int                    listen_fd;
    int                    fd;              /* the bare peer's */
    grpc_conn_t           *conn;
    grpc_server_t         *server;
    uint8_t                in[4096];        /* what the bare peer has read */
    size_t                 in_bytes;
    size_t                 parsed;
    int                    pings;
    int                    answers;         /* how many PINGs get an ACK */
    int                    closed;
    char                   reason[64];
    grpc_conn_options_t    options;
} scene_t;

static const llmgw_grpc_callbacks_t  callbacks;

static int  days;                   /* by which the wall clock is ahead */


/* In place of the C library's, from which libev takes the wall clock. */
int
gettimeofday(struct timeval *now, void *zone)
{
    struct timespec  real;

    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + (time_t) days * DAY;
    now->tv_usec = real.tv_nsec / 1000;

    return 0;
}


static void
on_closed(grpc_conn_t *conn, const char *reason)
{
    scene_t  *s;

    s = grpc_conn_data(conn);
    s->conn = NULL;
    s->closed++;
    snprintf(s->reason, sizeof(s->reason), "%s", reason != NULL ? reason : "");
}


static int
setup(void **state)
{
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    s->loop = ev_loop_new(EVFLAG_AUTO);
    s->listen_fd = -1;
    s->fd = -1;
    s->options.ping_ms = PING_MS;
    s->options.answer_ms = ANSWER_MS;
    *state = s;

    return 0;
}


static int
teardown(void **state)
{
    scene_t  *s;

    s = *state;

    if (s->conn != NULL) {
        grpc_conn_destroy(s->conn);
    }

    if (s->server != NULL) {
        grpc_server_destroy(s->server);
    }

    if (s->fd != -1) {
        close(s->fd);
    }

    if (s->listen_fd != -1) {
        close(s->listen_fd);
    }

    ev_loop_destroy(s->loop);
    free(s);

    return 0;
}


/* A listening socket on a port that the kernel chooses. */
static void
listen_bare(scene_t *s)
{
    assert_int_equal(address_parse("127.0.0.1:1", &s->address), 0);
    address_set_port(&s->address, 0);
    s->listen_fd = listener_socket(&s->address);
    assert_true(s->listen_fd != -1);
    assert_int_equal(listen(s->listen_fd, 8), 0);
    assert_int_equal(getsockname(s->listen_fd,
                                 (struct sockaddr *) &s->address.ss,
                                 &s->address.len), 0);
}


static void
connect_to_bare(scene_t *s)
{
    llmgw_grpc_config_t  config;

    listen_bare(s);
    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.data = s;
    s->conn = grpc_conn_connect_with(s->loop, &s->address, &s->options,
                                     &config, 5000, on_closed);
    assert_non_null(s->conn);
    s->fd = accept(s->listen_fd, NULL, NULL);
    assert_true(s->fd != -1);
    s->parsed = PREFACE;
}


static void
send_ping(scene_t *s, int flags, const uint8_t *opaque)
{
    uint8_t  frame[FRAME_HEAD + 8] = { 0, 0, 8, FRAME_PING, flags };

    memcpy(frame + FRAME_HEAD, opaque, 8);
    assert_int_equal(send(s->fd, frame, sizeof(frame), MSG_NOSIGNAL),
                     sizeof(frame));
}


/* Reads the frames that have come, and counts PINGs; the first ones are
   answered, as many as the scene allows. */
static void
read_frames(scene_t *s)
{
    size_t    len;
    ssize_t   n;
    uint8_t  *frame;

    n = recv(s->fd, s->in + s->in_bytes, sizeof(s->in) - s->in_bytes,
             MSG_DONTWAIT);
    s->in_bytes += n > 0 ? (size_t) n : 0;

    while (s->parsed + FRAME_HEAD <= s->in_bytes) {
        frame = s->in + s->parsed;
        len = (size_t) frame[0] << 16 | frame[1] << 8 | frame[2];

        if (s->parsed + FRAME_HEAD + len > s->in_bytes) {
            return;
        }

        if (frame[3] == FRAME_PING && !(frame[4] & FLAG_ACK)) {
            s->pings++;

            if (s->pings <= s->answers) {
                send_ping(s, FLAG_ACK, frame + FRAME_HEAD);
            }
        }

        s->parsed += FRAME_HEAD + len;
    }

    if (s->parsed == s->in_bytes) {
        s->parsed = s->in_bytes = 0;
    }
}


static void
turn_until(scene_t *s, const int *fact, int value)
{
    ev_tstamp  begun;

    for (begun = ev_time(); *fact < value; read_frames(s)) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(s->loop, EVRUN_NOWAIT);
        usleep(500);
    }
}


/* --- tests */

static void
a_peer_that_answers_pings_stays_and_one_that_stops_is_gone(void **state)
{
    scene_t    *s;
    ev_tstamp   begun;

    static const uint8_t  settings[FRAME_HEAD] = { 0, 0, 0, 4 };

    s = *state;
    s->answers = 5;
    begun = ev_now(s->loop);
    connect_to_bare(s);
    assert_int_equal(send(s->fd, settings, sizeof(settings), 0),
                     sizeof(settings));

    turn_until(s, &s->pings, 6);
    assert_int_equal(s->closed, 0);
    assert_true(ev_time() - begun >= 0.9 * 6 * PING_MS / 1000);

    turn_until(s, &s->closed, 1);
    assert_string_equal(s->reason, "the peer does not answer a PING");
    assert_int_equal(s->pings, 6);
}


/* Any byte of the peer is a sign of life. */
static void
a_peer_that_speaks_is_not_asked(void **state)
{
    scene_t    *s;
    ev_tstamp   begun, now, spoken, longest_s;

    static const uint8_t  settings[FRAME_HEAD] = { 0, 0, 0, 4 };

    s = *state;
    s->options.ping_ms = 100;
    begun = spoken = ev_now(s->loop);
    connect_to_bare(s);
    assert_int_equal(send(s->fd, settings, sizeof(settings), 0),
                     sizeof(settings));
    longest_s = 0;

    for (now = begun; now < begun + 0.5; now = ev_time()) {
        longest_s = now - spoken > longest_s ? now - spoken : longest_s;
        spoken = now;
        send_ping(s, 0, (const uint8_t *) "whatever");
        ev_run(s->loop, EVRUN_NOWAIT);
        read_frames(s);
        usleep(1000);
    }

    /* If the machine stopped this test for so long, the peer was silent. */

    assert_true(s->pings == 0 || longest_s > 0.09);
    assert_int_equal(s->closed, 0);
}


/* The loop itself stood still: an ACK that came meanwhile counts. */
static void
an_answer_that_waits_in_the_socket_counts(void **state)
{
    scene_t  *s;

    static const uint8_t  settings[FRAME_HEAD] = { 0, 0, 0, 4 };

    s = *state;
    s->answers = 1;
    connect_to_bare(s);
    assert_int_equal(send(s->fd, settings, sizeof(settings), 0),
                     sizeof(settings));
    turn_until(s, &s->pings, 1);
    usleep(2 * (PING_MS + ANSWER_MS) * 1000);
    ev_run(s->loop, EVRUN_NOWAIT);
    assert_int_equal(s->closed, 0);
    turn_until(s, &s->pings, 2);
    assert_int_equal(s->closed, 0);
}


static void
a_clock_that_is_set_back_hides_no_silence(void **state)
{
    int       i;
    scene_t  *s;

    static const uint8_t  settings[FRAME_HEAD] = { 0, 0, 0, 4 };

    s = *state;
    s->options.ping_ms = 1000;      /* libev looks after half a second */
    connect_to_bare(s);
    assert_int_equal(send(s->fd, settings, sizeof(settings), 0),
                     sizeof(settings));

    for (i = 0; i < 20; i++) {      /* read what the peer sent */
        ev_run(s->loop, EVRUN_NOWAIT);
        usleep(1000);
    }

    days = -1;
    turn_until(s, &s->pings, 1);
    days = 0;
}


static void
a_server_gives_up_a_silent_client(void **state)
{
    int                   is_gone;
    char                  error[256];
    scene_t              *s;
    ev_tstamp             begun;
    llmgw_grpc_config_t   config;

    /* A client's preface, and SETTINGS without any. */
    static const char  hello[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

    s = *state;
    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.data = s;

    listen_bare(s);
    close(s->listen_fd);
    s->listen_fd = -1;
    s->server = grpc_server_create(s->loop, &s->address, &config, 8, error);
    assert_non_null(s->server);
    grpc_server_set_options(s->server, &s->options);

    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(s->fd, (struct sockaddr *) &s->address.ss,
                             s->address.len), 0);
    assert_int_equal(send(s->fd, hello, sizeof(hello) - 1, 0),
                     sizeof(hello) - 1);
    turn_until(s, &s->pings, 1);
    assert_int_equal(grpc_server_conns(s->server), 1);

    begun = ev_time();

    for (is_gone = 0; !is_gone; ) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(s->loop, EVRUN_NOWAIT);
        is_gone = grpc_server_conns(s->server) == 0;
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            a_peer_that_answers_pings_stays_and_one_that_stops_is_gone, setup,
            teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_speaks_is_not_asked,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_answer_that_waits_in_the_socket_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_clock_that_is_set_back_hides_no_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_gives_up_a_silent_client,
                                        setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

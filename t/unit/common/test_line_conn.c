
/*
 * Lines over a socket pair: one end is a line_conn, the other a plain
 * descriptor of this test.
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

#include "common/line_conn.h"


#define TURNS_MAX  100000       /* iterations before a test gives up */

typedef struct {
    struct ev_loop  *loop;
    line_conn_t     *conn;
    int              peer;
    int              lines;
    size_t           longest;
    char             last[256];
    int              closes;
    char             reason[64];
    const char      *destroy_at;    /* the line at which to destroy */
    int              echo;
} fixture_t;


static void
on_line(line_conn_t *conn, char *line, size_t len)
{
    fixture_t  *f;

    f = line_conn_data(conn);
    f->lines++;
    f->longest = len > f->longest ? len : f->longest;
    snprintf(f->last, sizeof(f->last), "%s", line);
    assert_int_equal(strlen(line), len);

    if (f->echo) {
        assert_int_equal(line_conn_send(conn, line, len), 0);
    }

    if (f->destroy_at != NULL && strcmp(line, f->destroy_at) == 0) {
        line_conn_destroy(conn);
        f->conn = NULL;
    }
}


static void
on_close(line_conn_t *conn, const char *reason)
{
    fixture_t  *f;

    f = line_conn_data(conn);
    f->closes++;
    f->conn = NULL;
    snprintf(f->reason, sizeof(f->reason), "%s",
             reason != NULL ? reason : "(end)");
}


static const line_conn_callbacks_t  callbacks = { on_line, on_close };


static int
setup(void **state)
{
    int         fds[2];
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fds) != 0) {
        return -1;
    }

    f->peer = fds[1];
    f->conn = line_conn_create(f->loop, fds[0], &callbacks, f);
    *state = f;

    return f->conn == NULL ? -1 : 0;
}


static int
teardown(void **state)
{
    fixture_t  *f;

    f = *state;

    if (f->conn != NULL) {
        line_conn_destroy(f->conn);
    }

    close(f->peer);
    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


static void
turn(fixture_t *f)
{
    ev_run(f->loop, EVRUN_NOWAIT);
}


static void
say(fixture_t *f, const char *data, size_t len)
{
    size_t   sent;
    ssize_t  n;

    for (sent = 0; sent < len && f->closes == 0; turn(f)) {
        n = send(f->peer, data + sent, len - sent, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t) n : 0;
    }
}


static void
turn_until(fixture_t *f, const int *fact, int value)
{
    int  i;

    for (i = 0; i < TURNS_MAX && *fact != value; i++) {
        turn(f);
    }

    assert_int_equal(*fact, value);
}


static void
lines_come_out_however_the_bytes_come_in(void **state)
{
    size_t      i, j;
    fixture_t  *f;

    static const char  text[] = "one\n\ntwo words\nthree\n";

    f = *state;

    for (i = 0; i <= sizeof(text) - 1; i++) {
        for (j = i; j <= sizeof(text) - 1; j++) {
            f->lines = 0;
            say(f, text, i);
            say(f, text + i, j - i);
            say(f, text + j, sizeof(text) - 1 - j);
            turn_until(f, &f->lines, 4);
            assert_string_equal(f->last, "three");
        }
    }
}


static void
an_answer_is_there_at_once(void **state)
{
    char        buf[64];
    ssize_t     n;
    fixture_t  *f;

    f = *state;

    assert_int_equal(line_conn_send(f->conn, "hello", 5), 0);
    assert_int_equal(line_conn_send(f->conn, "", 0), 0);

    n = recv(f->peer, buf, sizeof(buf), 0);
    assert_int_equal(n, 7);
    assert_memory_equal(buf, "hello\n\n", 7);
}


static void
the_longest_line_passes_and_one_byte_more_does_not(void **state)
{
    char       *line;
    fixture_t  *f;

    f = *state;
    line = malloc(LINE_MAX_BYTES + 2);
    memset(line, 'x', LINE_MAX_BYTES + 2);

    line[LINE_MAX_BYTES] = '\n';
    say(f, line, LINE_MAX_BYTES + 1);
    turn_until(f, &f->lines, 1);
    assert_int_equal(f->longest, LINE_MAX_BYTES);
    assert_int_equal(f->closes, 0);

    line[LINE_MAX_BYTES] = 'x';
    line[LINE_MAX_BYTES + 1] = '\n';
    say(f, line, LINE_MAX_BYTES + 2);
    turn_until(f, &f->closes, 1);
    assert_int_equal(f->lines, 1);
    assert_string_equal(f->reason, "line too long");
    free(line);
}


static void
a_peer_that_does_not_read_is_cut_off_at_the_limit(void **state)
{
    int         rc;
    char       *line;
    size_t      queued;
    fixture_t  *f;

    enum { LINE = 1024 * 1024 };

    f = *state;
    line = calloc(1, LINE);
    memset(line, 'x', LINE - 1);
    rc = 0;

    for (queued = 0; rc == 0 && queued < 2 * LINE_QUEUE_BYTES; queued += LINE) {
        rc = line_conn_send(f->conn, line, LINE - 1);
    }

    free(line);

    assert_int_equal(rc, -1);
    assert_true(queued >= LINE_QUEUE_BYTES);
    assert_int_equal(f->closes, 0);
    turn_until(f, &f->closes, 1);
    assert_string_equal(f->reason, "peer does not read");
}


/* Each line is echoed; while answers are unread, lines received already wait,
   too. */
static void
lines_wait_while_their_answers_are_unread(void **state)
{
    int         i, lines;
    char        text[32], answers[65536];
    ssize_t     n;
    fixture_t  *f;

    enum { ASKED = 20000, LEN = 10, LIMIT = 1000 };

    f = *state;
    f->echo = 1;
    line_conn_hold_back(f->conn, LIMIT);

    for (i = 0; i < ASKED; i++) {
        snprintf(text, sizeof(text), "line%05d\n", i);
        n = send(f->peer, text, LEN, MSG_NOSIGNAL);
        turn(f);

        if (n == -1) {
            break;
        }
    }

    assert_in_range(i, LIMIT / LEN + 1, ASKED - 1);
    assert_in_range(line_conn_queued(f->conn), LIMIT + 1, LIMIT + LEN);
    lines = f->lines;

    for (turn(f); f->lines < i; turn(f)) {
        n = recv(f->peer, answers, sizeof(answers), 0);
        assert_true(n > 0 || errno == EAGAIN);
    }

    assert_in_range(lines, 1, i - 1);
    snprintf(text, sizeof(text), "line%05d", i - 1);
    assert_string_equal(f->last, text);

    /* The connection ends as usual, also while it holds lines back. */
    shutdown(f->peer, SHUT_RDWR);
    turn_until(f, &f->closes, 1);
}


static void
destroying_within_a_line_ends_it_there(void **state)
{
    fixture_t  *f;

    f = *state;
    f->destroy_at = "stop";

    say(f, "go\nstop\nnever\n", 14);
    turn_until(f, &f->lines, 2);
    turn(f);
    assert_int_equal(f->lines, 2);
    assert_int_equal(f->closes, 0);
    assert_int_equal(recv(f->peer, f->last, sizeof(f->last), 0), 0);
}


static void
an_orderly_end_has_no_reason_and_a_torn_line_has_one(void **state)
{
    fixture_t  *f;

    f = *state;
    say(f, "whole\n", 6);
    shutdown(f->peer, SHUT_WR);
    turn_until(f, &f->closes, 1);
    assert_string_equal(f->reason, "(end)");
    teardown(state);

    setup(state);
    f = *state;
    say(f, "torn", 4);
    shutdown(f->peer, SHUT_WR);
    turn_until(f, &f->closes, 1);
    assert_string_equal(f->reason, "closed within a line");
    assert_int_equal(f->lines, 0);
}


/* Reads until the end of file; returns the number of bytes. */
static size_t
drain_peer(fixture_t *f)
{
    int      i;
    char     buf[65536];
    size_t   total;
    ssize_t  n;

    total = 0;

    for (i = 0; i < TURNS_MAX; i++) {
        n = recv(f->peer, buf, sizeof(buf), 0);

        if (n == 0) {
            return total;
        }

        total += n > 0 ? (size_t) n : 0;
        turn(f);
    }

    fail();
    return 0;
}


static void
what_is_queued_outlives_finish_and_the_peers_half_close(void **state)
{
    int         i;
    char       *line;
    fixture_t  *f;

    f = *state;
    line = calloc(1, 100000);
    memset(line, 'x', 99999);

    for (i = 0; i < 50; i++) {
        assert_int_equal(line_conn_send(f->conn, line, 99999), 0);
    }

    line_conn_finish(f->conn);
    f->conn = NULL;
    assert_int_equal(drain_peer(f), 50 * 100000);
    assert_int_equal(f->closes, 0);
    teardown(state);

    setup(state);
    f = *state;

    for (i = 0; i < 50; i++) {
        assert_int_equal(line_conn_send(f->conn, line, 99999), 0);
    }

    shutdown(f->peer, SHUT_WR);
    assert_int_equal(drain_peer(f), 50 * 100000);
    assert_int_equal(f->closes, 1);
    free(line);
}


static void
a_connection_to_nowhere_tells_why(void **state)
{
    char  path[300];

    assert_int_equal(line_conn_connect("/nonexistent/socket"), -1);
    assert_int_equal(errno, ENOENT);

    memset(path, 'x', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(line_conn_connect(path), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(lines_come_out_however_the_bytes_come_in),
        TEST(an_answer_is_there_at_once),
        TEST(the_longest_line_passes_and_one_byte_more_does_not),
        TEST(a_peer_that_does_not_read_is_cut_off_at_the_limit),
        TEST(lines_wait_while_their_answers_are_unread),
        TEST(destroying_within_a_line_ends_it_there),
        TEST(an_orderly_end_has_no_reason_and_a_torn_line_has_one),
        TEST(what_is_queued_outlives_finish_and_the_peers_half_close),
        cmocka_unit_test(a_connection_to_nowhere_tells_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * Descriptors that are sent with lines: between two line_conns over a socket
 * pair, or to one from a plain peer that calls sendmsg() as the test wants.
 * Each descriptor is a memfd of as many bytes as its line says: with "fd 17"
 * comes one of 17 bytes.
 */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/line_conn.h"
#include "common/line_fds.h"


#define TURNS_MAX  100000       /* iterations before a test gives up */

typedef struct {
    struct ev_loop  *loop;
    line_conn_t     *conn;      /* the receiver */
    line_conn_t     *sender;    /* or NULL: peer is a plain socket */
    int              peer;
    int              nfds;      /* of this process before the test */
    int              lines;
    int              taken;
    int              closes;
    char             reason[64];
    int              is_taken;  /* take the descriptors that come */
} fixture_t;


static int
count_fds(void)
{
    int   n;
    DIR  *dir;

    dir = opendir("/proc/self/fd");

    for (n = 0; readdir(dir) != NULL; n++) { /* void */ }

    closedir(dir);

    return n;
}


static int
make_fd(int bytes)
{
    int  fd;

    fd = memfd_create("line", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);

    return fd;
}


static void
on_line(line_conn_t *conn, char *line, size_t len)
{
    int          fd, bytes;
    fixture_t   *f;
    struct stat  st;

    f = line_conn_data(conn);
    f->lines++;

    if (!f->is_taken) {
        return;
    }

    fd = line_conn_take_fd(conn);
    assert_int_equal(line_conn_take_fd(conn), -1);

    if (sscanf(line, "fd %d", &bytes) != 1) {
        assert_int_equal(fd, -1);
        return;
    }

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, bytes);
    close(fd);
    f->taken++;
}


static void
on_close(line_conn_t *conn, const char *reason)
{
    fixture_t  *f;

    f = line_conn_data(conn);
    f->closes++;
    snprintf(f->reason, sizeof(f->reason), "%s",
             reason != NULL ? reason : "(end)");

    if (conn == f->conn) {
        f->conn = NULL;

    } else {
        f->sender = NULL;
    }
}


static const line_conn_callbacks_t  callbacks = { on_line, on_close };


static int
setup(void **state)
{
    int         fds[2];
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    f->is_taken = 1;

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fds) != 0) {
        return -1;
    }

    f->peer = fds[1];
    f->conn = line_conn_create(f->loop, fds[0], &callbacks, f);
    ev_run(f->loop, EVRUN_NOWAIT);
    f->nfds = count_fds();
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

    if (f->sender != NULL) {
        line_conn_destroy(f->sender);

    } else if (f->peer != -1) {
        close(f->peer);
    }

    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


static void
turn_until(fixture_t *f, const int *fact, int value)
{
    int  i;

    for (i = 0; i < TURNS_MAX && *fact != value; i++) {
        ev_run(f->loop, EVRUN_NOWAIT);
    }

    assert_int_equal(*fact, value);
}


/* Lets the peer call sendmsg() once, with n descriptors. */
static void
say(fixture_t *f, const char *text, size_t len, const int *fds, size_t n)
{
    struct iovec     bytes;
    struct msghdr    message;
    struct cmsghdr  *control;

    _Alignas(struct cmsghdr) char  space[CMSG_SPACE(4 * sizeof(int))] = { 0 };

    bytes.iov_base = (char *) text;
    bytes.iov_len = len;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;

    if (n > 0) {
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(control), fds, n * sizeof(int));
    }

    assert_int_equal(sendmsg(f->peer, &message, MSG_NOSIGNAL), len);
}


static void
say_with(fixture_t *f, const char *text, size_t len, int bytes)
{
    int  fd;

    fd = make_fd(bytes);
    say(f, text, len, &fd, 1);
    close(fd);
}


/* The reader looks when all lines have come, or after each piece. */
static void
a_descriptor_belongs_to_the_line_it_was_sent_with(void **state)
{
    int         is_read_between;
    fixture_t  *f;

#define PAUSE()  if (is_read_between) { ev_run(f->loop, EVRUN_NOWAIT); }

    f = *state;

    for (is_read_between = 0; is_read_between < 2; is_read_between++) {
        f->lines = 0;
        f->taken = 0;

        say(f, "plain\nbegun ", 12, NULL, 0);
        PAUSE();
        say(f, "and ended\n", 10, NULL, 0);
        say_with(f, "fd 1\n", 5, 1);                /* the whole line */
        PAUSE();
        say_with(f, "f", 1, 2);                     /* its first byte */
        PAUSE();
        say(f, "d 2\nplain\n", 10, NULL, 0);
        say_with(f, "fd", 2, 3);
        PAUSE();
        say(f, " 3", 2, NULL, 0);
        PAUSE();
        say(f, "\n", 1, NULL, 0);
        say_with(f, "f", 1, 4);
        say(f, "d 4\n", 4, NULL, 0);
        say_with(f, "f", 1, 5);
        PAUSE();
        say(f, "d 5\nplain\n", 10, NULL, 0);

        turn_until(f, &f->lines, 9);
        assert_int_equal(f->taken, 5);
    }

#undef PAUSE

    assert_int_equal(count_fds(), f->nfds);
}


static void
what_nobody_takes_is_closed_with_its_line(void **state)
{
    int         i, fds[4];
    fixture_t  *f;

    f = *state;
    f->is_taken = 0;

    for (i = 0; i < 200; i++) {
        say_with(f, "fd 1\n", 5, 1);
        turn_until(f, &f->lines, i + 1);
    }

    assert_int_equal(count_fds(), f->nfds);

    /* More than one descriptor in a message, and more than one with a line. */

    f->is_taken = 1;

    for (i = 0; i < 4; i++) {
        fds[i] = make_fd(7 + i);
    }

    for (i = 2; i <= 4; i++) {
        say(f, "fd 7\n", 5, fds, (size_t) i);
    }

    say(f, "f", 1, fds, 1);
    say(f, "d", 1, fds + 1, 1);
    say(f, " 7\n", 3, fds + 2, 1);
    turn_until(f, &f->lines, 204);
    assert_int_equal(f->taken, 4);

    for (i = 0; i < 4; i++) {
        close(fds[i]);
    }

    assert_int_equal(count_fds(), f->nfds);
}


static void
what_came_for_an_unfinished_line_is_closed_with_the_connection(void **state)
{
    fixture_t  *f;

    f = *state;

    say_with(f, "fd 1", 4, 1);
    ev_run(f->loop, EVRUN_NOWAIT);
    assert_int_equal(count_fds(), f->nfds + 1);

    line_conn_destroy(f->conn);
    f->conn = NULL;
    assert_int_equal(count_fds(), f->nfds - 1);
}


/* More lines than the socket takes, so that most of them wait. */
static void
sent_descriptors_arrive_with_their_lines(void **state)
{
    int         i, fd, n;
    char        line[8000];
    fixture_t  *f;

    f = *state;
    f->sender = line_conn_create(f->loop, f->peer, &callbacks, f);
    memset(line, ' ', sizeof(line));

    for (i = 0; i < 300; i++) {
        if (i % 5 != 0) {
            n = snprintf(line, sizeof(line), "plain %d", i);
            line[n] = ' ';
            assert_int_equal(line_conn_send(f->sender, line,
                                            i % 3 ? sizeof(line) : 10), 0);
            continue;
        }

        fd = make_fd(i + 1);
        n = snprintf(line, sizeof(line), "fd %d", i + 1);
        line[n] = ' ';
        assert_int_equal(line_conn_send_fd(f->sender, line, i % 2
                                           ? sizeof(line) : (size_t) n, fd),
                         0);
        close(fd);
    }

    assert_true(line_conn_queued(f->sender) > 0);
    turn_until(f, &f->lines, 300);
    assert_int_equal(f->taken, 60);
    assert_int_equal(f->closes, 0);
    assert_int_equal(count_fds(), f->nfds);
}


static void
a_peer_that_takes_no_descriptors_is_cut_off_at_the_limit(void **state)
{
    int         i, fd;
    char       *line;
    fixture_t  *f;

    enum { LONG = 1024 * 1024 };

    f = *state;
    line = calloc(1, LONG);
    memset(line, 'x', LONG);
    assert_int_equal(line_conn_send(f->conn, line, LONG), 0);
    free(line);
    fd = make_fd(1);

    for (i = 0; i < LINE_FDS_MAX; i++) {
        assert_int_equal(line_conn_send_fd(f->conn, "fd 1", 4, fd), 0);
    }

    assert_int_equal(line_conn_send_fd(f->conn, "fd 1", 4, fd), -1);
    assert_int_equal(f->closes, 0);
    turn_until(f, &f->closes, 1);
    assert_string_equal(f->reason, "peer does not read");
    close(fd);
    assert_int_equal(count_fds(), f->nfds - 1);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_descriptor_belongs_to_the_line_it_was_sent_with),
        TEST(what_nobody_takes_is_closed_with_its_line),
        TEST(what_came_for_an_unfinished_line_is_closed_with_the_connection),
        TEST(sent_descriptors_arrive_with_their_lines),
        TEST(a_peer_that_takes_no_descriptors_is_cut_off_at_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

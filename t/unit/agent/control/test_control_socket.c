
/* The socket file: its owner, and which agent may replace it. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/control.h"
#include "common/line_conn.h"
#include "t/unit/agent/control/control_scene.h"


typedef struct {
    char              dir[32];
    char              path[64];
    char              error[UNIX_LISTENER_ERROR_BYTES];
    struct ev_loop   *loop;
    control_scene_t   scene;
    int               nlost;
} socket_scene_t;


static void
on_lost(void *data, command_peer_t *peer)
{
    socket_scene_t  *s;

    s = (socket_scene_t *) ((char *) data - offsetof(socket_scene_t, scene));
    s->nlost++;
}


static void
init(socket_scene_t *s)
{
    memset(s, 0, sizeof(socket_scene_t));
    strcpy(s->dir, "/tmp/llmgw-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/a.sock", s->dir);
    s->loop = ev_loop_new(0);
    scene_init(&s->scene);
}


static void
done(socket_scene_t *s)
{
    ev_loop_destroy(s->loop);
    unlink(s->path);
    assert_int_equal(rmdir(s->dir), 0);
}


static control_t *
create(socket_scene_t *s)
{
    return control_create(s->loop, s->path, &s->scene.env, on_lost,
                          s->error);
}


static void
living_agents_socket_is_not_taken(void **state)
{
    control_t       *first;
    socket_scene_t   s;

    init(&s);
    first = create(&s);
    assert_non_null(first);
    assert_null(create(&s));
    assert_non_null(strstr(s.error, "another process"));

    control_destroy(first);
    assert_int_equal(access(s.path, F_OK), -1);
    done(&s);
}


static void
dead_agents_socket_is_replaced_and_others_cannot_open_it(void **state)
{
    int                  fd;
    struct stat          st;
    control_t           *control;
    socket_scene_t       s;
    struct sockaddr_un   un;

    init(&s);
    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    strcpy(un.sun_path, s.path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
    close(fd);

    control = create(&s);
    assert_non_null(control);
    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);

    /* A file that another process has put at the path meanwhile is
       left alone. */
    unlink(s.path);
    close(creat(s.path, 0600));
    control_destroy(control);
    assert_int_equal(access(s.path, F_OK), 0);
    done(&s);
}


static void
file_that_is_no_socket_is_left_alone(void **state)
{
    socket_scene_t  s;

    init(&s);
    close(creat(s.path, 0600));
    assert_null(create(&s));
    assert_non_null(strstr(s.error, "no socket"));
    assert_int_equal(access(s.path, F_OK), 0);
    done(&s);
}


static void
turns(socket_scene_t *s)
{
    int  i;

    for (i = 0; i < 1000; i++) {
        ev_run(s->loop, EVRUN_NOWAIT);
    }
}


/* A connection that listens to events, so that it is not idle. */
static int
listener(const socket_scene_t *s)
{
    int  fd;

    fd = line_conn_connect(s->path);
    assert_true(fd != -1);
    assert_true(dprintf(fd, "{\"cmd\":\"events\"}\n") > 0);

    return fd;
}


static int
idler(const socket_scene_t *s)
{
    int  fd;

    fd = line_conn_connect(s->path);
    assert_true(fd != -1);

    return fd;
}


static int
is_closed(int fd)
{
    char  line[128];

    return read(fd, line, sizeof(line)) == 0;
}


static void
assert_answered(int fd, const char *what)
{
    char     line[4096];
    ssize_t  n;

    n = read(fd, line, sizeof(line) - 1);
    assert_true(n > 0);
    line[n] = '\0';
    assert_non_null(strstr(line, what));
}


/* Idle connections take all places: the oldest of them is closed
   for another. */
static void
idle_connections_keep_nobody_out(void **state)
{
    int              i, fds[CONTROL_MAX_CONNS], fd;
    control_t       *control;
    socket_scene_t   s;

    init(&s);
    control = create(&s);

    for (i = 0; i < CONTROL_MAX_CONNS; i++) {
        fds[i] = i == 0 ? listener(&s) : idler(&s);
        turns(&s);
    }

    fd = idler(&s);
    turns(&s);
    assert_true(write(fd, "{}\n", 3) == 3);
    turns(&s);
    assert_answered(fd, "bad_request");
    assert_answered(fds[0], "members");
    assert_false(is_closed(fds[0]));
    assert_true(is_closed(fds[1]));
    assert_false(is_closed(fds[2]));
    close(fd);

    for (i = 0; i < CONTROL_MAX_CONNS; i++) {
        close(fds[i]);
    }

    control_destroy(control);
    done(&s);
}


/* No connection is idle: an owner gets in, up to the places for owners. */
static void
owners_get_in_and_strangers_are_told_that_it_is_busy(void **state)
{
    int              i, fds[CONTROL_MAX_CONNS + CONTROL_OWNER_CONNS], fd;
    control_t       *control;
    socket_scene_t   s;

    init(&s);
    s.scene.env.uid = geteuid();
    control = create(&s);

    for (i = 0; i < CONTROL_MAX_CONNS + CONTROL_OWNER_CONNS; i++) {
        fds[i] = listener(&s);
        turns(&s);
        assert_answered(fds[i], "members");
    }

    fd = idler(&s);
    turns(&s);
    assert_answered(fd, "\"code\":\"busy\"");
    assert_true(is_closed(fd));
    close(fd);

    close(fds[0]);
    turns(&s);
    fds[0] = listener(&s);
    turns(&s);
    assert_answered(fds[0], "members");
    control_destroy(control);

    for (i = 0; i < CONTROL_MAX_CONNS + CONTROL_OWNER_CONNS; i++) {
        close(fds[i]);
    }

    done(&s);
}


static void
idle_connections_are_closed_and_reporters_missed(void **state)
{
    int              idle, events, reporter;
    control_t       *control;
    socket_scene_t   s;

    init(&s);
    control = create(&s);
    idle = idler(&s);
    events = listener(&s);
    reporter = idler(&s);
    dprintf(reporter, "{\"cmd\":\"report\",\"replica_start\":1,\"pid\":1,"
            "\"model_version\":\"v1\",\"max_capacity\":1,"
            "\"active_requests\":0}\n");
    turns(&s);
    assert_answered(events, "members");
    assert_answered(reporter, "ok");
    assert_int_equal(s.scene.nreports, 1);

    control_expire(control, CONTROL_IDLE_S);
    turns(&s);
    assert_false(is_closed(idle));
    control_expire(control, 0.);
    turns(&s);
    assert_true(is_closed(idle));
    assert_false(is_closed(events));
    assert_false(is_closed(reporter));
    assert_int_equal(s.nlost, 0);

    close(reporter);
    turns(&s);
    assert_int_equal(s.nlost, 1);

    control_destroy(control);
    close(idle);
    close(events);
    done(&s);
}


static int
is_drained(int fd, char *rest)
{
    return recv(fd, rest, 65536, MSG_DONTWAIT) <= 0;
}


/* The client's requests wait until it reads; then all of them are answered. */
static void
client_that_does_not_read_is_answered_no_more(void **state)
{
    int              fd, i, nasked, nfull, other;
    char            *buf;
    size_t           answer, most;
    ssize_t          n;
    control_t       *control;
    socket_scene_t   s;

    static const char  ask[] = "{\"cmd\":\"members\"}\n";

    enum { ASK = sizeof(ask) - 1, ASKED = 40000, SOCKETS = 1024 * 1024 };

    init(&s);
    control = create(&s);
    fd = idler(&s);
    buf = malloc(65536);

    assert_int_equal(write(fd, ask, ASK), ASK);
    turns(&s);
    answer = recv(fd, buf, 65536, 0);
    s.scene.nviews = 0;
    nasked = 0;

    for (nfull = 0; nfull < 3 && nasked < ASKED; ev_run(s.loop, EVRUN_NOWAIT)) {
        n = send(fd, ask, ASK, MSG_DONTWAIT|MSG_NOSIGNAL);
        assert_true(n == ASK || n == -1);
        nasked += n == ASK;

        if (n == -1) {
            turns(&s);
            nfull++;
        }
    }

    assert_int_equal(nfull, 3);
    most = CONTROL_ANSWERS_BYTES + SOCKETS;
    assert_in_range(s.scene.nviews, CONTROL_ANSWERS_BYTES / answer,
                    most / answer);

    other = idler(&s);
    assert_int_equal(write(other, ask, ASK), ASK);
    turns(&s);
    assert_answered(other, "members");

    for (i = 0; i < 1000 && s.scene.nviews <= nasked; i++) {
        while (!is_drained(fd, buf)) { /* void */ }
        turns(&s);
    }

    assert_int_equal(s.scene.nviews, nasked + 1);
    control_destroy(control);
    close(other);
    close(fd);
    free(buf);
    done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(living_agents_socket_is_not_taken),
        cmocka_unit_test(
            dead_agents_socket_is_replaced_and_others_cannot_open_it),
        cmocka_unit_test(file_that_is_no_socket_is_left_alone),
        cmocka_unit_test(idle_connections_keep_nobody_out),
        cmocka_unit_test(owners_get_in_and_strangers_are_told_that_it_is_busy),
        cmocka_unit_test(idle_connections_are_closed_and_reporters_missed),
        cmocka_unit_test(client_that_does_not_read_is_answered_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

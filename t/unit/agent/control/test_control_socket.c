
/* The socket file: whose it is, and who may replace it. */

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
    char              error[CONTROL_ERROR_BYTES];
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
    assert_non_null(strstr(s.error, "another agent"));

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

    /* One that another agent has put there meanwhile is left alone. */
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


/* The 65th waits until one of the 64 has gone. */
static void
connections_are_limited_and_reporters_missed(void **state)
{
    int              i, fds[65];
    char             line[128];
    control_t       *control;
    socket_scene_t   s;

    init(&s);
    control = create(&s);

    for (i = 0; i < 65; i++) {
        fds[i] = line_conn_connect(s.path);
        assert_true(fds[i] != -1);
        assert_int_equal(write(fds[i], "{}\n", 3), 3);
    }

    for (i = 0; i < 1000; i++) {
        ev_run(s.loop, EVRUN_NOWAIT);
    }

    assert_true(read(fds[63], line, sizeof(line)) > 0);
    assert_int_equal(read(fds[64], line, sizeof(line)), -1);

    dprintf(fds[0], "{\"cmd\":\"report\",\"replica_start\":1,\"pid\":1,"
            "\"model_version\":\"v1\",\"max_capacity\":1,"
            "\"active_requests\":0}\n");
    close(fds[0]);
    close(fds[1]);

    for (i = 0; i < 1000; i++) {
        ev_run(s.loop, EVRUN_NOWAIT);
    }

    assert_true(read(fds[64], line, sizeof(line)) > 0);
    assert_int_equal(s.scene.nreports, 1);
    assert_int_equal(s.nlost, 1);

    control_destroy(control);

    for (i = 2; i < 65; i++) {
        close(fds[i]);
    }

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
        cmocka_unit_test(connections_are_limited_and_reporters_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

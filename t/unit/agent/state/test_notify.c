
/* What a service manager receives; a datagram socket stands in for it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "state/notify.h"


/* An abstract socket, so that no file is left; sets the environment. */
static int
manager(const char *watchdog_usec, const char *watchdog_pid)
{
    int                 fd;
    char                name[64];
    socklen_t           len;
    struct sockaddr_un  un;

    snprintf(name, sizeof(name), "@llmgw-notify-test-%d", (int) getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", watchdog_usec, 1);
    setenv("WATCHDOG_PID", watchdog_pid, 1);

    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path, name, strlen(name));
    un.sun_path[0] = '\0';
    len = offsetof(struct sockaddr_un, sun_path) + strlen(name);

    fd = socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &un, len), 0);

    return fd;
}


/* The next datagram, "" if there is none. */
static const char *
heard(int fd, char *buf)
{
    ssize_t  n;

    n = recv(fd, buf, 63, 0);
    buf[n > 0 ? n : 0] = '\0';

    return buf;
}


static void
ready_heartbeats_and_stopping_are_told(void **state)
{
    int              i, fd;
    char             self[16], buf[64];
    notify_t         notify;
    struct ev_loop  *loop;

    snprintf(self, sizeof(self), "%d", (int) getpid());
    fd = manager("20000", self);
    loop = ev_loop_new(0);

    notify_init(&notify, loop);
    notify_ready(&notify);
    assert_string_equal(heard(fd, buf), "READY=1");

    for (i = 0; i < 2; i++) {
        while (heard(fd, buf)[0] == '\0') {
            ev_run(loop, EVRUN_ONCE);
        }

        assert_string_equal(buf, "WATCHDOG=1");
    }

    notify_stopping(&notify);
    assert_string_equal(heard(fd, buf), "STOPPING=1");

    notify_done(&notify);
    notify_ready(&notify);
    assert_string_equal(heard(fd, buf), "");

    ev_loop_destroy(loop);
    close(fd);
}


static void
the_environment_is_not_passed_on(void **state)
{
    int              fd;
    notify_t         notify;
    struct ev_loop  *loop;

    fd = manager("20000", "1");
    loop = ev_loop_new(0);
    notify_init(&notify, loop);

    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));

    notify_done(&notify);
    ev_loop_destroy(loop);
    close(fd);
}


static void
another_processs_watchdog_is_not_fed(void **state)
{
    int              fd;
    notify_t         notify;
    struct ev_loop  *loop;

    fd = manager("20000", "1");
    loop = ev_loop_new(0);
    notify_init(&notify, loop);
    assert_false(ev_is_active(&notify.heartbeat));
    notify_done(&notify);

    ev_loop_destroy(loop);
    close(fd);
}


static void
no_manager_and_bad_ones_are_none(void **state)
{
    size_t           i;
    char             longest[300];
    notify_t         notify;
    struct ev_loop  *loop;
    const char      *bad[] = { "", "@", "relative", longest, NULL };

    memset(longest, '/', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    loop = ev_loop_new(0);

    unsetenv("NOTIFY_SOCKET");
    notify_init(&notify, loop);
    assert_int_equal(notify.fd, -1);
    notify_ready(&notify);
    notify_done(&notify);

    for (i = 0; bad[i] != NULL; i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        setenv("WATCHDOG_USEC", "20000", 1);
        notify_init(&notify, loop);
        assert_int_equal(notify.fd, -1);
        assert_false(ev_is_active(&notify.heartbeat));
        notify_ready(&notify);
        notify_done(&notify);
    }

    ev_loop_destroy(loop);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ready_heartbeats_and_stopping_are_told),
        cmocka_unit_test(the_environment_is_not_passed_on),
        cmocka_unit_test(another_processs_watchdog_is_not_fed),
        cmocka_unit_test(no_manager_and_bad_ones_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

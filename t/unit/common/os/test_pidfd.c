
/* Processes by their pidfds: a child of this test, and the test itself. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/os/pidfd.h"


static pid_t
start_child(void)
{
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }

    return pid;
}


static void
a_peer_is_found_and_its_death_is_seen(void **state)
{
    int       fds[2];
    pid_t     pid;
    pidfd_t   peer;

    struct pollfd  end;

    pid = start_child();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(pidfd_of_peer(fds[0], pidfd_ticks(), &peer), 0);
    assert_int_equal(peer.pid, getpid());
    assert_true(peer.start_ticks > 0);
    assert_true(peer.start_ticks <= pidfd_ticks());
    assert_true(pidfd_is_valid(peer.fd));
    assert_true(pidfd_can_signal(peer.fd));
    assert_false(pidfd_is_dead(peer.fd));
    assert_true(pidfd_is_of_user(peer.fd, getuid()));
    assert_false(pidfd_is_of_user(peer.fd, getuid() + 1));
    close(peer.fd);

    peer.fd = pidfd_open(pid, 0);
    assert_int_equal(pidfd_kill(peer.fd), 0);
    end = (struct pollfd) { peer.fd, POLLIN, 0 };
    assert_int_equal(poll(&end, 1, 60000), 1);
    assert_true(pidfd_is_dead(peer.fd));
    assert_false(pidfd_is_of_user(peer.fd, getuid()));
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    /* Of a process that has been reaped nothing is left that a signal could
       reach. */

    assert_true(pidfd_can_signal(peer.fd));
    assert_int_equal(pidfd_kill(peer.fd), -1);
    assert_int_equal(errno, ESRCH);
    close(peer.fd);
    close(fds[0]);
    close(fds[1]);
}


static void
a_number_is_only_good_with_its_beginning(void **state)
{
    int        fd, fds[2];
    pid_t      pid;
    pidfd_t    self;
    uint64_t   i, now;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(pidfd_of_peer(fds[0], pidfd_ticks(), &self), 0);
    close(self.fd);
    close(fds[0]);
    close(fds[1]);

    fd = pidfd_of_process(self.pid, self.start_ticks);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(pidfd_of_process(self.pid, self.start_ticks - 1), -1);
    assert_int_equal(pidfd_of_process(self.pid, self.start_ticks + 1), -1);
    assert_int_equal(pidfd_of_process(0, self.start_ticks), -1);

    /* A zombie still has a pid and a start time, but it is dead. */

    pid = start_child();
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t) pid, &(siginfo_t) { 0 }, WEXITED|WNOWAIT);

    for (now = pidfd_ticks(), i = 0; i < 100; i++) {
        assert_int_equal(pidfd_of_process(pid, now - i), -1);
    }

    assert_int_equal(waitpid(pid, NULL, 0), pid);
}


static void
other_descriptors_are_told_from_processes(void **state)
{
    int  fd;

    fd = open("/dev/null", O_RDONLY|O_CLOEXEC);
    assert_false(pidfd_is_valid(fd));
    assert_false(pidfd_is_of_user(fd, getuid()));
    close(fd);
    assert_false(pidfd_is_valid(fd));
}


static void
this_boot_has_a_name(void **state)
{
    char  id[PIDFD_BOOT_ID_BYTES];

    pidfd_boot_id(id);
    assert_int_equal(strlen(id), PIDFD_BOOT_ID_BYTES - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_peer_is_found_and_its_death_is_seen),
        cmocka_unit_test(a_number_is_only_good_with_its_beginning),
        cmocka_unit_test(other_descriptors_are_told_from_processes),
        cmocka_unit_test(this_boot_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}


/*
 * Preloaded into a daemon: memory, or a disk, that is slow to read.  While the
 * file that $SLOW_PREAD names exists, pread(2) does not return; a second file,
 * with ".held" behind that name, shows that a call has been reached.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


static void
tell(const char *gate)
{
    char  path[PATH_MAX];

    snprintf(path, sizeof(path), "%s.held", gate);
    close(open(path, O_WRONLY|O_CREAT|O_CLOEXEC, 0600));
}


ssize_t
pread(int fd, void *buf, size_t len, off_t at)
{
    const char       *gate;
    struct timespec   pause = { 0, 5000000 };

    gate = getenv("SLOW_PREAD");

    while (gate != NULL && access(gate, F_OK) == 0) {
        tell(gate);
        nanosleep(&pause, NULL);
    }

    return syscall(SYS_pread64, fd, buf, len, at);
}

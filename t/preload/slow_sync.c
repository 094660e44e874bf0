
/*
 * Preloaded into an agent: a disk that is slow.  While the file that
 * $SLOW_SYNC names exists, fsync(2) does not return.
 */

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


int
fsync(int fd)
{
    const char       *gate;
    struct timespec   pause = { 0, 5000000 };

    gate = getenv("SLOW_SYNC");

    while (gate != NULL && access(gate, F_OK) == 0) {
        nanosleep(&pause, NULL);
    }

    return (int) syscall(SYS_fsync, fd);
}

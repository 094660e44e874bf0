
/* Preloaded into a daemon: a kernel from before SO_PEERPIDFD (6.5). */

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>


int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    if (level == SOL_SOCKET && name == 77 /* SO_PEERPIDFD */) {
        errno = ENOPROTOOPT;
        return -1;
    }

    return (int) syscall(SYS_getsockopt, fd, level, name, value, len);
}

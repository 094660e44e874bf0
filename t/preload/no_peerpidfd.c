
/* Preloaded into a daemon: getsockopt(2) is that of a kernel before 6.5, which
   has no SO_PEERPIDFD. */

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

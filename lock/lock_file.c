
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lock/lock_file.h"


static machine_file_t
lock_file_ask(int fd, int *error)
{
    struct flock  lock;

    memset(&lock, 0, sizeof(lock));
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;

    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        *error = errno;
        return MACHINE_FILE_HELD;
    }

    return lock.l_type == F_UNLCK ? MACHINE_FILE_FREE : MACHINE_FILE_HELD;
}


machine_file_t
lock_file_state(const char *dir, const char *group, int *error)
{
    int             fd;
    char            path[PATH_MAX];
    machine_file_t  state;

    *error = 0;
    snprintf(path, sizeof(path), "%s/%s.lock", dir, group);
    fd = open(path, O_RDONLY|O_NONBLOCK|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        if (errno == ENOENT) {
            return MACHINE_FILE_MISSING;
        }

        *error = errno;
        return MACHINE_FILE_HELD;
    }

    state = lock_file_ask(fd, error);
    close(fd);

    return state;
}


#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/os/atomic_file.h"


#define KEPT_FILE_MODE  0644


int
atomic_file_put(int fd, const char *content, size_t len)
{
    ssize_t  n;

    while (len > 0) {
        n = write(fd, content, len);

        if (n < 0 && errno != EINTR) {
            return -1;
        }

        if (n > 0) {
            content += n;
            len -= (size_t) n;
        }
    }

    return fsync(fd);
}


static int
atomic_file_fill(const char *path, const char *content, size_t len)
{
    int  fd, rc;

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, KEPT_FILE_MODE);

    if (fd == -1) {
        return -1;
    }

    rc = atomic_file_put(fd, content, len);

    return close(fd) != 0 ? -1 : rc;
}


void
atomic_file_sync_dir(const char *path)
{
    int   fd;
    char  copy[PATH_MAX];

    snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd != -1) {
        (void) fsync(fd);
        close(fd);
    }
}


int
atomic_file_write(const char *path, const char *content, size_t len)
{
    int   saved;
    char  fresh[PATH_MAX];

    if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }

    if (atomic_file_fill(fresh, content, len) != 0
        || rename(fresh, path) != 0)
    {
        saved = errno;
        unlink(fresh);
        errno = saved;
        return -1;
    }

    atomic_file_sync_dir(path);

    return 0;
}


/*
 * Preloaded into nginx: of a file whose name ends in ".N" the N-th read by
 * pread(2) fails, once, and standard error says so.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>


#define FILES_MAX  64

static unsigned  nreads[FILES_MAX];     /* of the file whose name ends in .N */


/* The N at the end of an open file's name; 0 if there is none. */
static unsigned
file_number(int fd)
{
    char     link[64], path[4096], *dot;
    ssize_t  len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    if (len < 0) {
        return 0;
    }

    path[len] = '\0';
    dot = strrchr(path, '.');

    return dot ? (unsigned) strtoul(dot + 1, NULL, 10) % FILES_MAX : 0;
}


ssize_t
pread64(int fd, void *buf, size_t bytes, off64_t offset)
{
    unsigned  n;

    n = file_number(fd);

    if (n != 0 && ++nreads[n] == n) {
        dprintf(STDERR_FILENO, "read %u of file %u fails\n", n, n);
        errno = EIO;
        return -1;
    }

    return syscall(SYS_pread64, fd, buf, bytes, offset);
}


ssize_t
pread(int fd, void *buf, size_t bytes, off_t offset)
{
    return pread64(fd, buf, bytes, offset);
}

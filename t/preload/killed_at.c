
/*
 * Preloaded into a service that keeps a state file: it is killed at the moment
 * that $KILLED_AT names.
 *
 *   open      before the new file is opened
 *   fsync     when the file is written, but not yet synced
 *   rename    when the file has its name
 *   offer     when the line "offer" has been sent
 *   granted   when the line "granted" has been sent
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>


static void
at(const char *moment)
{
    const char  *chosen;

    chosen = getenv("KILLED_AT");

    if (chosen != NULL && strcmp(chosen, moment) == 0) {
        kill(getpid(), SIGKILL);
    }
}


int
open(const char *path, int flags, ...)
{
    va_list   args;
    mode_t    mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);

    if (flags & O_TRUNC) {
        at("open");
    }

    return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}


int
fsync(int fd)
{
    at("fsync");

    return (int) syscall(SYS_fsync, fd);
}


int
rename(const char *from, const char *to)
{
    int  rc;

    rc = (int) syscall(SYS_rename, from, to);
    at("rename");

    return rc;
}


ssize_t
send(int fd, const void *data, size_t len, int flags)
{
    ssize_t  n;

    n = syscall(SYS_sendto, fd, data, len, flags, NULL, 0);

    if (memmem(data, len, "\"offer\"", 7) != NULL) {
        at("offer");
    }

    if (memmem(data, len, "\"granted\"", 9) != NULL) {
        at("granted");
    }

    return n;
}

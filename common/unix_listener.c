
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/line_conn.h"
#include "common/unix_listener.h"


#define UNIX_LISTENER_BACKLOG  64

/* Another process that starts needs only a few system calls while it holds the
   folder's lock.  A process that holds the lock longer than this does not keep
   services from starting. */
#define UNIX_LISTENER_TURN_MS  2000
#define UNIX_LISTENER_POLL_MS  10


/*
 * Processes that start in one folder take turns from bind(2) to listen(2): in
 * between, a socket file looks like one that a dead process left, and would be
 * removed.  Returns -1 if the folder cannot be locked, as on some network file
 * systems.
 */
static int
unix_listener_lock(const char *path)
{
    int   fd, waited_ms;
    char  copy[PATH_MAX];

    snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    for (waited_ms = 0;
         fd != -1 && flock(fd, LOCK_EX|LOCK_NB) == -1;
         waited_ms += UNIX_LISTENER_POLL_MS)
    {
        if (errno != EWOULDBLOCK || waited_ms >= UNIX_LISTENER_TURN_MS) {
            close(fd);
            return -1;
        }

        usleep(UNIX_LISTENER_POLL_MS * 1000);
    }

    return fd;
}


/* Whether a process listens at the existing socket file. */
static int
unix_listener_is_served(const char *path)
{
    int  fd;

    fd = line_conn_connect(path);

    if (fd == -1) {
        return errno != ECONNREFUSED && errno != ENOENT;
    }

    close(fd);

    return 1;
}


static int
unix_listener_bind(int fd, const char *path)
{
    int                 rc;
    mode_t              mask;
    struct sockaddr_un  un;

    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(un.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    strcpy(un.sun_path, path);

    /* mode 0660 from the first moment on */
    mask = umask(0117);
    rc = bind(fd, (struct sockaddr *) &un, sizeof(un));
    umask(mask);

    return rc;
}


static int
unix_listener_listen(int fd, const char *path, char *error)
{
    int          rc;
    struct stat  st;

    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES, "\"%s\" is no socket",
                 path);
        return -1;
    }

    rc = unix_listener_bind(fd, path);

    if (rc == -1 && errno == EADDRINUSE) {

        if (unix_listener_is_served(path)) {
            snprintf(error, UNIX_LISTENER_ERROR_BYTES,
                     "another process is serving socket \"%s\"", path);
            return -1;
        }

        unlink(path);
        rc = unix_listener_bind(fd, path);
    }

    if (rc == -1 || listen(fd, UNIX_LISTENER_BACKLOG) == -1) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES,
                 "cannot listen at socket \"%s\": %s", path, strerror(errno));
        return -1;
    }

    return 0;
}


int
unix_listener_init(unix_listener_t *listener, struct ev_loop *loop,
    const char *path, listener_accept_pt on_accept, void *data, char *error)
{
    int          fd, lock, rc;
    struct stat  st;

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES, "no socket: %s",
                 strerror(errno));
        return -1;
    }

    lock = unix_listener_lock(path);
    rc = unix_listener_listen(fd, path, error);

    if (lock != -1) {
        close(lock);
    }

    if (rc != 0) {
        close(fd);
        return -1;
    }

    listener->path = strdup(path);

    if (listener->path == NULL || stat(path, &st) == -1) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES,
                 "cannot keep socket \"%s\": %s", path, strerror(errno));
        free(listener->path);
        close(fd);
        return -1;
    }

    listener->dev = st.st_dev;
    listener->ino = st.st_ino;
    listener_init(&listener->listener, loop, fd, on_accept, data);

    return 0;
}


int
unix_listener_is_there(const unix_listener_t *listener)
{
    struct stat  st;

    return stat(listener->path, &st) == 0 && st.st_dev == listener->dev
           && st.st_ino == listener->ino;
}


void
unix_listener_done(unix_listener_t *listener)
{
    if (unix_listener_is_there(listener)) {
        unlink(listener->path);
    }

    listener_done(&listener->listener);
    free(listener->path);
}

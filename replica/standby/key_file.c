
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replica/standby/key_file.h"


/* The mode of the socket beside it. */
#define KEY_FILE_MODE  0660


int
key_file_init(key_file_t *file, const char *socket, const char *group)
{
    int          n, dir;
    const char  *slash;

    slash = strrchr(socket, '/');
    dir = slash != NULL ? (int) (slash - socket) + 1 : 0;
    n = snprintf(file->path, sizeof(file->path), "%.*s%s.lock", dir, socket,
                 group);
    file->socket = socket;
    file->fd = -1;

    return n > 0 && (size_t) n < sizeof(file->path) ? 0 : -1;
}


static int
key_file_fail(key_file_t *file, const char *what, char *error)
{
    snprintf(error, KEY_FILE_ERROR_BYTES, "\"%s\": %s", file->path, what);

    if (file->fd != -1) {
        close(file->fd);
        file->fd = -1;
    }

    return -1;
}


int
key_file_check(key_file_t *file, char *error)
{
    char         dir[PATH_MAX];
    const char  *slash;

    file->fd = open(file->path, O_RDWR|O_NOFOLLOW|O_CLOEXEC);

    if (file->fd != -1) {
        close(file->fd);
        file->fd = -1;
        return 0;
    }

    slash = strrchr(file->path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash != NULL
             ? (int) (slash - file->path) + 1 : 1,
             slash != NULL ? file->path : ".");

    return errno == ENOENT && access(dir, W_OK|X_OK) == 0
           ? 0 : key_file_fail(file, strerror(errno), error);
}


/*
 * Sets group and mode, if this process owns the file: the next engine may run
 * as another user, with another umask.  A failure is ignored, since the file
 * still works for one user.
 */
static void
key_file_share(const key_file_t *file)
{
    struct stat  held, socket;

    if (fstat(file->fd, &held) != 0 || held.st_uid != geteuid()) {
        return;
    }

    if (stat(file->socket, &socket) == 0 && socket.st_gid != held.st_gid) {
        (void) !fchown(file->fd, (uid_t) -1, socket.st_gid);
    }

    (void) fchmod(file->fd, KEY_FILE_MODE);
}


int
key_file_take(key_file_t *file, char *error)
{
    struct flock  whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    file->fd = open(file->path, O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC,
                    KEY_FILE_MODE);

    if (file->fd == -1) {
        return key_file_fail(file, strerror(errno), error);
    }

    key_file_share(file);

    if (fcntl(file->fd, F_OFD_SETLK, &whole) == -1) {
        return key_file_fail(file, errno == EAGAIN || errno == EACCES
                              ? "another process holds it" : strerror(errno),
                              error);
    }

    return key_file_is_ours(file)
           ? 0 : key_file_fail(file, "it was replaced", error);
}


int
key_file_is_ours(const key_file_t *file)
{
    struct stat  held, there;

    return fstat(file->fd, &held) == 0 && lstat(file->path, &there) == 0
           && held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}
